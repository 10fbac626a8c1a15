"""`python -m reproduction`: the commands of the study, which are those of `driftbandits` too.

python -m reproduction reproduce --quick
python -m reproduction tune constants
python -m reproduction report results/reproduce
python -m reproduction list experiments
"""

import sys

from driftbandits.cli import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["reproduce", "--help"]))
