"""Fast paths return the results of the library function, or miss."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import clear_caches, device_put, enable_x64, jit, lax
from primax_core.extend import FastPath, library_function


def scaled(x, y, *, times):
    return lax.mul(lax.add(x, y), lax.full_like(x, times))


def path():
    return FastPath(library_function(scaled, static_argnames=("times",)))


def test_a_known_key_runs_the_same_executable() -> None:
    doubled, x, y = path(), device_put(np.float32(2)), device_put(np.float32(3))
    assert doubled.lookup("twice", x, y) is None
    assert doubled.call("twice", (x, y), times=2) == 10
    assert doubled.lookup("twice", x, y) == 10
    assert doubled.lookup("twice", y, y) == 12
    assert doubled.lookup("thrice", x, y) is None


def test_types_and_settings_are_part_of_the_key() -> None:
    doubled, x = path(), device_put(np.float32(2))
    doubled.call("twice", (x, x), times=2)
    assert doubled.lookup("twice", device_put(np.float32([1])), device_put(np.float32([1]))) is None
    with enable_x64(True):
        assert doubled.lookup("twice", x, x) is None
    assert doubled.lookup("twice", x, x) == 8


def test_numpy_scalars_and_arrays_hit() -> None:
    doubled, x = path(), device_put(np.float32(2))
    assert doubled.call("twice", (x, 3.0), times=2) == 10
    assert doubled.lookup("twice", x, 5.0) == 14
    assert doubled.lookup("twice", x, np.float32(5)) is None  # of another type: not weakly typed
    assert doubled.call("twice", (x, np.ones((), np.float32)), times=2) == 6
    assert doubled.lookup("twice", x, np.array(5, np.float32)) == 14


def test_other_values_miss() -> None:
    doubled, x = path(), device_put(np.float32(2))
    assert doubled.call("twice", (x, 3.0), times=2) == 10
    assert doubled.lookup("twice", x, "a") is None
    assert doubled.lookup([], x, x) is None  # not hashable


def test_tracers_miss() -> None:
    doubled, x = path(), device_put(np.float32(2))
    doubled.call("twice", (x, x), times=2)

    def fun(x):
        assert doubled.lookup("twice", x, x) is None
        return doubled.call("twice", (x, x), times=2)

    assert jit(fun)(x) == 8


def test_the_error_names_deleted_arrays() -> None:
    doubled, x = path(), device_put(np.float32(2))
    y = device_put(np.float32(3))
    doubled.call("twice", (x, y), times=2)
    y.delete()
    for call in (doubled.lookup, lambda *args: doubled.call(args[0], args[1:], times=2)):
        with pytest.raises(RuntimeError, match=r"deleted.* It is argument number 1 of scaled"):
            call("twice", x, y)


def test_entries_are_dropped_with_the_caches() -> None:
    doubled, x = path(), device_put(np.float32(2))
    doubled.call("twice", (x, x), times=2)
    assert doubled.lookup("twice", x, x) is not None
    clear_caches()
    assert doubled.lookup("twice", x, x) is None


def test_methods_of_earlier_versions_warn_until_version_2() -> None:
    doubled, x = path(), device_put(np.float32(2))
    with pytest.warns(DeprecationWarning, match=r"FastPath\.slow is called call since") as slow:
        assert doubled.slow("twice", (x, x), times=2) == 8
    with pytest.warns(DeprecationWarning, match=r"FastPath\.quick is called lookup since") as quick:
        assert doubled.quick("twice", x, x) == 8
    assert [w.filename for w in (*slow, *quick)] == [__file__] * 2
    assert all("removed in version 2.0" in str(w.message) for w in (*slow, *quick))
