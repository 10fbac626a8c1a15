"""How the pictures of the gallery look, whatever the example before has set."""

import matplotlib as mpl

LOOKS = {
    "figure.figsize": (7.2, 3.6),
    "figure.dpi": 120,
    "savefig.dpi": 120,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 10,
    "legend.frameon": False,
}


def reset(_settings, _file):
    """Called by sphinx-gallery before each example."""
    mpl.rcdefaults()
    mpl.rcParams.update(LOOKS)
