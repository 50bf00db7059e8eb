"""Measures one group of cases for one library; prints a JSON object as its last line.

``python -m integration_tests.benchmarks.worker MODULE GROUP LIBRARY``. A case whose feature the
library lacks is reported as missing, any other failure as an error; neither stops the rest.
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
    """The figure that ``case`` gives for ``ns``, or why there is none."""
    try:
        return {"value": case.run(ns)}
    except ABSENT as error:
        return {"missing": f"{type(error).__name__}: {error}"}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Runs the cases of the group named on the command line in the order they are written."""
    module, group, library = sys.argv[1:]
    cases = importlib.import_module(f"{__package__}.{module}").CASES
    ns = Namespace(library)
    print(json.dumps({case.name: measure(case, ns) for case in cases if case.group == group}))


if __name__ == "__main__":
    main()
