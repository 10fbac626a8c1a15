"""How the pictures of the gallery look, and how they are found."""

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

LOOKS = {
    "figure.figsize": (7.2, 3.6),
    "figure.dpi": 120,
    "savefig.dpi": 120,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 10,
    "legend.frameon": False,
}
_taken: set[int] = set()


def reset(_settings, _file):
    """Called by sphinx-gallery before each example: whatever the one before has set."""
    mpl.rcdefaults()
    mpl.rcParams.update(LOOKS)
    _taken.clear()


def loose_figures(_block, block_vars, settings):
    """A scraper for figures that pyplot does not know, as this library makes them: each once, where it came up."""
    found = []
    _taken.update(id(plt.figure(number)) for number in plt.get_fignums())  # those are matplotlib's own scraper's
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and id(value) not in _taken:
            path = next(block_vars["image_path_iterator"])
            value.savefig(path)
            _taken.add(id(value))
            found.append(path)
    return figure_rst(found, settings["src_dir"])
