"""The six examples and the notebook, run as their readers run them."""

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
}


@pytest.mark.parametrize("name", WANTED)
def test_an_example_runs(name, tmp_path):
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said, files = WANTED[name]
    assert ran.returncode == 0 and said in ran.stdout, ran.stderr
    assert all((tmp_path / file).stat().st_size > 0 for file in files)


def test_the_python_chapter_runs(tmp_path):
    text = (REPOSITORY / "docs" / "python.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    (tmp_path / "chapter.py").write_text("\n".join(blocks))
    ran = subprocess.run([sys.executable, "chapter.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "methods.pdf").exists() and (tmp_path / "r.html").exists() and len(blocks) == 4


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
