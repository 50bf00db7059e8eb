"""Processes that count compilations, for the tests of the cache on disk."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from processes import run

from primax_core._base.identity import CACHE_FOLDER

PREAMBLE = """
import json, logging, os, sys
import numpy as np
import primax_core as px
from primax_core import lax
from primax_core._lower import compile as compiling, source_fingerprint
from primax_core._runtime.disk import executables as disk, folder, store, writer

# The sources may be edited while tests run; what that leads to is tested elsewhere.
source_fingerprint._stamp = ("the same in all processes",)
done = {"lowered": 0, "compiled": 0, "fetched": 0}

def count(owner, name, what, amount):
    original = getattr(owner, name)
    def counted(*args, **options):
        out = original(*args, **options)
        done[what] += amount(out)
        return out
    setattr(owner, name, counted)

count(compiling, "lower_module", "lowered", lambda out: 1)
count(compiling, "_compile_or_fetch", "compiled", lambda out: 1)
count(disk, "fetch", "fetched", lambda out: out is not None)
said = []

class Heard(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())

logging.getLogger("primax_core").addHandler(Heard())

def report(*values):
    writer.finish()
    print(json.dumps([done, said, [np.asarray(v).tolist() for v in values]]))
"""

SIN = "report(lax.sin(np.float32(1.5)))"


class Report:
    """Record of a process: modules lowered, looked up and fetched; warnings; values."""

    def __init__(self, text: str):
        done, self.said, self.values = json.loads(text.splitlines()[-1])
        self.lowered: int = done["lowered"]
        self.fetched: int = done["fetched"]
        self.looked_for: int = done["compiled"]

    def __repr__(self) -> str:
        return str(vars(self))


def process(home: Path | str, code: str = SIN, **environment: Any) -> Report:
    """Run code in a process with its caches below ``home``."""
    text = PREAMBLE + textwrap.dedent(code)
    environment = {k: str(v) for k, v in environment.items()}
    return Report(run(text, XDG_CACHE_HOME=str(home), HOME=str(home), **environment))


def kept(home: Path, suffix: str = ".xla") -> list[Path]:
    """The files of the cache below ``home``."""
    return sorted((home / CACHE_FOLDER).glob("*" + suffix))
