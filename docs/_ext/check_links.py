"""Looks whether the links inside a built site lead somewhere: every file is there, and every place in it.

Sphinx checks what it knows to be a reference; this checks what a browser would follow.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that links can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag links to, and its name."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """One line per link inside `site` that leads nowhere."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # those are the theme's
    pages = {path: Page(path) for path in files}
    return [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in dict.fromkeys(page.links)
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(page: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True  # elsewhere
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].places


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    broken = broken_links(root)
    print(*broken, f"{len(broken)} broken links in {root.name}", sep="\n")
    sys.exit(1 if broken else 0)
