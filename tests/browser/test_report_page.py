"""The report in Chromium: pictures enlarge, a case has an address, nothing sticks out, paper shows everything."""

from pathlib import Path

import pytest

from diorama.report.write import write_report
from tests.browser.conftest import PATIENCE
from tests.unit.test_report import CASES, GOOD, POOR, RISING, Given, controls, make_run, picture

LONG = Given(
    "predictions(folder=/home/somebody/results/of_a_long_training_run, encoding=srgb)",
    [0.21, 0.2, 0.19, 0.4],
    note="odd",
)
#: Texts of figures that stick out of their picture, and parts of the page that are wider than it.
OUTSIDE = """() => [...document.querySelectorAll('.chart svg')].flatMap(svg => { const room = svg.viewBox.baseVal;
    return [...svg.querySelectorAll('text')].filter(t => { const b = t.getBBox();
        return b.x < room.x - 1 || b.x + b.width > room.x + room.width + 1; }).map(t => t.textContent); })"""
WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"
#: The contrast of a thing's colour with the page's ground, as WCAG 2 has it.
CONTRAST = r"""selector => { const shade = text => { const [r, g, b] = text.match(/[\d.]+/g).map(Number).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const a = shade(getComputedStyle(document.querySelector(selector)).color);
    const b = shade(getComputedStyle(document.body).backgroundColor);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }"""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = make_run(tmp_path_factory.mktemp("report") / "run", [POOR, GOOD, LONG, *controls(RISING)])
    for cell in ("00", "01", "02"):
        for case in CASES:
            picture(folder, cell, case, ["image", "what the method says of it"], side=64)
    return Path(write_report([folder], folder / "page.html", "html")).as_uri()


@pytest.fixture
def page(browser, address):
    """Open the report; it says no error and asks nobody for anything."""
    said, asked, contexts = [], [], []

    def opened(place: str = "", width: int = 1300, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        found = context.new_page()
        found.set_default_timeout(PATIENCE)
        found.on("pageerror", lambda error: said.append(str(error)))
        found.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
        found.on("request", lambda request: asked.append(request.url))
        found.goto(address + place)
        return found

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert {url.partition("#")[0] for url in asked if not url.startswith("data:")} == {address}


def test_a_click_enlarges_a_picture_and_four_ways_close_it(page):
    report = page()
    panel = report.locator(".panel").first
    small = panel.locator("svg").bounding_box()
    dialog = report.locator("dialog")
    assert not dialog.is_visible()

    def shown() -> None:
        assert dialog.is_visible()
        large = dialog.locator("svg").bounding_box()
        assert large["width"] > 3 * small["width"] and large["width"] <= 1300
        assert dialog.locator("figcaption").inner_text() == panel.locator("figcaption").inner_text()
        assert dialog.locator("svg").count() == 1  # the one before is gone

    panel.locator("svg").click()
    shown()
    report.keyboard.press("Escape")
    assert not dialog.is_visible()
    panel.locator("svg").focus()
    report.keyboard.press("Enter")
    shown()
    dialog.get_by_role("button", name="Close").click()
    assert not dialog.is_visible()
    panel.locator("svg").click()
    shown()
    report.mouse.click(3, 3)  # the dark around it
    assert not dialog.is_visible()
    report.locator(".panel svg").nth(1).click()
    assert dialog.locator("figcaption").inner_text() == report.locator(".panel figcaption").nth(1).inner_text()


def test_the_address_of_a_case_opens_that_case(page):
    report = page("#s1-bee")
    place = report.locator("#s1-bee").bounding_box()
    assert -5 <= place["y"] < 450  # it is in sight
    grounds = [report.locator(f"#s1-{c}").evaluate("e => getComputedStyle(e).backgroundColor") for c in ("bee", "ant")]
    assert grounds[0] != grounds[1]  # and marked
    report.locator("table.heat a", has_text="dog").click()
    assert report.url.endswith("#s1-dog") and -5 <= report.locator("#s1-dog").bounding_box()["y"] < 900
    report.locator("#s1-ant h4 a").click()
    assert report.url.endswith("#s1-ant")


@pytest.mark.parametrize("width", [1300, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_everything_can_be_read(page, width, scheme):
    report = page(width=width, color_scheme=scheme)
    assert report.evaluate(WIDE) <= 0
    assert report.evaluate(OUTSIDE) == []
    for selector in ("h1", ".note", ".control td", "a", ".tick"):
        assert report.evaluate(CONTRAST, selector) >= 4.5, selector
    dark = report.evaluate("() => getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    tables = report.locator("table.results").first
    cut = tables.evaluate("e => e.scrollWidth > e.parentElement.clientWidth + 2")
    assert cut == (width == 390)  # every column is in sight on a desk; on a phone what is cut off fades
    assert tables.evaluate("e => e.parentElement.classList.contains('more')") == cut


def test_what_is_cut_off_on_a_phone_is_there_after_scrolling(page):
    report = page(width=390)
    place = report.locator(".scroll.more").first.element_handle()
    place.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    report.wait_for_function("e => !e.classList.contains('more')", arg=place)


def test_a_heading_sorts_the_methods_and_leaves_controls(page):
    report = page()
    names = "() => [...document.querySelectorAll('table.results tbody th')].map(e => e.textContent)"
    before = report.evaluate(names)
    head = report.locator("table.results").first.get_by_role("button", name="err", exact=False).first
    head.click()
    head.click()
    after = report.evaluate(names)
    assert after[1:4] == before[1:4][::-1] and after[0] == before[0] and after[-1] == before[-1]


def test_paper_shows_what_is_folded_and_is_white(page, tmp_path):
    report = page(color_scheme="dark")
    assert report.locator("details:not([open])").count() > 0
    paper = report.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    assert paper.startswith(b"%PDF") and report.locator("details:not([open])").count() == 0
    report.emulate_media(media="print", color_scheme="dark")
    assert report.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert report.evaluate(
        "() => [...document.querySelectorAll('.more')].every(e => getComputedStyle(e).maskImage == 'none')"
    )
