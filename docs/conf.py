"""How Sphinx builds the site; `scripts/site` runs it. Cards are written here first, from docstrings and docs/measured."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

from studies.cards.write import write_cards  # noqa: E402

project, author, html_title = "Diorama", "The Diorama developers", "Diorama"
copyright = author
extensions = ["myst_parser", "sphinx_gallery.gen_gallery"]
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache", "myst.header"]
lab = (HERE / "lab.md").read_text(encoding="utf-8")
if not all((HERE / name).exists() for name in re.findall(r"\]\((lab/[^)]+)\)", lab)):  # drawn by hand, with a browser
    suppress_warnings.append("image.not_readable")
exclude_patterns = ["_build", "measured", "lab", "**/sg_execution_times.rst", "sg_execution_times.rst"]
exclude_patterns += [f"gallery/*.{ending}" for ending in ("ipynb", "py", "zip", "json")]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
highlight_language = "python"
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "plot_gallery": False,  # tests/contract/test_examples.py runs them
    "within_subsection_order": FileNameSortKey,
    "filename_pattern": "/never",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
}
write_cards(HERE / "cards")
