"""A small library of layers.

A layer is a pair of functions. ``init_fun(rng, input_shape)`` returns the shape of the output and
the parameters, a pytree; ``apply_fun(params, inputs, **kwargs)`` returns the output. ``rng=`` is
the key of layers that use random numbers. :func:`serial` and :func:`parallel` combine layers.

>>> from primax_numpy import random
>>> init, apply = serial(Dense(8), Relu, Dense(2), LogSoftmax)
>>> shape, params = init(random.key(0), (5, 3))
>>> shape, apply(params, np.ones((5, 3), np.float32)).shape
((5, 2), (5, 2))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_numpy import random

from .. import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    relu as relu,
    selu as selu,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
    standardize as standardize,
)
from ..initializers import (
    glorot_normal as glorot_normal,
    normal as normal,
    ones as ones,
    zeros as zeros,
)

Shape = Any
InitFun = Callable[[Any, Any], tuple[Any, Any]]
ApplyFun = Callable[..., Any]
Layer = tuple[InitFun, ApplyFun]
_Init = Callable[[Any, Any], Any]
_Padding = str | Sequence[tuple[int, int]]

glorot: Final = glorot_normal
randn: Final = normal
logsoftmax: Final = log_softmax

# Dense and convolution layers

_WEIGHTS: Final = glorot_normal()
_BIASES: Final = normal()
_SMALL: Final = normal(1e-6)


def Dense(out_dim: int, W_init: _Init = _WEIGHTS, b_init: _Init = _BIASES) -> Layer:
    """A dense layer ``inputs @ W + b``, with parameters ``(W, b)``.

    Args:
      out_dim: the number of outputs.
      W_init, b_init: their initializers.
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        first, second = random.split(rng)
        weights = W_init(first, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(second, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return pnp.dot(inputs, weights) + bias

    return init_fun, apply_fun


def _convolution(
    transposed: bool, dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None, padding: Any, W_init: Any, b_init: Any,
) -> Layer:  # fmt: skip
    lhs, rhs, out = dimension_numbers
    strides = tuple(strides or (1,) * len(filter_shape))
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    convolve = lax.conv_transpose if transposed else lax.conv_general_dilated

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        if len(input_shape) != len(lhs):
            raise ValueError(
                f"a convolution of inputs {lhs} needs an input shape of {len(lhs)} axes, got "
                f"{input_shape}"
            )
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        window = tuple(channels[c] if c in channels else next(sizes) for c in rhs)
        of_shapes = lax.conv_transpose_shape_tuple if transposed else lax.conv_general_shape_tuple
        shape = of_shapes(tuple(input_shape), window, strides, padding, dimension_numbers)
        first, second = random.split(rng)
        bias = tuple(out_chan if c == "C" else 1 for c in out)
        return tuple(map(int, shape)), (W_init(first, window), b_init(second, bias))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        out = convolve(inputs, weights, strides, padding, dimension_numbers=dimension_numbers)
        return out + bias

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None = None, padding: _Padding = "VALID",
    W_init: _Init | None = None, b_init: _Init = _SMALL,
) -> Layer:  # fmt: skip
    """A convolution layer with a bias.

    Args:
      dimension_numbers: axis layouts of the inputs, the kernel and the outputs, such as ``("NHWC",
        "HWIO", "NHWC")``.
      out_chan: the number of output channels.
      filter_shape: the spatial sizes of the kernel.
      strides: the strides of the window, 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or pairs of numbers.
      W_init: an initializer of kernels, by default :func:`glorot_normal` for their layout.
      b_init: an initializer of biases.

    Raises:
      ValueError: at initialization, if the input shape has another number of axes.
    """
    args = dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    return _convolution(False, *args)


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str], out_chan: int, filter_shape: Sequence[int],
    strides: Sequence[int] | None = None, padding: _Padding = "VALID",
    W_init: _Init | None = None, b_init: _Init = _SMALL,
) -> Layer:  # fmt: skip
    """A transposed convolution layer with a bias, which upsamples its inputs by the strides.

    Arguments and errors are those of :func:`GeneralConv`.
    """
    args = dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    return _convolution(True, *args)


def Conv(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: _Padding = "VALID", W_init: _Init | None = None, b_init: _Init = _SMALL,
) -> Layer:  # fmt: skip
    """:func:`GeneralConv` for ``NHWC`` images and ``HWIO`` kernels."""
    numbers = ("NHWC", "HWIO", "NHWC")
    return GeneralConv(numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def ConvTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: _Padding = "VALID", W_init: _Init | None = None, b_init: _Init = _SMALL,
) -> Layer:  # fmt: skip
    """:func:`GeneralConvTranspose` for ``NHWC`` images and ``HWIO`` kernels."""
    numbers = ("NHWC", "HWIO", "NHWC")
    return GeneralConvTranspose(numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def Conv1DTranspose(
    out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: _Padding = "VALID", W_init: _Init | None = None, b_init: _Init = _SMALL,
) -> Layer:  # fmt: skip
    """:func:`GeneralConvTranspose` for ``NHC`` sequences and ``HIO`` kernels."""
    numbers = ("NHC", "HIO", "NHC")
    return GeneralConvTranspose(numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
    scale: bool = True, beta_init: _Init = zeros, gamma_init: _Init = ones,
) -> Layer:  # fmt: skip
    """Batch normalization: standardized inputs, then scaled and shifted (Ioffe and Szegedy, 2015).

    The mean and variance are those of the current batch.

    Args:
      axis: the axes to normalize over.
      epsilon: a number added to the variance.
      center, scale: add a parameter ``beta``, multiply by a parameter ``gamma``.
      beta_init, gamma_init: their initializers.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        named = {a % len(input_shape) for a in axes}
        shape = tuple(n for i, n in enumerate(input_shape) if i not in named)
        first, second = random.split(rng)
        beta = beta_init(first, shape) if center else ()
        gamma = gamma_init(second, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        out = standardize(x, axes, epsilon=epsilon)
        if scale:
            out = pnp.expand_dims(gamma, axes) * out
        return out + pnp.expand_dims(beta, axes) if center else out

    return init_fun, apply_fun


# Elementwise layers


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function with optional keyword arguments.

    >>> init, apply = elementwise(pnp.clip, min=0.0, max=1.0)
    >>> apply((), np.array([2.0])).tolist()
    [1.0]
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


Tanh: Final[Layer] = elementwise(pnp.tanh)
Relu: Final[Layer] = elementwise(relu)
Exp: Final[Layer] = elementwise(pnp.exp)
LogSoftmax: Final[Layer] = elementwise(log_softmax, axis=-1)
Softmax: Final[Layer] = elementwise(softmax, axis=-1)
Softplus: Final[Layer] = elementwise(softplus)
Sigmoid: Final[Layer] = elementwise(sigmoid)
Elu: Final[Layer] = elementwise(elu)
LeakyRelu: Final[Layer] = elementwise(leaky_relu)
Selu: Final[Layer] = elementwise(selu)
Gelu: Final[Layer] = elementwise(gelu)
Identity: Final[Layer] = elementwise(lambda x: x)

# Pooling layers


def _pool(
    reduce: Callable[..., Any], start: float, mean: bool, window_shape: Sequence[int],
    strides: Sequence[int] | None, padding: Any, spec: str | None,
) -> Layer:  # fmt: skip
    steps = tuple(strides or (1,) * len(window_shape))

    def full(sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes of all axes, 1 for the batch and channel axes."""
        if spec is None:
            return (1, *sizes, 1)
        rest = iter(sizes)
        return tuple(1 if c in "NC" else next(rest) for c in spec)

    window, steps = full(window_shape), full(steps)

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        if len(input_shape) != len(window):
            raise ValueError(
                f"a pooling layer with windows of shape {window} needs inputs of the same rank, "
                f"got shape {input_shape}"
            )
        pads = padding
        if isinstance(padding, str):
            pads = lax.padtype_to_pads(input_shape, window, steps, padding)
        shape = [
            # An unknown batch size is -1.
            int(n if w == 1 == s else max(0, (n + before + after - w) // s + 1))
            for n, (before, after), w, s in zip(input_shape, pads, window, steps)
        ]
        return tuple(shape), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        out = lax.reduce_window(inputs, start, reduce, window, steps, padding)
        if not mean:
            return out
        ones = lax.full(full(_spatial(np.shape(inputs), spec)), 1, out.dtype)
        counts = lax.reduce_window(ones, 0.0, lax.add, window, steps, padding)
        return out / counts

    return init_fun, apply_fun


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: _Padding = "VALID",
    spec: str | None = None,
) -> Layer:  # fmt: skip
    """Max pooling.

    Args:
      window_shape: the sizes of the window.
      strides: the strides of the window, 1 by default.
      padding: ``"VALID"``, ``"SAME"``, or a pair of numbers for each axis.
      spec: the axis layout, with ``N`` and ``C`` for the batch and channel axes, which are the
        first and the last by default.

    Raises:
      ValueError: at initialization, if the ranks of inputs and window differ.
    """
    return _pool(lax.max, -math.inf, False, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: _Padding = "VALID",
    spec: str | None = None,
) -> Layer:  # fmt: skip
    """Sum pooling; arguments as for :func:`MaxPool`."""
    return _pool(lax.add, 0.0, False, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: _Padding = "VALID",
    spec: str | None = None,
) -> Layer:  # fmt: skip
    """Average pooling that ignores the padding; arguments as for :func:`MaxPool`."""
    return _pool(lax.add, 0.0, True, window_shape, strides, padding, spec)


def _spatial(shape: Sequence[int], spec: str | None) -> list[int]:
    """The sizes of the spatial axes."""
    return [n for c, n in zip(spec, shape) if c not in "NC"] if spec else list(shape[1:-1])


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return (input_shape[0], math.prod(input_shape[1:])), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return pnp.reshape(inputs, (inputs.shape[0], -1))

    return init_fun, apply_fun


Flatten: Final[Layer] = _flatten()


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Dropout: random inputs are set to 0, the others divided by the keep probability (Srivastava
    et al., 2014).

    Args:
      rate: the probability to keep an input.
      mode: ``"train"``; other modes return the inputs unchanged. A key ``rng=`` is required in all
        modes.

    Raises:
      ValueError: if applied without a key.
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key: write "
                "apply_fun(params, inputs, rng=key), with a key such as primax.random.key(0)."
            )
        if mode != "train":
            return inputs
        mask = random.bernoulli(rng, rate, inputs.shape)
        return pnp.where(mask, inputs / rate, 0)

    return init_fun, apply_fun


# Layers with several inputs or outputs


def FanOut(num: int) -> Layer:
    """``num`` copies of the inputs, for :func:`parallel` layers."""

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return [input_shape] * num, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return init_fun, apply_fun


def _fan_in_sum() -> Layer:
    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return input_shape[0], ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return sum(inputs[1:], inputs[0])

    return init_fun, apply_fun


FanInSum: Final[Layer] = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Concatenation of several inputs along an axis."""

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        first = input_shape[0]
        place = axis % len(first)
        size = sum(shape[place] for shape in input_shape)
        return (*first[:place], size, *first[place + 1 :]), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return pnp.concatenate(inputs, axis)

    return init_fun, apply_fun


# Combinators


def _keys(rng: Any, n: int) -> Sequence[Any]:
    return [None] * n if rng is None or not n else list(random.split(rng, n))


def serial(*layers: Layer) -> Layer:
    """Composition of layers; the parameters are a list of theirs.

    Each layer gets a separate key split from ``rng=``, if one is passed.
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        params = []
        for init, _ in layers:
            rng, key = random.split(rng)
            input_shape, layer_params = init(key, input_shape)
            params.append(layer_params)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), layer_params, key in zip(layers, params, keys):
            inputs = apply(layer_params, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Layers applied in parallel, each to its own input: a list of inputs gives a list of outputs.

    See :func:`FanOut` and :data:`FanInSum`.
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        keys = _keys(rng, len(layers))
        initialized = [init(key, s) for (init, _), key, s in zip(layers, keys, input_shape)]
        return [shape for shape, _ in initialized], tuple(params for _, params in initialized)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        parts = zip(layers, params, inputs, keys)
        return [apply(p, x, rng=key, **kwargs) for (_, apply), p, x, key in parts]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is constructed from the shape of its inputs.

    Args:
      make_layer: a function that maps the shape to the layer.
    """

    def init_fun(rng: Any, input_shape: Shape) -> tuple[Shape, Any]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
