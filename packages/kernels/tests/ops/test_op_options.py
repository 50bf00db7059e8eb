"""Dtypes, default blocks, transformations and edge cases of shipped kernels."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import plain_ops as plain
import pytest
from op_cases import CASES, LABELS, QKV, SIZES
from op_support import close, gradients, normal

from primax_core import dtypes, enable_x64, grad, hessian, jit, jvp, lax, vmap
from primax_core.extend import typeof
from primax_kernels import check_kernel, explain_kernel, ops
from primax_kernels.ops import _blocks

F32 = np.float32
BF16, F16 = np.dtype(dtypes.bfloat16), np.dtype(np.float16)
TOLERANCES = {BF16: 3e-2, F16: 4e-3, np.dtype(np.float64): 1e-10}

BY_DTYPE: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "matmul": (ops.matmul, lax.dot, (normal(5, 7), normal(7, 4))),
    "softmax": (ops.softmax, plain.softmax, (normal(5, 7),)),
    "layer_norm": (ops.layer_norm, plain.layer_norm, (normal(5, 7), normal(7), normal(7, seed=1))),
    "rms_norm": (ops.rms_norm, plain.rms_norm, (normal(5, 7), normal(7))),
    "flash_attention": (
        partial(ops.flash_attention, causal=True), partial(plain.attention, causal=True),
        (normal(1, 5, 2, 4), normal(1, 5, 2, 4, seed=1), normal(1, 5, 2, 4, seed=2)),
    ),
    "grouped_matmul": (
        lambda x, w: ops.grouped_matmul(x, w, SIZES),
        lambda x, w: plain.grouped_matmul(x, w, SIZES), (normal(17, 6), normal(4, 6, 5)),
    ),
    "rope": (
        ops.rope, lambda x: plain.rope(np.asarray(x), np.arange(5), False), (normal(1, 5, 2, 4),)
    ),
    "cross_entropy": (
        lambda x: ops.cross_entropy(x, LABELS), lambda x: plain.cross_entropy(x, LABELS),
        (normal(7, 10),),
    ),
    "cumsum": (ops.cumsum, lambda x: lax.cumsum(x, 1), (normal(5, 7),)),
    "linear_recurrence": (
        partial(ops.linear_recurrence, block=(4, 2)), plain.linear_recurrence,
        (normal(1, 5, 3) / 2, normal(1, 5, 3, seed=1), normal(1, 3)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", BY_DTYPE)
def test_dtypes(name: str, dtype: Any) -> None:
    fun, reference, args = BY_DTYPE[name]
    with enable_x64(dtype.itemsize == 8):
        narrow = [x.astype(dtype) for x in args]
        result = fun(*narrow)
        wide = np.float64 if dtype.itemsize == 8 else F32
        is_loss = name == "cross_entropy" and dtype.itemsize == 2
        assert typeof(result).dtype == (F32 if is_loss else dtype)
        close(result, reference(*(x.astype(wide) for x in narrow)), TOLERANCES[dtype])


def test_sums_of_16_bit_floats_are_wide() -> None:
    ones = np.ones((1, 4096), BF16)
    assert float(np.asarray(ops.matmul(ones, ones, transpose_b=True))[0, 0]) == 4096
    assert float(np.asarray(ops.cumsum(ones))[0, -1]) == 4096
    assert typeof(ops.matmul(ones, ones, transpose_b=True, out_dtype=F32)).dtype == F32


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8])
def test_integers(dtype: Any) -> None:
    a, b = np.arange(12).reshape(3, 4).astype(dtype), np.arange(8).reshape(4, 2).astype(dtype)
    product = ops.matmul(a, b, block=(2, 2, 2))
    assert typeof(product).dtype == np.int32
    assert np.asarray(product).tolist() == (a.astype(int) @ b.astype(int)).tolist()
    assert np.asarray(ops.cumsum(a)).tolist() == np.cumsum(a, 1).tolist()
    values, where = ops.top_k(a, 2)
    assert np.asarray(values).tolist() == a[:, [3, 2]].tolist()
    assert np.asarray(where).tolist() == [[3, 2]] * 3


# Attention


def test_heads_that_share_keys_and_default_blocks() -> None:
    q, k, v = normal(2, 3, 6, 4), normal(2, 4, 3, 4), normal(2, 4, 3, 4, seed=1)
    expected = np.asarray(plain.attention(q, k, v))
    close(ops.flash_attention(q, k, v), expected)
    close(ops.flash_attention(q[0], k[0], v[0]), expected[0])


@pytest.mark.parametrize(
    "options",
    [{"window": (1, 2)}, {"window": (0, 0)}, {"causal": True, "query_offset": 3}],
    ids=str,
)
def test_masks_of_attention(options: Any) -> None:
    q, k = normal(1, 5, 1, 4), normal(1, 8, 1, 4)
    actual = ops.flash_attention(q, k, k, block=(2, 4), **options)
    close(actual, plain.attention(q, k, k, **options))


def test_queries_without_keys_are_zero() -> None:
    q, k = normal(1, 3, 1, 4), normal(1, 4, 1, 4)
    segments = np.array([[0, 7, 1]]), np.array([[0, 0, 1, 1]])
    segments = tuple(x.astype(np.int32) for x in segments)
    out = np.asarray(ops.flash_attention(q, k, k, segment_ids=segments, block=(2, 2)))
    assert (out[:, 1] == 0).all() and (out[:, [0, 2]] != 0).all()
    assert np.isfinite(out).all()


def test_large_scores() -> None:
    q = np.full((1, 2, 1, 4), 1e3, F32)
    out = np.asarray(ops.flash_attention(q, q, q, block=(1, 1)))
    np.testing.assert_allclose(out, q)
    assert (np.asarray(ops.softmax(np.array([[1e4, 0], [-1e4, -1e4]], F32)))
            == [[1, 0], [0.5, 0.5]]).all()  # fmt: skip


@pytest.mark.parametrize(("heads", "rows"), [(1, 3), (2, 1)])
def test_the_derivative_of_a_broadcast_bias(heads: int, rows: int) -> None:
    q, k, bias = normal(2, 3, 2, 4), normal(2, 5, 2, 4), normal(1, heads, rows, 5)
    sums = [
        jit(grad(lambda b, f=f: lax.reduce_sum(f(q, k, k, b) ** 2, (0, 1, 2, 3))))(bias)
        for f in (lambda q, k, v, b: ops.flash_attention(q, k, v, bias=b), plain.attention)
    ]
    close(*sums)


# Other options


def test_epilogues_with_extras_of_all_shapes() -> None:
    a, b = normal(5, 6), normal(6, 7)
    extras = np.array(2, F32), normal(7), normal(5, 1), normal(5, 7)

    def epilogue(x: Any, c: Any, row: Any, column: Any, matrix: Any) -> Any:
        return (x * c + row) * column + matrix

    expected = (a @ b * 2 + extras[1]) * extras[2] + extras[3]
    for block in (None, (2, 4, 4)):
        close(ops.matmul(a, b, *extras, epilogue=epilogue, block=block), expected)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes(axis: int) -> None:
    x = normal(3, 4, 5)
    e = np.exp(x - x.max(axis, keepdims=True))
    close(ops.softmax(x, axis=axis), e / e.sum(axis, keepdims=True))
    close(ops.cumsum(x, axis=axis), np.cumsum(x, axis))
    moved = np.moveaxis(x, axis, 1)
    states = plain.linear_recurrence(moved, moved, np.zeros((moved.shape[0], moved.shape[2]), F32))
    close(ops.linear_recurrence(x, x, axis=axis), np.moveaxis(np.asarray(states), 1, axis))


def test_grouped_matmul_equals_ragged_dot() -> None:
    x, w = normal(9, 4), normal(3, 4, 5)
    for sizes in ([3, 0, 6], [0, 0, 9], [9, 0, 0], [1, 2, 3], [0, 0, 0]):
        group_sizes = np.array(sizes, np.int32)
        close(ops.grouped_matmul(x, w, group_sizes), lax.ragged_dot(x, w, group_sizes))


def test_rope_of_each_batch_and_both_kinds() -> None:
    x, positions = normal(2, 3, 1, 4), np.array([5, 0, 7], np.int32)
    for interleaved in (False, True):
        actual = ops.rope(x, positions, interleaved=interleaved)
        close(actual, plain.rope(x, np.stack([positions] * 2), interleaved))
    norms = [np.linalg.norm(np.asarray(y), axis=-1) for y in (x, ops.rope(x, base=500.0))]
    close(*norms)


def test_top_k_orders_special_numbers_as_lax_does() -> None:
    x = np.array([[0, -0.0, np.nan, np.inf], [-np.inf, -np.inf, 1, 1], [-np.nan, 1, 2, 3]], F32)
    values, where = ops.top_k(x, 4)
    expected, positions = lax.top_k(x[:2], 4)
    assert np.asarray(where)[:2].tolist() == np.asarray(positions).tolist()
    np.testing.assert_array_equal(np.asarray(values)[:2], expected)
    assert np.asarray(where)[2].tolist() == [0, 3, 2, 1]
    least = np.full((1, 3), np.iinfo(np.int32).min, np.int32)
    assert np.asarray(ops.top_k(least, 3)[1]).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("dtype", [np.int8, "float8_e4m3fn", "float8_e5m2"])
def test_quantized_numbers_times_scales(dtype: Any) -> None:
    x = normal(4, 6) * 100
    for axis in (0, 1, None):
        values, scales = ops.quantize(x, dtype, axis=axis)
        assert typeof(values).dtype == np.dtype(dtype)
        factor = np.asarray(scales) if axis is None else np.expand_dims(np.asarray(scales), axis)
        restored = np.asarray(values).astype(F32) * factor
        close(restored, x, {np.int8: 0.01, "float8_e4m3fn": 0.07, "float8_e5m2": 0.13}[dtype])
    assert np.asarray(ops.quantize(np.zeros((2, 2), F32))[1]).tolist() == [1, 1]


def test_empty_arrays() -> None:
    empty, matrix = np.zeros((0, 4), F32), normal(4, 3)
    assert ops.matmul(empty, matrix).shape == (0, 3)
    assert np.asarray(ops.matmul(normal(2, 0), np.zeros((0, 3), F32))).tolist() == [[0] * 3] * 2
    biased = ops.matmul(normal(2, 0), np.zeros((0, 1), F32), np.ones(1, F32), epilogue=plain.relu)
    assert np.asarray(biased).tolist() == [[1], [1]]
    for function in (ops.softmax, ops.rms_norm, ops.cumsum):
        assert function(empty).shape == (0, 4)
    assert ops.top_k(empty, 2)[1].shape == (0, 2)
    assert ops.cross_entropy(empty, np.zeros(0, np.int32)).shape == (0,)
    q = np.zeros((1, 3, 2, 4), F32)
    assert (np.asarray(ops.flash_attention(q, q[:, :0], q[:, :0])) == 0).all()
    assert ops.rope(q[:, :0]).shape == (1, 0, 2, 4)
    assert ops.linear_recurrence(empty, empty).shape == (0, 4)
    sizes = np.zeros(2, np.int32)
    assert ops.grouped_matmul(empty, normal(2, 4, 3), sizes).shape == (0, 3)


# Transformations


@pytest.mark.parametrize(
    "name", ["softmax", "layer_norm", "cross_entropy", "cumsum", "top_k", "grouped_matmul"]
)
def test_vmap(name: str) -> None:
    case = CASES[name]
    stacked = [np.stack([x, x[::-1]]) for x in case.args]
    one_by_one = np.stack([np.asarray(case.fun(*(x[i] for x in stacked))) for i in range(2)])
    close(jit(vmap(case.fun))(*stacked), one_by_one)


def test_vmap_of_a_derivative() -> None:
    q = normal(2, 1, 3, 1, 4)

    def loss(q: Any) -> Any:
        return lax.reduce_sum(ops.flash_attention(q, q, q, causal=True) ** 2, (0, 1, 2, 3))

    derivative = jit(grad(loss))
    close(jit(vmap(derivative))(q), np.stack([np.asarray(derivative(x)) for x in q]))


def test_forward_mode() -> None:
    x, t = normal(3, 4), normal(3, 4, seed=1)
    for ours, theirs in (
        (ops.softmax, plain.softmax),
        (ops.cumsum, lambda x: lax.cumsum(x, 1)),
        (
            lambda x: ops.matmul(x, x, transpose_b=True),
            lambda x: lax.dot(x, lax.transpose(x, (1, 0))),
        ),
    ):
        for actual, expected in zip(jvp(ours, (x,), (t,)), jvp(theirs, (x,), (t,))):
            close(actual, expected)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.backward])
def test_forward_mode_of_functions_whose_reverse_derivative_is_a_kernel(name: str) -> None:
    case = CASES[name]
    n = case.derivatives
    args, rest = case.args[:n], case.args[n:]
    tangents = [normal(*x.shape, seed=5) for x in args]

    def forward(fun: Any) -> Any:
        return jit(lambda xs, ts: jvp(lambda *xs: fun(*xs, *rest), xs, ts))(args, tangents)

    for actual, expected in zip(forward(case.fun), forward(case.plain)):
        close(actual, expected, 1e-4)


@pytest.mark.parametrize("name", ["attention", "layer_norm", "linear_recurrence"])
def test_forward_derivatives_of_reverse_ones(name: str) -> None:
    case = CASES[name]
    tangents = tuple(normal(*x.shape, seed=6) for x in case.args)

    def product(fun: Any) -> Any:
        """Product of the second derivative and the tangents."""
        slopes = gradients(fun, case.derivatives)
        return jit(lambda xs, ts: jvp(slopes, xs, ts)[1])(case.args, tangents)

    for actual, expected in zip(product(case.fun), product(case.plain), strict=True):
        close(actual, expected, 2e-4)


def test_batches_of_forward_derivatives() -> None:
    q, ts = QKV[0], normal(3, *QKV[0].shape)

    def along(fun: Any) -> Any:
        return jit(vmap(lambda t: jvp(lambda q: fun(q, *QKV[1:]), (q,), (t,))[1]))(ts)

    close(along(CASES["attention"].fun), along(CASES["attention"].plain), 1e-4)


def test_second_derivatives() -> None:
    x = normal(2, 3)

    def hessians(fun: Any) -> Any:
        return jit(hessian(lambda x: lax.reduce_sum(fun(x) ** 3, (0, 1))))(x)

    close(hessians(ops.softmax), hessians(plain.softmax), 1e-4)

    def of_derivative(fun: Any) -> Any:
        norm = lambda x: lax.reduce_sum(fun(x) ** 2, tuple(range(fun(x).ndim)))
        return jit(grad(lambda x: lax.reduce_sum(grad(norm)(x) ** 2, tuple(range(x.ndim)))))

    q = normal(1, 2, 1, 3)
    attention = of_derivative(lambda q: ops.flash_attention(q, q, q))(q)
    close(attention, of_derivative(lambda q: plain.attention(q, q, q))(q), 1e-4)


# Modules


def test_default_blocks_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_blocks, "default_backend", lambda: "gpu")
    q, x, labels = normal(1, 5, 2, 4), normal(7, 10), LABELS
    close(ops.flash_attention(q, q, q), plain.attention(q, q, q))
    close(ops.matmul(x, normal(10, 3)), x @ normal(10, 3))
    close(ops.rms_norm(x, np.ones(10, F32)), plain.rms_norm(x, np.ones(10, F32)))
    close(ops.cross_entropy(x, labels), plain.cross_entropy(x, labels))
    close(ops.cumsum(x), np.cumsum(x, 1))
    close(ops.linear_cross_entropy(x, normal(10, 8), labels % 8),
          plain.cross_entropy(x @ normal(10, 8), labels % 8))  # fmt: skip


def test_functions_are_loaded_when_they_are_used() -> None:
    code = """
import sys, primax_kernels
assert not [m for m in sys.modules if m.startswith("primax_kernels.ops")]
from primax_kernels import ops
assert "primax_kernels.ops._matmul" not in sys.modules and "matmul" in dir(ops)
ops.matmul
assert "primax_kernels.ops._matmul" in sys.modules
assert "primax_kernels.ops._attention" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'matmull'"):
        ops.matmull  # type: ignore[attr-defined]
    for name in ops._MODULES:
        assert ">>>" in getattr(ops, name).__doc__


def test_kernels_of_derivatives_are_checked_and_explained() -> None:
    q = normal(1, 6, 1, 4)
    loss = lambda q: lax.reduce_sum(ops.flash_attention(q, q, q, block=(4, 4)), (0, 1, 2, 3))
    names = {"flash_attention", "flash_attention_queries", "flash_attention_keys"}
    assert {kernel.name for kernel in explain_kernel(grad(loss), q).kernels} == names
    check = check_kernel(grad(loss), q)
    assert set(check.kernels) == names and not check.findings
    # The reverse derivative does not run in forward mode, which has a kernel of its own.
    forward = explain_kernel(lambda q: jvp(loss, (q,), (q,)), q)
    names = ["flash_attention", "flash_attention_jvp"]
    assert [kernel.name for kernel in forward.kernels] == names
