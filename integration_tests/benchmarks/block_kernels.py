"""Kernels over blocks, beside the reference's jitted interpreter; and beside plain code.

Figures are CPU time of all threads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .case import Cases, Namespace
from .native_kernels import floats, least

CASES = Cases()
KERNELS, PLAIN = "block kernels", "block kernels, plain code"
F32 = np.float32


def modules(ns: Namespace) -> SimpleNamespace:
    """The modules of a library that kernels use."""
    pallas = f"{ns.jax.__name__}.experimental.pallas"
    return SimpleNamespace(
        jax=ns.jax, np=ns.jnp, pl=importlib.import_module(pallas),
        tpu=importlib.import_module(f"{pallas}.tpu"),
    )  # fmt: skip


def add(m: SimpleNamespace, x: Any, y: Any) -> Any:
    """The sum of two arrays, in blocks of 1024."""

    def kernel(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] + y[...]

    block = m.pl.BlockSpec((1024,), lambda i: (i,))
    return m.pl.pallas_call(
        kernel, m.jax.ShapeDtypeStruct(x.shape, F32), grid=x.size // 1024, in_specs=[block, block],
        out_specs=block, interpret=True,
    )(x, y)  # fmt: skip


def softmax(m: SimpleNamespace, x: Any, rows: int) -> Any:
    """Softmax of rows."""

    def kernel(x: Any, out: Any) -> None:
        e = m.np.exp(x[...] - x[...].max(-1, keepdims=True))
        out[...] = e / e.sum(-1, keepdims=True)

    block = m.pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return m.pl.pallas_call(
        kernel, m.jax.ShapeDtypeStruct(x.shape, F32), grid=x.shape[0] // rows, in_specs=[block],
        out_specs=block, interpret=True,
    )(x)  # fmt: skip


def matmul(m: SimpleNamespace, a: Any, b: Any, n: int) -> Any:
    """A matrix product in blocks of n, added up in scratch memory."""

    def kernel(a: Any, b: Any, out: Any, total: Any) -> None:
        @m.pl.when(m.pl.program_id(2) == 0)
        def _start() -> None:
            total[...] = m.np.zeros((n, n), F32)

        total[...] += m.np.dot(a[...], b[...])

        @m.pl.when(m.pl.program_id(2) == m.pl.num_programs(2) - 1)
        def _end() -> None:
            out[...] = total[...]

    return m.pl.pallas_call(
        kernel, m.jax.ShapeDtypeStruct((a.shape[0], b.shape[1]), F32),
        grid=(a.shape[0] // n, b.shape[1] // n, a.shape[1] // n),
        in_specs=[
            m.pl.BlockSpec((n, n), lambda i, j, k: (i, k)),
            m.pl.BlockSpec((n, n), lambda i, j, k: (k, j)),
        ],
        out_specs=m.pl.BlockSpec((n, n), lambda i, j, k: (i, j)),
        scratch_shapes=[m.tpu.VMEM((n, n), F32)], interpret=True,
    )(a, b)  # fmt: skip


def attention(m: SimpleNamespace, qkv: Any, n: int) -> Any:
    """Flash attention, forward (Dao et al., 2022), in blocks of n."""

    def kernel(q: Any, k: Any, v: Any, out: Any, top: Any, total: Any, acc: Any) -> None:
        @m.pl.when(m.pl.program_id(2) == 0)
        def _start() -> None:
            top[...] = m.np.full((n,), -1e30, F32)
            total[...] = m.np.zeros((n,), F32)
            acc[...] = m.np.zeros(acc.shape, F32)

        scores = m.np.dot(q[...], k[...].T)
        new = m.np.maximum(top[...], scores.max(-1))
        p = m.np.exp(scores - new[:, None])
        scale = m.np.exp(top[...] - new)
        total[...] = total[...] * scale + p.sum(-1)
        acc[...] = acc[...] * scale[:, None] + m.np.dot(p, v[...])
        top[...] = new

        @m.pl.when(m.pl.program_id(2) == m.pl.num_programs(2) - 1)
        def _end() -> None:
            out[...] = acc[...] / total[...][:, None]

    _, heads, size, d = qkv.shape
    rows = m.pl.BlockSpec((None, n, d), lambda h, i, j: (h, i, 0))
    columns = m.pl.BlockSpec((None, n, d), lambda h, i, j: (h, j, 0))
    vector = m.tpu.VMEM((n,), F32)
    return m.pl.pallas_call(
        kernel, m.jax.ShapeDtypeStruct((heads, size, d), F32), grid=(heads, size // n, size // n),
        in_specs=[rows, columns, columns], out_specs=rows,
        scratch_shapes=[vector, vector, m.tpu.VMEM((n, d), F32)], interpret=True,
    )(qkv[0], qkv[1], qkv[2])  # fmt: skip


def plain_softmax(m: SimpleNamespace, x: Any) -> Any:
    """Softmax of rows."""
    e = m.np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def plain_attention(m: SimpleNamespace, qkv: Any) -> Any:
    """Attention."""
    scores = m.np.einsum("hid,hjd->hij", qkv[0], qkv[1])
    return m.np.einsum("hij,hjd->hid", plain_softmax(m, scores), qkv[2])


Function = Callable[[SimpleNamespace, Any], Any]


def compared(name: str, kernel: Function, plain: Function, x: Any, number: int = 5) -> None:
    """Register a kernel and its plain form."""
    for group, fun in ((KERNELS, kernel), (PLAIN, plain)):

        @CASES.measured(group, name if fun is kernel else f"{name}, plain", "ms", None)
        def _measure(ns: Namespace, fun: Function = fun) -> float:
            m = modules(ns)
            return least(ns, lambda x: fun(m, x), ns.jnp.asarray(x), number)


PAIR, MATRICES = floats(2, 2**20), floats(2, 512, 512)
compared("add 1M, 1024", lambda m, x: add(m, x[0], x[1]), lambda m, x: x[0] + x[1], PAIR, 3)
for _n in (128, 64):
    compared(
        f"matmul 512, {_n}", lambda m, x, n=_n: matmul(m, x[0], x[1], n),
        lambda m, x: m.np.dot(x[0], x[1]), MATRICES,
    )  # fmt: skip
for _rows in (16, 1):
    compared(
        f"softmax 2048x512, {_rows}", lambda m, x, rows=_rows: softmax(m, x, rows), plain_softmax,
        floats(2048, 512),
    )  # fmt: skip
compared(
    "flash attention 8x1024x64, 128", lambda m, x: attention(m, x, 128), plain_attention,
    floats(3, 8, 1024, 64), 3,
)  # fmt: skip
