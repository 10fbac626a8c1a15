"""Makes of this library's docstrings what numpydoc reads.

Ours are written to be read in an editor. What differs from numpydoc's rules, and what becomes of it:

* `name : some words about it`, continued on indented lines, has words where numpydoc expects a type: the name alone,
  with all the words below it. A type, on a line of its own with a sentence below, stays one. Without a heading, such
  a list is one of attributes.
* A paragraph after a list ends the list, where numpydoc would take it for one more item: it goes into "Notes".
* `>>>` begins the examples, without a heading.
* An indented paragraph is a formula or a table: it is shown as it stands. `|x|` is an absolute value.
"""

from __future__ import annotations

import re
from itertools import pairwise

LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
_STAND_IN = "Other Parameters"  # numpydoc would make links of attributes, and their words those of the property
_ITEM = re.compile(r"(?P<name>[*\w][\w*, ]*?) : (?P<words>.*)")


def rewritten(lines: list[str]) -> list[str]:
    """The lines of a docstring, as numpydoc wants them."""
    head, sections = _split(lines)
    notes: list[str] = []
    examples: list[str] = []
    text, unheaded = _without_lists(_without_examples(head, examples))
    parts = _shown(text)
    for title, body in [*unheaded, *sections]:
        kept = _without_examples(body, examples)
        if title in LISTS:
            kept, rest = _list_and_rest(kept)
            notes += rest
            parts += _headed(_STAND_IN if title == "Attributes" else title, _escaped(_items(kept)))
        elif title == "Notes":
            notes += kept
        elif title == "Examples":
            examples += kept
        else:
            parts += _headed(title, _shown(kept))
    return [*parts, *_headed("Notes", _shown(notes)), *_headed("Examples", examples)]


def attributes_named(lines: list[str]) -> list[str]:
    """What numpydoc has made of them, under their own heading again."""
    return [line.replace(f":{_STAND_IN}:", ":Attributes:") for line in lines]


def _headed(title: str, body: list[str]) -> list[str]:
    return [title, "-" * len(title), *body, ""] if any(line.strip() for line in body) else []


def _split(lines: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What stands before the first underlined heading, and the sections with their headings."""
    starts = [
        number
        for number, (title, line) in enumerate(pairwise(lines))
        if title.strip() and re.fullmatch(r"-{3,}", line.strip()) and len(line.strip()) == len(title.strip())
    ]
    sections = [(lines[a].strip(), lines[a + 2 : b]) for a, b in pairwise([*starts, len(lines)])]
    return lines[: starts[0] if starts else len(lines)], sections


def _without_examples(lines: list[str], examples: list[str]) -> list[str]:
    """The lines before the first paragraph of `>>>`; it and what follows go to `examples`."""
    for number, line in enumerate(lines):
        if line.startswith(">>>") and (number == 0 or not lines[number - 1].strip()):
            examples += [*lines[number:], ""]
            return lines[:number]
    return lines


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Lines between empty lines."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def _without_lists(lines: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The text, and apart from it the paragraphs that are lists of `name : words`."""
    text: list[str] = []
    lists: list[str] = []
    for paragraph in _paragraphs(lines):
        is_list = all(line.startswith(" ") or _ITEM.fullmatch(line) for line in paragraph)
        if is_list and not paragraph[0].startswith(" "):
            lists += paragraph
        else:
            text += [*paragraph, ""]
    return text, [("Attributes", lists)] if lists else []


def _list_and_rest(lines: list[str]) -> tuple[list[str], list[str]]:
    """The items of a list, and the paragraphs after it: what is neither indented nor an item."""
    for number in range(1, len(lines)):
        line = lines[number]
        begins = line.strip() and not line.startswith(" ") and not lines[number - 1].strip()
        if begins and not _ITEM.fullmatch(line):
            return lines[:number], [*lines[number:], ""]
    return lines, []


def _items(lines: list[str]) -> list[str]:
    """Items whose words stand behind the colon, with all of them below the name."""
    found: list[str] = []
    for line, below in pairwise([*lines, ""]):
        item = _ITEM.fullmatch(line)
        if item is None:
            found.append(line)
            continue
        is_type = below.startswith(" ") and below.strip()[0].isupper() and not item["words"].endswith((",", ";"))
        found += [line] if is_type else [item["name"], f"    {item['words']}"]
    return found


def _shown(lines: list[str]) -> list[str]:
    """Text with its indented paragraphs as literal blocks."""
    found: list[str] = []
    for paragraph in _paragraphs(lines):
        if all(line.startswith("    ") for line in paragraph):
            found += ["::", "", *paragraph, ""]
        else:
            found += [*_escaped(paragraph), ""]
    return found


def _escaped(lines: list[str]) -> list[str]:
    return [line.replace("|", r"\|") for line in lines]


def _process(_app, _what, _name, _object, _options, lines):  # what autodoc passes
    lines[:] = rewritten(lines)


def _finish(_app, _what, _name, _object, _options, lines):
    lines[:] = attributes_named(lines)


def setup(app):
    """Before numpydoc, which connects with the usual priority, 500, and after it."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-docstring", _finish, priority=600)
    return {"parallel_read_safe": True}
