"""Checks the public surface of the installed wheels: ``python tools/typecheck.py PACKAGE...``.

Pyright's ``--verifytypes`` counts the public symbols whose type is fully known, and the share may
not fall below the package's floor; then both checkers read programs written as a user would write
them. Run by ``nox -s typecheck``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("integration_tests/typing",)
SHOWN = 40
# Percent of the public symbols with a known type, at least; 100 for packages that are not listed.
# A floor is only ever raised.
FLOORS: dict[str, float] = {}


def verify(package: str) -> dict[str, Any]:
    """What pyright says of the public symbols of ``package``.

    Raises:
      RuntimeError: if it says nothing.
    """
    command = [sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal"]
    command += ["--verifytypes", package]
    # From another folder than the root, whose configuration is for the programs.
    done = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        text = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        raise RuntimeError(f"pyright gave no answer for {package}: {text}") from None
    return answer


def unknown_symbols(answer: dict[str, Any]) -> list[str]:
    """A line for each public symbol without a fully known type."""
    lines = []
    for symbol in answer["typeCompleteness"]["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"]:
            reasons = [d["message"].splitlines()[0] for d in symbol.get("diagnostics", ())]
            lines.append(f"  {symbol['name']}: {'; '.join(reasons)}")
    return lines


def reaches_its_floor(package: str) -> bool:
    """Whether enough public symbols of ``package`` have a known type."""
    answer = verify(package)
    completeness = answer["typeCompleteness"]
    known = completeness["exportedSymbolCounts"]["withKnownType"]
    score = 100 * completeness["completenessScore"]
    floor = FLOORS.get(package, 100.0)
    print(f"{package}: {known} public symbols with a known type, {score:.1f} %, floor {floor} %")
    if score >= floor:
        if score >= floor + 1:
            print(f"  raise the floor of {package} in tools/typecheck.py to {score:.0f}")
        return True
    unknown = unknown_symbols(answer)
    print("\n".join(unknown[:SHOWN]))
    if len(unknown) > SHOWN:
        print(f"  and {len(unknown) - SHOWN} more")
    return False


def check_programs() -> bool:
    """Whether mypy and pyright accept the programs, as strictly as pyproject.toml says."""
    env = dict(os.environ, MYPY_CACHE_DIR=str(ROOT / "build" / "mypy"))
    accepted = True
    for tool in (["mypy"], ["pyright"]):
        command = [sys.executable, "-m", *tool, *PROGRAMS]
        accepted &= subprocess.run(command, cwd=ROOT, env=env).returncode == 0
    return accepted


def main() -> int:
    """Checks the packages named on the command line, then the programs."""
    results = [reaches_its_floor(package) for package in sys.argv[1:]]
    return int(not (check_programs() and all(results)))


if __name__ == "__main__":
    sys.exit(main())
