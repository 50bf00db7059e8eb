"""The extras of the facade that install plugins of accelerators fit the core and each Python."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools import workspace

PYTHONS = ("3.11", "3.12", "3.13")
# The newest jaxlib for each Python, and the libtpu that goes with it.
PUBLISHED = {
    "3.11": {"jaxlib": "0.10.2", "libtpu": "0.0.42.1"},
    "3.12": {"jaxlib": "0.12.0.1", "libtpu": "0.0.50.1"},
    "3.13": {"jaxlib": "0.12.0.1", "libtpu": "0.0.50.1"},
}


def project(wheel: str) -> dict:
    folder = workspace.wheels()[wheel].folder
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(extra: str, python: str) -> dict[str, Requirement]:
    """The requirements of an extra that hold for a version of Python, by name."""
    chosen = [Requirement(text) for text in project("primax")["optional-dependencies"][extra]]
    environment = {"python_version": python, "extra": ""}
    held = [r for r in chosen if r.marker is None or r.marker.evaluate(environment)]
    assert len({r.name for r in held}) == len(held)
    return {r.name: r for r in held}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    "extra, plugin", [("cuda12", "jax-cuda12-plugin"), ("cuda13", "jax-cuda13-plugin")]
)
def test_a_plugin_for_gpus_is_that_of_jaxlib(extra, plugin, python):
    held = requirements(extra, python)
    assert set(held) == {"jaxlib", plugin}
    assert held["jaxlib"].specifier == held[plugin].specifier
    assert held[plugin].extras == {"with-cuda"}
    assert PUBLISHED[python]["jaxlib"] in held[plugin].specifier


@pytest.mark.parametrize("python", PYTHONS)
def test_the_compiler_for_tpus_is_the_one_that_goes_with_jaxlib(python):
    held = requirements("tpu", python)
    assert set(held) == {"jaxlib", "libtpu"}
    assert all(PUBLISHED[python][name] in r.specifier for name, r in held.items())


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("extra", ["cuda12", "cuda13", "tpu"])
def test_the_core_accepts_the_jaxlib_of_an_extra(extra, python):
    texts = project("primax-core")["dependencies"]
    (accepted,) = [r for r in map(Requirement, texts) if r.name == "jaxlib"]
    newest = Version(PUBLISHED[python]["jaxlib"])
    assert newest in accepted.specifier
    assert newest in requirements(extra, python)["jaxlib"].specifier
