"""A walk through HTML that notes what a browser would forgive."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "hr", "input"}


class Walk(HTMLParser):
    """Open elements, ids, links, sources, and the text outside of style."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.ids, self.links, self.sources, self.images = [], [], [], [], [], []
        self.tags, self.words = [], []
        self.feed(page)
        self.close()
        self.faults += [f"never closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if len(given) < len(attrs):
            self.faults.append(f"attribute given twice: {attrs}")
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.sources += [given["src"]] if "src" in given else []
        if tag == "img":
            self.images.append(given)
        if tag == "th" and given.get("scope") not in ("row", "col", "rowgroup"):
            self.faults.append("a header cell without scope")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"closed out of turn: {tag} at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())
