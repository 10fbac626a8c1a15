"""Print the pages' measured output anew: `python -m tests.measured README.md docs/index.md`.

Runs the Python blocks of each page and puts what they print into the blocks marked `text measured` that follow them.
Look at the difference before you commit it: sentences beside a block may speak of its numbers.
"""

import contextlib
import io
import os
import sys
import tempfile
import textwrap
from itertools import pairwise
from pathlib import Path

from tests.pages import Block, blocks_of, write_files

WIDTH = 100


def refreshed(page):
    """The text of a page with its measured blocks as the code prints them now."""
    text, names = page.read_text(), {"__name__": "page"}
    for block, after in pairwise([*blocks_of(page), Block("", "", 0)]):
        if block.label != "python":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        if after.label == "text measured":
            opening = f"```{after.label}\n"
            text = text.replace(f"{opening}{after.text}```", f"{opening}{broken(printed.getvalue())}```", 1)
    return text


def broken(printed):
    """Long lines of words broken; tables stay as they are."""
    lines = [textwrap.wrap(line, WIDTH) if "  " not in line else [line] for line in printed.splitlines()]
    return "".join(f"{line or ''}\n" for wrapped in lines for line in wrapped or [""])


if __name__ == "__main__":
    for page in [Path(argument).absolute() for argument in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_files(page, Path(folder))
            new = refreshed(page)
            os.chdir(page.parent)
        print(f"{page.name}: {'changed' if new != page.read_text() else 'as it was'}")
        page.write_text(new)
