"""Bad input: error classes and messages, with the user's line as the last frame."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primax_core as px
from primax_core import errors, lax
from primax_core._base import source

F32 = np.float32
X3 = np.arange(3, dtype=F32)
X2 = np.arange(2, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)


def caught(run: Callable[[], Any]) -> Exception:
    try:
        run()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def user_lines(error: BaseException) -> list[str]:
    """The functions of the frames of a traceback; fails if one of them is in the library."""
    entries = [
        tb for tb, _ in traceback.walk_tb(error.__traceback__) if not source.is_internal(tb.f_code)
    ]
    everything = [tb for tb, _ in traceback.walk_tb(error.__traceback__)]
    assert len(entries) == len(everything), [f.f_code for f in everything]
    return [f.f_code.co_name for f in entries]


def recursive(x):
    return jitted_recursive(x + 1.0)


jitted_recursive = px.jit(recursive)


def leaked(transform: Callable) -> Any:
    tracers = []

    def leaky(x):
        tracers.append(x * 2.0)
        return x

    transform(leaky)
    return tracers[0]


def deleted():
    x = px.device_put(X3)
    x.delete()
    return x


def donated():
    x = px.device_put(X3)
    px.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    return x


# Each case: function, error class, text of the message.
CASES: dict[str, tuple[Callable[[], Any], type, str]] = {
    # shapes, ranks, dtypes, axes
    "shapes": (lambda: lax.add(X3, X2), TypeError, r"add got incompatible shapes.*\(3,\), \(2,\)"),
    "dtypes": (lambda: lax.add(X3, np.arange(3)), TypeError, "same dtypes, got float32, int32"),
    "broadcast": (lambda: px.device_put(X3) + px.device_put(X2), (TypeError, ValueError), "shapes"),
    "dot": (lambda: lax.dot(X23, X23), TypeError, "(?i)dot.*shape"),
    "axis": (lambda: lax.reduce_sum(X3, (1,)), ValueError, "(?i)axis|axes|dimension"),
    "concatenate": (lambda: lax.concatenate([X23, X3], 0), TypeError, "concatenate"),
    "reshape": (lambda: lax.reshape(X3, (2,)), TypeError, "(?i)reshape.*size"),
    "transpose": (lambda: lax.transpose(X23, (0, 2)), (TypeError, ValueError), "permutation"),
    "float bits": (lambda: lax.bitwise_and(X3, X3), TypeError, "bitwise_and|and .*float32"),
    "sin of int": (lambda: lax.sin(np.arange(3)), TypeError, "sin.*int32"),
    "nested in jit": (
        lambda: px.jit(lambda x: lax.add(x, X2))(X3),
        TypeError,
        "incompatible shapes",
    ),
    # values that are not arrays
    "str operand": (lambda: lax.sin("a"), TypeError, "<class 'str'>"),
    "jit str": (lambda: px.jit(lambda x: x)("a"), TypeError, "at path x.*mark others as static"),
    "jit nested": (
        lambda: px.jit(lambda p: p)({"a": [object()]}),
        TypeError,
        r"at path p\['a'\]\[0\]",
    ),
    "jit result": (
        lambda: px.jit(lambda x: {"k": "a"})(1.0),
        TypeError,
        r"returned a value of type <class 'str'>.*\['k'\]",
    ),
    "jit overflow": (
        lambda: px.jit(lambda x: x)(2**40),
        OverflowError,
        "argument path is x: .*int32",
    ),
    "grad str": (lambda: px.grad(lambda x: x)("a"), TypeError, "not a valid Primax type"),
    "vmap str": (lambda: px.vmap(lambda x: x)("a"), TypeError, "not a valid Primax type"),
    "callable": (lambda: px.jit(5), TypeError, "Expected a callable value, got 5"),
    "generator": (lambda: px.jit(lambda: (yield)), TypeError, "generator function"),
    # tracers
    "if": (
        lambda: px.jit(lambda x: 1 if x > 0 else 2)(1.0),
        errors.TracerBoolConversionError,
        r"Attempted boolean conversion of traced array with shape bool\[\].*for jit.*argument x",
    ),
    "if on many": (lambda: px.jit(lambda x: 1 if x > 0 else 2)(X3), ValueError, "ambiguous"),
    "and": (
        lambda: px.jit(lambda x: x and 1)(1.0),
        errors.TracerBoolConversionError,
        r"float32\[\]",
    ),
    "int": (
        lambda: px.jit(lambda x: int(x))(1.0),
        errors.ConcretizationTypeError,
        r"astype\(int\)",
    ),
    "float": (lambda: px.jit(lambda x: float(x))(1.0), errors.ConcretizationTypeError, "float"),
    "item": (
        lambda: px.jit(lambda x: x.item())(1.0),
        errors.ConcretizationTypeError,
        r"\.item\(\)",
    ),
    "range": (
        lambda: px.jit(lambda n: list(range(n)))(3),
        errors.TracerIntegerConversionError,
        r"The __index__\(\) method was called on traced array with shape int32\[\]",
    ),
    "numpy": (
        lambda: px.jit(lambda x: np.sin(x))(1.0),
        errors.TracerArrayConversionError,
        r"numpy.ndarray conversion method __array__\(\) was called on traced array",
    ),
    "numpy in grad": (
        lambda: px.grad(lambda x: x * np.sin(x))(1.0),
        errors.TracerArrayConversionError,
        "made by reverse-mode differentiation of",
    ),
    "numpy in jvp": (
        lambda: px.jvp(lambda x: np.sin(x), (1.0,), (1.0,)),
        errors.TracerArrayConversionError,
        "made by forward-mode differentiation of",
    ),
    "if in vmap": (
        lambda: px.vmap(lambda x: x if x > 0 else -x)(X3),
        errors.TracerBoolConversionError,
        "made by vmap of <lambda> at .*test_bad_input",
    ),
    "hash": (lambda: px.jit(lambda x: {x: 1})(1.0), TypeError, "unhashable"),
    "set item": (
        lambda: px.jit(lambda x: x.__setitem__(0, 1))(X3),
        TypeError,
        r"immutable.*x\.at\[idx\]\.set",
    ),
    "leaked by jit": (
        lambda: leaked(lambda f: px.jit(f)(1.0)) + 1.0,
        errors.UnexpectedTracerError,
        "side effect.*tracing the function leaky at .*test_bad_input.py",
    ),
    "leaked by grad": (
        lambda: leaked(lambda f: px.grad(f)(1.0)) + 1.0,
        errors.UnexpectedTracerError,
        "side effect.*reverse-mode differentiation of leaky at .*test_bad_input.py",
    ),
    "leaked by vmap": (
        lambda: leaked(lambda f: px.vmap(f)(X3)) + 1.0,
        errors.UnexpectedTracerError,
        "side effect.*vmap of leaky at .*test_bad_input.py",
    ),
    "leaked by jvp": (
        lambda: leaked(lambda f: px.jvp(f, (1.0,), (1.0,))) + 1.0,
        errors.UnexpectedTracerError,
        "forward-mode differentiation of leaky at",
    ),
    "leaked into jit": (
        lambda: px.jit(lambda x: x)(leaked(lambda f: px.jit(f)(1.0))),
        errors.UnexpectedTracerError,
        "side effect",
    ),
    "recursion": (
        lambda: jitted_recursive(1.0),
        errors.TracingRecursionError,
        "recursion limit was reached while tracing recursive at .*while_loop",
    ),
    # static and donated arguments
    "unhashable static": (
        lambda: px.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
        "Non-hashable static arguments.*<class 'list'>",
    ),
    "static array": (
        lambda: px.jit(lambda x, n: x, static_argnums=1)(1.0, px.device_put(X3)),
        ValueError,
        "Non-hashable static arguments",
    ),
    "static position": (
        lambda: px.jit(lambda x, y: x, static_argnums=2),
        ValueError,
        r"static_argnums=\(2,\), but only accepts 2 positional arguments",
    ),
    "static name": (
        lambda: px.jit(lambda x, y: x, static_argnames="z"),
        ValueError,
        "invalid argnames {'z'} in static_argnames",
    ),
    "donated again": (
        lambda: donated() + 1.0,
        RuntimeError,
        r"Array has been deleted with shape=float32\[3\].*donated",
    ),
    "donated to jit": (
        lambda: px.jit(lambda x: x + 1.0)(donated()),
        RuntimeError,
        "deleted.*donated",
    ),
    "deleted": (lambda: lax.sin(deleted()), RuntimeError, r"deleted with shape=float32\[3\]"),
    "deleted in grad": (
        lambda: px.grad(lambda x: lax.reduce_sum(x * x, (0,)))(deleted()),
        RuntimeError,
        r"deleted with shape=float32\[3\]",
    ),
    "deleted value": (lambda: np.asarray(deleted()), RuntimeError, "deleted"),
    # differentiation
    "grad of many": (
        lambda: px.grad(lambda x: x)(X3),
        TypeError,
        r"only defined for scalar-output functions. Output had shape: \(3,\).*jacrev",
    ),
    "grad of int": (lambda: px.grad(lambda x: x)(1), TypeError, "got int32.*allow_int"),
    "grad argnums": (
        lambda: px.grad(lambda x: x, argnums=1)(1.0),
        TypeError,
        "at least 2 positional",
    ),
    "reverse while": (
        lambda: px.grad(lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, x))(1.0),
        ValueError,
        "lax.scan, or using fori_loop with static",
    ),
    "cotangent": (
        lambda: px.vjp(lax.sin, X3)[1](1.0),
        ValueError,
        r"got float32\[\], but expected float32\[3\]",
    ),
    "tangent": (
        lambda: px.jvp(lax.sin, (X3,), (X2,)),
        ValueError,
        r"primal shape \(3,\) and tangent",
    ),
    # shapes
    "traced size": (
        lambda: px.jit(lambda n: lax.full((n,), 0.0))(3),
        TypeError,
        "cannot be part of a shape.*depends on the value of the argument n",
    ),
    # vmap
    "sizes": (
        lambda: px.vmap(lambda x, y: x)(X3, X2),
        ValueError,
        "inconsistent sizes.*argument y",
    ),
    "in axes": (
        lambda: px.vmap(lambda x: x, in_axes=2)(X23),
        ValueError,
        "rank should be at least 3",
    ),
    "out axes": (
        lambda: px.vmap(lambda x: x, out_axes=3)(X23),
        ValueError,
        "axis 3 is out of bounds",
    ),
    "axis name": (lambda: px.vmap(lambda x: lax.psum(x, "j"))(X3), NameError, "axis_name='j'"),
    # control flow: the two types side by side
    "scan types": (
        lambda: lax.scan(lambda c, x: (X3, None), X2, X3),
        TypeError,
        r"input carry c has type float32\[2\] .* component has type float32\[3\]",
    ),
    "scan trees": (
        lambda: lax.scan(lambda c, x: ((c, c), None), 1.0, X3),
        TypeError,
        "same pytree structure.*pytree leaf.*tuple",
    ),
    "while types": (
        lambda: lax.while_loop(lambda c: True, lambda c: X3, X2),
        TypeError,
        r"float32\[2\] .* float32\[3\], so the shapes do not match",
    ),
    "cond types": (
        lambda: lax.cond(True, lambda: X3, lambda: X2),
        TypeError,
        r"true_fun has type float32\[3\] .* false_fun has type float32\[2\]",
    ),
    "cond trees": (
        lambda: lax.cond(True, lambda: (1.0,), lambda: [1.0]),
        TypeError,
        "true_fun is a <class 'tuple'> .* false_fun is a <class 'list'>",
    ),
    "cond pred": (lambda: lax.cond(X3, lambda: 1.0, lambda: 2.0), TypeError, "must be a scalar"),
    # devices
    "device number": (
        lambda: px.devices()[99],
        IndexError,
        "no cpu device number 99.*num_cpu_devices",
    ),
    "platform": (lambda: px.devices("nope"), RuntimeError, "Unknown backend nope"),
    "where to put": (lambda: px.device_put(X3, "cpu:0"), ValueError, "takes a device, a sharding"),
}


@pytest.mark.parametrize("name", CASES)
def test_named_error(name):
    run, cls, message = CASES[name]
    with pytest.raises(cls, match="(?s)" + message):
        run()


# Users see only their own frames.


def branchy(x):
    return x if x > 0 else -x


AT_BOUNDARIES = {
    "jit": lambda: px.jit(branchy)(1.0),
    "grad": lambda: px.grad(lambda x: np.sin(x))(1.0),
    "value_and_grad": lambda: px.value_and_grad(branchy)(X3),
    "vmap": lambda: px.vmap(branchy)(X3),
    "vjp": lambda: px.vjp(lambda x: np.sin(x), 1.0),
    "jvp": lambda: px.jvp(lambda x: np.sin(x), (1.0,), (1.0,)),
    "linearize": lambda: px.linearize(lambda x: np.sin(x), 1.0),
    "jacfwd": lambda: px.jacfwd(lambda x: np.sin(x))(1.0),
    "hessian": lambda: px.hessian(lambda x: np.sin(x))(1.0),
    "checkpoint": lambda: px.checkpoint(branchy)(1.0),
    "make_jaxpr": lambda: px.make_jaxpr(branchy)(1.0),
    "eval_shape": lambda: px.eval_shape(branchy, 1.0),
    "trace": lambda: px.jit(branchy).trace(1.0),
    "scan": lambda: lax.scan(lambda c, x: (branchy(c), x), 1.0, X3),
    "while": lambda: lax.while_loop(lambda c: True, branchy, 1.0),
    "fori": lambda: lax.fori_loop(0, 3, lambda i, c: branchy(c), 1.0),
    "cond": lambda: lax.cond(True, branchy, lambda x: x, 1.0),
    "map": lambda: lax.map(branchy, X3),
    "nested": lambda: px.jit(px.grad(px.vmap(lambda x: lax.cond(True, branchy, branchy, x))))(X3),
}


@pytest.mark.parametrize("name", AT_BOUNDARIES)
def test_only_user_frames_remain(name):
    error = caught(AT_BOUNDARIES[name])
    assert isinstance(error, (errors.PrimaxTypeError, ValueError))
    names = user_lines(error)
    assert names[-1] in ("branchy", "<lambda>")


@pytest.mark.parametrize(
    "run",
    [
        lambda: lax.scan(lambda c, x: (X3, None), X2, X3),
        lambda: px.grad(lambda x: x)(X3),
        lambda: px.vmap(lambda x: x)(1.0),
        lambda: px.jit(lambda x: x)("a"),
        lambda: px.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
    ],
)
def test_library_errors_end_on_the_users_line(run):
    assert user_lines(caught(run))[-1] == "<lambda>"


def test_user_errors_keep_their_frames():
    def fails(x):
        raise KeyError("mine")

    error = caught(lambda: px.jit(px.grad(fails))(1.0))
    assert isinstance(error, KeyError) and user_lines(error)[-1] == "fails"


def test_library_frames_on_request():
    with _filtering("off"):
        error = caught(AT_BOUNDARIES["jit"])
    assert any(source.is_internal(f.f_code) for f, _ in traceback.walk_tb(error.__traceback__))


def _filtering(value):
    from primax_core._base import config

    return config.traceback_filtering(value)


def test_a_note_if_frames_are_removed():
    with _filtering("remove_frames"):
        error = caught(AT_BOUNDARIES["vmap"])
    assert any("frames were removed" in note for note in error.__notes__)


def test_an_error_leaves_no_tracers():
    for run in AT_BOUNDARIES.values():
        caught(run)
    assert float(px.jit(lambda x: lax.sin(x))(0.0)) == 0.0
    assert float(px.grad(lambda x: x * x)(3.0)) == 6.0
    from primax_core._base.config import state

    assert state.trace is None and state.name_stack == () and state.source is None
