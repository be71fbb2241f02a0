"""The site: it builds without network and warnings, every component has a card, and no link leads nowhere."""

import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse

import pytest

from diorama.core.catalogue import entries
from diorama.io.locks import locked
from tests.conftest import REPOSITORY

pytest.importorskip("sphinx")
pytestmark = pytest.mark.slow

#: The lab's pictures take a browser: docs/lab/pictures.py draws them.
DOCS = REPOSITORY / "docs"
NAMED = re.findall(r"\]\((lab/[^)]+)\)", (DOCS / "lab.md").read_text(encoding="utf-8"))
UNDRAWN = [name for name in NAMED if not (DOCS / name).exists()]
NO_NETWORK = """
import socket, sys
def refuse(*words, **more): raise OSError("the site is built without network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    words = ["-W", "--keep-going", "-q", "-b", "html", "-d", out / "trees", REPOSITORY / "docs", out / "html"]
    with locked(DOCS / "gallery.lock", wait=True):  # the gallery is made in docs: two workers of xdist build in turn
        done = subprocess.run([sys.executable, "-c", NO_NETWORK, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


class Reader(HTMLParser):
    """The places and the links of a page."""

    def __init__(self):
        super().__init__()
        self.places, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [found[name] for name in ("href", "src") if found.get(name)]


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_no_link_leads_nowhere(site):
    pages = {path.resolve(): read(path) for path in site.rglob("*.html")}
    assert len(pages) > 100
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlparse(link)
            if parts.scheme or parts.netloc or link.startswith("#sg") or link == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.exists() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].places
            )
            if not there and link not in UNDRAWN:
                lost.append((path.name, link))
    assert not lost


def test_every_component_has_a_card_with_what_it_must_say(site):
    for kind in ("protocol", "method", "world"):
        for name, entry in entries(kind).items():
            if not entry.path.is_relative_to(REPOSITORY):
                continue
            page = (site / "cards" / f"{kind}s" / f"{name.replace('/', '-')}.html").read_text(encoding="utf-8")
            assert "Try it" in page, name
            if kind == "protocol":
                assert "The question." in page and "What it measures" in page, name


def test_numbers_of_a_card_are_those_of_its_run(site):
    import json

    run = json.loads((REPOSITORY / "docs" / "measured" / "protocols" / "lmse.json").read_text(encoding="utf-8"))[
        "runs"
    ][0]
    page = re.sub(r"<[^>]+>", " ", (site / "cards" / "protocols" / "lmse.html").read_text(encoding="utf-8"))
    for line in run["lines"]:
        assert f"{line['mean']:.4f}" in page


def test_the_network_is_refused_by_the_build():
    code = NO_NETWORK.replace(
        "from sphinx.cmd.build import main\nsys.exit(main(sys.argv[1:]))", "socket.create_connection(('127.0.0.1', 9))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "without network" in done.stderr and socket is not None
