"""The pages of the documentation as blocks of code.

A block says what it is in the line that opens it:

python          runs, together with the others of its page, in their order
text            what the Python block before it prints; `...` stands for anything, and lines may be broken anywhere
text measured   numbers of one machine, compared with nothing
sh              commands; `test_docs_commands` says how each kind is tested
KIND FILE       a file of that name, which is there when the page's other blocks run
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = ("python", "text", "text measured", "text tree", "sh")


def name_of(page):
    """What tests call a page: its path, without docs/."""
    return str(page.relative_to(ROOT)).removeprefix("docs/")


@dataclass(frozen=True)
class Block:
    """A fenced block: what opens it, what is inside, and the line where that begins."""

    label: str
    text: str
    line: int

    @property
    def file(self):
        """The name of the file that the block is, if it is one."""
        _, _, name = self.label.partition(" ")
        return name if "." in name else None


def blocks_of(page):
    """All fenced blocks of a page, in their order."""
    content = page.read_text()
    found = re.finditer(r"^```([^\n]*)\n(.*?)^```$", content, flags=re.DOTALL | re.MULTILINE)
    return [Block(match[1].strip(), match[2], content.count("\n", 0, match.start(2))) for match in found]


def write_files(page, folder):
    """Put the files that a page shows into a folder."""
    for block in blocks_of(page):
        if block.file:
            (folder / block.file).write_text(block.text)
