"""A wheel refuses a core whose extension API it does not work with, before it registers anything.

The version is faked in a process of its own, since a failed import leaves traces in this one.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

WHEELS = ("distributed", "ffi", "interpreters", "numpy", "nn", "scipy")
PROGRAM = """
import primax_core
import primax_core.extend.versions as versions

versions.API_VERSION = {offers}
try:
    import {module}
except ImportError as e:
    print(e)
print(hasattr(primax_core.lax.full((), 1), "sum"))
"""


def imported(module: str, offers: tuple[int, int]) -> list[str]:
    """What the program prints: the error's message, if any, and whether arrays have methods."""
    program = PROGRAM.format(module=module, offers=offers)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("offers", [(1, 3), (2, 0)])
@pytest.mark.parametrize("module", ["primax", *(f"primax_{name}" for name in WHEELS)])
def test_a_core_that_does_not_match_is_refused(module, offers):
    error, registered = imported(module, offers)
    name = module.replace("_", "-")
    assert error.startswith(name) and f"offers {offers[0]}.{offers[1]}" in error
    assert "Install a matching pair: pip install --upgrade " + name in error
    assert registered == "False"


@pytest.mark.parametrize("module", ["primax", "primax_nn", "primax_scipy"])
def test_a_later_minor_version_is_accepted(module):
    assert len(imported(module, (1, 99))) == 1


def test_the_facade_hands_on_the_refusal_of_an_optional_wheel():
    program = (
        "import primax, primax_core.extend.versions as versions\n"
        "versions.API_VERSION = (2, 0)\n"
        "import primax.scipy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert "ImportError: primax-scipy" in done.stderr and "offers 2.0" in done.stderr
