"""Key dtypes, one for each implementation."""

from __future__ import annotations

import pickle
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, ShapedArray, dtypes, random_unwrap_p, random_wrap_p

from ._ciphers import U32


class KeyDType(dtypes.ExtendedDType):
    """The dtype of the keys of an implementation."""

    __slots__ = ("impl", "itemsize", "name")
    type: Any = dtypes.prng_key

    def __init__(self, impl: Any) -> None:
        self.impl: Any = impl
        self.name: str = f"key<{impl.tag}>"
        self.itemsize: int = 4 * impl.words

    def physical_aval(self, aval: ShapedArray) -> ShapedArray:
        """The aval of the words of an array of keys."""
        return ShapedArray((*aval.shape, *self.impl.key_shape), U32)

    def repr_of(self, array: Any) -> str:
        """The ``repr`` of an array of keys."""
        words = np.asarray(random_unwrap_p.bind(array))
        return f"Array({array.shape}, dtype={self.name}) overlaying:\n{words}"

    def full(self, shape: tuple[int, ...], value: Any) -> Array:
        """Keys whose words all equal a number, as for ``zeros`` and ``ones``."""
        words = lax.full((*shape, *self.impl.key_shape), np.asarray(value).astype(U32)[()])
        out: Array = random_wrap_p.bind(words, impl=self.impl)
        return out

    def __eq__(self, other: object) -> bool:
        return type(other) is KeyDType and other.impl is self.impl

    def __hash__(self) -> int:
        return hash((KeyDType, self.impl))

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        name = self.impl.name
        if _named.get(name) is not self:
            raise pickle.PicklingError(
                f"keys of {name} cannot be pickled: the PRNG is not registered. Register it with "
                "primax_numpy.random.extend.register_prng_impl, also where the keys are read"
            )
        return _restored, (name,)


_named: Final[dict[str, KeyDType]] = {}


def register_dtype(dtype: KeyDType) -> None:
    """Register a dtype by name, so that its keys can be pickled and its jaxprs serialized."""
    _named[dtype.impl.name] = dtype
    dtypes.extended_dtypes[dtype.name] = dtype


def _restored(name: str) -> KeyDType:
    dtype = _named.get(name)
    if dtype is None:
        raise pickle.UnpicklingError(
            f"pickled keys of the PRNG {name!r}, which is not registered in this process: import "
            f"the package that defines it first. Registered: {', '.join(map(repr, _named))}"
        )
    return dtype


def is_key_dtype(dtype: Any) -> bool:
    """True if a dtype is a key dtype."""
    return isinstance(dtype, KeyDType)
