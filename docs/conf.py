"""How the documentation is built: `make docs`, where every warning is an error."""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer

import driftbandits as db

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import gallery_looks  # noqa: E402

project = "driftbandits"
author = "The driftbandits developers"
copyright = f"2026, {author}"  # noqa: A001  # Sphinx's name
version = release = db.__version__

extensions = [
    "command_line",
    "house_docstrings",  # before numpydoc: it makes of ours what numpydoc reads
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

# --- pages ----------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4  # as on GitHub, where the same pages are read
default_role = "code"  # docstrings write `names` with one backtick
nitpicky = True

# --- the reference --------------------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # docstrings say in words what a parameter is
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # the templates list them
numpydoc_class_members_toctree = False

# --- the gallery ----------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times are those of the machine that built the page
    "remove_config_comments": True,
    "image_scrapers": (gallery_looks.loose_figures, "matplotlib"),
    "reset_modules": ("gallery_looks.reset",),
}

# --- looks ----------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "driftbandits"
html_static_path = ["_static"]
html_css_files = ["driftbandits.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"image_light": "_static/mark.svg", "image_dark": "_static/mark.svg", "text": "driftbandits"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "show_prev_next": False,  # sections are no book: what comes next stands on the page
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "which-policy": [], "gallery/index": []}


def setup(app):
    """Words behind ``` that Pygments has no lexer for."""
    app.add_lexer("csv", TextLexer)
