"""``python -m primax.as_jax [--report] [-m module | -c code | program.py] arguments``."""

from __future__ import annotations

import os
import runpy
import sys
from typing import NoReturn

from . import install

_USAGE = """usage: python -m primax.as_jax [--report] program.py [arguments]
       python -m primax.as_jax [--report] -m module [arguments]
       python -m primax.as_jax [--report] -c code [arguments]

Run a program written for JAX on Primax: `import jax` imports Primax in this process.
With --report, a report is printed to stderr when the program ends: missing names, functions
that were traced more than once, operations outside of jit, and the time of compilation."""


def _refuse(message: str) -> NoReturn:
    print(f"{_USAGE}\n\nprimax.as_jax: {message}", file=sys.stderr)
    raise SystemExit(2)


def main(arguments: list[str]) -> None:
    """Run the program given by the arguments, as ``python`` would."""
    if not arguments:
        _refuse("no program given")
    with_report = arguments[0] == "--report"
    if with_report:
        arguments = arguments[1:]
        if not arguments:
            _refuse("no program given")
    first, rest = arguments[0], arguments[1:]
    if first in ("-h", "--help"):
        print(_USAGE)
        return
    if first in ("-m", "-c") and not rest:
        _refuse(f"argument expected for {first}")
    install()
    if with_report:
        from ._report import start  # the log and others are imported only for it

        start()
    if first == "-m":
        if rest[0] == "pytest":  # pytest may start worker processes, which receive its plugins
            rest[1:1] = ["-p", "primax.as_jax.pytest"]
        sys.argv[:] = rest
        sys.path[0:1] = [os.getcwd()]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.path[0:1] = [""]
        main_module = type(sys)("__main__")
        sys.modules["__main__"] = main_module
        exec(compile(rest[0], "<string>", "exec"), main_module.__dict__)
    elif first.startswith("-"):
        _refuse(f"unknown option {first}")
    elif not os.path.exists(first):
        _refuse(f"can't open file {first!r}: there is no such file")
    else:
        sys.argv[:] = arguments
        sys.path[0:1] = [os.path.dirname(os.path.abspath(first))]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
