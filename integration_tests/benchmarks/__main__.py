"""Run every case under the reference and under Primax in turn, and print the ratios.

Each round gives each library an empty cache folder and runs each group of cases in a separate
process: reference, candidate, reference, candidate, and so on. A temporary slowdown of the machine
then affects both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from . import (
    block_kernels,
    features,
    loops,
    micro,
    native_kernels,
    page,
    process,
    report,
    several_devices,
    shipped_kernels,
    training,
)
from .case import Case

MODULES = {
    "process": process.CASES,
    "micro": micro.CASES,
    "features": features.CASES,
    "loops": loops.CASES,
    "training": training.CASES,
    "several_devices": several_devices.CASES,
    "block_kernels": block_kernels.CASES,
    "native_kernels": native_kernels.CASES,
    "shipped_kernels": shipped_kernels.CASES,
}


def groups(only: str) -> dict[tuple[str, str], list[Case]]:
    """Return the cases whose group or name contains ``only``, by module and group, in source
    order.
    """
    by_group: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for module, cases in MODULES.items():
        for case in cases:
            if only in case.group or only in case.name:
                by_group[module, case.group].append(case)
    return by_group


def run_group(module: str, group: str, library: str, cache: Path) -> dict[str, Any]:
    """Measure one group for one library in a separate process."""
    command = [sys.executable, "-m", f"{__package__}.worker", module, group, library]
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "TF_CPP_MIN_LOG_LEVEL": "2"}
    # As where a user installed the libraries, whose bytecode is on disk after the first round.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if module == "several_devices":
        env |= {f"{p}_NUM_CPU_DEVICES": str(several_devices.DEVICES) for p in ("JAX", "PRIMAX")}
    if group == native_kernels.WITHOUT:
        env["PRIMAX_NATIVE"] = "0"
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return defaultdict(lambda: {"error": "no result after 900 s"})
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return defaultdict(lambda: {"error": f"the process failed: {why}"})
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure or read figures, and optionally write a JSON file and the page."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.benchmarks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of a group's or case's name")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--reference", default="jax", help="root module of the reference")
    parser.add_argument("--candidate", default="primax", help="root module of the candidate")
    parser.add_argument("--write", action="store_true", help="put the groups on docs/benchmarks.md")
    parser.add_argument("--from-json", type=Path, help="take the figures of an earlier run")
    options = parser.parse_args()
    if options.from_json is None:
        document = measure(options)
    else:
        document = json.loads(options.from_json.read_text("utf-8"))
    if options.write:
        write_page(document)


def write_page(document: dict[str, Any]) -> None:
    """Put the groups of a run on the page, except those of which it measured only some cases."""
    measured = {row["name"] for row in document["rows"]}
    complete, all_groups = [], groups("")
    for (_, group), cases in all_groups.items():
        missing = [case.name for case in cases if case.name not in measured]
        if not missing:
            complete.append(group)
        elif len(missing) < len(cases):
            print(f"{group} is not written: {', '.join(missing)} not measured", file=sys.stderr)
    names = [group for _, group in all_groups]
    text = page.PAGE.read_text("utf-8") if page.PAGE.exists() else ""
    page.PAGE.write_text(page.update(text, document, complete, names), "utf-8")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, print the table, and return the figures as a JSON document."""
    sides = ("reference", "candidate")
    environment = report.environment()
    libraries = {side: getattr(options, side) for side in sides}
    selected = groups(options.only)
    figures: dict[str, dict[str, report.Figures]] = {side: defaultdict(list) for side in sides}
    with tempfile.TemporaryDirectory() as scratch:
        for library in libraries.values():  # warm the file cache and write bytecode
            run_group("process", "import numpy", library, Path(scratch) / "unmeasured")
        runs = [
            (round_, module, group, side)
            for round_ in range(options.rounds)
            for module, group in selected
            for side in sides
        ]
        for round_, module, group, side in track(
            runs, "measuring", console=Console(stderr=True), transient=True
        ):
            cache = Path(scratch) / f"{side}{round_}"
            result = run_group(module, group, libraries[side], cache)
            for case in selected[module, group]:
                figures[side][case.name].append(result[case.name])
    rows = [
        report.make_row(case, *(figures[side][case.name] for side in sides))
        for cases in selected.values()
        for case in cases
    ]
    names = [libraries[side] for side in sides]
    report.print_table(rows, *names, options.rounds)
    document = report.document(rows, *names, options.rounds, environment)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return document


if __name__ == "__main__":
    main()
