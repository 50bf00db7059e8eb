"""Tests of the reference's tables of value classes: values of registered classes are operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primax
from primax import api_util, core, lax
from primax.extend import ShapedArray, typeof
from primax.extend.core import Primitive, create_call_primitive
from primax.interpreters import xla

X = np.arange(1.0, 4.0, dtype=np.float32)


def new_class(**members: Any) -> type:
    """A new class of values with a NumPy array, which has no methods of arrays."""

    def __init__(self: Any, elements: np.ndarray) -> None:
        self.elements = elements

    return type("Samples", (), {"__init__": __init__, **members})


def described(value: Any) -> ShapedArray:
    return ShapedArray(value.elements.shape, value.elements.dtype)


def pytype_aval_mappings() -> dict[type, Any]:
    with pytest.warns(DeprecationWarning, match=r"register_value_type, makes values operands"):
        return core.pytype_aval_mappings


def check_operand(value: Any) -> None:
    """Check that a value with the elements of X is an operand of operations and functions."""
    assert typeof(value) == typeof(X)
    assert np.array_equal(lax.add(value, X), X + X)
    assert np.array_equal(primax.jit(lax.neg)(value), -X)
    assert np.array_equal(primax.jit(lambda x: lax.mul(x, lax.neg(value)))(X), -X * X)
    assert np.array_equal(primax.jit(lambda: value)(), X)
    assert np.array_equal(primax.vmap(lambda x: lax.mul(x, x))(value), X * X)
    assert np.array_equal(primax.grad(lambda x: lax.reduce_sum(lax.mul(x, x), (0,)))(value), 2 * X)
    total, partial_sums = lax.scan(lambda c, x: (lax.add(c, x), c), np.float32(0), value)
    assert total == 6 and partial_sums.tolist() == [0, 1, 3]
    assert np.array_equal(primax.device_put(value), X)


def test_class_with_entries_in_both_tables() -> None:
    cls = new_class()
    avals = pytype_aval_mappings()
    xla.canonicalize_dtype_handlers[cls] = lambda value: value.elements
    avals[cls] = described
    check_operand(cls(X))
    check_operand(type("Subclass", (cls,), {})(X))
    assert avals[cls] is described


def test_class_with_a_conversion_only() -> None:
    cls = new_class()
    xla.canonicalize_dtype_handlers[cls] = lambda value: lax.neg(lax.neg(value.elements))
    check_operand(cls(X))


def test_class_with_a_type_only() -> None:
    cls = new_class(__array__=lambda self, dtype=None, copy=None: self.elements)
    pytype_aval_mappings()[cls] = described
    check_operand(cls(X))


def test_class_with_the_entries_of_numpy_arrays() -> None:
    members = {name: property(lambda self, n=name: getattr(self.elements, n)) for name in
               ("shape", "dtype")}  # fmt: skip
    cls = new_class(__array__=lambda self, dtype=None, copy=None: self.elements, **members)
    avals = pytype_aval_mappings()
    xla.canonicalize_dtype_handlers[cls] = xla.canonicalize_dtype_handlers[np.ndarray]
    avals[cls] = avals[np.ndarray]
    value = cls(X.astype(np.float64))
    check_operand(value)
    value.elements = X + 1
    assert np.array_equal(primax.jit(lax.neg)(value), -X - 1)


def test_entries_of_operands() -> None:
    handlers, avals = xla.canonicalize_dtype_handlers, pytype_aval_mappings()
    assert handlers[float](2.0) == 2 and handlers[np.ndarray](X).dtype == np.float32
    assert np.array_equal(handlers[bytes](X), X)  # any class has the default conversion
    array = lax.neg(X)
    assert handlers[primax.Array](array) is array
    assert avals[primax.Array](array) == avals[np.ndarray](X) == typeof(X)
    assert avals[float](2.0) == typeof(2.0)
    with pytest.raises(KeyError):
        avals[bytes]


def test_invalid_entries_are_refused() -> None:
    with pytest.raises(TypeError, match="maps classes to functions of a value, got 3 for <class"):
        xla.canonicalize_dtype_handlers[new_class()] = 3
    with pytest.raises(TypeError, match=r"got .* for 'name'"):
        pytype_aval_mappings()["name"] = described


def test_names_that_interpreters_read() -> None:
    for prim in (lax.add_p, Primitive("new"), create_call_primitive("called")):
        assert prim.call_primitive is prim.ref_primitive is False
    assert typeof(X).at_least_vspace() == typeof(X)
    assert typeof(np.int32(1)).at_least_vspace().dtype == primax.float0
    assert api_util.safe_map(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6]
    with pytest.raises(ValueError, match="shorter"):
        api_util.safe_map(lambda x, y: x + y, [1, 2], [3])


@pytest.mark.parametrize(
    "returned",
    [X[:2], X[:, None], X.astype(np.int32), 2.0, np.complex64(1)],
    ids=["shape", "rank", "dtype", "number", "complex"],
)
def test_values_of_another_type_are_refused(returned: Any) -> None:
    cls = new_class()
    xla.canonicalize_dtype_handlers[cls] = lambda value: returned
    pytype_aval_mappings()[cls] = described
    for use in (
        lambda value: lax.add(value, X),
        primax.jit(lax.neg),
        lambda value: primax.jit(lambda x: lax.mul(x, value))(X),
        primax.device_put,
    ):
        with pytest.raises(ValueError, match="but the type of the operand is f32"):
            use(cls(X))


@pytest.mark.parametrize("returned", [None, [None] * 3, "abc"])
def test_values_that_are_no_arrays_are_refused(returned: Any) -> None:
    cls = new_class()
    xla.canonicalize_dtype_handlers[cls] = lambda value: np.asarray(returned)
    pytype_aval_mappings()[cls] = described
    for use in (
        lambda value: lax.add(value, X),
        lambda value: primax.jit(lambda x: lax.mul(x, value))(X),
    ):
        with pytest.raises(TypeError, match="not a valid Primax array type"):
            use(cls(X))


@pytest.mark.parametrize("returned", [None, (3,), primax.ShapeDtypeStruct((3,), np.float32)])
def test_types_that_are_none_are_refused(returned: Any) -> None:
    cls = new_class()
    pytype_aval_mappings()[cls] = lambda value: returned
    for use in (lambda value: lax.add(value, X), primax.jit(lax.neg), primax.vmap(lax.neg)):
        with pytest.raises(ValueError, match=r"must return a type, such as ShapedArray\(shape"):
            use(cls(X))


def test_other_ways_to_set_entries() -> None:
    handlers, avals = xla.canonicalize_dtype_handlers, pytype_aval_mappings()
    first, second, third = new_class(), new_class(), new_class()
    handlers.update({first: lambda value: value.elements})
    avals |= {second: described}
    handlers |= {second: lambda value: value.elements}
    assert handlers.setdefault(third, lambda value: value.elements)(third(X)) is X
    assert handlers.setdefault(third, None)(third(X)) is X
    for cls in (first, second, third):
        check_operand(cls(X))
    for remove in (lambda: handlers.pop(first), lambda: avals.__delitem__(second), avals.clear):
        with pytest.raises(TypeError, match="cannot be removed: values of the class remain"):
            remove()
