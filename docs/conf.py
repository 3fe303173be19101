"""The site: the pages of this folder, and a reference that is made of the code (`make docs`)."""

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
CONFIGURED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The source roots as they lie here: what is installed elsewhere is not described.
ROOTS = {str(ROOT / Path(each).parts[0]) for each in CONFIGURED["tool"]["mypy"]["mypy_path"]}
sys.path[:0] = [str(DOCS / "_site"), *sorted(ROOTS)]

import reference  # noqa: E402 - beside this file

project = "Hubbub"
copyright = "the Hubbub authors"  # noqa: A001 - Sphinx's name
release = CONFIGURED["project"]["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_site", "screens", "examples", "figures"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = False
html_theme = "furo"
html_title = "Hubbub"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_site/site.css"]
html_css_files = ["site.css"]
# No page loads anything from elsewhere: the site is read offline.
html_theme_options = {"source_repository": "", "footer_icons": []}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def setup(app: object) -> None:
    """Write the generated pages before they are read."""
    app.connect("builder-inited", lambda _: reference.write(DOCS / "reference"))
    app.connect("source-read", reference.link_files)
    app.connect("autodoc-process-docstring", reference.escape)
