"""Scaled dot-product attention."""

from __future__ import annotations

import math
import numbers
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import default_backend, lax
from primax_core.extend import FastPath, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import compiled

# Logit of a masked key, as a fraction of the largest float: finite, so that a query whose keys are
# all masked attends to all of them equally and gives no NaN.
_HIDDEN: Final = -0.7

_STATIC: Final = ("names", "scale", "causal", "window", "residual")


@compiled(*_STATIC, name="dot_product_attention")
def _attention(query, key, value, *others, names, scale, causal, window, residual):
    """Attention over ``[batch, position, head, feature]``; ``others`` are the arrays named by
    ``names``."""
    more = dict(zip(names, others))
    shape = typeof(query).shape
    targets, sources = shape[1], typeof(key).shape[1]
    dtype = typeof(query).dtype
    wide = dtypes.f64 if dtype == dtypes.f64 else dtypes.f32
    logits = _similarities(query, key, wide)
    if scale is not None:
        logits = logits * scale
    else:
        logits = logits * lax.convert_element_type(more["scale"], wide)
    if "bias" in more:
        logits = logits + lax.convert_element_type(_four_axes(more["bias"]), wide)
    hidden = _hidden(more, targets, sources, causal, window)
    if hidden is not None:
        least = np.asarray(_HIDDEN * float(np.finfo(wide).max), wide)[()]
        hidden = lax.broadcast_in_dim(hidden, typeof(logits).shape, (0, 1, 2, 3))
        logits = lax.select(hidden, lax.full_like(logits, least), logits)
    top = lax.stop_gradient(lax.reduce_max(lax.stop_gradient(logits), (3,)))
    terms = lax.exp(logits - lax.expand_dims(top, (3,)))
    total = lax.reduce_sum(terms, (3,))
    if not sources:  # no keys: the result is zero
        total = lax.full_like(total, 1)
    # Normalized after the product, because there are fewer features than keys.
    mixed = _mixed(lax.convert_element_type(terms, dtype), value, wide)
    mixed = mixed / lax.expand_dims(total, (3,))
    out = lax.transpose(lax.convert_element_type(mixed, dtype), (0, 2, 1, 3))
    if "query_lengths" in more:
        unused = _from(more["query_lengths"], targets)
        unused = lax.broadcast_in_dim(unused, shape, (0, 1))
        out = lax.select(unused, lax.full_like(out, 0), out)
    if not residual:
        return out
    logarithm = lax.transpose(top + lax.log(total), (0, 2, 1))
    return out, lax.convert_element_type(logarithm, dtype)


_STACKS: Final = ((0, 1), (0, 1))


def _similarities(query: Any, key: Any, wide: Any) -> Any:
    """Dot products of queries and keys, ``[batch, head, target, source]``."""
    batch, targets, heads, features = typeof(query).shape
    _, sources, groups, _ = typeof(key).shape
    # Matrix products batched over batch and group, with the queries of all heads of a group as
    # rows: faster than a contraction without transposes.
    times = heads // groups
    rows = lax.reshape(query, (batch, targets, groups, times, features))
    rows = lax.transpose(rows, (0, 2, 3, 1, 4))
    rows = lax.reshape(rows, (batch, groups, times * targets, features))
    stack = lax.transpose(key, (0, 2, 1, 3))
    out = lax.dot_general(rows, stack, (((3,), (3,)), _STACKS), preferred_element_type=wide)
    return _regrouped(out, groups, times, targets, (batch, heads, targets, sources))


def _mixed(terms: Any, value: Any, wide: Any) -> Any:
    """Weighted sums of values, ``[batch, head, target, feature]``."""
    batch, heads, targets, sources = typeof(terms).shape
    groups, features = typeof(value).shape[2:]
    times = heads // groups
    rows = _regrouped(terms, groups, times, targets, (batch, groups, times * targets, sources))
    stack = lax.transpose(value, (0, 2, 1, 3))
    out = lax.dot_general(rows, stack, (((3,), (2,)), _STACKS), preferred_element_type=wide)
    return _regrouped(out, groups, times, targets, (batch, heads, targets, features))


def _regrouped(x: Any, groups: int, times: int, targets: int, shape: tuple[int, ...]) -> Any:
    """Reshape between heads with targets and groups with rows, in two steps: heads that are divided
    over devices are split or joined without the targets."""
    if times > 1:
        x = lax.reshape(x, (shape[0], groups, times, targets, shape[3]))
    return lax.reshape(x, shape)


def _four_axes(x: Any) -> Any:
    missing = 4 - typeof(x).ndim
    return lax.expand_dims(x, tuple(range(missing))) if missing else x


def _from(lengths: Any, n: int) -> Any:
    """Mask of the positions beyond a length, ``bool[batch, n]``."""
    shape = (*typeof(lengths).shape, n)
    places = lax.broadcasted_iota(np.int32, shape, 1)
    return places >= lax.broadcast_in_dim(lax.convert_element_type(lengths, np.int32), shape, (0,))


def _hidden(more: Any, targets: int, sources: int, causal: bool, window: Any) -> Any:
    """Mask of the keys hidden from each query, with broadcastable axes of size 1."""
    parts = []
    if "mask" in more:
        parts.append(lax.bitwise_not(_four_axes(more["mask"])))
    left, right = (None, None) if window is None else window
    if causal:
        right = 0
    if right is not None:
        row, column = (lax.broadcasted_iota(np.int32, (1, 1, targets, sources), i) for i in (2, 3))
    if right is not None:
        parts.append(column > (row + right if right else row))
    if left is not None:
        parts.append(column < (row - left if left else row))
    if "query_lengths" in more:
        parts.append(lax.expand_dims(_from(more["query_lengths"], targets), (1, 3)))
    if "key_lengths" in more:
        parts.append(lax.expand_dims(_from(more["key_lengths"], sources), (1, 2)))
    if not parts:
        return None
    hidden = parts[0]
    for part in parts[1:]:
        hidden = pnp.logical_or(hidden, part)
    return hidden


_path: Final = FastPath(_attention)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Scaled dot-product attention (Vaswani et al., 2017), with several heads.

    The values are averaged for each query with the weights ``softmax(scale * key @ query +
    bias)``. Weights are computed in ``float32`` or wider.

    Args:
      query: ``float[batch, target, head, feature]``; the batch axis of all three operands may be
        omitted.
      key: ``float[batch, source, group, feature]``; the number of heads is a multiple of the
        number of groups, and consecutive heads share a group (grouped-query attention, Ainslie et
        al., 2023).
      value: an array of the shape of ``key``.
      bias: an additive bias of the logits, broadcast to ``[batch, head, target, source]``.
      mask: booleans that broadcast to the same shape; false masks the key. A query whose keys are
        all masked gives the mean of the values.
      scale: the factor of the dot products, ``1 / sqrt(feature)`` by default.
      is_causal: mask keys after the position of the query.
      query_seq_lengths: ``int32[batch]``; results of queries beyond these lengths are 0.
      key_value_seq_lengths: ``int32[batch]``; keys beyond these lengths are masked.
      local_window_size: the number of visible keys on either side of the position of the query; or
        a pair of numbers, before and after.
      implementation: ``"xla"`` or ``None``, which are equivalent. ``"cudnn"`` is unavailable.
      return_residual: return a pair: the results, and the log-sum-exp of the logits,
        ``float[batch, target, head]``.

    Returns:
      ``float[batch, target, head, feature]`` in the dtype of the operands; or the pair.

    Raises:
      ValueError: if shapes or dtypes do not match, or the implementation is unknown.
      TypeError: if the operands are not floats of 16 bits or more.
      RuntimeError: for ``"cudnn"``.

    >>> x = np.ones((2, 3, 4), np.float32)  # [position, head, feature]
    >>> dot_product_attention(x, x, 2 * x, is_causal=True).shape
    (2, 3, 4)
    """
    lengths = query_seq_lengths is key_value_seq_lengths is None
    cache_key = None
    if bias is mask is scale is local_window_size is implementation is None and lengths:
        cache_key = (bool(is_causal), bool(return_residual))
        if not return_residual:
            fast: Any = _path.lookup(cache_key, query, key, value)
            if fast is not None:
                return fast
    _check_implementation(implementation)
    arrays = {"query": query, "key": key, "value": value}
    arrays = {name: pnp.asarray(x) for name, x in arrays.items()}
    rank = typeof(arrays["query"]).ndim
    _check_operands(**{name: typeof(x) for name, x in arrays.items()})
    if rank == 3:
        arrays = {name: lax.expand_dims(x, (0,)) for name, x in arrays.items()}
    batch, targets, heads, features = typeof(arrays["query"]).shape
    sources = typeof(arrays["key"]).shape[1]
    others: dict[str, Any] = {}
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None:
            others[name] = _checked_like_logits(name, x, (batch, heads, targets, sources))
    for name, public, x in (
        ("query_lengths", "query_seq_lengths", query_seq_lengths),
        ("key_lengths", "key_value_seq_lengths", key_value_seq_lengths),
    ):
        if x is not None:
            others[name] = _checked_lengths(public, x, batch)
    if scale is None:
        scale = 1.0 / math.sqrt(features) if features else 1.0
    elif isinstance(scale, numbers.Real):
        scale = float(scale)
    else:
        others["scale"], scale = _checked_scale(scale), None
    static = {
        "names": tuple(others), "scale": scale, "causal": bool(is_causal),
        "window": _checked_window(local_window_size), "residual": bool(return_residual),
    }  # fmt: skip
    operands = (*arrays.values(), *others.values())
    if cache_key is not None and rank == 4 and not return_residual:
        return _path.call(cache_key, operands, **static)
    out = _attention(*operands, **static)
    if rank == 4:
        return out
    return tuple(_without_batch(x) for x in out) if return_residual else _without_batch(out)


def _without_batch(x: Any) -> Any:
    return lax.squeeze(x, (0,))


def _check_implementation(implementation: Any) -> None:
    if implementation in (None, "xla"):
        return
    if implementation != "cudnn":
        raise ValueError(
            f"dot_product_attention: implementation must be None, 'xla' or 'cudnn', got "
            f"{implementation!r}"
        )
    where = "" if default_backend() in ("gpu", "cuda") else " is not detected, and"
    raise RuntimeError(
        f"dot_product_attention: cuDNN{where} has no kernel here; use implementation='xla'"
    )


def _check_operands(query: Any, key: Any, value: Any) -> None:
    """Check that the dtypes and shapes of the operands match."""
    avals = {"query": query, "key": key, "value": value}
    for name, x in avals.items():
        if not dtypes.issubdtype(x.dtype, np.floating) or x.dtype.itemsize < 2:
            raise TypeError(
                f"dot_product_attention: {name} must be a float of 16 bits or more, got dtype "
                f"{x.dtype.name}; convert it with astype"
            )
        if x.dtype != key.dtype:
            raise ValueError(
                f"dot_product_attention: {name} dtype should be {key.dtype.name}, like key, "
                f"but got {x.dtype.name}"
            )
        if x.ndim not in (3, 4) or x.ndim != query.ndim:
            raise ValueError(
                f"dot_product_attention: query, key and value must all have the axes [batch, "
                f"position, head, feature], or all omit the batch; got shapes "
                f"{query.shape}, {key.shape} and {value.shape}"
            )
    if value.shape != key.shape:
        raise ValueError(
            f"dot_product_attention: value shape should be that of key, {key.shape}, but got "
            f"{value.shape}"
        )
    expected = (*key.shape[:-3], query.shape[-3], query.shape[-2], key.shape[-1])
    if query.shape != expected:
        raise ValueError(
            f"dot_product_attention: query shape should be {expected}, with the batch and the "
            f"features of key, but got {query.shape}"
        )
    heads, groups = query.shape[-2], key.shape[-2]
    if not groups or heads % groups:
        raise ValueError(
            "dot_product_attention: The number of query heads must be a multiple of key/value "
            f"heads, but got {heads} vs {groups}"
        )


def _checked_like_logits(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    x = pnp.asarray(x)
    aval = typeof(x)
    if name == "mask" and aval.dtype != np.bool_:
        raise ValueError(
            f"dot_product_attention: mask dtype should be bool, but got {aval.dtype.name}; write "
            "mask != 0"
        )
    tail = shape[len(shape) - aval.ndim :] if aval.ndim <= len(shape) else None
    if tail is None or any(m not in (1, n) for m, n in zip(aval.shape, tail)):
        raise ValueError(
            f"dot_product_attention: {name} of shape {aval.shape} does not broadcast to [batch, "
            f"head, target, source], here {shape}"
        )
    return x


def _checked_lengths(name: str, x: Any, batch: int) -> Any:
    x = pnp.asarray(x)
    aval = typeof(x)
    if aval.dtype not in (np.int32, np.int64):
        raise ValueError(
            f"dot_product_attention: {name} dtype should be int32, but got {aval.dtype.name}"
        )
    if aval.shape != (batch,):
        raise ValueError(
            f"dot_product_attention: {name} shape should be ({batch},), one length for each "
            f"element of the batch, but got {aval.shape}"
        )
    return x


def _checked_scale(scale: Any) -> Any:
    try:
        array = pnp.asarray(scale)
    except (TypeError, ValueError):
        array = None
    if array is None or typeof(array).ndim:
        raise ValueError(f"dot_product_attention: scale must be a number, got {scale!r}")
    return array


def _checked_window(window: Any) -> tuple[int, int] | None:
    if window is None:
        return None
    pair = window if isinstance(window, (tuple, list)) else (window, window)
    if len(pair) != 2 or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in pair):
        raise ValueError(
            "dot_product_attention: local_window_size must be a nonnegative integer or a pair of "
            f"them, got {window!r}"
        )
    return int(pair[0]), int(pair[1])
