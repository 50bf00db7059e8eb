"""The core's sources do not use the name of the library whose behaviour they follow.

Names and texts of that library belong to the facade. What remains are facts about jaxlib, names
that other programs read, and texts that are compared with the reference's.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import primax_core

SOURCES = Path(primax_core.__file__).parent
REFERENCE = re.compile(r"jax|jnp|pjit", re.IGNORECASE)
OWN = re.compile(rf"{re.escape(primax_core.__name__)}|primax|jaxpr", re.IGNORECASE)

JAXLIB = re.compile(
    r"jaxlib"
    r"|\b_jax(?:_mlir_ext)?\b"  # its extension modules
    r"|JaxRuntimeError"  # its error class
    r"|libjax_common"
    r"|jax_(?:plugins|cuda|rocm)"  # packages of its plugins
    r"|__jax_array__",  # the protocol of array-like classes
    re.IGNORECASE,
)

EXCEPTIONS = {
    "_base/monitoring.py": {
        '"/jax/': "names of events that dashboards look for",
        "JAX's dashboards": "the reason for the names of the events",
    },
    "_lower/locations.py": {'"jax.result_info"': "an attribute that tools read"},
    "_lower/module.py": {'"jax.buffer_donor"': "an attribute that XLA reads"},
    "_lower/platforms.py": {'"jax.global_constant"': "an attribute that jaxlib reads"},
    "_runtime/dlpack.py": {"and imports jax": "a fact about jaxlib"},
    "_runtime/interchange.py": {"own function imports jax": "a fact about jaxlib"},
    "_lower/exported.py": {"Exported.in_shardings_jax": "a method with the reference's name"},
    "_runtime/jaxlib_versions.py": {
        "NumPy imports jax": "a fact about jaxlib",
        "imports jax to read": "a fact about jaxlib",
    },
    "_runtime/lapack_targets.py": {"a handler that jax installs": "a fact about jaxlib"},
    "_runtime/plugins.py": {
        "without importing jax": "a fact about jaxlib's plugins",
    },
    "_runtime/plugin_start.py": {"and jax, each": "a fact about jaxlib's plugins"},
    "_runtime/absent_devices.py": {"jax-cuda13-pjrt": "the name of a distribution"},
    "lax/composites.py": {"`jax.custom_jvp`": "compared with the reference"},
}
"""Phrases by file, with the reason for each."""


def uses(line: str, phrases: dict[str, str]) -> bool:
    """Return True if a line uses the reference's name, except in jaxlib's and ``phrases``."""
    for phrase in phrases:
        line = line.replace(phrase, "")
    return REFERENCE.search(JAXLIB.sub("", OWN.sub("", line))) is not None


def test_sources_do_not_use_the_name_of_the_reference() -> None:
    lines = [
        f"{name}:{number}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        for name in [path.relative_to(SOURCES).as_posix()]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if uses(line, EXCEPTIONS.get(name, {}))
    ]
    assert not lines, "\n".join(lines)


def test_every_exception_is_needed() -> None:
    unneeded = [
        (name, phrase)
        for name, phrases in EXCEPTIONS.items()
        for phrase in phrases
        if phrase not in (SOURCES / name).read_text(encoding="utf-8")
    ]
    assert not unneeded


@pytest.mark.parametrize(
    "line",
    ["class JAXTypeError(TypeError):", 'f"Tip: jnp.{name}"', "'<PjitFunction of'", "# as in JAX"],
)
def test_the_check_detects(line: str) -> None:
    assert uses(line, {}) and uses(line, EXCEPTIONS["_base/monitoring.py"])


@pytest.mark.parametrize(
    "line",
    ["from jaxlib import _jax", "jaxpr.map_jaxprs", "primax.numpy", "hasattr(x, '__jax_array__')"],
)
def test_the_check_accepts(line: str) -> None:
    assert not uses(line, {})


def test_no_name_of_a_module_stands_more_than_twice() -> None:
    """A reader who searches for a file by name finds the right one."""
    folders: dict[str, list[str]] = {}
    for file in sorted(SOURCES.rglob("*.py")):
        if file.name != "__init__.py":
            folders.setdefault(file.name, []).append(str(file.parent.relative_to(SOURCES)))
    assert {name: those for name, those in folders.items() if len(those) > 2} == {}
