"""A browser to drive, where there is one, and the lab as a user starts it."""

import shutil

import pytest

from tests.lab_server import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: What a browser may take on a busy machine, in milliseconds.
PATIENCE = 180_000
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, driven by playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (scripts/setup --dev)")
    pytest.importorskip("starlette", reason="the lab is not installed (pip install 'diorama[lab]')")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine (apt-get install chromium)")
    with driver.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def serve(tmp_path):
    """Start labs in a folder of their own; they end after the pages have gone."""
    started = []

    def begun(*words: str) -> Served:
        started.append(Served(tmp_path, *words))
        return started[-1]

    yield begun
    for one in started:
        one.end()


@pytest.fixture
def tab(browser, serve):
    """Open pages; at the end none of them has said an error."""
    said, contexts = [], []

    def opened(address: str, width: int = 1280, expect_lost: bool = False, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "console",
            lambda line: said.append(line.text) if line.type == "error" and not expect_lost else None,
        )
        page.goto(address)
        page.wait_for_selector("#lab[data-key]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
