"""Measure one group of cases for one library; print a JSON object as the last line.

``python -m integration_tests.benchmarks.worker MODULE GROUP LIBRARY``. If the library lacks a
feature, the case is reported as missing; any other failure is reported as an error. The other cases
still run.
"""

# ruff: noqa: I001  (the clock has to start before the other imports)
from __future__ import annotations

from . import clock as clock

import importlib
import json
import sys
import traceback
from typing import Any

from .case import Case, Namespace

ABSENT = (AttributeError, ImportError, NotImplementedError)


def measure(case: Case, ns: Namespace) -> dict[str, Any]:
    """Return the measurement of ``case`` for ``ns``, or the reason why it is missing."""
    try:
        return {"value": case.run(ns)}
    except ABSENT as error:
        return {"missing": f"{type(error).__name__}: {error}"}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Run the cases of the group named on the command line in source order."""
    module, group, library = sys.argv[1:]
    cases = importlib.import_module(f"{__package__}.{module}").CASES
    ns = Namespace(library)
    print(json.dumps({case.name: measure(case, ns) for case in cases if case.group == group}))


if __name__ == "__main__":
    main()
