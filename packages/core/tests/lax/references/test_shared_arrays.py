"""Arrays shared by references and users that are donated or deleted; freed references."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, ref as r

X = np.arange(3, dtype=np.float32)


def fresh(n: int = 3):
    """An array without other references to its buffer."""
    return px.jit(lambda: lax.iota(np.float32, n))()


def donate(x) -> None:
    px.jit(lambda x: x + 1, donate_argnums=0)(x)


def delete(x) -> None:
    x.delete()


def compiled(x) -> None:
    px.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()(x)


ENDS = [donate, delete, compiled]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("n", [3, 5000])
def test_the_initial_array_can_be_deleted(end, n) -> None:
    x = fresh(n)
    ref = px.new_ref(x)
    end(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(ref[:3], X)
    ref[0] = 7.0
    np.testing.assert_array_equal(ref[:3], [7, 1, 2])


@pytest.mark.parametrize("end", ENDS)
def test_an_array_that_was_read_can_be_deleted(end) -> None:
    ref = px.new_ref(X)
    ref[0] = 7.0
    end(ref[...])
    np.testing.assert_array_equal(ref[...], [7, 1, 2])
    end(ref[...])
    np.testing.assert_array_equal(ref[...], [7, 1, 2])


@pytest.mark.parametrize("end", ENDS)
def test_an_array_that_was_written_can_be_deleted(end) -> None:
    x, ref = fresh(), px.new_ref(np.zeros(3, np.float32))
    ref[...] = x
    other = px.new_ref(x)
    end(x)
    np.testing.assert_array_equal(ref[...], X)
    ref[0] = 7.0
    np.testing.assert_array_equal(other[...], X)


def test_weakly_typed_arrays_can_be_deleted() -> None:
    x = px.jit(lambda: 3.0)()
    ref = px.new_ref(x)
    x.delete()
    assert float(ref[...]) == 3.0


def test_a_call_with_the_reference_and_its_array() -> None:
    x = fresh()
    ref = px.new_ref(x)

    def f(ref, x):
        ref[0] = 5.0
        return x + 1

    np.testing.assert_array_equal(px.jit(f, donate_argnums=1)(ref, x), X + 1)
    np.testing.assert_array_equal(ref[...], [5, 1, 2])


def test_the_contents_of_a_freed_reference_are_not_copied() -> None:
    x = fresh()
    ref = px.new_ref(x)
    ref[...] = X
    donate(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(ref[...], X)


@pytest.mark.parametrize("ends", [px.freeze, r.free_ref])
def test_a_freed_reference_is_refused_by_jitted_functions(ends) -> None:
    ref = px.new_ref(X)
    closing, taking = px.jit(lambda: ref[0]), px.jit(lambda ref: ref[0])
    ahead = taking.lower(ref).compile()
    assert closing() == taking(ref) == ahead(ref) == 0
    ends(ref)
    for call in (closing, lambda: taking(ref), lambda: ahead(ref)):
        with pytest.raises(ValueError, match=f"was used after `{ends.__name__}`"):
            call()


def test_executables_compiled_ahead_of_time_check_their_references() -> None:
    def f(a, b):
        a[0] = 1.0
        b[1] = b[0] + 5

    a, b = px.new_ref(X), px.new_ref(X)
    program = px.jit(f).lower(a, b).compile()
    program(a, b)
    with pytest.raises(ValueError, match="appeared at both a and b"):
        program(a, a)
    with pytest.raises(TypeError, match=r"'b' compiled with Ref\{float32\[3\]\} and called with f"):
        program(a, X)
    plain = px.jit(lambda x: x + 1).lower(X).compile()
    with pytest.raises(TypeError, match=r"called with Ref\{float32\[3\]\}"):
        plain(a)
    np.testing.assert_array_equal(a[...], [1, 1, 2])


def test_functions_without_references_do_not_load_their_modules() -> None:
    code = """
import sys
import primax_core as px
f = px.custom_vjp(lambda x: x * 2)
f.defvjp(lambda x: (f(x), None), lambda _, g: (g * 3,))
assert px.grad(f)(1.0) == 3
g = px.custom_jvp(lambda x: x * 2)
g.defjvp(lambda x, t: (g(*x), t[0] * 3))
assert px.grad(g)(1.0) == 3
x = px.device_put(1.0)
assert px.jit(f, donate_argnums=0).lower(x).compile()(x) == 2
assert "primax_core._trace.refs" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
