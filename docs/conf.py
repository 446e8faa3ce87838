"""How the documentation is built: `make docs`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import bayesrbf

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "bayesrbf"
author = "the bayesrbf developers"
copyright = f"2026, {author}"
version = release = bayesrbf.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # after mathjax: formulas need no network
    "internal_links",  # the last, when everything is written
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_templates",
    "extensions",
    "gallery/*.py",
    "gallery/*.ipynb",
    "gallery/*.zip",
]

html_theme = "pydata_sphinx_theme"
html_title = f"bayesrbf {version}"
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state types, with shapes and units
numpydoc_show_class_members = False

# PyTorch is large and no part of this environment: what needs it is shown here, and run by
# `make test-torch`.
HAS_TORCH = find_spec("torch") is not None
autodoc_mock_imports = [] if HAS_TORCH else ["torch"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": os.sep + ("plot_" if HAS_TORCH else "plot_(?!sdgm_head)"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # pages that load scripts from elsewhere
}
suppress_warnings = ["config.cache"]  # the gallery's settings hold what cannot be pickled
