"""Samples with values, called by the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import ml_dtypes
import numpy as np

from .._base.config import Override, enable_x64
from .._ir import dtypes
from .._ir.primitive import Primitive
from .._ir.samples import Operand, Sample
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from ..lax.conversion import convert
from .gradients import is_inexact

_WIDER: Final[dict[Any, Any]] = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.float16): np.dtype(np.float64),
    np.dtype(ml_dtypes.bfloat16): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


class NotApplicable(Exception):
    """A check does not apply to a sample; the message is the reason."""


class Failure(Exception):
    """A check failed; the message is the error."""


def widened(x: ArrayLike) -> Any:
    """A dtype, or a parameter that contains dtypes, in double precision."""
    if isinstance(x, np.dtype):
        return _WIDER.get(x, x)
    if isinstance(x, type) and issubclass(x, np.generic):
        return _WIDER.get(np.dtype(x), x)
    if type(x) is tuple:
        return tuple(map(widened, x))
    if isinstance(x, (np.ndarray, np.generic)):
        return x.astype(widened(x.dtype))
    return x


class Call:
    """A sample bound to a primitive, in the sample's dtypes or in double precision.

    Attributes:
      args: operands with values.
      differentiable: indices of the differentiable operands.
    """

    def __init__(self, prim: Primitive, sample: Sample, double: bool, seed: int):
        self.prim = prim
        self.sample = sample
        self.double = double
        self.seed = seed
        self.params: dict[str, Any] = (
            {k: widened(v) for k, v in sample.params.items()} if double else sample.params
        )

    def mode(self) -> Override:
        """Context manager in which the operands keep their dtypes."""
        return enable_x64(self.double or any(_is_64(a) for a in self.sample.operands))

    @cached_property
    def args(self) -> list[Any]:
        return self.draw(np.random.default_rng(self.seed))

    def rng(self, stream: int) -> np.random.Generator:
        """A generator of the sample's seed; streams of different numbers are independent."""
        return np.random.default_rng((self.seed, stream))

    def draw(self, rng: np.random.Generator) -> list[Any]:
        """Values for the operands."""
        with self.mode():
            return [
                draw(a, rng, self.double) if isinstance(a, Operand)
                else widened(a) if self.double else a
                for a in self.sample.operands
            ]  # fmt: skip

    @property
    def drawn(self) -> list[int]:
        """Indices of the operands with drawn values."""
        return [i for i, a in enumerate(self.sample.operands) if isinstance(a, Operand)]

    @property
    def differentiable(self) -> list[int]:
        return [i for i in self.drawn if is_inexact(self.sample.operands[i].dtype)]

    def raw(self, *args: Any) -> list[Any]:
        """The primitive's results for these operands."""
        if self.sample.call is not None:
            out = self.sample.call(*args)
            return list(out) if isinstance(out, (list, tuple)) else [out]
        out = self.prim.bind(*args, **self.params)
        return list(out) if self.prim.multiple_results else [out]

    def fun(self, *args: Any) -> list[Any]:
        """The values to compare: the results, or the sample's ``observe`` of them."""
        outs = self.raw(*args)
        return list(self.sample.observe(outs)) if self.sample.observe else outs

    def of(
        self, indices: Sequence[int], select: Callable[[Sequence], list] | None = None
    ) -> Callable:
        """The function of some operands, with the others fixed, to its inexact results."""

        def fun(*some):
            args = list(self.args)
            for i, x in zip(indices, some):
                args[i] = x
            outs = self.fun(*args)
            outs = [o for o in outs if is_inexact(typeof(o).dtype)]
            return outs if select is None else select(outs)

        return fun


def _is_64(operand: Any) -> bool:
    dtype = getattr(operand, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype in (
        np.dtype(np.float64), np.dtype(np.complex128), np.dtype(np.int64), np.dtype(np.uint64)
    )  # fmt: skip


def draw(operand: Operand, rng: np.random.Generator, double: bool = False) -> Any:
    """Values for an operand."""
    dtype = widened(operand.dtype) if double else operand.dtype
    shape, low, high = operand.shape, operand.low, operand.high
    if operand.make is not None:
        values = np.asarray(operand.make(rng, shape))
    elif dtypes.issubdtype(dtype, np.complexfloating):
        values = rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
    elif dtypes.issubdtype(dtype, np.floating):
        values = rng.uniform(low, high, shape)
    elif dtype == np.bool_:
        values = rng.random(shape) < 0.5
    else:
        values = rng.integers(int(low), int(high), shape, endpoint=True)
    values = np.asarray(values).astype(dtype)
    return convert(values, dtype, weak_type=True) if operand.weak_type else values
