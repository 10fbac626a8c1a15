"""The benchmarks' Frank-Wolfe is the tests' oracle too; `pytest` alone does not put the repository on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
