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
from tests.studies.test_cards import PARTS

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
            assert "Try it" in page and all(part in page for part in PARTS[kind]), name


#: The six who tried Diorama as new users, and where each of them wants to be.
PEOPLE = {
    "a student of explanations": ("guides/model.html", "cards/protocols/funnybirds.html"),
    "a researcher of intrinsic images": ("guides/predictions.html", "cards/protocols/lmse.html"),
    "a researcher of disentanglement": ("python.html", "cards/protocols/mig.html"),
    "an engineer": ("guides/ci.html", "scale.html"),
    "a teacher": ("gallery/index.html", "lab.html"),
    "a contributor": ("guides/protocol.html", "contributing.html"),
}


def own_links(path):
    """The links of a page's own text, without those of the bars beside it."""
    text = path.read_text(encoding="utf-8")
    start = text.index('role="main"')
    reader = Reader()
    reader.feed(text[start : text.index("</article>", start)])
    return {(path.parent / unquote(urlparse(link).path)).resolve() for link in reader.links if urlparse(link).path}


@pytest.mark.parametrize("person", PEOPLE)
def test_six_people_find_their_page_in_two_clicks(site, person):
    first = own_links(site / "index.html")
    for wanted in PEOPLE[person]:
        place = (site / wanted).resolve()
        assert place.exists()
        assert place in first or any(place in own_links(page) for page in first if page.suffix == ".html"), wanted


def test_every_page_of_results_is_in_the_site(site):
    pages = [path.relative_to(DOCS).with_suffix(".html") for path in (DOCS / "results").rglob("*.md")]
    assert len(pages) > 5
    assert [str(page) for page in pages if not (site / page).exists()] == []
    listed = (site / "results" / "index.html").read_text(encoding="utf-8")
    direct = [page.name for page in pages if page.parent.name == "results" and page.name != "index.html"]
    assert [name for name in direct if f'href="{name}' not in listed] == []


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
