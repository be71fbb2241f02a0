"""Every protocol says what it asks, and of every metric what it means and which way is good."""

import pytest

from diorama.core.catalogue import entries, find, parameters
from diorama.core.contracts import Protocol
from diorama.core.wording import MARKS, asked, documented
from tests.conftest import REPOSITORY

PROTOCOLS = [e for e in entries("protocol").values() if e.path.is_relative_to(REPOSITORY)]


@pytest.mark.parametrize("entry", PROTOCOLS, ids=lambda e: e.name)
def test_a_protocol_says_what_it_asks_and_what_its_metrics_mean(entry):
    import inspect

    target = find("protocol", entry.name).target
    said = documented(inspect.cleandoc(inspect.getmodule(target).__doc__))
    assert said["asks"].endswith("?")
    needed = [p for p in parameters(target) if p.default is p.empty]
    if needed:  # it cannot be built without data: what the class itself lists must be there
        listed = vars(target)["metrics"]
        assert set(listed) <= said.keys()
        return
    found: Protocol = target()
    question, meanings = asked(found, (*found.derived, *found.metrics))
    assert question == said["asks"]
    assert set(meanings) == {*found.derived, *found.metrics}
    lead = (*found.derived, *found.metrics)[0]
    assert meanings[lead][0] == found.direction or (lead == "tcav" and meanings[lead][0] == "")


def test_variants_document_their_metrics_too():
    from diorama.protocols.codes.uc import Uc
    from diorama.protocols.concepts.csm.csm import Csm
    from diorama.protocols.layers.lmse import Lmse

    for one in (Uc(variant="published"), Lmse(preset="barron"), Lmse(preset="fan")):
        assert set(asked(one, one.metrics)[1]) == set(one.metrics)
    assert set(documented(__import__(Csm.__module__, fromlist=["x"]).__doc__)) >= {
        "csm_r",
        "csm_s",
        "log_csm_r",
        "log_csm_s",
    }


def test_marks_are_three():
    assert set(MARKS) == {"↑", "↓", "·"}
