"""The NumPy layer against the reference: values, dtypes, weak types, indexing, derivatives."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as rnp
import ml_dtypes
import numpy as np
import pytest
from agreement import same, values

import primax_core as px
import primax_numpy as pnp

Program = Callable[[Any], Any]
OPERANDS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda m: True,
    "int": lambda m: 2,
    "float": lambda m: 1.5,
    "complex": lambda m: 0.5j,
    "weak array": lambda m: m.asarray(3.0),
    "i8": lambda m: np.int8([1, 2, 3]),
    "u8": lambda m: np.uint8([1, 2, 3]),
    "i32": lambda m: np.int32([-1, 2, 3]),
    "f16": lambda m: np.float16([0.5, 1, 2]),
    "bf16": lambda m: np.array([0.5, 1, 2], ml_dtypes.bfloat16),
    "f32": lambda m: m.asarray(np.float32([0.5, -1, 2])),
    "c64": lambda m: np.complex64([0.5, 1j, 2]),
    "flags": lambda m: np.array([True, False, True]),
}


def agree(case: Program, rtol: float | None = None) -> None:
    """Assert that ``case`` gives the same in both modules, or raises an error of the same kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = case(rnp)
        except Exception as e:
            with pytest.raises(type(e).__mro__[-4] if len(type(e).__mro__) > 4 else type(e)):
                case(pnp)
            return
        same(case(pnp), expected, rtol=rtol)


FLOAT = ["expm1", "log", "log1p", "cos", "tan", "tanh", "sqrt"]  # promotion as in exp and sin
UNARY = [
    "abs", "negative", "square", "exp", "sin", "isnan", "isfinite", "sum", "prod", "max", "min",
    "mean", "var", "std", "all", "any", "argmax", "argmin", "ravel", "zeros_like", "ones_like",
    "asarray", "expand_dims",
]  # fmt: skip


@pytest.mark.parametrize("operand", OPERANDS)
def test_functions_of_one_operand(operand: str) -> None:
    make = OPERANDS[operand]
    for name in UNARY + (FLOAT if operand in ("f32", "c64") else []):
        if operand in ("complex", "c64") and name in ("all", "any"):
            continue  # the reference tests only the real part; NumPy tests both
        if name == "expand_dims":
            agree(lambda m: m.expand_dims(make(m), 0))
        else:
            agree(lambda m, name=name: getattr(m, name)(make(m)), 1e-5)


BINARY = [
    "add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "equal", "less",
    "greater",
]  # fmt: skip


@pytest.mark.parametrize("left", OPERANDS)
def test_functions_of_two_operands(left: str) -> None:
    for right in OPERANDS:
        names = {"float": BINARY, "i32": ["divide", "power"]}
        for name in names.get(right, ["add"]):
            agree(lambda m, n=name, r=right: getattr(m, n)(OPERANDS[left](m), OPERANDS[r](m)), 1e-5)
        if right in ("int", "bf16"):
            agree(lambda m, r=right: m.where(True, OPERANDS[left](m), OPERANDS[r](m)))
    agree(lambda m: m.concatenate([m.ravel(OPERANDS[left](m))] * 2))


OTHERS: dict[str, Program] = {
    "clip": lambda m: m.clip(m.arange(5), 1.5, 3),
    "clip from below": lambda m: m.clip(m.arange(5), 2),
    "sum of columns": lambda m: m.sum(m.ones((3, 4), int), axis=0, keepdims=True),
    "sum as i8": lambda m: m.sum(np.int8([100, 100]), dtype=np.int8),
    "sum kept": lambda m: m.sum(np.int8([100, 100]), promote_integers=False),
    "sum from": lambda m: m.sum(m.arange(3.0), initial=2, where=np.array([True, False, True])),
    "max from": lambda m: m.max(m.arange(3), initial=7),
    "mean where": lambda m: m.mean(m.arange(4.0), where=np.array([True, False, True, True])),
    "var": lambda m: m.var(m.arange(4.0), ddof=1),
    "mean of f16": lambda m: m.mean(m.full((70000,), 1, np.float16)),
    "argmax kept": lambda m: m.argmax(m.eye(3), axis=1, keepdims=True),
    "full of weak": lambda m: m.full((2,), 3.0),
    "full of array": lambda m: m.full((2, 3), np.arange(3)),
    "full_like": lambda m: m.full_like(np.int8([1]), 3.7),
    "eye": lambda m: m.eye(2, 3, 1, dtype=bool),
    "arange": lambda m: m.arange(2, 10, 3),
    "arange of floats": lambda m: m.arange(0, 1, 0.1),
    "arange of f16": lambda m: m.arange(3, dtype=np.float16),
    "linspace": lambda m: m.linspace(-3.3, 9.7, 11),
    "linspace of integers": lambda m: m.linspace(5, -5, 7, dtype=np.int32),
    "linspace of rows": lambda m: m.linspace(np.float32([0, 1]), 3, 4, axis=1, retstep=True),
    "stack of mixed": lambda m: m.stack([m.asarray(1), m.asarray(2.5)]),
    "concatenate of mixed": lambda m: m.concatenate([np.int8([1]), np.float16([2]), [3.0]][:2]),
    "reshape in F": lambda m: m.reshape(m.arange(6), (3, 2), order="F"),
    "moveaxis": lambda m: m.moveaxis(m.ones((2, 3, 4)), (0, 1), (2, 0)),
    "broadcast_to": lambda m: m.broadcast_to(m.asarray(2.0), (2, 2)),
    "matmul": lambda m: m.matmul(m.ones((2, 3), int), m.ones(3)),
    "matmul of batches": lambda m: m.matmul(m.ones((4, 1, 2, 3)), m.ones((5, 3, 2))),
    "dot": lambda m: m.dot(m.ones((2, 3)), m.ones((4, 3, 2))),
    "outer": lambda m: m.outer(m.arange(2), m.arange(3.0)),
    "scalar types": lambda m: [m.float16(2), m.int8(3), m.bool_(1), m.complex64(1), m.uint32(7)],
    "list": lambda m: m.asarray([[1, 2], [3, 4]]),
    "list of arrays": lambda m: m.asarray([m.asarray(1.0), np.float16(2)]),
    "empty list": lambda m: m.asarray([]),
    "array": lambda m: m.array(np.float64([1, 2]), ndmin=2),
    "astype": lambda m: m.asarray(2.7).astype(int),
    "sum method": lambda m: m.arange(6).reshape(2, 3).sum(1),
    "T": lambda m: m.arange(6).reshape(2, -1).T,
    "imag": lambda m: [m.asarray(2.0).imag, m.asarray(2 + 1j).imag, m.asarray(1.0).real],
    "not none": lambda m: m.asarray(None),
    "no text": lambda m: m.asarray("a"),
    "no list": lambda m: m.sin([1.0]),
    "no axis": lambda m: m.sum(m.ones(3), axis=1),
    "no size": lambda m: m.reshape(m.ones(3), (2,)),
    "too large": lambda m: m.asarray(2**40),
    "nothing to join": lambda m: m.concatenate([]),
    "joined scalars": lambda m: m.concatenate([m.asarray(1.0)]),
    "no contraction": lambda m: m.matmul(m.ones((2, 3)), m.ones((2, 3))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    agree(OTHERS[name], 1e-5)


# Indexing


X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES: list[Any] = [
    1, -1, 7, -9, slice(1, None), slice(None, None, -2), slice(5, 1), (0, 1), (slice(None), 2),
    (None, 1), (..., 1), (1, ..., None), np.array([0, 2]), np.array([5, -1, -7]),
    (slice(None), np.array([0, 9])), (np.array([0, 1]), np.array([2, 3])),
    (np.array([0, 1]), slice(1, 3)), (np.array([[0], [1]]), np.array([2, 3])),
    (1, np.array([2, 3])), (np.array([0, 1]), None, 2), ([0, 1], [1, 2]),
    np.array([True, False, True]), X > 5, (1, X[0] > 1), True, np.int8(-1), np.uint8(2),
    np.array([True, False]), [0, 1], 1.0, "a", (0, 0, 0), (..., ...), slice(0, 1, 0), {},
    slice(1.5, 2), np.array([1.0]), np.array([], int), (np.array([], int), 1),
]  # fmt: skip


def out_of_bounds(index: Any) -> bool:
    """Return True if index modes matter: NumPy rejects the index, or it is an array."""
    try:
        X[index]
    except (IndexError, TypeError, ValueError):
        return True
    return isinstance(index, np.ndarray)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reading(index: Any) -> None:
    agree(lambda m: m.asarray(X)[index])
    agree(lambda m: m.asarray(X).at[index].get(mode="fill"))
    if out_of_bounds(index):
        agree(lambda m: m.asarray(X.astype(int))[index])
        agree(lambda m: m.asarray(X).at[index].get(mode="clip"))
        agree(lambda m: m.asarray(X).at[index].get(mode="fill", fill_value=-1))
    jit = {rnp: jax.jit, pnp: px.jit}
    agree(lambda m: jit[m](lambda x: x[index])(X))


METHODS = ["set", "add", "subtract", "multiply", "min", "max", "divide", "power"]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_updating(index: Any) -> None:
    agree(lambda m: m.asarray(X).at[index].set(2.5))
    if out_of_bounds(index):
        agree(lambda m: m.asarray(X).at[index].add(1, mode="clip"))
    jit = {rnp: jax.jit, pnp: px.jit}
    agree(lambda m: jit[m](lambda x: x.at[index].set(0))(X))


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_updates(method: str) -> None:
    for index in (1, np.array([0, 0, 2]), (slice(None), slice(1, 3)), (slice(None, None, -1), 0)):
        agree(lambda m, i=index: getattr(m.asarray(X).at[i], method)(2.5), 1e-5)
        agree(lambda m, i=index: getattr(m.asarray(X).at[i], method)(np.float16(3)), 1e-5)
    agree(lambda m: m.asarray(X).at[1].apply(lambda v: v * 3))
    agree(lambda m: m.asarray(X).at[-1].set(5, wrap_negative_indices=False))


VALUES = [True, 3, 1.7, 300, -3, 2**31 - 1, np.float32(1.5), np.int64(7), 1j, np.float64([1.5, 2])]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_dtypes_of_updates(value: Any) -> None:
    for operand in ("weak array", "i8", "u8", "i32", "f16", "f32", "flags"):
        index = () if operand == "weak array" else slice(0, 2)
        agree(lambda m, i=index, o=operand: m.asarray(OPERANDS[o](m)).at[i].set(value))
        if operand != "flags":
            agree(lambda m, i=index, o=operand: m.asarray(OPERANDS[o](m)).at[i].add(value))


def test_warnings_of_updates() -> None:
    for x, value in itertools.product(
        [np.int32([1]), np.float32([1]), np.uint8([1]), np.float16([1])],
        [1.5, 2, True, np.float32(1), np.int32(3), np.float16(2), 1j],
    ):
        heard = []
        for m in (rnp, pnp):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                m.asarray(x).at[0].set(value)
            heard.append(any(w.category is FutureWarning for w in caught))
        assert heard[0] == heard[1], (x.dtype, value)


DIFFERENTIATED: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda m, x: x[1],
    "turned": lambda m, x: x[::-1, 1:3],
    "repeated": lambda m, x: x[np.array([0, 0, 2])],
    "out of bounds": lambda m, x: x[np.array([0, 9])],
    "clipped": lambda m, x: x.at[np.array([0, 9])].get(mode="clip"),
    "filled": lambda m, x: x.at[np.array([0, 9])].get(mode="fill", fill_value=0),
    "scalar out of bounds": lambda m, x: x[7, 9],
    "set": lambda m, x: x.at[1].set(x[0] * 2),
    "set twice": lambda m, x: x.at[np.array([1, 1])].set(x[:2]),
    "set outside": lambda m, x: x.at[9].set(x[0]),
    "add": lambda m, x: x.at[np.array([1, 1])].add(x[:2]),
    "multiplied": lambda m, x: x.at[1].mul(x[0], unique_indices=True),
    "least": lambda m, x: x.at[1].min(x[0]),
    "where": lambda m, x: m.where(x > 3, m.sqrt(x), 0.0),
    "clip": lambda m, x: m.clip(x, 0.0, 5.0),
    "maximum at a tie": lambda m, x: m.maximum(x, x),
    "max": lambda m, x: m.max(x, 0),
    "mean": lambda m, x: m.mean(x, 1),
    "std": lambda m, x: m.std(x),
    "prod": lambda m, x: m.prod(x, 0),
    "matmul": lambda m, x: x @ x.T,
    "joined": lambda m, x: m.concatenate([x, m.stack([x[0], x[1]])]),
    "linspace": lambda m, x: m.linspace(x[0], x[1], 3),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives(name: str) -> None:
    fun = DIFFERENTIATED[name]
    x = values((3, 4), np.float32, 5)
    ours, theirs = (lambda x, m=m: fun(m, x) for m in (pnp, rnp))
    out, pull = px.vjp(ours, pnp.asarray(x))
    expected, reference_pull = jax.vjp(theirs, rnp.asarray(x))
    same(out, expected, "value", 1e-5)
    ct = values(expected.shape, expected.dtype, 3)
    same(pull(ct), reference_pull(ct), "vjp", 1e-5)
    xs = np.stack([x, x + 1])
    same(px.vmap(ours)(xs), jax.vmap(theirs)(xs), "vmap", 1e-5)
