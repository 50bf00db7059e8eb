"""References against the reference implementation: values, gradients, texts and errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.ref")

from agreement import same, same_text  # noqa: E402
from oracle_differences import REFERENCES_ACCEPTED  # noqa: E402

import primax_core as px  # noqa: E402
from primax_core import ad, ref as ours  # noqa: E402

F32 = np.float32
X3 = np.array([1.0, 2.0, 3.0], F32)
SMALL = np.arange(6, dtype=F32).reshape(2, 3)
BATCH = np.stack([X3, X3 * 0.5, -X3])


def _side(library: Any, ref: Any, marks: Any) -> SimpleNamespace:
    names = (
        "jit grad vjp jvp linearize vmap lax make_jaxpr eval_shape checkpoint custom_vjp "
        "custom_jvp new_ref freeze free_ref empty_ref jacfwd tree typeof disable_jit Ref"
    ).split()
    side = SimpleNamespace(**{n: getattr(library, n) for n in names if hasattr(library, n)})
    side.r, side.ad = ref, marks
    side.total = lambda x: library.lax.reduce_sum_p.bind(
        x, axes=tuple(range(x.ndim)), out_sharding=None
    )
    return side


OURS: Final = _side(px, ours, ad)
THEIRS: Final = _side(jax, theirs, getattr(jax, "ad", None))


def local(J):
    def f(x):
        q = J.new_ref(x)
        a, b = q[1], q[2]
        q[0] = J.lax.sin(a)
        J.r.addupdate(q, 1, b * b)
        q[...] = q[...] * F32(2)
        return J.total(q[...] * q[...])

    return f


def scanned(J):
    def f(x):
        q = J.new_ref(x)

        def body(c, i):
            q[i] = J.lax.sin(q[i]) * c
            return c * q[i], q[0]

        c, ys = J.lax.scan(body, F32(1), np.arange(3))
        return c + J.total(ys) + J.total(q[...])

    return f


def branching(J):
    def f(x):
        q = J.new_ref(x)
        y = J.lax.cond(q[0] > 0, lambda: (J.r.set(q, 0, q[1]), q[1])[1], lambda: q[2])
        return y * J.total(q[...])

    return f


def looping(J):
    def f(x):
        q = J.new_ref(x)
        J.lax.while_loop(lambda i: i < 3, lambda i: (J.r.set(q, i, q[i] * q[0]), i + 1)[1], 0)
        return J.total(q[...])

    return f


def swapping(J):
    def f(x):
        q, p = J.new_ref(x), J.new_ref(x * x)
        old = J.r.swap(q, slice(1, 3), p[0:2])
        J.r.addupdate(p, np.array([2, 0]), old)
        return J.total(J.freeze(p) * q[...])

    return f


PURE = {f.__name__: f for f in (local, scanned, branching, looping, swapping)}

WAYS = {
    "value": lambda J, f: f(X3),
    "jit": lambda J, f: J.jit(f)(X3),
    "grad": lambda J, f: J.grad(f)(X3),
    "jit grad jit": lambda J, f: J.jit(J.grad(J.jit(f)))(X3),
    "jvp": lambda J, f: J.jvp(f, (X3,), (X3,)),
    "linearize": lambda J, f: J.linearize(f, X3)[1](X3),
    "vmap": lambda J, f: J.vmap(f)(BATCH),
    "vmap grad": lambda J, f: J.vmap(J.grad(f))(BATCH),
    "checkpoint": lambda J, f: J.grad(J.checkpoint(f))(X3),
    "jacfwd": lambda J, f: J.jvp(J.grad(f), (X3,), (X3,))[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PURE)
def test_functions_with_references_inside(name, way):
    if (name, way) in REFERENCES_ACCEPTED:
        pytest.skip("the reference has no rule, or no reverse mode")
    run, make = WAYS[way], PURE[name]
    same(run(OURS, make(OURS)), run(THEIRS, make(THEIRS)), f"{way} of {name}", rtol=2e-5)


# Functions that change their arguments: results and final contents of the references.


def each_side(case, shapes=(X3, SMALL)):
    results = []
    for J in (OURS, THEIRS):
        refs = [J.new_ref(s) for s in shapes]
        out = case(J, *refs)
        results.append((J.tree.leaves(out), [q[...] for q in refs]))
    return results


def rw(J, q):
    def f(x):
        q[...] = q[...] * F32(2)
        return J.total(x * q[...])

    return f


def stash(J):
    f = J.custom_vjp(lambda q, x: x)
    f.defvjp(lambda q, x: (x, q), lambda q, g: (J.r.set(q, ..., g), (None, g))[1])
    return f


def logging(J):
    f = J.custom_vjp(lambda q, x: (J.r.set(q, ..., x), x * F32(2))[1])
    f.defvjp(
        lambda q, x: ((J.r.set(q, ..., x * F32(5)), x * F32(2))[1], None),
        lambda _, g: (None, g * F32(3)),
    )
    return f


def per_example(J):
    def f(q, i):
        J.r.set(q, i, F32(9))
        J.r.addupdate(q, 0, F32(1))
        return q[0] + q[i]

    return f


def counted(J, q, p):
    def body(c, x):
        J.r.addupdate(q, 0, x)
        p[1] = q[...]
        return c, p[1, 0]

    return J.lax.scan(body, F32(0), X3)[1]


CHANGING = {
    "eager": lambda J, q, p: (J.r.swap(p, 0, q[...]), J.r.addupdate(q, 1, F32(5)), q[1])[::2],
    "jit": lambda J, q, p: J.jit(lambda q, p: (J.r.set(p, 0, q[...]), p[1])[1])(q, p),
    "jit closure": lambda J, q, p: J.jit(lambda x: (J.r.set(p, 0, x), q[1])[1])(X3 * 3),
    "grad": lambda J, q, p: J.grad(rw(J, q))(X3),
    "jit grad": lambda J, q, p: J.jit(J.grad(rw(J, q)))(X3),
    "grad jit": lambda J, q, p: J.grad(J.jit(rw(J, q)))(X3),
    "jvp": lambda J, q, p: J.jvp(rw(J, q), (X3,), (X3,)),
    "vmap": lambda J, q, p: J.vmap(per_example(J))(p, np.array([0, 1])),
    "vmap jit": lambda J, q, p: J.vmap(J.jit(per_example(J)))(p, np.array([0, 1])),
    "jit vmap": lambda J, q, p: J.jit(J.vmap(per_example(J)))(p, np.array([0, 1])),
    "vmap axis 1": lambda J, q, p: J.vmap(per_example(J), in_axes=(1, None))(p, np.int32(1)),
    "vmap reads": lambda J, q, p: J.vmap(lambda i, j: p[i, j])(np.array([0, 1]), np.array([2, 0])),
    "scan": lambda J, q, p: counted(J, q, p),
    "jit scan": lambda J, q, p: J.jit(lambda q, p: counted(J, q, p))(q, p),
    "scan over a reference": lambda J, q, p: J.lax.scan(
        lambda c, row: (J.r.set(row, 0, c), (c + row[1], row[2]))[1], F32(7), p
    ),
    "fori_loop": lambda J, q, p: J.lax.fori_loop(
        0, 3, lambda i, c: (J.r.addupdate(q, i, F32(1)), c)[1], 0
    ),
    "switch": lambda J, q, p: J.lax.switch(
        1, [lambda: q[0], lambda: (J.r.set(p, 0, q[...]), q[1])[1], lambda: q[2]]
    ),
    "stash": lambda J, q, p: J.grad(lambda x: J.total(J.lax.cos(stash(J)(q, x * F32(2)))))(X3),
    "stash in jit": lambda J, q, p: J.jit(
        J.grad(J.jit(lambda x, q: J.total(J.lax.cos(stash(J)(q, x * F32(2))))))
    )(X3, q),
    "stash in scan": lambda J, q, p: J.grad(
        lambda xs: J.lax.scan(lambda c, x: (c * J.total(stash(J)(q, x)), None), F32(1), xs)[0]
    )(SMALL),
    "rule that writes": lambda J, q, p: J.grad(lambda x: J.total(logging(J)(q, x)))(X3),
    "function that writes": lambda J, q, p: logging(J)(q, X3 * 4),
    "with_refs": lambda J, q, p: J.vjp(lambda x: J.total(J.lax.sin(x)), X3)[1].with_refs(q)(F32(1)),
    "with_refs in jit": lambda J, q, p: J.jit(
        lambda x, q: J.vjp(lambda x: J.total(J.lax.sin(x)), x)[1].with_refs(q)(F32(1))
    )(X3, q),
    "with_refs of a loop": lambda J, q, p: J.vjp(
        lambda w: J.lax.scan(
            lambda c, x: (c + J.total(J.lax.sin(w * x)), None), F32(0), SMALL
        )[0],
        X3,
    )[1].with_refs(q)(F32(1)),
    "with_refs of a tree": lambda J, q, p: J.vjp(
        lambda d: J.total(d["a"] * d["b"]), {"a": X3, "b": X3}
    )[1].with_refs({"a": q, "b": J.ad.GradValue()})(F32(1))[0]["b"],
    "tangent reference": lambda J, q, p: J.jvp(
        lambda x, q: (J.r.set(q, 0, q[0] * q[1]), J.total(x * q[...]))[1],
        (X3, J.new_ref(X3)), (X3, q),
    ),
    "run_state": lambda J, q, p: run_state(J)(lambda s: J.r.set(s, 0, s[1] * s[2]))(X3),
    "disable_jit": lambda J, q, p: disabled(J, q, p),
    "ahead of time": lambda J, q, p: J.jit(
        lambda q: (J.r.set(q, 0, F32(5)), q[1])[1]
    ).lower(q).compile()(q),
}  # fmt: skip


def run_state(J):
    if J is OURS:
        from primax_core.extend import run_state
    else:
        from jax._src.state.discharge import run_state
    return run_state


def disabled(J, q, p):
    with J.disable_jit():
        return J.jit(
            lambda x: J.lax.scan(lambda c, y: (J.r.addupdate(q, 0, y), (c, q[0]))[1], 0, x)
        )(X3)[1]


@pytest.mark.parametrize("name", CHANGING)
def test_functions_that_write_references(name):
    (out, contents), (their_out, their_contents) = each_side(CHANGING[name])
    same(contents, their_contents, name, rtol=2e-5)
    assert len(out) == len(their_out)
    for a, b in zip(out, their_out):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, err_msg=name)


def test_intended_differences():
    """Intended differences: writes in recomputed code and in loop conditions.

    There, a recomputed function writes again before it reads, and additions in a loop's condition
    are lost.
    """
    again = lambda J, q, p: J.grad(J.checkpoint(rw(J, q)))(X3)
    with_condition = lambda J, q, p: J.lax.while_loop(
        lambda i: (J.r.addupdate(q, 0, F32(1)), i < 3)[1], lambda i: i + 1, 0
    )
    (grads, contents), (their_grads, their_contents) = each_side(again)
    np.testing.assert_array_equal(grads[0], X3 * 2)
    np.testing.assert_array_equal(their_grads[0], X3 * 4)
    np.testing.assert_array_equal(contents[0], X3 * 2)
    np.testing.assert_array_equal(their_contents[0], X3 * 4)
    (_, contents), (_, their_contents) = each_side(with_condition)
    assert [float(np.asarray(h[0])[0]) for h in (contents, their_contents)] == [5.0, 1.0]


def test_gradient_references_for_reference_arguments():
    def f(J, x, q):
        q[0] = q[1] * x
        return J.total(q[...] * q[...])

    results = []
    for J in (OURS, THEIRS):
        q, g = J.new_ref(X3), J.new_ref(X3 * 0 + F32(1))
        pull = J.vjp(lambda x, q, J=J: f(J, x, q), F32(2), q)[1]
        ct = pull.with_refs(J.ad.GradValue(), g)(F32(3))[0]
        results.append([ct, q[...], g[...]])
    same(*results)


# Texts


def uses(J):
    def f(q, i, x):
        a = q[0], q[i], q[i, 1:], q[-1], q[0, 1:3]
        q[i] = x
        q[...] = q[...] + F32(1)
        J.r.addupdate(q, 0, x)
        J.r.addupdate(q, (), q[...])
        old = J.r.swap(q, 1, x)
        q[0, i] = F32(2)
        return *a, old

    return f


def makes(J):
    def f(x):
        q = J.new_ref(x)
        J.r.addupdate(q, ..., x)
        e = J.empty_ref(J.typeof(x))
        e[...] = J.freeze(q)
        out = e[...]
        J.free_ref(e)
        return out

    return f


TEXTS = {
    "uses": lambda J: J.make_jaxpr(uses(J))(J.new_ref(SMALL), 1, X3),
    "makes": lambda J: J.make_jaxpr(makes(J))(X3),
    "stash": lambda J: J.make_jaxpr(
        J.grad(lambda x, q: J.total(J.lax.cos(stash(J)(q, x * F32(2)))))
    )(X3, J.new_ref(X3)),
    "with_refs": lambda J: J.make_jaxpr(
        lambda x, q: J.vjp(lambda x: J.total(J.lax.sin(x)), x)[1].with_refs(q)(F32(1))
    )(X3, J.new_ref(X3)),
    "custom call": lambda J: J.make_jaxpr(lambda q, x: stash(J)(q, x))(J.new_ref(X3), X3),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    call = TEXTS[name]
    same_text(call(OURS), call(THEIRS))


def test_attributes_of_references():
    for show in (
        repr, str, lambda q: (q.shape, q.dtype, q.ndim, q.size),
        lambda q: q[...].dtype,
    ):  # fmt: skip
        for x in (SMALL, X3, F32(1), np.int32(3)):
            assert show(px.new_ref(x)) == show(jax.new_ref(x))
    assert repr(px.typeof(px.new_ref(SMALL))) == repr(jax.typeof(jax.new_ref(SMALL)))
    assert repr(ours.AbstractRef(px.typeof(X3))) == repr(theirs.AbstractRef(jax.typeof(X3)))


EFFECTS = {
    "read": lambda J, q: q[0],
    "write": lambda J, q: J.r.set(q, 0, F32(1)),
    "sum": lambda J, q: J.r.addupdate(q, 0, F32(1)),
    "scan": lambda J, q: J.lax.scan(lambda c, x: (J.r.addupdate(q, 0, x), (c, None))[1], 0, X3),
    "local": lambda J, q: J.freeze(J.new_ref(F32(1))),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects(name):
    def kinds(J):
        program = J.make_jaxpr(lambda q: EFFECTS[name](J, q))(J.new_ref(X3))
        effects = {type(e).__name__ for e in program.effects}
        return effects & {"ReadEffect", "WriteEffect", "AccumEffect"}

    mine, other = kinds(OURS), kinds(THEIRS)
    assert mine - {"ReadEffect"} == other - {"ReadEffect"} and other <= mine


# Errors


def twice(J, f):
    q = J.new_ref(X3)
    return f(q, q)


ERRORS = {
    "shape": (lambda J: J.r.set(J.new_ref(SMALL), 0, F32(1)), "Invalid shape for `swap`"),
    "shape added": (
        lambda J: J.r.addupdate(J.new_ref(X3), ..., F32(1)),
        "Invalid shape for `addup",
    ),
    "dtype": (
        lambda J: J.r.set(J.new_ref(SMALL), (0, 0), 1),
        "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32.",
    ),
    "bounds": (lambda J: J.new_ref(SMALL)[5], "Out of bound indexer: idx=5, dim=2."),
    "too many": (lambda J: J.new_ref(X3)[0, 0], "`indices` must not be longer than `shape`"),
    "step": (lambda J: J.new_ref(X3)[::-1], "slice must have a step >= 1 (found: -1)"),
    "no reference": (
        lambda J: J.r.get(J.new_ref(X3)[...], 0),
        "Can only call `ref_get` on a `Ref`",
    ),
    "closed write": (
        lambda J: J.grad(lambda x: (J.r.set(Q[J is OURS], ..., x), x)[1])(F32(1)),
        "value on a non-differentiated array reference of type Ref{float32[]}",
    ),
    "vmapped write": (
        lambda J: J.vmap(lambda x: J.r.set(Q[J is OURS], ..., x))(X3),
        "vmapped value on an unbatched array reference of type Ref{float32[]}",
    ),
    "alias": (
        lambda J: twice(J, J.jit(lambda a, b: a[0])),
        "mutable array reference of type Ref{float32[3]} appeared at both a and b.",
    ),
    "alias in vmap": (lambda J: twice(J, J.vmap(lambda a, b: a[...])), "appeared at both a and b."),
    "alias in cond": (
        lambda J: twice(
            J, lambda p, q: J.lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], p, q)
        ),
        "appeared at both a and b.",
    ),
    "closure": (
        lambda J: (lambda q: J.jit(lambda a: a[0] + q[0])(q))(J.new_ref(X3)),
        "of type Ref{float32[3]} was both closed over and passed as the argument a",
    ),
    "returned": (
        lambda J: J.jit(lambda x: {"v": J.new_ref(x)})(X3),
        "a mutable array reference of type Ref{float32[3]} at output tree path result['v']",
        "The returned mutable array was created on line",
    ),
    "returned argument": (
        lambda J: J.jit(lambda q: q)(J.new_ref(X3)),
        "The returned mutable array was passed in as the argument q.",
    ),
    "carry": (lambda J: J.lax.scan(lambda c, x: (c, x), J.new_ref(X3), X3), "cannot be returned"),
    "while carry": (
        lambda J: J.lax.while_loop(lambda c: False, lambda c: c, J.new_ref(X3)),
        "cannot be returned",
    ),
    "branch": (
        lambda J: J.lax.cond(True, lambda: J.new_ref(F32(1)), lambda: J.new_ref(F32(2))),
        "cannot be returned",
    ),
    "grad": (
        lambda J: J.grad(lambda q: q[0])(J.new_ref(X3)),
        "grad cannot differentiate with respect to a Ref-typed argument",
    ),
    "no gradient ref": (
        lambda J: J.vjp(lambda q: q[0], J.new_ref(X3))[1](F32(1)),
        "is Ref-typed, so its gradient must be accumulated into a ref",
    ),
    "gradient ref": (
        lambda J: J.vjp(lambda x: x, X3)[1].with_refs(J.new_ref(SMALL))(X3),
        "the given ref has type Ref{float32[2,3]}, but accumulating this argument's gradient "
        "requires a ref of type Ref{float32[3]}",
    ),
    "reverse while": (
        lambda J: J.grad(looping(J))(X3),
        "Reverse-mode differentiation does not work",
    ),
    "tree": (lambda J: J.new_ref({"a": 1}), "The problematic value is of type <class 'dict'>"),
    "leak": (lambda J: leaked(J)[0], "wrapped in a"),
}
Q = {True: px.new_ref(F32(0)), False: jax.new_ref(F32(0))}


def leaked(J):
    references: list = []
    J.jit(lambda x: references.append(J.new_ref(x)))(X3)
    return references[0]


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, *phrases = ERRORS[name]
    for J in (OURS, THEIRS):
        with pytest.raises(Exception) as actual:
            call(J)
        text = " ".join(str(actual.value).split())
        for phrase in phrases:
            assert phrase in text, J is OURS
        if J is OURS:
            mine = type(actual.value)
    base = next(c for c in type(actual.value).__mro__ if c.__module__ == "builtins")
    assert issubclass(mine, base)
