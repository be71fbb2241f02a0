"""The six examples, the chapter on Python and the notebook, run as their readers run them.

All scripts run in one process, each as `__main__` in a folder of its own: torch and numba are imported and compiled once.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow  # it runs every example

EXAMPLES = REPOSITORY / "examples"
#: What each example prints, and the files that it writes.
WANTED = {
    "xai_student": ("lies on the bird", ["case.png", "methods.pdf"]),
    "intrinsic_researcher": ("all shading", ["table.tex", "doses.pdf"]),
    "disentanglement_researcher": ("correlation of each code", ["methods.pdf"]),
    "ml_engineer": ("the gate is met", ["gate/summary.json"]),
    "teacher": ("the network uses the foot most", ["lesson.png", "answers.pdf"]),
    "contributor": ("it keeps the contract", []),
    "chapter": ("", ["methods.pdf", "r.html"]),
}
#: Runs scripts one after the other and keeps what each printed, and how it failed.
RUN = """
import contextlib, io, json, os, runpy, sys, traceback
from pathlib import Path
done = {}
for path in map(Path, sys.argv[2:]):
    folder = Path(sys.argv[1], path.stem)
    folder.mkdir()
    os.chdir(folder)
    failed, said = "", io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
    except BaseException:
        failed = traceback.format_exc()
    done[path.stem] = [said.getvalue(), failed]
Path(sys.argv[1], "done.json").write_text(json.dumps(done))
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder in which all scripts ran, and what each said and how it failed."""
    folder = tmp_path_factory.mktemp("examples")
    text = (REPOSITORY / "docs" / "python.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 4
    (folder / "chapter.py").write_text("\n".join(blocks))
    paths = [EXAMPLES / f"{name}.py" for name in WANTED if name != "chapter"]
    command = [sys.executable, "-W", "error", "-c", RUN, folder, *paths, folder / "chapter.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads((folder / "done.json").read_text())


@pytest.mark.parametrize("name", WANTED)
def test_an_example_runs(name, ran):
    folder, done = ran
    said, files = WANTED[name]
    printed, failed = done[name]
    assert not failed and said in printed, failed
    assert all((folder / name / file).stat().st_size > 0 for file in files)


def executed(path, folder):
    """A notebook with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return notebook


def outputs(notebook, starts: str) -> dict:
    """What the cell that begins so shows, by type."""
    (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and starts in cell.source)
    found = {}
    for output in cell.outputs:
        found |= output.get("data", {}) if output.output_type != "error" else {"error": output.traceback}
    return found


@pytest.mark.filterwarnings("default")  # of asyncio and zmq, in the libraries that run the kernel
def test_the_notebook_shows_its_results(tmp_path):
    notebook = executed(EXAMPLES / "first_look.ipynb", tmp_path)
    page = outputs(notebook, "result = diorama.evaluate")
    assert all(
        part in page["text/html"] for part in ("<table>", "oracle holds", "<svg", "data:image/webp", "my network")
    )
    assert "oracle (control)" in page["text/plain"]
    assert (
        "text/html" in outputs(notebook, "result.table") and "sd" in outputs(notebook, "result.compare")["text/plain"]
    )
    assert "image/png" in outputs(notebook, "show()") and "image/png" in outputs(notebook, "result.plot.cases")
    (line,) = outputs(notebook, "brids")["error"]
    assert "did you mean 'birds'?" in line
    if folder := os.environ.get("DIORAMA_NOTEBOOK_OUT"):  # to look at it
        import nbformat

        nbformat.write(notebook, f"{folder}/first_look.ipynb")
