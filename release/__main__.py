"""Everything that is checked before a release: `make release`.

Builds a source distribution and from it the wheel, has twine look at both, lists what is in them and refuses what does
not belong there; then installs the wheel into empty environments, for every Python that can be found and with every
extra apart, and runs the README's lines and a line for the extra there. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from release import contents
from release.installing import TRIALS, try_installed
from release.pythons import find_pythons

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "release"


def main() -> int:
    """Check, and say what was found."""
    options = _options()
    shutil.rmtree(BUILT, ignore_errors=True)
    sources, wheel = _build()
    problems = _look_into(sources, wheel)
    pythons = find_pythons()
    print(f"Pythons found: {', '.join(f'{version} ({program})' for version, program in pythons.items())}")
    for version in options.python or pythons:
        for extra in options.extra or TRIALS:
            installed = try_installed(wheel, extra, version, pythons[version], BUILT)
            print(installed, flush=True)
            problems += [f"Python {version} with {extra}"] if installed.problem else []
    print("\n".join(["", "FAILED:", *problems]) if problems else "\nAll fine.")
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="release", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", action="append", help="only this version, such as 3.12; may be given several times")
    parser.add_argument("--extra", action="append", choices=list(TRIALS), help="only this extra; likewise")
    return parser.parse_args()


def _build() -> tuple[Path, Path]:
    """The source distribution, and the wheel that it gives, by the pinned setuptools of this environment."""
    begun = time.perf_counter()
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # files that are gone would come back from there
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(BUILT), str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (sources,), (wheel,) = BUILT.glob("*.tar.gz"), BUILT.glob("*.whl")
    print(f"built in {time.perf_counter() - begun:.0f} s")
    return sources, wheel


def _look_into(sources: Path, wheel: Path) -> list[str]:
    """What is wrong with what was built; what is in it is printed."""
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(sources), str(wheel)], check=True)
    cffconvert = Path(sys.executable).with_name("cffconvert")
    subprocess.run([str(cffconvert), "--validate", "-i", str(ROOT / "CITATION.cff")], check=True)
    for archive in (sources, wheel):
        found = contents.files_of(archive)
        print(f"{archive.name}: {archive.stat().st_size / 1024:,.0f} KiB, {len(found)} files")
        for folder, count in contents.by_folder(found).items():
            print(f"  {folder}: {count}")
    package = contents.package_files(ROOT)
    return [
        *contents.problems_of_wheel(contents.files_of(wheel), package),
        *contents.problems_of_sources(contents.files_of(sources), package),
    ]


if __name__ == "__main__":
    sys.exit(main())
