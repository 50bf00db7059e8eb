"""``checkify`` against the reference."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import same
from jax.experimental import checkify as theirs_checkify

import primax as px
import primax.numpy as pnp
from primax_interpreters import checkify as ours_checkify

X = np.array([1.0, 0.0, -1.0], np.float32)
NAN, INF = np.full(3, np.nan, np.float32), np.array([np.inf, 0, 1], np.float32)
N = np.arange(6, dtype=np.int32)


def sides(f, args, errors, how):
    for libs in ((px, pnp, ours_checkify), (jax, jnp, theirs_checkify)):
        lib, xnp, ck = libs
        g = ck.checkify(partial(f, *libs), errors=getattr(ck, errors))
        error, out = how(lib, g)(*[xnp.asarray(a) for a in args])
        text = error.get()
        yield None if text is None else text.partition(" (at ")[0].strip(), out


def user(lib, xnp, ck, x):
    ck.check(x.sum() > 5, "sum {s} of {x}", s=x.sum(), x=x)
    return x * 2


def scanned(lib, xnp, ck, x):
    def body(c, v):
        ck.check(v < 1, "step {c} has {v}", c=c, v=v)
        return c + 1, xnp.log(v)

    return lib.lax.scan(body, 0, x)


def looped(lib, xnp, ck, x):
    def cond(c):
        ck.check(c[0] < 5, "condition {c}", c=c[0])
        return c[0] < 7

    def body(c):
        ck.check(c[0] != 3, "body {c}", c=c[0])
        return c[0] + 1, c[1] / (c[0] - 6)

    return lib.lax.while_loop(cond, body, (0, x))[1]


def chosen(lib, xnp, ck, x):
    return lib.lax.cond(x[0] > 0, lambda x: xnp.log(x), lambda x: x / 0, x)


def custom(lib, xnp, ck, x):
    @lib.custom_jvp
    def f(x):
        ck.check((x > 0).all(), "in custom {x}", x=x)
        return xnp.sqrt(x)

    f.defjvp(lambda p, t: (f(p[0]), t[0]))
    return f(x) + lib.jvp(f, (x,), (x,))[1] * 0


def nested(lib, xnp, ck, x):
    def inner(x):
        ck.check(x[2] > 0, "inner {v}", v=x[2])
        return x

    error, out = ck.checkify(inner)(x)
    ck.check_error(error)
    ck.check(x[0] > 5, "outer")
    return out


PROGRAMS = {
    "user": (user, (X,)),
    "user holds": (user, (X + 5,)),
    "log": (lambda lib, xnp, ck, x: xnp.log(x), (X,)),
    "sqrt": (lambda lib, xnp, ck, x: xnp.sqrt(x) + 1, (X,)),
    "pow": (lambda lib, xnp, ck, x: x**0.5, (X,)),
    "div": (lambda lib, xnp, ck, x: 1 / x, (X,)),
    "floor div": (lambda lib, xnp, ck, n: n // 0, (N,)),
    "rem": (lambda lib, xnp, ck, n: n % 0, (N,)),
    "0 / 0": (lambda lib, xnp, ck, x: x / x, (X,)),
    "inf": (lambda lib, xnp, ck, x: xnp.exp(x * 1000), (X,)),
    "inf - inf": (lambda lib, xnp, ck, x: xnp.exp(x * 1000) - xnp.exp(x * 1000), (X,)),
    "nan moved": (lambda lib, xnp, ck, x: x[::-1].reshape(3, 1).T, (NAN,)),
    "nan given": (lambda lib, xnp, ck, x: x + 1, (NAN,)),
    "where": (lambda lib, xnp, ck, x: xnp.where(x > 0, xnp.log(x), 0.0), (X,)),
    "sum": (lambda lib, xnp, ck, x: xnp.sum(x * xnp.inf), (X,)),
    "matmul": (lambda lib, xnp, ck, x: x @ x, (INF,)),
    "sort": (lambda lib, xnp, ck, x: xnp.sort(x), (NAN,)),
    "x[i]": (lambda lib, xnp, ck, x, i: x[i], (X, np.int32(1))),
    "x[7]": (lambda lib, xnp, ck, x: x[7], (X,)),
    "x[i] above": (lambda lib, xnp, ck, x, i: x[i], (X, np.int32(4))),
    "x[i] below": (lambda lib, xnp, ck, x, i: x[i], (X, np.int32(-5))),
    "x[-1]": (lambda lib, xnp, ck, x, i: x[i], (X, np.int32(-1))),
    "x[is]": (lambda lib, xnp, ck, x, i: x[i], (X, np.array([0, 2, 3, 9]))),
    "x[i, j]": (lambda lib, xnp, ck, x, i: x[i, 5], (np.ones((3, 4), np.float32), N[:3])),
    "x[i, :]": (lambda lib, xnp, ck, x, i: x[:, i], (np.ones((3, 4), np.float32), N)),
    "take": (lambda lib, xnp, ck, x, i: xnp.take(x, i), (X, N)),
    "take clip": (lambda lib, xnp, ck, x, i: xnp.take(x, i, mode="clip"), (X, N)),
    "get fill": (lambda lib, xnp, ck, x, i: x.at[i].get(mode="fill"), (X, N)),
    "set": (lambda lib, xnp, ck, x, i: x.at[i].set(0), (X, np.int32(3))),
    "add": (lambda lib, xnp, ck, x, i: x.at[i].add(1), (X, N)),
    "set in bounds": (lambda lib, xnp, ck, x, i: x.at[i].set(0), (X, N[:3])),
    "dynamic_slice": (lambda lib, xnp, ck, x, i: lib.lax.dynamic_slice(x, (i,), (2,)), (X, N[2])),
    "scan": (scanned, (X,)),
    "scan holds": (scanned, (X - 5,)),
    "while": (looped, (X,)),
    "cond": (chosen, (X,)),
    "other branch": (chosen, (-X,)),
    "jit": (lambda lib, xnp, ck, x: lib.jit(lambda x: xnp.log(x))(x), (X,)),
    "remat": (lambda lib, xnp, ck, x: lib.checkpoint(xnp.log)(x), (X,)),
    "custom": (custom, (X,)),
    "custom holds": (custom, (X + 2,)),
    "nested": (nested, (X,)),
    "nested outer": (nested, (X + 2,)),
    "grad": (lambda lib, xnp, ck, x: lib.grad(lambda x: xnp.sqrt(x).sum())(x), (X + 1,)),
    "vmap": (lambda lib, xnp, ck, x: lib.vmap(xnp.log)(x), (X,)),
    "debug": (lambda lib, xnp, ck, x: (ck.debug_check(x[0] > 3, "small"), x)[1], (X,)),
    "two": (
        lambda lib, xnp, ck, x: (ck.check(x[0] > 3, "a"), ck.check(x[0] > 4, "b"), xnp.log(x))[2],
        (X,),
    ),
}
HOW = {"eager": lambda lib, g: g, "jit": lambda lib, g: lib.jit(g)}


@pytest.mark.parametrize(
    "errors, how",
    [
        ("all_checks", "eager"), ("all_checks", "jit"), ("user_checks", "eager"),
        ("float_checks", "eager"), ("index_checks", "eager"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_error_and_result(name, errors, how):
    f, args = PROGRAMS[name]
    (our_text, ours), (their_text, theirs) = sides(f, args, errors, HOW[how])
    assert our_text == their_text
    same(ours, theirs)


def test_mapped_errors():
    def f(lib, xnp, ck):
        def g(x):
            ck.check(x > 0, "negative {x}", x=x)
            return xnp.log(x)

        return lib.vmap(ck.checkify(g, errors=ck.all_checks))(xnp.asarray(X))[0].get()

    ours, theirs = f(px, pnp, ours_checkify), f(jax, jnp, theirs_checkify)
    assert [line.partition(" (at ")[0] for line in ours.splitlines()] == theirs.splitlines()


@pytest.mark.parametrize(
    "call",
    [
        lambda ck, lib: ck.check(np.array([True]), "m"),
        lambda ck, lib: ck.check(1.0, "m"),
        lambda ck, lib: ck.check(lib.numpy.asarray(False), "eager"),
        lambda ck, lib: lib.jit(lambda x: ck.check(x, "m"))(True),
        lambda ck, lib: ck.checkify(
            lib.vmap(lambda x: lib.lax.while_loop(lambda c: c < 3, lambda c: c / 1 + 1, x)),
            errors=ck.all_checks,
        )(X),
    ],
    ids=["array", "float", "eager", "loose", "mapped while"],
)
def test_same_exceptions(call):
    with pytest.raises(Exception) as theirs:
        call(theirs_checkify, jax)
    with pytest.raises(Exception) as ours:
        call(ours_checkify, px)
    kinds = [c.__name__ for c in type(ours.value).__mro__]
    assert type(theirs.value).__name__ in kinds
    assert str(theirs.value).split(".")[0].split(",")[0] in str(ours.value)
