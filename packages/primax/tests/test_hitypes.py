"""Values of user-defined types: known to ``typeof``, refused as operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import primax
from primax.experimental.hijax import HiPrim, HiType, ShapedArray, register_hitype

F32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Scaled:
    """An array of integers and a factor."""

    integers: Any
    factor: Any


@dataclass(frozen=True)
class ScaledType(HiType):
    shape: tuple[int, ...]

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(self.shape, np.dtype(np.int8)), ShapedArray((), F32)]


register_hitype(Scaled, lambda x: ScaledType(x.integers.shape))

VALUE = Scaled(np.ones(3, np.int8), np.float32(2))


class Expand(HiPrim):
    def __init__(self, aval: Any) -> None:
        self.in_avals = (aval,)
        self.out_aval = ShapedArray(aval.shape, F32)
        self.params = {}
        super().__init__()


def test_typeof() -> None:
    aval = primax.typeof(VALUE)
    assert aval == ScaledType((3,)) and aval.shape == (3,)
    assert not hasattr(aval, "sharding")


@pytest.mark.parametrize(
    "call",
    [
        lambda: primax.jit(lambda x: x)(VALUE),
        lambda: primax.jit(lambda: VALUE)(),
        lambda: primax.grad(lambda x: 1.0)(VALUE),
        lambda: primax.vmap(lambda x: x)(VALUE),
        lambda: primax.lax.scan(lambda c, _: (c, None), VALUE, None, 2),
        lambda: Expand(primax.typeof(VALUE)),
    ],
)
def test_operands(call: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"ScaledType cannot be operands.*as a pytree"):
        call()
