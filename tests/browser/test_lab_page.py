"""The lab in Chromium: what a click does is what `do` does, equal to the Python API to the pixel."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.memory import Memory
from diorama.core.plan import Plan
from diorama.core.run import create, work
from diorama.io.images import quantise
from diorama.lab.desk import Desk, case_of
from diorama.report.summary import read_results
from tests.lab_server import Served

#: How a page is asked for its picture, and for the logits that it shows.
PICTURE = """() => { const c = document.querySelector('.picture');
    return [c.width, c.height, ...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; }"""
LOGITS = """() => Object.fromEntries([...document.querySelectorAll('.bars li')].map(
    li => [li.dataset.class, Number(li.dataset.value)]))"""


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    served = Served(
        tmp_path_factory.mktemp("lab"),
        *("birds", "-M", "birds_cnn", "-m", "input_x_gradient", "-m", "rise(masks=3000)", "--scene", "3"),
    )
    yield served
    served.end()


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk(build("world", "birds"), [build("model", "birds_cnn")], [build("method", "input_x_gradient")])


def picture(page) -> np.ndarray:
    width, height, *pixels = page.evaluate(PICTURE)
    return np.array(pixels, np.uint8).reshape(height, width, 4)[:, :, :3]


def shown(page, key: str) -> None:
    """Wait until the page shows a scene, and its logits are those of a run."""
    page.wait_for_function(
        """key => (e => e.dataset.key === key && Number(e.dataset.done) >= Number(e.dataset.seq))(
        document.querySelector('#lab'))""",
        arg=key,
    )


def near(page, desk: Desk, scene) -> None:
    """The logits that the page shows are those that the bench of a run gives."""
    expected = desk.cell(0, None, "accuracy").bench(case_of(scene), Memory()).logits([scene])[0]
    page.wait_for_function(
        """([name, value]) => { const li = document.querySelector(`.bars li[data-class='${name}']`);
        return li && Math.abs(li.dataset.value - value) < 1e-4; }""",
        arg=[str(int(expected.argmax())), float(expected.max())],
    )
    found = page.evaluate(LOGITS)
    assert len(found) >= 6 and max(abs(expected[int(name)] - value) for name, value in found.items()) < 1e-4


def test_a_part_taken_away_changes_what_do_says_and_undo_brings_it_back(birds, desk, tab):
    world = desk.world.object
    whole = desk.numbered(0, 3)[1]
    gone = world.do(whole, beak=None)
    page = tab(birds.address)
    shown(page, whole.key)
    assert np.array_equal(picture(page), quantise(world.render([whole])[0].srgb(), 8))
    near(page, desk, whole)
    page.click("[data-part=beak] button")
    shown(page, gone.key)
    assert np.array_equal(picture(page), quantise(world.render([gone])[0].srgb(), 8))
    near(page, desk, gone)
    assert page.get_attribute("[data-part=beak] button", "aria-pressed") == "true"
    page.keyboard.press("z")  # by keyboard
    shown(page, whole.key)
    assert page.get_attribute("[data-part=beak] button", "aria-pressed") == "false"
    # a click into the picture takes the tail away
    parts = world.render([whole])[0].truth["parts"]
    y, x = (int(v) for v in np.argwhere(parts == world.part_ids["tail"][0])[len(np.argwhere(parts == 7)) // 2])
    box = page.locator(".picture").bounding_box()
    page.mouse.click(box["x"] + (x + 0.5) * box["width"] / 128, box["y"] + (y + 0.5) * box["height"] / 128)
    shown(page, world.do(whole, tail=None).key)


def test_explanations_stand_beside_measured_effects_and_scores(birds, desk, tab):
    scene = desk.numbered(0, 3)[1]
    page = tab(birds.address)
    page.click("[data-tab=explain]")
    page.wait_for_selector(".tile[data-method=input_x_gradient] tr[data-part=tail]")
    bench = desk.cell(0, None, "accuracy").bench(case_of(scene), Memory())
    from diorama.protocols.parts.part_tables import single_drops

    drops = single_drops(bench, scene, scene.params["label"])
    found = page.evaluate(
        "() => [...document.querySelectorAll('.tile[data-method=input_x_gradient] tr')].map(r => Number(r.dataset.effect))"
    )
    assert np.abs(np.array(found) - drops).max() < 1e-4
    # a slow method is under way: dragging goes on beside it
    page.wait_for_selector(".tile[data-method^=rise] progress:not([hidden])")
    disc = page.locator(".dome[data-name=light] .disc")
    disc.scroll_into_view_if_needed()
    box = disc.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    seen = set()
    for step in range(1, 2000):
        page.mouse.move(middle[0] + step % 40, middle[1] + step % 17)
        page.wait_for_timeout(60)
        seen.add(page.get_attribute("#lab", "data-key"))
        if len(seen) >= 4:
            break
    assert len(seen) >= 4, "pictures arrive while a method computes"
    assert (
        page.locator(".tile[data-method^=rise].old").count() == 1
        or page.locator(".tile[data-method^=rise] progress:not([hidden])").count()
    )
    page.mouse.up()
    page.wait_for_function(
        "() => !document.querySelector('.tile[data-method=input_x_gradient]').classList.contains('old')"
    )


def test_an_address_brings_the_view_back_and_two_tabs_do_not_meet(birds, desk, tab):
    world, scene = desk.world.object, desk.numbered(0, 3)[1]
    first, second = tab(birds.address), tab(birds.address)
    first.click("[data-part=wing] button")
    second.select_option("[data-part=eye] select", index=0)
    shown(first, world.do(scene, wing=None).key)
    shown(second, world.do(scene, eye=0).key)
    link = first.url
    assert "#s=" in link
    third = tab(link)
    shown(third, world.do(scene, wing=None).key)
    assert second.get_attribute("#lab", "data-key") == world.do(scene, eye=0).key
    hostile = tab(birds.address + "#s=" + "bm90IGpzb24")  # an address that holds no scene shows the first one
    shown(hostile, scene.key)


def test_a_saved_case_is_scored_by_a_run(birds, desk, tab):
    page = tab(birds.address)
    page.click("[data-part=foot] button")
    gone = desk.world.object.do(desk.numbered(0, 3)[1], foot=None)
    shown(page, gone.key)
    page.click("text=Save as case")
    page.wait_for_selector(".alert:has-text('cases.jsonl')")
    line = json.loads((birds.folder / "cases.jsonl").read_text().splitlines()[-1])
    assert line == {"world": "birds", "scene": gone.to_json()}
    asked = ["-w", "scenes(file=cases.jsonl)", "-M", "birds_cnn", "-m", "input_x_gradient", "-p", "single_deletion"]
    command = [sys.executable, "-m", "diorama", "run", *asked, "--json", "-o", "run", "--on", "local:1"]
    ended = subprocess.run(command, cwd=birds.folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)["cells"][0]["summary"]["sd"]
    assert summary["n_ok"] + summary["n_undefined"] == 1


def test_it_says_that_the_lab_has_gone_and_reconnects(serve, tab):
    served = serve("sprites", "-m", "pca(latents=2)")
    page = tab(served.address, expect_lost=True)
    key = page.get_attribute("#lab", "data-key")
    page.locator(".knob[data-name=x] input").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("key => document.querySelector('#lab').dataset.key !== key", arg=key)
    key = page.get_attribute("#lab", "data-key")
    served.kill()
    page.wait_for_selector(".connection:has-text('stopped'), .connection:has-text('does not answer')")
    served.start(served.port)
    page.wait_for_selector("#lab[data-state=open]")
    page.wait_for_selector(".connection:has-text('restarted')")
    assert page.get_attribute("#lab", "data-key") == key
    page.locator(".knob[data-name=y] input").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("key => document.querySelector('#lab').dataset.key !== key", arg=key)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_every_control_has_a_name(serve, tab, scheme):
    served = serve("sprites", "-m", "pca(latents=2)")
    page = tab(served.address, width=390, color_scheme=scheme)
    for name in page.locator(".tabs button").all():
        name.click()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, select, input, [tabindex="0"]')].filter(e =>
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title)).map(e => e.outerHTML)""")
    assert nameless == []
    ground = page.evaluate("() => getComputedStyle(document.querySelector('.diorama-lab')).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) is (scheme == "dark")


def test_a_run_opens_case_by_case_and_its_report_leads_here(tmp_path, serve, tab):
    plan = Plan(["mondrian(size=32)"], ["constant", "baseline"], ["lmse"], cases=3)
    run = create(tmp_path / "run", plan)
    work(run, 0, 1)
    from diorama.core.gallery import illustrate

    illustrate(run)
    served = serve("run")
    page = tab(served.address)
    page.click("[data-tab=case]")
    page.wait_for_selector(".rows tbody tr")
    values = [
        float(v)
        for v in page.evaluate("() => [...document.querySelectorAll('.rows td[data-value]')].map(t => t.dataset.value)")
        if v
    ]
    name = page.input_value("select[aria-label=Case]")
    cells = read_results(tmp_path / "run").cells
    written = [row.value for cell in cells for row in cell.settled.rows if row.case == name and row.status == "ok"]
    assert sorted(values) == pytest.approx(sorted(written))
    key = page.get_attribute("#lab", "data-key")
    page.click("text=better →")
    page.wait_for_function("key => document.querySelector('#lab').dataset.key !== key", arg=key)
    page.click("text=the whole report")
    page.wait_for_selector("article.case a.lab")
    case = page.locator("article.case h4 a").first.text_content()
    page.locator("article.case a.lab").first.click()
    page.wait_for_selector("#lab[data-key]")
    page.wait_for_function("name => document.querySelector('select[aria-label=Case]')?.value === name", arg=case)
