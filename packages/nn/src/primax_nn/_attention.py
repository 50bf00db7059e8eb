"""Attention: averages of values by the similarity of keys with queries."""

from __future__ import annotations

import math
import numbers
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import default_backend, lax
from primax_core.extend import FastPath, dtypes, typeof
from primax_numpy.declaring import compiled

# What hides a key: far below all similarities, but finite, so that a query to which all keys are
# hidden attends to all of them alike and gives no NaN.
_HIDDEN: Final = -0.7

_STATIC: Final = ("given", "scale", "causal", "window", "residual")


@compiled(*_STATIC, name="dot_product_attention")
def _attention(query, key, value, *others, given, scale, causal, window, residual):
    """Attention over ``[batch, position, head, feature]``; ``others`` are the arrays named by
    ``given``."""
    more = dict(zip(given, others))
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
    if not sources:  # nothing to attend to: zeros
        total = lax.full_like(total, 1)
    # Divided after the product: there are fewer features than keys.
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
    """Products of queries with keys, ``[batch, head, target, source]``."""
    batch, targets, heads, features = typeof(query).shape
    _, sources, groups, _ = typeof(key).shape
    # Two products of matrices, stacked by batch and group, with the queries of all heads that share
    # a key as rows: faster than products over axes where they lie.
    times = heads // groups
    rows = lax.reshape(query, (batch, targets, groups, times, features))
    rows = lax.transpose(rows, (0, 2, 3, 1, 4))
    rows = lax.reshape(rows, (batch, groups, times * targets, features))
    stack = lax.transpose(key, (0, 2, 1, 3))
    out = lax.dot_general(rows, stack, (((3,), (3,)), _STACKS), preferred_element_type=wide)
    return lax.reshape(out, (batch, heads, targets, sources))


def _mixed(terms: Any, value: Any, wide: Any) -> Any:
    """Sums of values with weights, ``[batch, head, target, feature]``."""
    batch, heads, targets, sources = typeof(terms).shape
    groups, features = typeof(value).shape[2:]
    rows = lax.reshape(terms, (batch, groups, heads // groups * targets, sources))
    stack = lax.transpose(value, (0, 2, 1, 3))
    out = lax.dot_general(rows, stack, (((3,), (2,)), _STACKS), preferred_element_type=wide)
    return lax.reshape(out, (batch, heads, targets, features))


def _four_axes(x: Any) -> Any:
    missing = 4 - typeof(x).ndim
    return lax.expand_dims(x, tuple(range(missing))) if missing else x


def _from(lengths: Any, n: int) -> Any:
    """Whether positions lie beyond a length, ``bool[batch, n]``."""
    shape = (*typeof(lengths).shape, n)
    places = lax.broadcasted_iota(np.int32, shape, 1)
    return places >= lax.broadcast_in_dim(lax.convert_element_type(lengths, np.int32), shape, (0,))


def _hidden(more: Any, targets: int, sources: int, causal: bool, window: Any) -> Any:
    """Which keys a query does not see, with axes of size 1 where it does not matter."""
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


_roads: Final = FastPath(_attention)


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
    is_causal: bool = False, query_seq_lengths: Any = None, key_value_seq_lengths: Any = None,
    local_window_size: Any = None, implementation: str | None = None,
    return_residual: bool = False,
) -> Any:  # fmt: skip
    """Scaled dot-product attention (Vaswani et al., 2017), of several heads.

    For each query the values are averaged with the weights
    ``softmax(scale * key @ query + bias)``. Weights are computed in ``float32`` at least.

    Args:
      query: ``float[batch, target, head, feature]``, or without the batch, as the next two.
      key: ``float[batch, source, group, feature]``; the number of heads is a multiple of that of
        groups, and as many neighbouring heads share a group (Ainslie et al., 2023).
      value: of the shape of ``key``.
      bias: what is added to the products, broadcast to ``[batch, head, target, source]``.
      mask: booleans that broadcast to the same shape; where they are false the key is hidden. A
        query to which all are hidden gives the plain mean of the values.
      scale: the factor of the products, ``1 / sqrt(feature)`` by default.
      is_causal: hide keys that come after the query.
      query_seq_lengths: ``int32[batch]``; the results of queries beyond them are 0.
      key_value_seq_lengths: ``int32[batch]``; keys beyond them are hidden.
      local_window_size: how many keys on either side a query sees, beside that at its position; or
        a pair, how many before and after.
      implementation: ``"xla"``, which is what ``None`` stands for. ``"cudnn"`` is not built in.
      return_residual: give a pair, the results and ``float[batch, target, head]``, the logarithms
        of the sums of exponentials.

    Returns:
      ``float[batch, target, head, feature]`` in the dtype of the operands; or the pair.

    Raises:
      ValueError: if shapes, dtypes or the implementation do not fit.
      TypeError: if the operands are not of floats of 16 bits or more.
      RuntimeError: for ``"cudnn"``.

    >>> x = np.ones((2, 3, 4), np.float32)  # [position, head, feature]
    >>> dot_product_attention(x, x, 2 * x, is_causal=True).shape
    (2, 3, 4)
    """
    lengths = query_seq_lengths is key_value_seq_lengths is None
    key_of_road = None
    if bias is mask is scale is local_window_size is implementation is None and lengths:
        key_of_road = (bool(is_causal), bool(return_residual))
        if not return_residual:
            found: Any = _roads.lookup(key_of_road, query, key, value)
            if found is not None:
                return found
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
        "given": tuple(others), "scale": scale, "causal": bool(is_causal),
        "window": _checked_window(local_window_size), "residual": bool(return_residual),
    }  # fmt: skip
    operands = (*arrays.values(), *others.values())
    if key_of_road is not None and rank == 4 and not return_residual:
        return _roads.call(key_of_road, operands, **static)
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
    """Refuse operands whose dtypes or shapes do not fit together."""
    avals = {"query": query, "key": key, "value": value}
    for name, x in avals.items():
        if not dtypes.issubdtype(x.dtype, np.floating) or x.dtype.itemsize < 2:
            raise TypeError(
                f"dot_product_attention: {name} must be of floats of 16 bits or more, got dtype "
                f"{x.dtype.name}; convert it with astype"
            )
        if x.dtype != key.dtype:
            raise ValueError(
                f"dot_product_attention: {name} dtype should be {key.dtype.name}, as that of key, "
                f"but got {x.dtype.name}"
            )
        if x.ndim not in (3, 4) or x.ndim != query.ndim:
            raise ValueError(
                f"dot_product_attention: query, key and value must all have the axes [batch, "
                f"position, head, feature], or all be without the batch; got shapes "
                f"{query.shape}, {key.shape} and {value.shape}"
            )
    if value.shape != key.shape:
        raise ValueError(
            f"dot_product_attention: value shape should be that of key, {key.shape}, but got "
            f"{value.shape}"
        )
    wanted = (*key.shape[:-3], query.shape[-3], query.shape[-2], key.shape[-1])
    if query.shape != wanted:
        raise ValueError(
            f"dot_product_attention: query shape should be {wanted}, with the batch and the "
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
        found = pnp.asarray(scale)
    except (TypeError, ValueError):
        found = None
    if found is None or typeof(found).ndim:
        raise ValueError(f"dot_product_attention: scale must be a number, got {scale!r}")
    return found


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
