"""Comparison of a function of arrays with the real jax: values, types and transformations."""

import jax
import ml_dtypes
import numpy as np

from primax_core._ir import dtypes
from primax_core._runtime.array import put
from primax_core._trace.core import typeof
from primax_core._trace.staging import stage
from primax_core._transform.batching import Axis, batch_of, move_axis
from primax_core._transform.jvp import jvp_of
from primax_core._transform.linearize import linearize_of
from primax_core._transform.transpose import run_tape_backwards
from test_support import assert_close

TOLERANCES = {"float16": 3e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}


def flat(fun):
    """Wrap the function so that its results are a list."""

    def run(*args):
        out = fun(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return run


def same(got, expected, what, exact_type=True):
    """Assert equal shapes, dtypes and weak types, and nearly equal values."""
    assert len(got) == len(expected), (what, len(got), len(expected))
    for g, e in zip(got, expected):
        aval = typeof(g)
        assert aval.shape == e.shape, (what, aval, e.shape)
        assert aval.dtype == e.dtype, (what, aval, e.dtype)
        if exact_type:
            assert aval.weak_type == e.aval.weak_type, (what, aval, e.aval)
        if aval.dtype != dtypes.float0:
            assert_close(g, e, rtol=TOLERANCES.get(aval.dtype.name, 0.0), err_msg=what)


def ours_of(args):
    return [put(np.asarray(a)) for a in args]


def differentiable(a):
    return np.issubdtype(a.dtype, np.inexact) or a.dtype == ml_dtypes.bfloat16


def tangent_like(a, rng):
    values = rng.standard_normal(a.shape)
    if a.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(a.shape)
    return np.asarray(values).astype(a.dtype)


def check_values(ours, theirs, args, what):
    same(flat(ours)(*ours_of(args)), flat(theirs)(*map(jax.numpy.asarray, args)), what)


def check_printed(ours, theirs, args, what):
    got = str(stage(flat(ours), [typeof(a) for a in ours_of(args)]))
    expected = str(jax.make_jaxpr(flat(theirs))(*args))
    assert got == expected, f"{what}:\n{got}\n{expected}"


def check_derivatives(ours, theirs, args, what, rng, forward=True, reverse=True):
    active = [differentiable(np.asarray(a)) for a in args]
    if not any(active):
        return
    args = [jax.numpy.asarray(a) for a in args]
    tangents = [
        tangent_like(a, rng) if on else np.zeros(a.shape, jax.dtypes.float0)
        for a, on in zip(args, active)
    ]
    if forward:
        outs, out_tangents = jax.jvp(flat(theirs), tuple(args), tuple(tangents))
        ins = [put(t) if on else None for t, on in zip(tangents, active)]
        our_outs, our_tangents = jvp_of(flat(ours), ours_of(args), ins)
        same(our_outs, outs, f"{what} jvp value")
        pairs = [(t, e) for t, e in zip(our_tangents, out_tangents) if e.dtype != jax.dtypes.float0]
        for t, e in pairs:
            if t is None:
                assert not np.any(np.asarray(e)), what
            else:
                same([t], [e], f"{what} tangent", exact_type=False)
    if reverse:
        outs, pullback = jax.vjp(flat(theirs), *args)
        cts = [
            tangent_like(np.asarray(o), rng)
            if differentiable(np.asarray(o))
            else np.zeros(o.shape, jax.dtypes.float0)
            for o in outs
        ]
        expected = [c for c, on in zip(pullback(cts), active) if on]
        _, out_tangents, trace, in_tangents = linearize_of(flat(ours), ours_of(args), active)
        cotangents = {t: put(c) for t, c in zip(out_tangents, cts) if t is not None}
        got = run_tape_backwards(trace.tape, cotangents, [t for t in in_tangents if t is not None])
        for g, e in zip(got, expected):
            if g is None:
                assert not np.any(np.asarray(e)), what
            else:
                same([g], [e], f"{what} cotangent", exact_type=False)


def check_batches(ours, theirs, args, what, rng, size=2, derivatives=False):
    """Map all arguments together, and each alone, over randomly chosen axes."""
    n = len(args)
    alone = [tuple(i == k for i in range(n)) for k in range(n)] if n > 1 else []
    for mapped in [(True,) * n, *alone]:
        dims, batches = [], []
        for a, m in zip(args, mapped):
            if not m:
                dims.append(None)
                batches.append(a)
                continue
            d = int(rng.integers(a.ndim + 1))
            rows = [np.roll(a, k) if a.ndim else a for k in range(size)]
            dims.append(d)
            batches.append(np.stack(rows, d))
        place = f"{what} vmap {dims}"
        expected = jax.vmap(flat(theirs), in_axes=tuple(dims))(*map(jax.numpy.asarray, batches))

        def run(*xs, dims=tuple(dims)):
            outs, out_dims = batch_of(flat(ours), xs, dims, Axis(size))
            return [move_axis(o, d, 0, size) for o, d in zip(outs, out_dims)]

        same(run(*ours_of(batches)), expected, place)
        if derivatives and all(mapped):
            check_derivatives(
                run, jax.vmap(flat(theirs), in_axes=tuple(dims)), batches, place, rng, forward=False
            )


def check(ours, theirs, args, what="", printed=True, batches=True, derivatives=True, seed=0):
    """Run all comparisons of one case."""
    rng = np.random.default_rng(seed)
    args = [np.asarray(a) for a in args]
    reverse = derivatives != "forward"
    check_values(ours, theirs, args, what)
    if printed:
        check_printed(ours, theirs, args, what)
    if derivatives:
        check_derivatives(ours, theirs, args, what, rng, reverse=reverse)
    if batches:
        check_batches(ours, theirs, args, what, rng, derivatives=derivatives and reverse)


def check_error(ours, theirs, args, phrase=None, kind=None):
    """Assert that both raise; our error has the reference's class (or ``kind``) and a given
    phrase.
    """
    try:
        theirs(*args)
    except Exception as e:
        expected = e
    else:
        raise AssertionError("the reference accepts this")
    try:
        ours(*ours_of(args))
    except Exception as e:
        assert isinstance(e, kind or type(expected)), (type(e), e, expected)
        if phrase is None:
            phrase = str(expected).split(";")[0].split(", got")[0].split("(")[0][:60]
        assert phrase in str(e), (str(e), str(expected))
    else:
        raise AssertionError("accepted")
