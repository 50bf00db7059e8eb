"""The wheel as a whole: names, documentation, imports."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import primax_distributed
from primax_distributed import mesh_utils


@pytest.mark.parametrize("module", [primax_distributed, mesh_utils], ids=lambda m: m.__name__)
def test_public_names_are_documented(module) -> None:
    assert module.__doc__
    for name in dir(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("primax_distributed"):
            continue
        assert inspect.getdoc(value), f"{module.__name__}.{name} has no docstring"
        for member, function in vars(value).items() if inspect.isclass(value) else ():
            if not member.startswith("_") and inspect.isfunction(function):
                assert function.__doc__, f"{name}.{member} has no docstring"


def test_import_starts_no_devices_and_needs_no_other_wheel() -> None:
    code = (
        "import sys, primax_distributed; from primax_core.extend import started_clients;"
        "others = {m.partition('.')[0] for m in sys.modules if m.startswith('primax')};"
        "assert others == {'primax_core', 'primax_distributed'}, others;"
        "assert not started_clients() and 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_show_the_callers_line() -> None:
    code = (
        "from primax_distributed import AbstractMesh, NamedSharding, P\n"
        "NamedSharding(AbstractMesh((2,), ('x',)), P('z'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ValueError: P('z',) contains 'z'" in done.stderr


def test_import_loads_nothing_that_only_some_programs_need() -> None:
    code = (
        "import sys, primax_distributed\n"
        "later = ['_arrays', '_explicit_rules', '_mesh_of_tiling', '_shard_map', 'mesh_utils']\n"
        "later = {f'primax_distributed.{name}' for name in later}\n"
        "later |= {'primax_core._lower.compile', 'primax_core._runtime.assembly'}\n"
        "assert not later & {*sys.modules}, later & {*sys.modules}\n"
        "assert not [m for m in sys.modules if m.startswith('primax_core.lax.linalg.')]\n"
        "assert primax_distributed.mesh_utils.create_device_mesh\n"
        "assert {'mesh_utils', 'make_array_from_callback'} <= {*dir(primax_distributed)}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
