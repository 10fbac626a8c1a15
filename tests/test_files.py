"""A file is its old content or all of the new, whatever happens; nothing is left beside it; no change goes unseen."""

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from driftbandits._util import files
from driftbandits._util.files import BLANK_SEAL, clean, has_seal, seal_holds, sealed, write_whole
from driftbandits.errors import InputError
from tests.concurrent_files import read_while_writing

OLD, NEW = b"old" * 1000, b"new" * 2000


@pytest.fixture
def path(tmp_path):
    """A file with OLD in it, alone in its folder."""
    file = tmp_path / "policy.state"
    file.write_bytes(OLD)
    return file


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def beside(path):
    return sorted(file.name for file in path.parent.iterdir() if file != path)


def in_a_process(code):
    """Run code that has `write_whole`, in a process that imports nothing else of the library: that takes seconds."""
    folder = str(Path(files.__file__).parents[1])
    start = f"""
import sys, types
library = sys.modules["driftbandits"] = types.ModuleType("driftbandits")
library.__path__ = [{folder!r}]
from driftbandits._util.files import write_whole
"""
    return subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=False)


def left_over(path, *, pid=1):
    """A side file whose writer is gone."""
    side = path.with_name(f".{path.name}.{pid}.0123456789abcdef.part")
    side.write_bytes(b"half")
    return side


# --- the new file and the old one -----------------------------------------------------------------------------------


def test_the_new_content_takes_the_place_of_the_old(path):
    write_whole(path, NEW)
    assert path.read_bytes() == NEW
    write_whole(str(path), b"")
    assert path.read_bytes() == b""
    assert beside(path) == []


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o400])
def test_permissions_are_kept(path, permissions):
    path.chmod(permissions)
    write_whole(path, NEW)
    assert (mode(path), path.read_bytes()) == (permissions, NEW)


def test_nobody_else_can_look_into_the_side_file_of_a_private_file(path):
    path.chmod(0o600)
    seen = []
    write_whole(path, NEW, check=lambda side: seen.append(mode(side)))
    assert seen == [0o600]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").write_bytes(NEW)
    write_whole(tmp_path / "new", NEW)
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")


def test_the_owner_is_kept_where_that_is_possible(path):
    if os.geteuid():
        pytest.skip("only an administrator may give files away")
    os.chown(path, 65534, 65533)
    write_whole(path, NEW)
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65533)


def test_a_link_stays_a_link(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to("../policy.state")
    write_whole(link, NEW)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert [file.name for file in link.parent.iterdir()] == ["link"]


def test_a_link_to_nothing_gets_its_file(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "later")
    write_whole(link, NEW)
    assert link.is_symlink()
    assert (tmp_path / "later").read_bytes() == NEW


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "long " * 30])
def test_names_may_be_as_long_as_the_file_system_takes_them(tmp_path, name):
    path = tmp_path / name
    sides = []
    for content in (OLD, NEW):
        write_whole(path, content, check=lambda side: sides.append(side.name))
    assert path.read_bytes() == NEW
    assert max(len(os.fsencode(side)) for side in sides) < 128
    assert beside(path) == []


def test_file_and_folder_are_flushed(path, monkeypatch):
    flushed = []

    def note(descriptor):
        flushed.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), path.read_bytes() == NEW))

    monkeypatch.setattr(files.os, "fsync", note)
    write_whole(path, NEW)
    assert flushed == [(False, False), (True, True)]  # the file before it takes the name, the folder after


# --- what fails changes nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, OSError, MemoryError, KeyboardInterrupt, SystemExit])
def test_a_check_that_raises_leaves_the_old_file(path, error):
    def refuse(side):
        assert (side.read_bytes(), path.read_bytes()) == (NEW, OLD)
        raise error("not good")

    with pytest.raises(error, match="not good"):
        write_whole(path, NEW, check=refuse)
    assert path.read_bytes() == OLD
    assert beside(path) == []


@pytest.mark.parametrize("damage", [b"newnew", NEW[:-1] + b"W", NEW + b"!"])
def test_what_is_read_back_must_be_what_was_written(path, monkeypatch, damage):
    """A disk that keeps something else is found out before the old file is gone."""
    monkeypatch.setattr(files, "_write_through", lambda file, _: file.write(damage))
    with pytest.raises(OSError, match="not what was written") as caught:
        write_whole(path, NEW)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == OLD
    assert beside(path) == []


@pytest.mark.parametrize("step", ["clean", "_try_lock", "_write_through", "_keep_permissions", "_flush_folder"])
def test_what_the_handler_of_a_signal_raises_is_neither_lost_nor_changed(path, step, monkeypatch):
    def interrupted(*_, **__):
        raise TimeoutError("time is up")

    monkeypatch.setattr(files, step, interrupted)
    with pytest.raises(TimeoutError, match=r"^time is up$"):
        write_whole(path, NEW)
    assert path.read_bytes() == (NEW if step == "_flush_folder" else OLD)
    assert beside(path) == []


@pytest.mark.parametrize(("owner", "inner"), [(os, "scandir"), (Path, "chmod")])
def test_it_is_not_lost_where_errors_of_the_file_system_are_harmless(path, owner, inner, monkeypatch):
    def interrupted(*_, **__):
        raise TimeoutError("time is up")

    monkeypatch.setattr(owner, inner, interrupted)
    with pytest.raises(TimeoutError, match=r"^time is up$"):
        write_whole(path, NEW)
    assert path.read_bytes() == OLD


def interrupted_at(number, action):
    """Run `action` with Ctrl-C before the given line of files.py that it comes to; whether it came so far."""
    left = [number]

    def trace(frame, event, _):
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupted_at_any_line_the_file_is_whole_and_the_next_write_cleans_up(path):
    left_over(path)
    number, contents = 1, set()
    while interrupted_at(number, lambda: write_whole(path, NEW)):
        contents.add(path.read_bytes())
        write_whole(path, OLD)
        assert path.read_bytes() == OLD
        assert beside(path) == []
        left_over(path)
        number += 1
    gc.collect()  # files that were just opened are closed with their last name: here, and not in another test
    assert contents == {OLD, NEW}
    assert number > 50


def test_a_full_disk_leaves_the_old_file(path):
    """A limit on the size of files stands for it: the write stops half way with an error."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_whole({str(path)!r}, b"x" * 10_000)
except OSError as error:
    print(error.errno, error.filename)
"""
    assert in_a_process(code).stdout.split() == [str(errno.EFBIG), str(path)]
    assert path.read_bytes() == OLD
    assert beside(path) == []


def test_errors_are_the_usual_ones_and_name_the_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    wrong = {
        tmp_path / "none" / "file": (FileNotFoundError, "No such file or directory"),
        tmp_path: (IsADirectoryError, "Is a directory"),
        tmp_path / "file" / "below": (NotADirectoryError, "Not a directory"),
        tmp_path / "loop": (OSError, "symbolic links"),
        tmp_path / "pipe": (OSError, "Not a regular file"),
        tmp_path / ("x" * 256): (OSError, "File name too long"),
    }
    before = sorted(tmp_path.iterdir())
    for path, (kind, text) in wrong.items():
        with pytest.raises(kind, match=text) as caught:
            write_whole(path, NEW)
        assert caught.value.filename == str(path)
    assert sorted(tmp_path.iterdir()) == before


# --- many writers ---------------------------------------------------------------------------------------------------


def test_threads_that_write_one_file_never_mix_and_readers_never_see_half(path):
    contents = [bytes([letter]) * 50_000 for letter in b"abcd"]
    write_whole(path, contents[0])
    odd = []

    def write(content):
        for _ in range(25):
            write_whole(path, content)

    def read():
        content = path.read_bytes()
        if content not in contents:
            odd.append(len(content))

    read_while_writing(read, write, contents)
    assert odd == []
    assert beside(path) == []


def test_a_writer_inside_another_harms_neither(path):
    """As in a signal handler: the inner one cleans up, and must not take the outer one's file for left over."""

    def interrupt(side):
        write_whole(path, b"from the handler")
        assert path.read_bytes() == b"from the handler"
        assert side.read_bytes() == NEW

    write_whole(path, NEW, check=interrupt)
    assert path.read_bytes() == NEW
    assert beside(path) == []


def test_the_next_writer_cleans_up_after_a_killed_one(path):
    code = f"""
import os, signal
write_whole({str(path)!r}, b"half", check=lambda side: os.kill(os.getpid(), signal.SIGKILL))
"""
    assert in_a_process(code).returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    assert len(beside(path)) == 1
    write_whole(path, NEW)
    assert path.read_bytes() == NEW
    assert beside(path) == []


def test_a_writer_whose_file_was_taken_for_left_over_makes_another(path, monkeypatch):
    """Between making and locking it another writer may delete it."""
    made, lock = [], files._try_lock

    def late(descriptor):
        if not made:
            made.extend(path.parent.glob(".*.part"))
            made[0].unlink()
        return lock(descriptor)

    monkeypatch.setattr(files, "_try_lock", late)
    write_whole(path, NEW)
    assert len(made) == 1
    assert path.read_bytes() == NEW


def test_a_writer_that_never_gets_a_file_says_so(path, monkeypatch):
    monkeypatch.setattr(files, "_try_lock", lambda _: False)
    with pytest.raises(OSError, match="keep deleting"):
        write_whole(path, NEW)
    assert path.read_bytes() == OLD
    assert beside(path) == []


@pytest.mark.parametrize("locks", [True, False])
def test_only_left_over_files_of_this_file_go(path, locks, monkeypatch):
    others = [
        path.with_name(".other.state.1.0123456789abcdef.part"),
        path.with_name(".policy.state.part"),
        path.with_name("policy.state.1.0123456789abcdef.part"),
        path.with_name(".policy.state.1.0123456789ABCDEF.part"),
    ]
    for other in others:
        other.touch()
    if not locks:
        monkeypatch.setattr(files, "fcntl", None)
    for side in (left_over(path), *others):
        os.utime(side, (0, 0))
    write_whole(path, NEW)
    assert beside(path) == sorted(other.name for other in others)


def test_where_nothing_can_be_locked_age_decides(path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    young, old = left_over(path, pid=1), left_over(path, pid=2)
    os.utime(old, (0, 0))
    write_whole(path, NEW)
    assert path.read_bytes() == NEW
    assert beside(path) == [young.name]


def test_cleaning_never_makes_a_write_fail(path, monkeypatch):
    side = left_over(path)
    monkeypatch.setattr(files.os, "open", _refusing(side))
    write_whole(path, NEW)
    assert path.read_bytes() == NEW
    monkeypatch.setattr(files.os, "scandir", _denied)
    write_whole(path, OLD)
    assert path.read_bytes() == OLD


def _refusing(forbidden, plain=os.open):
    def opened(path, *arguments, **settings):
        return _denied() if path == forbidden else plain(path, *arguments, **settings)

    return opened


def _denied(*_):
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_whole_folder_can_be_cleaned(path):
    left_over(path)
    left_over(path.with_name("other"))
    write_whole(path.with_name("third"), NEW, tidy=False)
    assert len(beside(path)) == 3
    clean(path.parent)
    assert beside(path) == ["third"]
    clean(path.parent / "none")


# --- seals ----------------------------------------------------------------------------------------------------------


def test_a_seal_shows_every_changed_bit_and_every_other_length():
    whole = sealed(b"before " + BLANK_SEAL.encode() + b" after")
    assert seal_holds(whole)
    assert len(whole) == len(BLANK_SEAL) + 13
    for place in range(len(whole)):
        assert not seal_holds(whole[:place])
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            assert not seal_holds(bytes(changed))
    assert not seal_holds(whole + b"\0")
    assert not seal_holds(b"\0" + whole)


def test_what_has_no_seal_is_not_sealed():
    assert not has_seal(b"plain")
    assert not seal_holds(b"plain")
    assert has_seal(BLANK_SEAL.encode())
    assert not seal_holds(BLANK_SEAL.encode())
    for content in (b"plain", 2 * BLANK_SEAL.encode()):
        with pytest.raises(InputError, match="BLANK_SEAL once"):
            sealed(content)
