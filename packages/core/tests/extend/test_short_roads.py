"""Short roads give what the library function gives, and step aside where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import clear_caches, device_put, enable_x64, jit, lax
from primax_core.extend import ShortRoads, library_function


def scaled(x, y, *, times):
    return lax.mul(lax.add(x, y), lax.full_like(x, times))


def roads():
    return ShortRoads(library_function(scaled, static_argnames=("times",)))


def test_a_known_key_runs_the_same_program() -> None:
    found, x, y = roads(), device_put(np.float32(2)), device_put(np.float32(3))
    assert found.quick("twice", x, y) is None
    assert found.slow("twice", (x, y), times=2) == 10
    assert found.quick("twice", x, y) == 10
    assert found.quick("twice", y, y) == 12
    assert found.quick("thrice", x, y) is None


def test_types_and_settings_are_part_of_the_key() -> None:
    found, x = roads(), device_put(np.float32(2))
    found.slow("twice", (x, x), times=2)
    assert found.quick("twice", device_put(np.float32([1])), device_put(np.float32([1]))) is None
    with enable_x64(True):
        assert found.quick("twice", x, x) is None
    assert found.quick("twice", x, x) == 8


def test_numbers_and_arrays_of_numpy_take_it_too() -> None:
    found, x = roads(), device_put(np.float32(2))
    assert found.slow("twice", (x, 3.0), times=2) == 10
    assert found.quick("twice", x, 5.0) == 14
    assert found.quick("twice", x, np.float32(5)) is None  # of another type: not weak
    assert found.slow("twice", (x, np.ones((), np.float32)), times=2) == 6
    assert found.quick("twice", x, np.array(5, np.float32)) == 14


def test_other_values_take_the_slow_road() -> None:
    found, x = roads(), device_put(np.float32(2))
    assert found.slow("twice", (x, 3.0), times=2) == 10
    assert found.quick("twice", x, "a") is None
    assert found.quick([], x, x) is None  # not hashable


def test_traced_values_take_the_slow_road() -> None:
    found, x = roads(), device_put(np.float32(2))
    found.slow("twice", (x, x), times=2)

    def fun(x):
        assert found.quick("twice", x, x) is None
        return found.slow("twice", (x, x), times=2)

    assert jit(fun)(x) == 8


def test_deleted_arrays_take_the_slow_road() -> None:
    found, x = roads(), device_put(np.float32(2))
    y = device_put(np.float32(3))
    found.slow("twice", (x, y), times=2)
    y.delete()
    assert found.quick("twice", x, y) is None
    with pytest.raises(RuntimeError, match="deleted"):
        found.slow("twice", (x, y), times=2)


def test_roads_are_forgotten_with_the_caches() -> None:
    found, x = roads(), device_put(np.float32(2))
    found.slow("twice", (x, x), times=2)
    assert found.quick("twice", x, x) is not None
    clear_caches()
    assert found.quick("twice", x, x) is None
