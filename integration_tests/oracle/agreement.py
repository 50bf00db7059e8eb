"""Comparison of a function with the reference's, and of all transformations of the two."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

import primax_core as px
import primax_core.lax.arithmetic
from test_support import assert_close, fixing

TOLERANCES = {"float32": 2e-5}
"""Relative tolerances that are not the usual ones."""


def same(ours: Any, theirs: Any, what: str = "", rtol: float | None = None) -> None:
    """Assert that two results (or lists of results) have the same types and values."""
    ours, theirs = jax.tree.leaves(_listed(ours)), jax.tree.leaves(_listed(theirs))
    assert len(ours) == len(theirs), what
    for o, t in zip(ours, theirs):
        assert np.shape(o) == np.shape(t), f"{what}: shapes {np.shape(o)} and {np.shape(t)}"
        assert o.dtype == t.dtype, f"{what}: dtypes {o.dtype} and {t.dtype}"
        weak = bool(getattr(o, "weak_type", False)), bool(getattr(t, "weak_type", False))
        assert weak[0] == weak[1], f"{what}: weak types {weak}"
        limit = TOLERANCES if rtol is None else rtol
        assert_close(o, t, rtol=limit, scaled=True, err_msg=what)


def _listed(x: Any) -> Any:
    return list(x) if isinstance(x, tuple) else x


def same_text(ours: Any, theirs: Any) -> None:
    """Assert that two jaxprs print alike, except for line breaks."""
    texts = [re.sub(r"(?<=\[) | (?=\])", "", " ".join(str(t).split())) for t in (ours, theirs)]
    assert texts[0] == texts[1]


def values(shape: Sequence[int], dtype: Any, seed: int = 0) -> np.ndarray:
    """Random values; small integers for integer dtypes."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        low = 0 if "u" in dtype.name[:1] else -3
        return rng.integers(low, 4, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def inexact(x: Any) -> bool:
    """Return True if an argument is differentiated."""
    dtype = np.asarray(x).dtype
    return dtype.kind in "fc" or dtype == ml_dtypes.bfloat16


def check(
    ours: Callable,
    theirs: Callable,
    *args: Any,
    diff: bool = True,
    batch: bool = True,
    text: bool = True,
    backward: bool = True,
    rtol: float | None = None,
) -> None:
    """Compare results, printed jaxprs, both derivatives, and batches of all operands.

    Args:
      diff, backward, batch, text: whether to compare both derivatives, the reverse one, batches,
        and printed jaxprs.
    """
    expected = theirs(*args)
    same(ours(*args), expected, "value", rtol)
    same(px.jit(ours)(*args), expected, "jit", rtol)
    if text:
        same_text(px.make_jaxpr(ours)(*args), jax.make_jaxpr(theirs)(*args))
    if diff and any(inexact(a) for a in args):
        _check_derivatives(ours, theirs, args, expected, backward, rtol)
    if batch:
        check_batches(ours, theirs, args, rtol)


def _check_derivatives(ours, theirs, args, expected, backward, rtol) -> None:
    at = [i for i, a in enumerate(args) if inexact(a)]
    ct = jax.tree.map(
        lambda o: (
            values(o.shape, o.dtype, 11) if inexact(o) else np.zeros(o.shape, jax.dtypes.float0)
        ),
        expected,
    )
    for chosen in [at] if len(at) < 2 else [at, at[:1], at[1:]]:
        some = tuple(args[i] for i in chosen)
        tangents = tuple(
            values(np.shape(a), np.asarray(a).dtype, 7 + i) for i, a in enumerate(some)
        )
        f, g = fixing(ours, args, chosen), fixing(theirs, args, chosen)
        same(px.jvp(f, some, tangents), jax.jvp(g, some, tangents), "jvp", rtol)
        if not backward:
            continue
        same(px.vjp(f, *some)[1](ct), jax.vjp(g, *some)[1](ct), "vjp", rtol)
        if chosen is at:
            pulled = (lambda *a, f=f: px.vjp(f, *a)[1](ct)), (lambda *a, g=g: jax.vjp(g, *a)[1](ct))
            same(
                px.jvp(pulled[0], some, tangents),
                jax.jvp(pulled[1], some, tangents),
                "jvp of vjp",
                None if rtol is None else 4 * rtol,
            )


def check_batches(ours, theirs, args, rtol: float | None = None, size: int = 2) -> None:
    """Compare ``vmap`` over every subset of operands, on first, middle and last axes."""
    for n, mapped in enumerate(itertools.product((True, False), repeat=len(args))):
        if not any(mapped):
            continue
        axes, stacked = [], []
        for i, (a, m) in enumerate(zip(args, mapped)):
            a = np.asarray(a)
            place = (n + i) % (a.ndim + 1)
            axes.append(place if m else None)
            copies = [values(a.shape, a.dtype, 20 + k + i) for k in range(size)]
            stacked.append(np.stack(copies, place) if m else a)
        same(
            px.vmap(ours, tuple(axes))(*stacked),
            jax.vmap(theirs, tuple(axes))(*stacked),
            f"vmap {axes}",
            rtol,
        )
