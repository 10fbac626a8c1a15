"""States and files of states for the tests: whole, damaged, and lying."""

import io
import re
import zipfile

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import state as states
from driftbandits._util.files import BLANK_SEAL, sealed

ROW = np.dtype([("id", np.int64), ("probability", np.float64)])
STATE = {
    "format": states.FORMAT,
    "library": "0.1.0",
    "nothing": None,
    "flag": True,
    "text": 'é "quoted" \x1fsha256\x1f \U0001f600',
    "numbers": [0, -3, 2**64, 0.1, -1e-300, {"deeper": [[], {}]}],
    "law": np.array([0.25, 0.75]),
    "rows": np.array([(3, 0.5), (7, 1.0)], dtype=ROW),
    "empty": {"flat": np.zeros(0), "wide": np.zeros((0, 3)), "rows": np.zeros(0, dtype=ROW)},
    "scalar": np.array(3.5),
    "by columns": np.arange(6.0).reshape(2, 3).T,
    "flags": [np.array([True, False]), np.arange(3, dtype=np.int32)],
}


def same(left, right):
    """Whether two states are one, to the bit."""
    if isinstance(left, np.ndarray):
        return (
            isinstance(right, np.ndarray)
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, dict):
        return isinstance(right, dict) and list(left) == list(right) and all(same(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(same(a, b) for a, b in zip(left, right, strict=True))
        )
    return type(left) is type(right) and left == right


def played(kind, rounds=120, **settings):
    arms = db.ArmSet(np.linspace(0.0, 1.0, 8)[:, None], RBF(0.3))
    policy = kind(arms, horizon=500, seed=3, **settings)
    for number in range(rounds):
        decision = policy.ask()
        policy.tell(decision.id, float(np.sin(decision.arm + (number > 60)) / 2))
    policy.ask(size=3)
    return policy


def resealed(content):
    """The content with a seal that holds, whatever else is wrong with it."""
    return sealed(re.sub(rb"\x1fsha256\x1f.{64}", BLANK_SEAL.encode(), content, flags=re.DOTALL))


def claiming(content, place, value):
    """A zip file with these bytes at this place of every entry in its list of members."""
    before = b"PK\x01\x02.{%d}" % (place - 4)
    pattern = re.compile(b"(%s).{%d}" % (before, len(value)), re.DOTALL)
    return resealed(pattern.sub(lambda found: found[1] + value, content))


def npy(head, data=b"", *, version=b"\x01\x00"):
    text = head.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def head(shape="(2,)", descr="'<f8'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def archived(text, *arrays, compression=zipfile.ZIP_DEFLATED, names=None):
    """A sealed file with this text and these .npy files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in zip(names or ["state.json", "0.npy", "1.npy"], [text, *arrays], strict=False):
            archive.writestr(name, content)
        archive.comment = BLANK_SEAL.encode()
    return sealed(buffer.getvalue())


GOOD = npy(head(), np.array([0.25, 0.75]).tobytes())
ONE = '{"law": {"@array": 0}}'
