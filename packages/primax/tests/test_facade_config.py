"""Tests of ``primax.config`` under its own and the reference's names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import primax
import primax_core
from primax import config


@pytest.fixture
def x64():
    before = config.enable_x64
    yield
    config.update("enable_x64", before)


@pytest.mark.parametrize("name", ["enable_x64", "jax_enable_x64"])
def test_option_has_two_names(name, x64):
    for value in (True, False):
        config.update(name, value)
        assert config.enable_x64 is config.jax_enable_x64 is config.x64_enabled is value
        assert config.read(name) is primax_core.config.read("enable_x64") is value


def test_context_managers_change_the_value():
    with primax.debug_nans(True):
        assert config.jax_debug_nans is True and config.read("jax_debug_nans") is False


def test_every_option_is_listed():
    assert {f"jax_{name}" for name in primax_core.config.values} <= set(config.values)
    assert {"jax_enable_x64", "enable_x64", "update"} <= set(dir(config))


def test_platforms_have_two_names():
    before = config.read("platforms")
    try:
        config.update("jax_platform_name", "cpu")
        assert config.jax_platforms == "cpu"
        config.update("jax_platform_name", "")
        assert config.jax_platforms is None
    finally:
        config.update("platforms", before)


def test_options_without_effect_are_stored_and_warn():
    config.update("jax_use_magma", "auto")
    with pytest.warns(UserWarning, match="jax_use_magma has no effect in Primax; 'on'"):
        config.update("jax_use_magma", "on")
    assert config.jax_use_magma == config.values["jax_use_magma"] == "on"
    config.update("jax_use_magma", "auto")


@pytest.mark.parametrize("name", ["nothing", "jax_nothing"])
def test_unknown_options_raise(name):
    for act in (config.read, lambda n: config.update(n, 1), lambda n: getattr(config, n)):
        with pytest.raises(AttributeError, match=f"Unrecognized config option: {name}"):
            act(name)


def test_invalid_values_raise():
    with pytest.raises(ValueError, match="numpy_rank_promotion"):
        config.update("jax_numpy_rank_promotion", "perhaps")
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.jax_enable_x64 = True


def test_flags():
    pytest.importorskip("absl.flags")
    code = (
        "import primax\nfrom absl import app\nprimax.config.config_with_absl()\n"
        "def main(argv):\n    print(primax.config.enable_x64, primax.config.num_cpu_devices)\n"
        "app.run(main)"
    )
    run = [sys.executable, "-c", code, "--jax_enable_x64", "--jax_num_cpu_devices=2"]
    done = subprocess.run(run, text=True, capture_output=True)
    assert done.stdout.strip() == "True 2", done.stderr


def test_names_of_the_reference_for_reading():
    assert config._read("jax_enable_x64") is config.read("enable_x64")
    assert config.jax_export_calling_convention_version >= 10
