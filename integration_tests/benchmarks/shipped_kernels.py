"""Kernels that ship with primax-kernels, beside plain code; values and derivatives.

Figures are CPU time of all threads. The reference has no such kernels and runs the plain code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Cases, Namespace
from .native_kernels import floats, least

CASES = Cases()
KERNELS, PLAIN = "shipped kernels", "shipped kernels, plain code"
F32 = np.float32
Function = Callable[..., Any]


def _ops() -> Any:
    from primax_kernels import ops

    return ops


def compared(
    name: str, kernel: Callable[[Any], Function], plain: Callable[[Namespace], Function],
    operands: tuple[Any, ...], derivative: bool = False, number: int = 5,
) -> None:  # fmt: skip
    """Register a kernel and its plain form.

    Args:
      kernel, plain: functions of `primax_kernels.ops` and of a library that return the function of
        the operands.
      derivative: whether to measure the derivatives with respect to all operands of floats, too.
    """

    def measured(ns: Namespace, fun: Function, backward: bool) -> float:
        places = tuple(i for i, x in enumerate(operands) if x.dtype == F32)

        def call(xs: Any) -> Any:
            if not backward:
                return fun(*xs)
            return ns.jax.grad(lambda *ys: (fun(*ys).astype(F32) ** 2).sum(), places)(*xs)

        return least(ns, call, tuple(ns.jnp.asarray(x) for x in operands), number)

    for group in (KERNELS, PLAIN):
        for backward in (False, True) if derivative else (False,):
            title = (
                f"{name}{', derivative' if backward else ''}{', plain' if group == PLAIN else ''}"
            )

            @CASES.measured(group, title, "ms", None)
            def _measure(ns: Namespace, group: str = group, backward: bool = backward) -> float:
                shipped = group == KERNELS and ns.root == "primax"
                fun = kernel(_ops()) if shipped else plain(ns)
                return measured(ns, fun, backward)


def plain_attention(ns: Namespace, causal: bool) -> Function:
    """Attention with all scores in memory."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        group = q.shape[2] // k.shape[2]
        k, v = (ns.jnp.repeat(x, group, axis=2) for x in (k, v))
        scores = ns.jnp.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1]).astype(F32)
        if causal:
            mask = np.tril(np.ones(scores.shape[-2:], bool))
            scores = ns.jnp.where(mask, scores, F32(-1e30))
        return ns.jnp.einsum("bhij,bjhd->bihd", ns.nn.softmax(scores), v)

    return attention


def plain_norm(ns: Namespace, centered: bool) -> Function:
    """Layer normalisation, or by the root mean square."""

    def norm(x: Any, scale: Any) -> Any:
        if centered:
            x = x - x.mean(-1, keepdims=True)
        return x * ns.lax.rsqrt((x * x).mean(-1, keepdims=True) + F32(1e-6)) * scale

    return norm


def plain_paged(ns: Namespace) -> Function:
    """Attention to a copy of each sequence's pages."""

    def paged(q: Any, k: Any, v: Any, lengths: Any, pages: Any) -> Any:
        batch, heads, d = q.shape
        k, v = (
            x[:, pages].reshape(x.shape[0], batch, -1, d).repeat(heads // x.shape[0], 0)
            for x in (k, v)
        )  # fmt: skip
        scores = ns.jnp.einsum("bhd,hbjd->bhj", q, k) / np.sqrt(d).astype(F32)
        mask = ns.jnp.arange(scores.shape[-1])[None, None] < lengths[:, None, None]
        weights = ns.nn.softmax(ns.jnp.where(mask, scores, F32(-1e30)))
        return ns.jnp.einsum("bhj,hbjd->bhd", weights, v)

    return paged


def plain_quantized(ns: Namespace) -> Function:
    """Product of int8 numbers with scales."""

    def product(a: Any, b: Any, rows: Any, columns: Any) -> Any:
        dims = (((1,), (0,)), ((), ()))
        sums = ns.lax.dot_general(a, b, dims, preferred_element_type=np.int32)
        return sums.astype(F32) * rows[:, None] * columns

    return product


def plain_rope(ns: Namespace) -> Function:
    """Rotary position embedding."""

    def rope(x: Any) -> Any:
        half = x.shape[-1] // 2
        rates = F32(10000) ** (-ns.jnp.arange(half, dtype=F32) / F32(half))
        angles = ns.jnp.arange(x.shape[1], dtype=F32)[:, None, None] * rates
        cos, sin = ns.jnp.cos(angles), ns.jnp.sin(angles)
        a, b = x[..., :half], x[..., half:]
        return ns.jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    return rope


def plain_cross_entropy(ns: Namespace) -> Function:
    """Cross-entropy of logits."""

    def losses(logits: Any, labels: Any) -> Any:
        picked = ns.jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
        return ns.nn.logsumexp(logits, axis=-1) - picked

    return losses


def plain_recurrence(ns: Namespace) -> Function:
    """A linear recurrence as an associative scan."""

    def recurrence(a: Any, b: Any) -> Any:
        def combine(x: Any, y: Any) -> Any:
            return x[0] * y[0], y[0] * x[1] + y[1]

        return ns.lax.associative_scan(combine, (a, b), axis=1)[1]

    return recurrence


def _int8(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-127, 128, shape).astype(np.int8)


def _labels(rows: int, classes: int) -> Any:
    return np.random.default_rng(0).integers(0, classes, rows).astype(np.int32)


def _pages(batch: int, steps: int) -> Any:
    return (
        np.random.default_rng(0).permutation(batch * steps).reshape(batch, steps).astype(np.int32)
    )


def register() -> None:
    """Register all kernels."""
    matrix = floats(512, 512)
    compared("matmul 512", lambda o: o.matmul, lambda ns: ns.jnp.dot, (matrix, matrix), True)
    compared(
        "matmul 512, bias and relu",
        lambda o: lambda a, b, c: o.matmul(a, b, c, epilogue=lambda x, c: (x + c).clip(0)),
        lambda ns: lambda a, b, c: (a @ b + c).clip(0), (matrix, matrix, floats(512)), True,
    )  # fmt: skip
    rows = floats(2048, 512)
    compared("softmax 2048x512", lambda o: o.softmax, lambda ns: ns.nn.softmax, (rows,), True)
    for centered, name in ((True, "layer_norm"), (False, "rms_norm")):
        compared(
            f"{name} 2048x512", lambda o, name=name: getattr(o, name),
            lambda ns, centered=centered: plain_norm(ns, centered), (rows, floats(512)), True,
        )  # fmt: skip
    q, k = floats(1, 1024, 8, 64), floats(1, 1024, 2, 64)
    for causal in (False, True):
        for keys, name in ((q, ""), (k, ", 2 key heads")):
            compared(
                f"flash attention 1024x8x64{name}{', causal' if causal else ''}",
                lambda o, causal=causal: lambda *xs: o.flash_attention(*xs, causal=causal),
                lambda ns, causal=causal: plain_attention(ns, causal), (q, keys, keys), True, 3,
            )  # fmt: skip
    cache = floats(2, 256, 16, 64)
    compared(
        "paged attention 8x8x64, 512 keys", lambda o: o.paged_attention, plain_paged,
        (floats(8, 8, 64), cache, cache, np.full(8, 500, np.int32), _pages(8, 32)),
    )  # fmt: skip
    sizes = np.array([100, 0, 300, 112, 200, 50, 150, 112], np.int32)
    compared(
        "grouped_matmul 1024x256x256, 8 groups", lambda o: o.grouped_matmul,
        lambda ns: ns.lax.ragged_dot, (floats(1024, 256), floats(8, 256, 256), sizes), True,
    )  # fmt: skip
    compared(
        "quantized_matmul 512, int8", lambda o: o.quantized_matmul, plain_quantized,
        (_int8(512, 512), _int8(512, 512), floats(512), floats(512)),
    )  # fmt: skip
    compared("rope 4x512x8x64", lambda o: o.rope, plain_rope, (floats(4, 512, 8, 64),), True)
    labels = _labels(512, 8192)
    compared(
        "cross_entropy 512x8192", lambda o: o.cross_entropy, plain_cross_entropy,
        (floats(512, 8192), labels), True,
    )  # fmt: skip
    compared(
        "linear_cross_entropy 512x128x8192", lambda o: o.linear_cross_entropy,
        lambda ns: lambda x, w, y: plain_cross_entropy(ns)(x @ w, y),
        (floats(512, 128), floats(128, 8192), labels), True,
    )  # fmt: skip
    compared(
        "cumsum 256x4096", lambda o: o.cumsum, lambda ns: lambda x: ns.jnp.cumsum(x, -1),
        (floats(256, 4096),), True,
    )  # fmt: skip
    steps = np.abs(floats(4, 1024, 256)) / 4
    compared(
        "linear_recurrence 4x1024x256", lambda o: o.linear_recurrence, plain_recurrence,
        (steps, steps), True,
    )  # fmt: skip
    for k_ in (2, 8):
        compared(
            f"top_k 2048x64, {k_}", lambda o, k=k_: lambda x: o.top_k(x, k)[0],
            lambda ns, k=k_: lambda x: ns.lax.top_k(x, k)[0], (floats(2048, 64),), True,
        )  # fmt: skip


register()
