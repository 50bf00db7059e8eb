"""Samplers of distributions: keys first, then parameters, then shape and dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes, typeof
from primax_numpy import random
from primax_numpy.declaring import check_arrays, compiled

from .._elementary import choose
from .._functions import floats

Sampler = Callable[..., Any]


def from_quantiles(ppf: Callable[..., Any], isf: Callable[..., Any]) -> Sampler:
    """Samples by the quantile function at uniform numbers.

    A sign is drawn as well, so that both tails are sampled to the smallest probability.
    """

    def sample(key: Any, shape: tuple[int, ...], dtype: Any, *shapes: Any) -> Any:
        first, second = random.split(key)
        tiny = float(np.finfo(dtype).tiny)
        half = 0.5 * random.uniform(first, shape, dtype, minval=tiny)
        upper = random.bernoulli(second, 0.5, shape)
        return choose(upper, isf(half, *shapes), ppf(half, *shapes))

    return sample


def from_integer_quantiles(ppf: Callable[..., Any]) -> Sampler:
    """Samples of a discrete distribution by the quantile function at uniform numbers."""

    def sample(key: Any, shape: tuple[int, ...], dtype: Any, *shapes: Any) -> Any:
        tiny = float(np.finfo(dtype).tiny)
        return ppf(random.uniform(key, shape, dtype, minval=tiny), *shapes)

    return sample


def result_type(name: str, parameters: Sequence[Any], dtype: Any) -> Any:
    """The dtype of samples: the argument, otherwise that of the parameters.

    Raises:
      ValueError: if the dtype is not of real floats.
    """
    if dtype is None:
        strong = [p for p in parameters if not typeof(p).weak_type]
        if not strong or typeof(strong[0]).dtype.kind in "biu":
            dtype = float
        else:
            dtype = typeof(floats(name, *strong)[0]).dtype
    dtype = dtypes.canonicalize_user_dtype(dtype, f"{name}.rvs")
    if not dtypes.issubdtype(dtype, np.floating):
        raise ValueError(
            f"{name}.rvs: dtype={dtype} is not a floating-point dtype: pass a float one."
        )
    return dtype


def joint_shape(name: str, shape: Any, parameters: Sequence[Any]) -> tuple[int, ...]:
    """The shape of samples: the argument, otherwise that of the parameters.

    Raises:
      ValueError: if parameters do not broadcast to the shape.
    """
    own = lax.broadcast_shapes(*[typeof(p).shape for p in parameters]) if parameters else ()
    if shape is None:
        return tuple(own)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    padded = (1,) * (len(shape) - len(own)) + tuple(own)
    if len(padded) != len(shape) or any(
        a not in (1, b) for a, b in zip(padded, shape, strict=True)
    ):
        raise ValueError(
            f"{name}.rvs: parameters of shape {tuple(own)} do not broadcast to shape={shape}."
        )
    return shape


def sampler(of: Any, sample: Sampler, last: Sequence[tuple[str, Any]], whole: bool = False) -> Any:
    """The public function ``rvs`` of a distribution.

    Args:
      last: the parameters after those of the distribution, ``loc`` and perhaps ``scale``.
      whole: True for samples that are whole numbers.
    """

    @compiled("shape", "dtype", name="rvs")
    def draw(key, *parameters, shape, dtype):
        wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
        values = [
            lax.broadcast_in_dim(
                lax.convert_element_type(p, wide),
                shape,
                tuple(range(len(shape) - len(typeof(p).shape), len(shape))),
            )
            for p in parameters
        ]
        shapes, affine = values[: len(of.shapes)], values[len(of.shapes) :]
        out = sample(key, shape, wide, *shapes)
        if len(affine) == 2:
            out = out * affine[1]
        out = out + affine[0]
        accepted = affine[-1] == affine[-1] if len(affine) == 1 else affine[1] > 0
        for domain, value in zip(of.shapes.values(), shapes, strict=True):
            accepted = accepted & domain.contains(value)
        if of.valid is not None:
            accepted = accepted & of.valid(*shapes)
        return lax.convert_element_type(choose(accepted, out, np.nan), dtype)

    kind = Parameter.POSITIONAL_OR_KEYWORD
    operand = partial(Parameter, kind=kind, annotation="ArrayLike")
    option = partial(Parameter, kind=Parameter.KEYWORD_ONLY, default=None)
    signature = Signature(
        [
            *[operand(n) for n in ("key", *of.shapes)],
            *[operand(n, default=v) for n, v in last],
            option("shape", annotation="ShapeLike | None"),
            option("dtype", annotation="DTypeLike | None"),
        ],
        return_annotation="Array",
    )

    def rvs(*args: Any, **named: Any) -> Any:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        key, *parameters = bound.args
        check_arrays(f"{of.name}.rvs", *parameters)
        shape = joint_shape(of.name, bound.arguments["shape"], parameters)
        return draw(
            key,
            *parameters,
            shape=shape,
            dtype=result_type(of.name, parameters, bound.kwargs["dtype"]),
        )

    rvs.__signature__ = signature  # type: ignore[attr-defined]
    rvs.__module__ = f"primax_scipy.stats.{of.name}"
    rvs.__qualname__ = "rvs"
    rvs.__doc__ = _documentation(of, last, whole)
    return rvs


def _documentation(of: Any, last: Sequence[tuple[str, Any]], whole: bool) -> str:
    lines = [f"Samples of the {of.title}.", "", "Args:", "  key: a random key."]
    lines += [f"  {n}: a parameter, {d.text}." for n, d in of.shapes.items()]
    lines.append(
        "  loc: the number that is added to the samples."
        if len(last) == 1
        else "  loc, scale: location and positive scale."
    )
    lines += [
        "  shape: the shape of the result, to which parameters broadcast; by default their shape.",
        "  dtype: a floating-point dtype, by default that of the parameters.",
        "",
        "Returns:",
        f"  {'Whole numbers as floats' if whole else 'Floats'}; NaN where a parameter is outside",
        "  of its domain.",
        "",
        "Raises:",
        "  ValueError: if parameters do not broadcast to the shape, or for another dtype.",
    ]
    return "\n".join(lines) + "\n"
