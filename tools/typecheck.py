"""Checks the public surface of the installed wheels: ``python tools/typecheck.py PACKAGE...``.

Pyright's ``--verifytypes`` reports every public symbol whose type is not fully known; then both
checkers read programs written as a user would write them. Run by ``nox -s typecheck``.
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


def unknown_symbols(package: str) -> list[str]:
    """What pyright says of public symbols in ``package`` without a fully known type."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--ignoreexternal"]
    command += ["--verifytypes", package]
    # From another folder than the root, whose configuration is for the programs.
    done = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        return [f"pyright gave no answer: {done.stdout[-2000:]}{done.stderr[-2000:]}"]
    completeness = answer["typeCompleteness"]
    score = completeness["completenessScore"]
    counts = completeness["exportedSymbolCounts"]
    print(f"{package}: {counts['withKnownType']} public symbols with a known type, {score:.1%}")
    lines = []
    for symbol in completeness["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"]:
            reasons = [d["message"].splitlines()[0] for d in symbol.get("diagnostics", ())]
            lines.append(f"  {symbol['name']}: {'; '.join(reasons)}")
    problems = [d["message"] for d in answer["generalDiagnostics"] if d["severity"] == "error"]
    return lines + problems


def check_programs() -> bool:
    """Whether mypy (strict) and pyright accept the programs."""
    env = dict(os.environ, MYPY_CACHE_DIR=str(ROOT / "build" / "mypy"))
    accepted = True
    for tool in (["mypy"], ["pyright"]):
        command = [sys.executable, "-m", *tool, *PROGRAMS]
        accepted &= subprocess.run(command, cwd=ROOT, env=env).returncode == 0
    return accepted


def main() -> int:
    """Checks the packages named on the command line, then the programs."""
    failed = False
    for package in sys.argv[1:]:
        unknown = unknown_symbols(package)
        failed |= bool(unknown)
        print("\n".join(unknown[:SHOWN]))
        if len(unknown) > SHOWN:
            print(f"  and {len(unknown) - SHOWN} more")
    return int(not check_programs() or failed)


if __name__ == "__main__":
    sys.exit(main())
