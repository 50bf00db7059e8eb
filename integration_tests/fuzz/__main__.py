"""A long run: ``python -m integration_tests.fuzz --calls 100000``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .harness import FUZZERS, run

# The jax whose interface Primax has, in its oldest accepted version.
COMPARABLE = (0, 12)


def reference() -> str:
    """This Python if a jax is installed that programs can be compared with; empty otherwise."""
    try:
        installed = version("jax")
    except PackageNotFoundError:
        return ""
    return sys.executable if tuple(map(int, installed.split(".")[:2])) >= COMPARABLE else ""


def main() -> int:
    """Run fuzzers, print a summary, and return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.fuzz")
    parser.add_argument("--calls", type=int, default=10_000, help="number of inputs")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", nargs="+", choices=FUZZERS, default=list(FUZZERS))
    parser.add_argument("--reference", default=reference(), help="a Python with jax; '' for none")
    options = parser.parse_args()
    os.environ["PRIMAX_FUZZ_REFERENCE"] = options.reference
    print(f"seed {options.seed}, reference {options.reference or 'none'}", flush=True)
    shares = sum(FUZZERS[name] for name in options.only)
    summaries = []
    for name in options.only:
        count = max(1, round(options.calls * FUZZERS[name] / shares))
        with tempfile.TemporaryDirectory() as folder:
            summaries.append(run(name, Path(folder), options.seed, options.first, count))
        print(summaries[-1], flush=True)
    totals = [sum(len(getattr(s, k)) for s in summaries) for k in ("aborts", "hangs", "faults")]
    calls = sum(s.calls for s in summaries)
    print(f"total: {calls} calls, {totals[0]} aborts, {totals[1]} hangs, {totals[2]} faults")
    return 0 if all(s.clean for s in summaries) else 1


if __name__ == "__main__":
    sys.exit(main())
