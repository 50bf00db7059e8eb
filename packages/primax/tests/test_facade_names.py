"""Tests of names that only the facade has, and of core modules under its names."""

from __future__ import annotations

import importlib

import pytest

import primax


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("host_count", "process_count"),
        ("host_id", "process_index"),
        ("host_ids", "process_indices"),
    ],
)
def test_former_names_return_the_renamed_function(old: str, new: str) -> None:
    with pytest.warns(UserWarning, match=f"primax.{old} has been renamed to primax.{new}"):
        assert getattr(primax, old)() == getattr(primax, new)()
    with pytest.warns(UserWarning):
        assert getattr(primax, old)(backend="cpu") == getattr(primax, new)("cpu")


def test_names_of_small_modules() -> None:
    assert importlib.import_module("primax.typing").ArrayLike is primax.typing.ArrayLike
    assert primax.memory.Space.Host is importlib.import_module("primax.memory").Space.Host
    assert callable(primax.custom_derivatives.linear_call)
    assert callable(primax.ad_checkpoint.checkpoint_name_fwd)
    assert primax.custom_derivatives.remat_opt_p.name == "remat_opt"
