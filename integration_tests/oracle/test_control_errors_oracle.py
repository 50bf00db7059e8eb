"""Invalid input of control flow against the reference: both messages show both types."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from api_sides import same_error  # noqa: E402

F32 = np.float32
X2 = np.arange(2, dtype=F32)
X3 = np.arange(3, dtype=F32)


def ident(x):
    return x


def to_int(J, x):
    return J.lax.convert_element_type(x, np.int32)


EQUAL_TYPES = "carry input and carry output must have equal types, but they differ:"
SAME_TREE = "carry input and carry output must have the same pytree structure, but they differ:"
CONCRETE = "ConcretizationTypeError"

ERRORS = {
    "scan shape": (
        lambda J: J.lax.scan(lambda c, x: (X2, x), X3, X3),
        TypeError,
        "scan body function " + EQUAL_TYPES,
        (
            "The input carry c has type float32[3] but the corresponding output carry component "
            "has type float32[2], so the shapes do not match."
        ),
        "Revise the function so that",
    ),
    "scan path": (
        lambda J: J.lax.scan(lambda c, x: ({"b": to_int(J, c["b"])}, x), {"b": F32(2)}, X3),
        TypeError,
        EQUAL_TYPES,
        (
            "The input carry component c['b'] has type float32[] but the corresponding output "
            "carry component has type int32[], so the dtypes do not match."
        ),
    ),
    "scan two": (
        lambda J: J.lax.scan(lambda c, x: ((to_int(J, c[0]), X3), x), (F32(1), F32(2)), X3),
        TypeError,
        "* the input carry component c[0] has type float32[] but",
        "* the input carry component c[1] has type float32[] but",
    ),
    "scan tree": (
        lambda J: J.lax.scan(lambda c, x: ([c[0]], x), (1.0,), X3),
        TypeError,
        "scan body function " + SAME_TREE,
        "The input carry c is a <class 'tuple'>",
        "is a <class 'list'>",
        "so their Python types differ",
    ),
    "scan pair": (
        lambda J: J.lax.scan(lambda c, x: c, 0.0, X3),
        TypeError,
        "scan body output must be a pair, got",
    ),
    "scan sizes": (
        lambda J: J.lax.scan(lambda c, x: (c, x), 0.0, (X3, X2)),
        ValueError,
        "scan got values with different leading axis sizes: 3, 2.",
    ),
    "scan length": (
        lambda J: J.lax.scan(lambda c, x: (c, x), 0.0, X3, length=2),
        ValueError,
        "scan got `length` argument of 2 which disagrees with leading axis sizes [3].",
    ),
    "scan nothing": (
        lambda J: J.lax.scan(lambda c, x: (c, x), 0.0),
        ValueError,
        "scan got no values to scan over and `length` not provided.",
    ),
    "scan scalar": (
        lambda J: J.lax.scan(lambda c, x: (c, x), 0.0, 1.0),
        ValueError,
        "no leading axis to scan over",
    ),
    "scan traced length": (
        lambda J: J.jit(lambda n: J.lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(3),
        CONCRETE,
        "The `length` argument to `scan` expects a concrete `int` value.",
    ),
    "scan unroll": (
        lambda J: J.lax.scan(lambda c, x: (c, x), 0.0, X3, unroll=-1),
        ValueError,
        "`unroll` must be a `bool` or a non-negative `int`.",
    ),
    "while cond": (
        lambda J: J.lax.while_loop(ident, ident, 1),
        TypeError,
        "cond_fun must return a boolean scalar, but got output type(s) [",
    ),
    "while tree": (
        lambda J: J.lax.while_loop(lambda c: True, lambda c: (c, c), 1.0),
        TypeError,
        "while_loop body function " + SAME_TREE,
    ),
    "while dtype": (
        lambda J: J.lax.while_loop(lambda c: True, lambda c: c + 1.5, np.int32(1)),
        TypeError,
        "while_loop body function " + EQUAL_TYPES,
    ),
    "fori bounds": (
        lambda J: J.lax.fori_loop(np.int8(0), np.int16(3), lambda i, c: c, 0.0),
        TypeError,
        "lower and upper arguments to fori_loop must have equal types, got int8 and int16",
    ),
    "fori dtype": (
        lambda J: J.lax.fori_loop(0, 3, lambda i, c: c + 1.5, np.int32(0)),
        TypeError,
        "The input carry component loop_carry[1] has type int32[]",
    ),
    "fori traced dtype": (
        lambda J: J.jit(lambda n: J.lax.fori_loop(0, n, lambda i, c: c + 1.5, np.int32(0)))(3),
        TypeError,
        "The input carry component loop_carry[2] has type int32[]",
    ),
    "fori unroll": (
        lambda J: J.jit(lambda n: J.lax.fori_loop(0, n, lambda i, c: c, 0.0, unroll=2))(3),
        ValueError,
        "Can only use `unroll` in `fori_loop` if the loop bounds are statically known.",
    ),
    "cond array": (
        lambda J: J.lax.cond(X3, lambda: 1, lambda: 2),
        TypeError,
        "Pred must be a scalar, got",
    ),
    "cond none": (
        lambda J: J.lax.cond(None, lambda: 1, lambda: 2),
        TypeError,
        "cond predicate is None",
    ),
    "cond operands": (
        lambda J: J.lax.cond(True, ident, ident, 2.0, operand=1.0),
        TypeError,
        "if 'operand' keyword is passed then no positional operands can be passed",
    ),
    "cond tree": (
        lambda J: J.lax.cond(True, lambda: (1.0,), lambda: 1.0),
        TypeError,
        "cond branch outputs must have the same pytree structure, but they differ:",
        "true_fun is <lambda> at ",
        "so their Python types differ",
        "Revise true_fun and/or false_fun",
    ),
    "cond types": (
        lambda J: J.lax.cond(True, lambda: {"c": X3}, lambda: {"c": X2}),
        TypeError,
        "cond branches must have equal output types but they differ.",
        (
            "The output of true_fun at path ['c'] has type float32[3] but the corresponding "
            "output of false_fun has type float32[2], so the shapes do not match."
        ),
    ),
    "cond weak": (
        lambda J: J.lax.cond(True, lambda: 1, lambda: F32(2)),
        TypeError,
        "has type int32[] but the corresponding output of false_fun has type float32[]",
    ),
    "switch float": (
        lambda J: J.lax.switch(1.0, [ident, ident], 3.0),
        TypeError,
        "Index type must be an integer, got 1.0 as float32",
    ),
    "switch empty": (lambda J: J.lax.switch(1, [], 3.0), ValueError, "Empty branch sequence"),
    "switch types": (
        lambda J: J.lax.switch(1, [lambda: X3, lambda: X2]),
        TypeError,
        "switch branches must have equal output types but they differ.",
        "branch 0 is <lambda> at ",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    case, expected, *phrases = ERRORS[name]
    same_error(case, expected, tuple(phrases))
