import io

import pytest

from driftbandits._util import progress as progress_module
from driftbandits._util.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with progress_bar(4, "cells") as advance:
        advance(3)
        advance()
    assert "4/4" in screen.getvalue()


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = iter(range(1_000))
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: float(next(clock)))
    with progress_bar(100, "cells") as advance:
        advance(40)
        for _ in range(60):
            advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "cells: 40/100, 0:00:01 elapsed"
    assert lines[1] == "cells: 50/100, 0:00:11 elapsed, about 0:00:50 left"  # the first 40 took no time
    assert lines[-1] == "cells: 100/100, 0:01:01 elapsed, about 0:00:00 left"
    assert len(lines) == 7


def test_time_left_goes_by_the_cost_where_cells_differ(capsys, monkeypatch):
    clock = iter([0, 10, 110, 111])
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: float(next(clock)))
    with progress_bar(4, "cells", cost=300.0) as advance:
        advance(1, 100.0)
        advance(1, 100.0)
        advance(2, 100.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "cells: 2/4, 0:01:50 elapsed, about 0:01:40 left"
    assert lines[2] == "cells: 4/4, 0:01:51 elapsed, about 0:00:00 left"


def test_a_log_hears_of_slow_cells_too(capsys, monkeypatch):
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: float(next(clock)))
    with progress_bar(1_000, "cells") as advance:
        for _ in range(3):
            advance()
    assert len(capsys.readouterr().err.splitlines()) == 3


@pytest.mark.parametrize("screen", [io.StringIO, Terminal])
def test_nothing_is_shown_where_nothing_is_asked_for(monkeypatch, screen):
    monkeypatch.setattr("sys.stderr", shown := screen())
    with progress_bar(2, "cells", show=False) as advance:
        advance(2)
    assert shown.getvalue() == ""
