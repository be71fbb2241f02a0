"""Reads the parts of docstrings that programs use: a line for each parameter, each metric, and a protocol's question.

A line is a name, two or more spaces, and its meaning; continuation lines begin with three spaces. A class documents its
parameters this way; the module of a protocol its question (`asks`) and its metrics, whose meaning begins with ↑ if higher
is better, ↓ if lower is, and · if neither is. In a question `{methods}` stands for what is judged ("three explanations"),
`{do}` or `{Do}` for its verb. Docstrings have no part in keys: better words make no result stale.
"""

import inspect
import re
from collections.abc import Iterable
from typing import Any

_LINE = re.compile(r"^([a-z]\w*) {2,}(\S.*)$")
#: The marks at the beginning of a metric's meaning: which values are better.
MARKS = {"↑": "higher", "↓": "lower", "·": ""}


def is_line(text: str) -> bool:
    """Whether the first line of a text is a name and its meaning."""
    return bool(_LINE.match(text.partition("\n")[0]))


def documented(text: str) -> dict[str, str]:
    """The names that a docstring documents, each with its meaning on one line.

    >>> documented("Of draws.\\n\\nframes  of a draw;\\n        many\\nbins    of equal width")
    {'frames': 'of a draw; many', 'bins': 'of equal width'}
    """
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if match := _LINE.match(line):
            name = match[1]
            found[name] = match[2]
        elif name and line.startswith("   "):
            found[name] += f" {line.strip()}"
        else:
            name = ""
    return found


def asked(protocol: Any, metrics: Iterable[str]) -> tuple[str, dict[str, list[str]]]:
    """The question of a protocol; and for each documented metric which way is better ("" if neither) and its meaning.

    >>> from diorama.protocols.codes.sap import Sap
    >>> question, meanings = asked(Sap(), ["sap", "other"])
    >>> question, meanings["sap"][0], list(meanings)
    ('Does one latent predict each factor far better than any other in {methods}?', 'higher', ['sap'])
    """
    found: dict[str, str] = {}
    for owner in reversed(type(protocol).__mro__):
        module = inspect.getmodule(owner)
        for text in (module.__doc__ if module else "", owner.__doc__):
            lines = documented(inspect.cleandoc(text or ""))
            found |= {name: line for name, line in lines.items() if name == "asks" or line[0] in MARKS}  # no parameters
    known = {name: found[name] for name in metrics if name in found}
    return found.get("asks", ""), {name: [MARKS[text[0]], text[1:].strip()] for name, text in known.items()}
