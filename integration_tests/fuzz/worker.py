"""Worker process of a fuzzer.

``python -m integration_tests.fuzz.worker NAME FOLDER SEED FIRST COUNT`` tries ``COUNT`` inputs.
The number of the current input is in the file ``at`` of the folder. Faults are lines of the output.
"""

from __future__ import annotations

import importlib
import logging
import struct
import sys
import warnings
from pathlib import Path

MEMORY = 12 << 30
SHOWN = 8000  # characters of a fault


def limit_memory() -> None:
    """Arguments may ask for arrays of any size."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def main(name: str, folder: Path, seed: int, first: int, count: int) -> None:
    """Try inputs; the number of each is recorded before."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    limit_memory()
    fuzzer = importlib.import_module(f"integration_tests.fuzz.{name}").Fuzzer(folder, seed)
    if not count:  # describe an input that crashed or hung
        print(fuzzer.describe(first) if hasattr(fuzzer, "describe") else "")
        return
    with open(folder / "at", "r+b", buffering=0) as at:
        for n in range(first, first + count):
            at.seek(0)
            at.write(struct.pack("<q", n))
            fault = fuzzer.attempt(n)
            if fault is not None:
                print(f"FAULT {n} {fault[:SHOWN]!r}", flush=True)
        at.seek(0)
        at.write(struct.pack("<q", first + count))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6]))
