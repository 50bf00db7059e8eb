"""Test cases of the functions of the wheel, one line for each, with their formulas in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primax_core.extend import Operand, b1, bf16, c64, f16, f32, i32
from test_support import Case, case

Formula = Callable[..., Any]


# NumPy implementations


def erfc(x: Any) -> Any:
    """The complementary error function."""
    return np.vectorize(math.erfc, otypes=[np.float64])(np.asarray(x, np.float64))


def sigmoid(x: Any) -> Any:
    """The logistic function, accurate for arguments of both signs."""
    return np.where(x >= 0, 1 / (1 + np.exp(-abs(x))), np.exp(-abs(x)) / (1 + np.exp(-abs(x))))


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def _elu(x: Any, alpha: Any = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _tanh_gelu(x: Any) -> Any:
    return x * sigmoid(2 * np.sqrt(2 / np.longdouble(np.pi)) * (x + 0.044715 * x**3))


ACTIVATIONS: dict[str, Formula] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "elu": _elu,
    "celu": _elu,
    "selu": lambda x: 1.0507009873554804934 * _elu(x, 1.6732632423543772848),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "log_sigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "gelu": _tanh_gelu,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "soft_sign": lambda x: x / (1 + abs(x)),
    "tanh": np.tanh,
}
"""Functions of one array, with their formulas."""

WHOLE: tuple[str, ...] = ("sigmoid", "silu")
"""Activations that refuse integers."""


def _logsumexp(a: Any, axis: Any = None, b: Any = 1.0, where: Any = True, keepdims: bool = False):
    terms = np.where(where, b * np.exp(a), 0)
    return np.log(np.sum(terms, axis, keepdims=keepdims))


def _softmax(x: Any, axis: Any = -1, where: Any = True) -> Any:
    terms = np.where(where, np.exp(x), 0)
    total = np.sum(terms, axis, keepdims=True)
    return terms / np.where(total == 0, 1, total)


def _log_softmax(x: Any, axis: Any = -1, where: Any = True) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(_softmax(x, axis, where))


def _logmeanexp(x: Any, axis: Any = None, where: Any = True, keepdims: bool = False) -> Any:
    count = np.sum(np.broadcast_to(where, x.shape), axis, keepdims=keepdims)
    return _logsumexp(x, axis, 1.0, where, keepdims) - np.log(count)


def _standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5,
    where: Any = True, algorithm: str = "fast",
) -> Any:  # fmt: skip
    if mean is None:
        mean = np.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            variance = np.mean(x * x, axis, keepdims=True, where=where) - mean**2
        else:
            variance = np.mean((x - mean) ** 2, axis, keepdims=True, where=where)
    return (x - mean) / np.sqrt(variance + epsilon)


def _glu(x: Any, axis: int = -1) -> Any:
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


def _one_hot(x: Any, n: int, axis: int = -1, dtype: Any = None) -> Any:
    matches = (x[..., None] == np.arange(n)).astype(np.float64)
    return np.moveaxis(matches, -1, axis)


def attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: Any = None, return_residual: bool = False, implementation: Any = None,
) -> Any:  # fmt: skip
    """Attention, head by head and query by query."""
    if query.ndim == 3:
        out = attention(
            query[None], key[None], value[None], bias, mask, scale=scale, is_causal=is_causal,
            query_seq_lengths=query_seq_lengths, key_value_seq_lengths=key_value_seq_lengths,
            local_window_size=local_window_size, return_residual=return_residual,
        )  # fmt: skip
        return tuple(x[0] for x in out) if return_residual else out[0]
    (b, t, n, h), (_, s, groups, _) = query.shape, key.shape
    scale = 1 / np.sqrt(np.longdouble(h)) if scale is None else scale
    window = local_window_size
    left, right = (window, window) if isinstance(window, int) else window or (s + t, s + t)
    out, residual = np.zeros_like(query), np.zeros((b, t, n), query.dtype)
    full = (b, n, t, s)
    bias = np.broadcast_to(0.0 if bias is None else bias, full)
    mask = np.broadcast_to(True if mask is None else mask, full)
    for i, j, row in np.ndindex(b, n, t):
        group = j * groups // n
        logits = scale * (key[i, :, group] @ query[i, row, j]) + bias[i, j, row]
        place = np.arange(s)
        seen = mask[i, j, row] & (place >= row - left) & (place <= row + right)
        if is_causal:
            seen = seen & (place <= row)
        if key_value_seq_lengths is not None:
            seen = seen & (place < key_value_seq_lengths[i])
        unused = query_seq_lengths is not None and row >= query_seq_lengths[i]
        if unused:
            seen = seen & False
        logits = np.where(seen, logits, -0.7 * float(np.finfo(np.float32).max))
        top = logits.max(initial=-np.inf)
        terms = np.exp(logits - top)
        residual[i, row, j] = top + np.log(terms.sum())
        if not unused:
            out[i, row, j] = (terms / terms.sum()) @ value[i, :, group]
    return (out, residual) if return_residual else out


def fixed(*values: float, shape: tuple[int, ...] | None = None) -> Operand:
    """An operand with fixed values."""
    x = np.array(values)
    x = x if shape is None else x.reshape(shape)
    return f32(*x.shape, make=lambda rng, s: x)


MASK = np.array([[True, False, True], [False, True, True]])
INF = np.inf

CASES = [
    *(case(name, f32(3, 2, low=-4, high=4)).set(expected=f) for name, f in ACTIVATIONS.items()),
    *(case(name, f32()).set(expected=f, order=0) for name, f in ACTIVATIONS.items()),
    *(case(name, bf16(5)).set(expected=f, order=0) for name, f in ACTIVATIONS.items()),
    *(case(name, f16(5)).set(expected=f, order=0) for name, f in ACTIVATIONS.items()),
    case("elu", f32(3, 2), f32(low=0.5, high=2)).set(expected=_elu),
    case("elu", f32(2), f32(3, 1, low=0.5, high=2)).set(expected=_elu),
    case("celu", f32(3, 2), f32(2, low=0.5, high=2)).set(
        expected=lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0) / a))
    ),
    case("leaky_relu", f32(3, 2), f32(low=0.1, high=0.5)).set(
        expected=lambda x, a: np.where(x >= 0, x, a * x)
    ),
    case("squareplus", f32(3, 2), f32(2, low=0.5, high=2)).set(
        expected=lambda x, b: (x + np.sqrt(x * x + b)) / 2
    ),
    case("gelu", f32(3, 2, low=-4, high=4), approximate=False).set(
        expected=lambda x, approximate: x * erfc(-x / np.sqrt(2)) / 2
    ),
    case("log1mexp", f32(3, 2, low=0.1, high=3)).set(expected=lambda x: np.log(-np.expm1(-x))),
    case("identity", f32(3, 2)).set(expected=lambda x: x),
    case("glu", f32(3, 4)).set(expected=_glu),
    case("glu", f32(4, 3), axis=0).set(expected=_glu),
    case("sigmoid", c64(3)).set(expected=lambda x: 1 / (1 + np.exp(-x))),
    case("silu", c64(3)).set(expected=lambda x: x / (1 + np.exp(-x))),
    # Log-sum-exp
    case("logsumexp", f32(2, 3)).set(expected=_logsumexp),
    case("logsumexp", f32(2, 3), axis=1).set(expected=_logsumexp),
    case("logsumexp", f32(2, 3), axis=(0, -1), keepdims=True).set(expected=_logsumexp),
    case("logsumexp", f32(2, 3), axis=0, where=MASK).set(expected=_logsumexp),
    case("logsumexp", f32(2, 3), 1, f32(2, 3, low=0.1, high=2)).set(expected=_logsumexp),
    case("logsumexp", f32(3), 0, f32(2, 1, low=0.1, high=2)).set(expected=_logsumexp),
    case("logsumexp", f32(2, 3), 1, fixed(-1, -2, -3), return_sign=True).set(
        expected=lambda a, axis, b, return_sign: (_logsumexp(a, axis, -b), -np.ones(len(a)))
    ),
    case("logsumexp", f32(2, 3), axis=1, keepdims=True, return_sign=True).set(
        expected=lambda a, axis, keepdims, return_sign: (
            _logsumexp(a, axis, keepdims=keepdims), np.ones((len(a), 1))
        )
    ),
    case("logsumexp", c64(3)).set(expected=_logsumexp),
    case("logsumexp", bf16(300)).set(expected=_logsumexp, order=0),
    case("logsumexp", i32(3)).set(expected=_logsumexp),
    case("logsumexp", f32(0)).set(expected=lambda a: np.float64(-INF), order=0),
    case("logsumexp", fixed(-INF, -INF)).set(expected=lambda a: np.float64(-INF), order=0),
    case("logsumexp", fixed(INF, 1.0)).set(expected=lambda a: np.float64(INF), order=0),
    case("logsumexp", fixed(1000.0, 999.0)).set(expected=lambda a: 1000 + np.log1p(np.exp(-1.0))),
    case("logmeanexp", f32(2, 3)).set(expected=_logmeanexp),
    case("logmeanexp", f32(2, 3), axis=1, keepdims=True).set(expected=_logmeanexp),
    case("logmeanexp", f32(2, 3), axis=0, where=MASK).set(expected=_logmeanexp),
    case("logmeanexp", f32(2, 3), axis=0, where=MASK[:1], keepdims=True).set(
        expected=lambda x, axis, where, keepdims: np.where(where, _logmeanexp(x, 0), np.nan),
        order=0,
    ),
    # Softmax
    *(
        c.set(expected=f)
        for name, f in (("softmax", _softmax), ("log_softmax", _log_softmax))
        for c in (
            case(name, f32(2, 3)),
            case(name, f32(2, 3), axis=0),
            case(name, f32(2, 3), axis=(0, 1)),
            case(name, f32(2, 3), axis=None),
            case(name, f32(2, 3), where=MASK).set(order=2 if name == "softmax" else 0),
            case(name, f32(2, 3), where=MASK[:, :1]).set(order=2 if name == "softmax" else 0),
            case(name, f32(2, 3), -1, b1(2, 3)).set(order=0),
            case(name, f32(2, 0)).set(order=0),
            case(name, bf16(2, 30)).set(order=0),
            case(name, f16(2, 30)).set(order=0),
            case(name, i32(2, 3)),
            case(name, c64(2, 3)).set(tolerance=1e-5, derivative_differs="the reference refuses"),
            case(name, f32(), axis=None),
        )
    ),
    case("softmax", fixed(1000.0, 999.0, -1000.0)).set(expected=lambda x: _softmax(x - 1000)),
    case("log_softmax", fixed(1000.0, 999.0, -1000.0)).set(
        expected=lambda x: x - 1000 - np.log1p(np.exp(-1.0))
    ),
    # Standardization
    *(
        c.set(expected=_standardize, tolerance=2e-5)
        for algorithm in ("fast", "stable")
        for c in (
            case("standardize", f32(2, 5), algorithm=algorithm),
            case("standardize", f32(3, 2), axis=0, epsilon=0.1, algorithm=algorithm),
            case("standardize", f32(2, 3), axis=(0, 1), algorithm=algorithm),
            case("standardize", f32(2, 3), axis=None, algorithm=algorithm),
            case("standardize", f32(2, 3), where=MASK, axis=(0, 1), algorithm=algorithm),
            case("standardize", f32(2, 3), -1, f32(2, 1, low=-0.1, high=0.1), algorithm=algorithm),
            case(
                "standardize", f32(2, 3), -1, f32(2, 1), f32(2, 1, low=1, high=2),
                algorithm=algorithm,
            ),
            case("standardize", i32(2, 3), algorithm=algorithm),
        )
    ),
    case("standardize", f32(2, 5, low=1e4, high=1e4 + 9), algorithm="stable").set(
        expected=_standardize, tolerance=2e-3, order=0
    ),
    case("standardize", f16(2, 5, low=300, high=400)).set(
        expected=_standardize, order=0, differs="squares of narrow floats do not overflow",
        tolerance=5e-3,
    ),
    # One-hot
    case("one_hot", i32(4, low=-1, high=3), 3).set(expected=_one_hot),
    case("one_hot", i32(2, 3, low=0, high=4), 4, axis=0).set(expected=_one_hot),
    case("one_hot", i32(2, 3, low=0, high=4), 4, axis=-2, dtype=np.int32).set(expected=_one_hot),
    case("one_hot", np.uint8([0, 255]), 300).set(
        expected=_one_hot, batched=False, differs="the reference's positions wrap at 256"
    ),
    case("one_hot", np.int8([0, -1, 127]), 300).set(
        expected=_one_hot, batched=False, differs="the reference's positions wrap at 128"
    ),
]  # fmt: skip

_RESIDUAL = "the reference's residuals are constants"
Q, K, GROUPED = f32(2, 3, 2, 4), f32(2, 5, 2, 4), f32(2, 3, 4, 4)
SQUARE = f32(1, 4, 2, 3)
LENGTHS = np.array([2, 3], np.int32)

ATTENTION = [
    c.set(expected=attention, tolerance=c.tolerance or 2e-5)
    for c in (
        case("dot_product_attention", Q, K, K),
        case("dot_product_attention", f32(3, 2, 4), f32(5, 2, 4), f32(5, 2, 4)),
        case("dot_product_attention", GROUPED, K, K),
        case("dot_product_attention", GROUPED, f32(2, 5, 1, 4), f32(2, 5, 1, 4)).set(order=1),
        case("dot_product_attention", Q, K, K, f32(2, 2, 3, 5)),
        case("dot_product_attention", Q, K, K, f32(1, 1, 5)).set(order=1),
        case("dot_product_attention", GROUPED, K, K, f32(1, 4, 3, 1)).set(order=1),
        case("dot_product_attention", Q, K, K, None, b1(2, 1, 3, 5)).set(order=1),
        case("dot_product_attention", GROUPED, K, K, f32(4, 1, 5), b1(1, 4, 3, 5)).set(order=1),
        case("dot_product_attention", f32(3, 2, 4), f32(5, 2, 4), f32(5, 2, 4), f32(2, 3, 5),
             b1(1, 3, 5)).set(order=1),
        case("dot_product_attention", SQUARE, SQUARE, SQUARE, is_causal=True),
        case("dot_product_attention", Q, K, K, is_causal=True).set(order=1),
        case("dot_product_attention", SQUARE, SQUARE, SQUARE, local_window_size=1).set(order=1),
        case("dot_product_attention", Q, K, K, local_window_size=(2, 1)).set(order=1),
        case("dot_product_attention", SQUARE, SQUARE, SQUARE, local_window_size=(1, 2),
             is_causal=True).set(order=1),
        case("dot_product_attention", SQUARE, SQUARE, SQUARE, local_window_size=0).set(order=1),
        case("dot_product_attention", Q, K, K, query_seq_lengths=LENGTHS).set(batched=False),
        case("dot_product_attention", Q, K, K, key_value_seq_lengths=LENGTHS).set(batched=False),
        case("dot_product_attention", GROUPED, K, K, query_seq_lengths=LENGTHS, is_causal=True,
             key_value_seq_lengths=LENGTHS[::-1].copy()).set(order=1),
        case("dot_product_attention", Q, K, K, scale=0.3, implementation="xla").set(order=1),
        case("dot_product_attention", Q, K, K, scale=2).set(order=1),
        case("dot_product_attention", Q, K, K, return_residual=True).set(
            derivative_differs=_RESIDUAL),
        case("dot_product_attention", f32(3, 4, 4), f32(5, 2, 4), f32(5, 2, 4),
             return_residual=True).set(order=1, derivative_differs=_RESIDUAL),
        case("dot_product_attention", bf16(2, 3, 2, 4), bf16(2, 5, 2, 4), bf16(2, 5, 2, 4)).set(
            order=0, tolerance=3e-2),
        case("dot_product_attention", f16(2, 3, 2, 4), f16(2, 5, 2, 4), f16(2, 5, 2, 4)).set(
            order=0, tolerance=5e-3),
        case("dot_product_attention", Q, K, K, i32(1, 2, 3, 5)).set(order=0),
        case("dot_product_attention", Q, K, K, bf16(1, 2, 3, 5)).set(order=0),
        case("dot_product_attention", f32(1, 1, 1, 2), f32(1, 3, 1, 2), f32(1, 3, 1, 2), None,
             np.zeros((1, 1, 1, 3), bool)).set(order=1),
        case("dot_product_attention", f32(0, 3, 2, 4), f32(0, 5, 2, 4), f32(0, 5, 2, 4)).set(
            order=0),
        case("dot_product_attention", f32(1, 0, 2, 4), f32(1, 5, 2, 4), f32(1, 5, 2, 4)).set(
            order=0),
    )
]  # fmt: skip


def all_cases() -> list[Case]:
    """Every case of every function."""
    return [*CASES, *ATTENTION]
