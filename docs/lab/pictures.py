"""Pictures of the lab for the documentation: every screen of four worlds, and the beak that is taken away (beak.webp).

Run by scripts/lab_pictures. The lab is started as a user starts it and driven in Chromium; nothing is drawn by hand.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.lab_server import Served  # noqa: E402

#: What is started for every world, which screens it has, and what is done before the picture is taken.
WORLDS: dict[str, tuple[list[str], list[str]]] = {
    "birds": (["birds", "--scene", "3"], ["stage", "explain", "tracks"]),
    "candle": (["candle(width=160, samples=32)", "-m", "retinex_color", "-m", "baseline"], ["stage", "tracks"]),
    "tabletop": (["tabletop", "-m", "retinex_color", "-m", "baseline"], ["stage", "tracks"]),
    "sprites": (["sprites", "-m", "beta_vae"], ["stage", "tracks"]),
}
RUN = [
    "run",
    "-w",
    "birds",
    "-M",
    "birds_cnn",
    "-m",
    "input_x_gradient",
    "-m",
    "grad_cam",
    "-p",
    "single_deletion",
    "-n",
    "4",
]
#: Milliseconds that a screen may take on a busy machine, and the largest file.
PATIENCE, LARGEST = 900_000, 150_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
#: The last picture is there with its logits and effects.
DONE = "(e => e?.dataset.done && Number(e.dataset.done) >= Number(e.dataset.seq))(document.querySelector('#lab'))"
MAPS = "document.querySelectorAll('.tile').length && !document.querySelector('.tile.old')"
READY = {
    "stage": f"() => {DONE}",
    "explain": f"() => {DONE} && {MAPS} && document.querySelectorAll('.scores tr').length > 4",
    "case": f"() => {DONE} && document.querySelector('.rows tbody tr')",
}
TRACKS = {
    "birds": "() => document.querySelector('.curve')",
    "sprites": "() => document.querySelector('.traversal')",
}
LAYERS = (
    "() => document.querySelectorAll('.decomposed canvas').length >= 18 && document.querySelector('.scores tbody tr')"
)


def main(names: list[str]) -> None:
    """Take the pictures of some worlds, or of all, and the animation."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("lab_pictures: there is no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in names or [*WORLDS, "case", "beak"]:
            with tempfile.TemporaryDirectory() as folder:
                {"case": case, "beak": beak}.get(name, lambda *given, name=name: screens(name, *given))(
                    browser, Path(folder)
                )
        browser.close()


def screens(name: str, browser: Any, folder: Path) -> None:
    """Every screen of a world, and on a phone in the dark the first."""
    words, tabs = WORLDS[name]
    served = Served(folder, *words)
    page = opened(browser, served.address, 1360)
    for tab in tabs:
        page.click(f"[data-tab={tab}]")
        page.wait_for_function(READY.get(tab) or TRACKS.get(name, LAYERS))
        if name == "birds" and tab == "stage":
            page.click("[data-part=beak] button")
            page.wait_for_selector("[data-part=beak] button[aria-pressed=true]")
            settled(page)
        keep(page, HERE / f"{name}-{tab}.png")
    if name == "birds":
        phone = opened(browser, served.address, 390, "dark")
        phone.wait_for_function(READY["stage"])
        keep(phone, HERE / "phone.png")
    served.end()


def case(browser: Any, folder: Path) -> None:
    """The screen of a run's case."""
    subprocess.run(
        [sys.executable, "-m", "diorama", *RUN, "-o", "run", "--on", "local:1"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    served = Served(folder, "run")
    page = opened(browser, served.address, 1360)
    page.click("[data-tab=case]")
    page.wait_for_function(READY["case"])
    keep(page, HERE / "birds-case.png")
    served.end()


def beak(browser: Any, folder: Path) -> None:
    """The animation of the README: the beak is pointed at, taken away, put back; bars and effects follow."""
    from PIL import Image

    served = Served(folder, "birds", "-M", "birds_cnn", "-m", "input_x_gradient", "--scene", "3")
    page = opened(browser, served.address, 1180, height=620)
    page.wait_for_function(READY["stage"])
    shots: list[tuple[bytes, int]] = []
    take = lambda milliseconds: shots.append((page.screenshot(), milliseconds))  # noqa: E731
    take(1200)
    for part in ("beak", "tail"):
        page.hover(f"[data-part={part}] button")
        take(700)
        page.click(f"[data-part={part}] button")
        page.wait_for_selector(f"[data-part={part}] button[aria-pressed=true]")
        settled(page)
        page.mouse.move(600, 600)
        take(1500)
    for part in ("tail", "beak"):
        page.click(f"[data-part={part}] button")
        page.wait_for_selector(f"[data-part={part}] button[aria-pressed=false]")
        settled(page)
        page.mouse.move(600, 600)
        take(900)
    served.end()
    images = [Image.open(io.BytesIO(data)).convert("RGB") for data, _ in shots]
    images[0].save(
        HERE / "beak.webp",
        save_all=True,
        append_images=images[1:],
        duration=[t for _, t in shots],
        loop=0,
        quality=80,
        method=6,
    )


def settled(page: Any) -> None:
    """Wait until the numbers are those that a run would write."""
    page.wait_for_timeout(300)
    page.wait_for_function(READY["stage"])


def opened(browser: Any, address: str, width: int, scheme: str = "light", height: int = 800) -> Any:
    """A page of the lab."""
    page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_selector("#lab[data-key]")
    return page


def keep(page: Any, path: Path) -> None:
    """Write a picture of the whole page, in few colours so that it is small."""
    from PIL import Image

    page.mouse.move(0, 0)
    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    for colours, share in ((256, 1.0), (128, 0.85), (96, 0.7), (64, 0.55)):
        size = round(image.width * share), round(image.height * share)
        image.resize(size, Image.Resampling.LANCZOS).quantize(colours, dither=Image.Dither.NONE).save(
            path, optimize=True
        )
        if path.stat().st_size <= LARGEST:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
