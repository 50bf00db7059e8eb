"""Check the types of the installed wheels' public API: ``python tools/typecheck.py PACKAGE...``.

Pyright's ``--verifytypes`` counts the public symbols whose type is fully known. Their share must
not be below the package's floor, and the share of parameters whose type is ``Any`` not above its
limit (``any_share.py``). Then mypy and pyright check example user programs. Run by
``nox -s typecheck``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from any_share import is_within_its_limit

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("integration_tests/typing",)
SHOWN = 40
# Minimum percentage of public symbols with a known type; 100 for packages that are not listed.
# Only raise a floor, never lower it.
FLOORS: dict[str, float] = {}


def verify(package: str) -> dict[str, Any]:
    """Return pyright's report on the public symbols of ``package``.

    Raises:
      RuntimeError: pyright returned no report.
    """
    command = [sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal"]
    command += ["--verifytypes", package]
    # Not in the root folder: its configuration is for the example programs.
    process = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True)
    try:
        report: dict[str, Any] = json.loads(process.stdout[process.stdout.index("{") :])
    except ValueError:
        text = f"{process.stdout[-2000:]}{process.stderr[-2000:]}"
        raise RuntimeError(f"pyright returned no report for {package}: {text}") from None
    return report


def unknown_symbols(report: dict[str, Any]) -> list[str]:
    """Describe each public symbol without a fully known type, one line each."""
    lines = []
    for symbol in report["typeCompleteness"]["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"]:
            reasons = [d["message"].splitlines()[0] for d in symbol.get("diagnostics", ())]
            lines.append(f"  {symbol['name']}: {'; '.join(reasons)}")
    return lines


def reaches_its_floor(package: str) -> bool:
    """Return True if enough public symbols of ``package`` have a known type."""
    report = verify(package)
    completeness = report["typeCompleteness"]
    known = completeness["exportedSymbolCounts"]["withKnownType"]
    score = 100 * completeness["completenessScore"]
    floor = FLOORS.get(package, 100.0)
    print(f"{package}: {known} public symbols with a known type, {score:.1f} %, floor {floor} %")
    if score >= floor:
        if score >= floor + 1:
            print(f"  raise the floor of {package} in tools/typecheck.py to {score:.0f}")
        return True
    unknown = unknown_symbols(report)
    print("\n".join(unknown[:SHOWN]))
    if len(unknown) > SHOWN:
        print(f"  and {len(unknown) - SHOWN} more")
    return False


def check_programs() -> bool:
    """Return True if mypy and pyright accept the programs, with pyproject.toml's settings."""
    env = dict(os.environ, MYPY_CACHE_DIR=str(ROOT / "build" / "mypy"))
    accepted = True
    for tool in (["mypy"], ["pyright"]):
        command = [sys.executable, "-m", *tool, *PROGRAMS]
        accepted &= subprocess.run(command, cwd=ROOT, env=env).returncode == 0
    return accepted


def main() -> int:
    """Check the packages named on the command line, then the programs."""
    results = [reaches_its_floor(package) for package in sys.argv[1:]]
    results += [is_within_its_limit(package) for package in sys.argv[1:]]
    return int(not (check_programs() and all(results)))


if __name__ == "__main__":
    sys.exit(main())
