"""Configuration of Sphinx for the documentation site.

``nox -s docs`` builds it from a copy of this folder, to which it adds the pages of the API.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

import primax

project = "Primax"
author = "The Primax authors"
copyright = "The Primax authors"
version = release = primax.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_external_toc",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["conf.py", "_static"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "Primax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_depth": 2,
    "show_nav_level": 1,
    "header_links_before_dropdown": 5,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
}


# Links from a page to a file of the repository outside of this folder
_OUTSIDE = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)+(?:README|CONTRIBUTING|LICENSE|examples|packages)[^)]*\)"
)


def setup(app: Sphinx) -> None:
    """Connect what changes the sources."""
    app.connect("source-read", _unlink)


def _unlink(app: Sphinx, page: str, source: list[str]) -> None:
    text = source[0].replace("](../examples/gallery)", "](gallery/index.md)")
    source[0] = _OUTSIDE.sub(r"\1", text)
