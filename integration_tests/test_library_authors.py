"""The table of names on the page for library authors: each name exists where the page says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "library_authors.md"
HEAD = "| Private name | Public name in jax | Extension API |\n|---|---|---|\n"
NAME = re.compile(r"`((?:jax|primax_core)\.[\w.]+)`")
CODE = """
import json, pkgutil, sys
missing = []
for name in json.loads(sys.argv[1]):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        missing.append(name)
print(json.dumps(missing))
"""


def columns() -> list[list[str]]:
    rows = PAGE.read_text("utf-8").partition(HEAD)[2].partition("\n\n")[0].splitlines()
    assert len(rows) > 20
    cells = [row.strip("|").split("|") for row in rows]
    assert {len(row) for row in cells} == {3}
    return [[name for row in cells for name in NAME.findall(row[i])] for i in range(3)]


def missing(names: list[str], *options: str) -> list[str]:
    command = [sys.executable, *options, "-c", CODE, json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_public_names_exist_under_as_jax():
    _, public, own = columns()
    assert public and own
    assert missing([*public, *own], "-m", "primax.as_jax") == []


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
def test_public_names_exist_in_jax():
    assert missing(columns()[1]) == []
