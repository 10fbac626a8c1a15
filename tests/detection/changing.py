"""States with one thing wrong."""


def changed(state, path, value):
    """A copy of a state in which what stands at `path`, names with dots between, is `value`."""
    *parents, last = path.split(".")
    copy = {**state}
    inner = copy
    for name in parents:
        inner[name] = {**inner[name]}
        inner = inner[name]
    inner[last] = value
    return copy
