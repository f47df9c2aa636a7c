"""python -m weft ARGUMENTS... -- runs the weft program of the wheel."""

import os
import sys

from . import _library


def main() -> None:
    program = _library.program()
    if program is None:
        sys.exit("error: this weft package has no program\n  make wheel builds a wheel with it; make install installs it")
    os.execv(program, ["weft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
