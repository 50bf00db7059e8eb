"""Edge cases of the transformations match the reference.

Results are compared with their trees, dtypes and weak types.
"""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from api_sides import same_results  # noqa: E402

F32 = np.float32
X2 = np.arange(2, dtype=F32)
X3 = np.arange(3, dtype=F32)
X23 = np.arange(6, dtype=F32).reshape(2, 3)
X33 = np.arange(9, dtype=F32).reshape(3, 3)
X7 = np.arange(7, dtype=F32)
FLOAT0 = np.zeros((), jax.dtypes.float0)


def total(J, x):
    return J.lax.reduce_sum(x, tuple(range(np.ndim(x))))


def ident(x):
    return x


def to_int(J, x):
    return J.lax.convert_element_type(x, np.int32)


def with_jvp(J, rule, fun=lambda x: x * x, **options):
    f = J.custom_jvp(fun, **{k: v for k, v in options.items() if k.startswith("nondiff")})
    f.defjvp(rule, **{k: v for k, v in options.items() if not k.startswith("nondiff")})
    return f


def with_vjp(J, fwd=lambda x: (x * x, x), bwd=lambda r, ct: (5.0 * ct,), fun=lambda x: x * x, **o):
    f = J.custom_vjp(fun, **{k: v for k, v in o.items() if k.startswith("nondiff")})
    f.defvjp(fwd, bwd, **{k: v for k, v in o.items() if not k.startswith("nondiff")})
    return f


def tripled(p, t):
    return p[0] * p[0], 3.0 * t[0]


def hundredfold(J):
    f = J.custom_vmap(lambda x, y: x * y)
    f.def_vmap(lambda n, marks, x, y: (x * y * np.float32(100), True))
    return f


def reprs(J):
    seen: list[str] = []

    def f(x):
        seen.append(repr(x))
        return x

    J.jit(f)(1.0)
    J.grad(f)(1.0)
    J.jvp(f, (1.0,), (1.0,))
    J.vmap(f)(X2)
    J.jit(J.vmap(f))(X2)
    J.grad(J.jit(f))(1.0)
    return seen


def index_of(J, lower, upper):
    seen: list[str] = []
    J.lax.fori_loop(lower, upper, lambda i, c: (seen.append(repr(i)), c)[1], 0.0)
    return seen[0]


def traced_index_of(J, lower, upper):
    seen: list[str] = []
    J.jit(lambda a, b: seen.append(index_of(J, a, b)))(lower, upper)
    return seen[0]


def residuals(J, policy=None, checkpointed=True):
    """The printed residuals without source locations."""

    def f(w, x):
        h = J.checkpoint_name(J.lax.dot(x, w), "lin")
        s = J.checkpoint_name(J.lax.sin(h), "act")
        left, right = J.lax.reshape(s, (2, 3, 1)), J.lax.reshape(s, (2, 1, 3))
        b = J.lax.dot_general(left, right, (((2,), (1,)), ((0,), (0,))))
        return total(J, J.lax.tanh(b))

    chosen = policy(J.checkpoint_policies) if policy else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        J.print_saved_residuals(J.checkpoint(f, policy=chosen) if checkpointed else f, X33, X23)
    return sorted(re.sub(r" from \S*/.*", "", line) for line in out.getvalue().splitlines())


def disabled(J, f):
    with J.disable_jit():
        return f()


def at(J, x, i):
    return J.lax.index_in_dim(x, i, 0, keepdims=False)


JIT = {
    "literals": lambda J: J.jit(lambda x: (1, 2.0, True, x))(1.0),
    "weak int": lambda J: J.jit(lambda x: x * 2)(1),
    "numpy scalar": lambda J: J.jit(lambda x: x * 2)(np.float64(1)),
    "sorted keys": lambda J: J.jit(ident)({"b": 1.0, "a": 2}),
    "none": lambda J: J.jit(ident)({"a": None, "b": [1.0, None]}),
    "static by keyword": lambda J: J.jit(lambda x, n: x * n if n else x, static_argnums=1)(
        2.0, n=3
    ),
    "static by position": lambda J: J.jit(lambda x, n: x * n if n else x, static_argnames="n")(
        2.0, 3
    ),
    "static from the end": lambda J: J.jit(lambda x, n: x * n, static_argnums=-1)(2.0, 3),
    "static default": lambda J: J.jit(lambda x, n=3: x * (n + 1), static_argnames="n")(2.0),
    "static of many": lambda J: J.jit(lambda *a: a[0] * a[1], static_argnums=(1,))(2.0, 3),
    "decorator": lambda J: J.jit(static_argnums=0)(lambda n, x: x * n)(2, 3.0),
    "keywords": lambda J: J.jit(lambda a, b: a - b)(b=1.0, a=3.0),
    "comparison with None": lambda J: J.jit(lambda x: 1.0 if x == None else 2.0)(1.0),  # noqa: E711
    "iteration": lambda J: J.jit(lambda x: list(x))(X3),
    "disabled": lambda J: disabled(J, lambda: J.jit(lambda x: x if x > 0 else -x)(-1.0)),
    "disabled grad": lambda J: disabled(
        J, lambda: J.grad(J.jit(lambda x: x * x if x > 0 else x))(3.0)
    ),
    "reprs of tracers": reprs,
    "aot static": lambda J: J.jit(lambda n, x: x * n, static_argnums=0).lower(3, X3).compile()(X3),
    "aot weak": lambda J: J.jit(lambda x: x * 2).lower(1.0).compile()(F32(3)),
    "aot wide": lambda J: J.jit(lambda x: x * 2).lower(X3).compile()(np.arange(3.0)),
    "args_info": lambda J: str(J.jit(lambda x, y: x, donate_argnums=0).lower(X3, y=2.0).args_info),
    "in_tree": lambda J: str(J.jit(lambda x, y: x).lower(X3, y=2.0).in_tree),
    "eval_shape": lambda J: str(
        J.eval_shape(lambda x, y: (x * 2, y), J.ShapeDtypeStruct((2,), F32), y=3)
    ),
    "compile time": lambda J: J.make_jaxpr(lambda x: x * _five(J))(2.0).out_avals[0].shape,
}


def _five(J):
    with J.ensure_compile_time_eval():
        return float(J.lax.add(2.0, 3.0))


DIFFERENTIATION = {
    "argnums": lambda J: J.grad(lambda x, y: x * y * y, argnums=(1, 0))(1.0, 3.0),
    "negative argnums": lambda J: J.grad(lambda x, y: x * y * y, argnums=-1)(1.0, 3.0),
    "keyword": lambda J: J.grad(lambda x, y: x * y)(1.0, y=2),
    "allow_int": lambda J: J.grad(lambda n, y: y * 2.0, (0, 1), allow_int=True)(np.arange(3), 2.0),
    "unused": lambda J: J.grad(lambda x, y: x * x, argnums=(0, 1))(1.0, X3),
    "constant": lambda J: J.grad(lambda x: 3.0)(X3),
    "tree": lambda J: J.grad(lambda p: p["a"] * p["b"][0])({"a": 2.0, "b": [3.0, None]}),
    "value aux": lambda J: J.value_and_grad(lambda x: (x * x, [x + 1]), has_aux=True)(2.0),
    "holomorphic": lambda J: J.grad(lambda x: x * x, holomorphic=True)(1.0 + 2j),
    "bf16": lambda J: J.grad(lambda z: z * z)(J.lax.convert_element_type(2.0, "bfloat16")),
    "python if": lambda J: J.grad(lambda x: x * x if x > 1 else x)(2.0),
    "integer result": lambda J: J.vjp(lambda x: (x, 3), 1.0)[1]((1.0, FLOAT0)),
    "integer cotangent": lambda J: J.vjp(lambda x: (x, 3), 1.0)[1]((1.0, 3)),
    "integer primal": lambda J: J.vjp(lambda x, n: x * n, 2.0, 3)[1](1.0),
    "vjp complex": lambda J: J.vjp(lambda z: z * (2 + 3j), 1 + 1j)[1](1j),
    "vjp conj": lambda J: J.vjp(lambda z: J.lax.conj(z), 1 + 1j)[1](1j),
    "vjp real to complex": lambda J: J.vjp(lambda z: z * (1 + 2j), 1.0)[1](np.complex64(1j)),
    "jvp lists": lambda J: J.jvp(lambda x: x * x, [2.0], [1.0]),
    "jvp float0": lambda J: J.jvp(lambda x: x * x, (2,), (FLOAT0,)),
    "jvp aux": lambda J: J.jvp(lambda x: (x * x, x + 1), (2.0,), (1.0,), has_aux=True),
    "jvp to int": lambda J: J.jvp(lambda x: (x, to_int(J, x)), (2.0,), (1.0,)),
    "jvp weak tangent": lambda J: J.jvp(lambda x: x * x, (F32(2),), (1.0,)),
    "linearize": lambda J: (lambda r: (r[0], r[1](3.0)))(J.linearize(lambda x: x * x, 2.0)),
    "linearize constant": lambda J: (lambda r: (r[0], r[1](3.0)))(J.linearize(lambda x: 1.0, 2.0)),
    "transpose affine": lambda J: J.linear_transpose(lambda x: 3 * x + 1, 1.0)(2.0),
    "transpose constant": lambda J: J.linear_transpose(lambda x: 1.0, 1.0)(2.0),
    "transpose integers": lambda J: J.linear_transpose(lambda x: 3 * x, 1)(2),
    "jacfwd real to complex": lambda J: J.jacfwd(lambda x: x * 1j)(1.0),
    "jacfwd to int": lambda J: J.jacfwd(lambda x: to_int(J, x))(X3),
    "jacfwd argnums": lambda J: J.jacfwd(lambda x, y: x * y, argnums=(0, 1))(X3, 2.0),
    "jacrev argnums": lambda J: J.jacrev(lambda x, y: x * y, argnums=(0, 1))(X3, 2.0),
    "jacrev int": lambda J: J.jacrev(lambda n, y: y * 2.0, (0, 1), allow_int=True)(3, 2.0),
    "jacrev aux": lambda J: J.jacrev(lambda x: (x * x, x + 1), has_aux=True)(X3),
    "hessian tree": lambda J: J.hessian(lambda p: p["a"] * p["b"] * p["b"])({"a": 2.0, "b": 3.0}),
    "hessian aux": lambda J: J.hessian(lambda x: (total(J, x * x * x), x), has_aux=True)(X3),
    "stop_gradient": lambda J: J.lax.stop_gradient({"n": np.arange(3), "x": X3}),
    "fwd_and_bwd": lambda J: (lambda f, b: (lambda y, r: (y, b(r, 1.0)))(*f(2.0, 3.0)))(
        *J.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    ),
    "fwd_and_bwd one": lambda J: (lambda f, b: (lambda y, r: (y, b(r, 1.0)))(*f(2.0, 3.0)))(
        *J.fwd_and_bwd(lambda x, y: x * y, argnums=1)
    ),
    "closure_convert": lambda J: J.grad(
        lambda t: (lambda f, v: f(2.0, *v))(*J.closure_convert(lambda y: y * t, 1.0))
    )(3.0),
    "ravel": lambda J: (lambda v, u: (v, u(v)))(*J.ravel_pytree({"a": X3, "b": [1, 2.0]})),
    "ravel integers": lambda J: (lambda v, u: (v, u(v)))(*J.ravel_pytree([np.arange(3), 1, True])),
    "ravel nothing": lambda J: J.ravel_pytree({})[0],
}

CUSTOM = {
    "jvp rule": lambda J: J.grad(with_jvp(J, tripled))(1.0),
    "jvp rule called": lambda J: with_jvp(J, tripled)(2.0),
    "jvp rule list": lambda J: J.grad(with_jvp(J, lambda p, t: [p[0], 3.0 * t[0]]))(1.0),
    "jvp rule number": lambda J: J.grad(with_jvp(J, lambda p, t: (p[0], 7.0)))(1.0),
    "jvp rule vmap": lambda J: J.vmap(J.grad(with_jvp(J, tripled)))(X3),
    "jvp rule jit": lambda J: J.jit(J.grad(J.jit(with_jvp(J, tripled))))(2.0),
    "jvp rule twice": lambda J: J.grad(J.grad(with_jvp(J, lambda p, t: (p[0], 3.0 * p[0] * t[0]))))(
        2.0
    ),
    "jvp rule int": lambda J: J.grad(
        with_jvp(J, lambda p, t: (p[0] * p[1], 3.0 * t[0]), lambda x, n: x * n)
    )(2.0, 3),
    "jvp rule nondiff": lambda J: J.grad(
        with_jvp(J, lambda g, p, t: (g(p[0]), 3.0 * t[0]), lambda g, x: g(x), nondiff_argnums=(0,)),
        argnums=1,
    )(J.lax.sin, 1.0),
    "vjp rule": lambda J: J.grad(with_vjp(J))(1.0),
    "vjp rule lists": lambda J: J.grad(with_vjp(J, lambda x: [x, x], lambda r, c: [c]))(1.0),
    "vjp rule none": lambda J: J.grad(with_vjp(J, bwd=lambda r, c: (None,)))(1.0),
    "vjp rule tree none": lambda J: J.grad(
        with_vjp(
            J,
            lambda p: (p["a"], None),
            lambda r, c: ({"a": c, "b": None},),
            lambda p: p["a"],
        )
    )({"a": 1.0, "b": 2.0}),
    "vjp rule hessian": lambda J: J.hessian(with_vjp(J, bwd=lambda r, c: (5.0 * r * c,)))(1.0),
    "vjp rule vmap": lambda J: J.vmap(J.grad(with_vjp(J)))(X3),
    "vjp rule grad vmap": lambda J: J.grad(lambda v: total(J, J.vmap(with_vjp(J))(v)))(X3),
    "vjp rule remat": lambda J: J.grad(J.checkpoint(with_vjp(J)))(2.0),
    "vjp rule number": lambda J: with_vjp(J, fun=lambda x: 1.0)(1.0),
    "gradient": lambda J: J.grad(J.custom_gradient(lambda x: (x * x, lambda g: (3.0 * g * x,))))(
        2.0
    ),
    "gradient bare": lambda J: J.grad(J.custom_gradient(lambda x: (x * x, lambda g: 3.0 * g * x)))(
        2.0
    ),
    "zero": lambda J: J.zero_from_primal(1.5),
    "batched": lambda J: J.vmap(hundredfold(J))(X3, X3),
    "batched alone": lambda J: hundredfold(J)(1.0, 2.0),
    "batched half": lambda J: J.vmap(hundredfold(J), in_axes=(0, None))(X3, F32(2)),
    "batched twice": lambda J: J.vmap(J.vmap(hundredfold(J)))(X23, X23),
    "batched jvp": lambda J: J.vmap(lambda x: J.jvp(hundredfold(J), (x, x), (x, x)))(X3),
    "batched grad": lambda J: J.grad(lambda v: total(J, J.vmap(hundredfold(J))(v, v)))(X3),
    "sequential": lambda J: J.vmap(J.sequential_vmap(lambda x, y: (x * y, x)))(X3, X3),
    "checkpoint static": lambda J: J.grad(J.checkpoint(lambda x, n: x * n[0], static_argnums=1))(
        3.0, [2]
    ),
    "checkpoint hessian": lambda J: J.hessian(J.checkpoint(lambda x: J.lax.sin(x) * x))(1.0),
    "checkpoint jvp": lambda J: J.jvp(J.checkpoint(lambda x: J.lax.sin(x) * x), (1.0,), (1.0,)),
    "residuals": lambda J: residuals(J, checkpointed=False),
    "residuals none": lambda J: residuals(J),
    "residuals all": lambda J: residuals(J, lambda p: p.everything_saveable),
    "residuals dots": lambda J: residuals(J, lambda p: p.dots_saveable),
    "residuals unbatched": lambda J: residuals(J, lambda p: p.dots_with_no_batch_dims_saveable),
    "residuals only": lambda J: residuals(J, lambda p: p.save_only_these_names("lin")),
    "residuals names but": lambda J: residuals(J, lambda p: p.save_any_names_but_these("act")),
    "residuals except": lambda J: residuals(J, lambda p: p.save_anything_except_these_names("act")),
    "residuals both": lambda J: residuals(
        J,
        lambda p: p.save_from_both_policies(
            p.save_only_these_names("lin"), p.save_only_these_names("act")
        ),
    ),
}

VMAP = {
    "list of axes": lambda J: J.vmap(lambda x, y: x + y, in_axes=[0, None])(X3, 1.0),
    "keyword": lambda J: J.vmap(lambda x, k: x + k, in_axes=(None,))(1.0, k=X3),
    "negative": lambda J: J.vmap(lambda x: x * 2, in_axes=-1, out_axes=-1)(X23),
    "numpy": lambda J: J.vmap(lambda x: 1)(X3),
    "axis_size": lambda J: J.vmap(lambda x: x + 1, in_axes=None, axis_size=3)(1.0),
    "no arguments": lambda J: J.vmap(lambda: 1.0, axis_size=3)(),
    "none": lambda J: J.vmap(lambda x: (x, None))(X3),
    "string": lambda J: J.vmap(lambda s, x: x * len(s), in_axes=(None, 0))("ab", X3),
    "empty": lambda J: J.vmap(lambda x: x * 2)(np.zeros((0, 3), F32)),
    "float0": lambda J: J.vmap(lambda x: J.jvp(lambda v: to_int(J, v), (x,), (x,))[1])(X3),
    "psum": lambda J: J.vmap(lambda x: J.lax.psum(x, "i"), axis_name="i", out_axes=None)(X3),
    "psum tree": lambda J: J.vmap(
        lambda x: J.lax.psum({"a": x, "b": 1}, "i"), axis_name="i", out_axes=None
    )(X3),
    "psum bool": lambda J: J.vmap(lambda x: J.lax.psum(x, "i"), axis_name="i")(X3 > 0),
    "psum names": lambda J: J.vmap(
        J.vmap(lambda x: J.lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i"
    )(X23),
    "psum grad": lambda J: J.vmap(J.grad(lambda x: J.lax.psum(x * x, "i")), axis_name="i")(X3),
    "psum scan": lambda J: J.vmap(
        lambda x: J.lax.scan(lambda c, _: (c + J.lax.psum(x, "i"), None), 0.0, None, length=3)[0],
        axis_name="i",
    )(X3),
    "pmean int": lambda J: J.vmap(lambda x: J.lax.pmean(x, "i"), axis_name="i")(np.arange(3)),
    "gather": lambda J: J.vmap(lambda x: J.lax.all_gather(x, "i", axis=-1), axis_name="i")(X23),
    "gather tiled": lambda J: J.vmap(lambda x: J.lax.all_gather(x, "i", tiled=True), axis_name="i")(
        X23
    ),
    "all_to_all": lambda J: J.vmap(lambda x: J.lax.all_to_all(x, "i", 0, 1), axis_name="i")(
        np.arange(18, dtype=F32).reshape(3, 3, 2)
    ),
    "scatter": lambda J: J.vmap(lambda x: J.lax.psum_scatter(x, "i"), axis_name="i")(X33),
    "ppermute": lambda J: J.vmap(
        lambda x: J.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i"
    )(X3),
    "pshuffle": lambda J: J.vmap(lambda x: J.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(X3),
    "pbroadcast": lambda J: J.vmap(lambda x: J.lax.pbroadcast(x, "i", 1), axis_name="i")(X3),
    "axis_index": lambda J: J.vmap(
        J.vmap(lambda x: J.lax.axis_index(("i", "j")), axis_name="j"), axis_name="i"
    )(X23),
    "cond": lambda J: J.vmap(J.grad(lambda x: J.lax.cond(x > 0, J.lax.log, ident, x)))(X3),
    "switch": lambda J: J.vmap(lambda i, x: J.lax.switch(i, [ident, lambda t: t * 2], x))(
        np.array([-1, 0, 9]), X3
    ),
    "while": lambda J: J.vmap(lambda x: J.lax.while_loop(lambda c: c < 5.0, lambda c: c + 1.7, x))(
        X3
    ),
}

CONTROL = {
    "scan": lambda J: J.lax.scan(lambda c, x: (c + x, c * 2), 0.0, X3),
    "scan int": lambda J: J.lax.scan(lambda c, x: (c + x, x), 0, X3),
    "scan bf16": lambda J: J.lax.scan(
        lambda c, x: (c + x, x), 0.0, J.lax.convert_element_type(X3, "bfloat16")
    ),
    "scan weak result": lambda J: J.lax.scan(lambda c, x: (0.0, c), F32(1), X3),
    "scan reverse": lambda J: J.lax.scan(lambda c, x: (c + x, c), 0.0, X7, reverse=True, unroll=2),
    "scan unroll": lambda J: J.lax.scan(lambda c, x: (c + x, c), 0.0, X7, unroll=9),
    "scan empty": lambda J: J.lax.scan(lambda c, x: (c + x, c * 2), 0.0, X3[:0]),
    "scan length": lambda J: J.lax.scan(lambda c, x: (c + 1, c), 0.0, None, length=np.array(3)),
    "scan constants": lambda J: J.lax.scan(lambda c, x: (c + x, (1, 2.0)), 0.0, X3),
    "while": lambda J: J.lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1),
    "while promoted": lambda J: J.lax.while_loop(lambda c: c < 3, lambda c: c + 1.0, 0),
    "while jvp": lambda J: J.jvp(
        lambda x: J.lax.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x), (1.0,), (1.0,)
    ),
    "fori": lambda J: J.lax.fori_loop(0, 3, lambda i, c: c + i, 0.0),
    "fori int": lambda J: J.lax.fori_loop(0, 3, lambda i, c: c + i, 0),
    "fori promoted": lambda J: J.lax.fori_loop(0, 3, lambda i, c: c + 1.0, 0),
    "fori float": lambda J: J.lax.fori_loop(0.0, 3.0, lambda i, c: c + i, 0.0),
    "fori traced": lambda J: J.jit(lambda n: J.lax.fori_loop(0, n, lambda i, c: c + i, 0.0))(3),
    "fori grad": lambda J: J.grad(lambda x: J.lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0),
    "fori index": lambda J: [
        index_of(J, *b)
        for b in (
            (0, 3),
            (np.int8(0), 3),
            (np.int8(0), np.int8(3)),
            (np.array(0), np.array(2)),
            (0.5, 2.5),
        )
    ],
    "fori traced index": lambda J: [traced_index_of(J, 0, 3), traced_index_of(J, np.int8(0), 3)],
    "cond": lambda J: [
        J.lax.cond(p, lambda x: x + 1, lambda x: x - 1, 1.0) for p in (True, 2, 0.0)
    ],
    "cond operand": lambda J: J.lax.cond(True, lambda x: 1.0, lambda x: 2.0, operand=None),
    "cond legacy": lambda J: J.lax.cond(True, 1.0, lambda x: x + 1, 2.0, lambda x: x - 1),
    "cond weak": lambda J: (
        J.lax.cond(True, lambda: 1.0, lambda: F32(2)),
        J.lax.cond(True, lambda: 1.0, lambda: 2.0),
    ),
    "switch": lambda J: [J.lax.switch(i, [ident, lambda x: x * 2], 3.0) for i in (-5, 1, 7)],
    "map": lambda J: J.lax.map(lambda x: {"o": x * 2, "c": 1}, X7, batch_size=3),
    "map empty": lambda J: J.lax.map(lambda x: x * 2, X3[:0], batch_size=2),
    "disabled scan": lambda J: disabled(J, lambda: J.lax.scan(lambda c, x: (c + x, c), 0.0, X3)),
    "disabled while": lambda J: disabled(
        J, lambda: J.lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1)
    ),
    "disabled cond": lambda J: disabled(J, lambda: J.lax.cond(True, lambda: 1.0, lambda: "a")),
}

VALUES = {
    f"{group}: {name}": case
    for group, cases in {
        "jit": JIT,
        "derivative": DIFFERENTIATION,
        "custom": CUSTOM,
        "vmap": VMAP,
        "control": CONTROL,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    same_results(VALUES[name])
