"""`python -m reproduction`: the commands of the study, which are those of `driftbandits` too.

python -m reproduction reproduce --quick
python -m reproduction tune constants
python -m reproduction report results/reproduce
python -m reproduction list experiments
python -m reproduction measure      # writes files of results, and their numbers into pages
python -m reproduction fill         # only the pages
"""

import sys

from driftbandits.cli import main

if __name__ == "__main__":
    arguments = sys.argv[1:] or ["reproduce", "--help"]
    if arguments[0] in ("measure", "fill"):
        from reproduction import measured

        raise SystemExit(measured.main(arguments))
    raise SystemExit(main(arguments))
