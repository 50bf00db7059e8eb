"""Random generators with state: the reference's ``jax.experimental.random``.

Requires the NumPy wheel: ``pip install 'primax[numpy]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as _np

from primax_core import new_ref as _new_ref
from primax_core.extend import current_trace as _current_trace, typeof as _typeof
from primax_core.extend.traces import BatchTrace as _BatchTrace
from primax_core.tree_util import register_pytree_node as _register_pytree_node
from primax_core.typing import ArrayLike as _ArrayLike

from .._wheels import wheel as _wheel

_random: Any = _wheel("primax_numpy.random", "numpy")


class StatefulPRNG:
    """A generator that counts its draws in a reference; see :func:`stateful_rng`.

    It is a pytree, so that functions can take it as an argument. Draw ``i`` uses the key
    ``random.fold_in(key, i)``.
    """

    def __init__(self, _base_key: Any, _counter: Any) -> None:
        self._base_key = _base_key
        self._counter = _counter

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of new keys.

        Raises:
          ValueError: if the generator was split and is not mapped by ``vmap``, or if it was not and
            all examples of a ``vmap`` share it.
        """
        if _typeof(self._base_key).shape:
            raise ValueError(
                "a split generator has one state for each part: map over it with vmap, or use spawn"
            )
        _check_not_shared(self._counter)
        key = _random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        sizes = _as_shape(shape)
        return _random.split(key, sizes) if sizes else key

    def random(self, size: int | Sequence[int] | None = None, dtype: Any = float) -> Any:
        """Floats in ``[0, 1)``."""
        return self.uniform(size=size, dtype=dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: int | Sequence[int] | None = None, *,
        dtype: Any = float,
    ) -> Any:  # fmt: skip
        """Floats in ``[low, high)``; ``size`` is the shape, by default that of the bounds."""
        shape = _shape(size, low, high)
        return _random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: int | Sequence[int] | None = None, *,
        dtype: Any = float,
    ) -> Any:  # fmt: skip
        """Normally distributed floats with mean ``loc`` and standard deviation ``scale``."""
        return _random.normal(self.key(), _shape(size, loc, scale), dtype) * scale + loc

    def integers(
        self, low: Any, high: Any = None, size: int | Sequence[int] | None = None, *,
        dtype: Any = int,
    ) -> Any:  # fmt: skip
        """Integers in ``[low, high)``, or in ``[0, low)`` without ``high``."""
        if high is None:
            low, high = 0, low
        return _random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Generators with independent states, as one generator for ``vmap``."""
        keys = self.key(num)
        return StatefulPRNG(keys, _new_ref(_np.zeros(_typeof(keys).shape, _np.int32)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of generators with independent states."""
        keys = self.key(n_children)
        return [StatefulPRNG(k, _new_ref(_np.int32(0))) for k in keys]

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"


def _check_not_shared(counter: Any) -> None:
    """Raise an error if the examples of a ``vmap`` would draw the same numbers."""
    own = getattr(counter, "_trace", None)
    trace = _current_trace()
    while trace is not None and trace is not own:
        if isinstance(trace, _BatchTrace):
            raise ValueError(
                "a generator that is not mapped gives each example of vmap the same numbers: pass "
                "a part for each example, as in vmap(f)(xs, rng.split(len(xs)))"
            )
        trace = trace.parent


def _as_shape(size: int | Sequence[int]) -> tuple[int, ...]:
    return (size,) if isinstance(size, (int, _np.integer)) else tuple(size)


def _shape(size: int | Sequence[int] | None, *parameters: Any) -> tuple[int, ...]:
    if size is not None:
        return _as_shape(size)
    return _np.broadcast_shapes(*(_typeof(p).shape for p in parameters))


_register_pytree_node(
    StatefulPRNG, lambda r: ((r._base_key, r._counter), None), lambda _, parts: StatefulPRNG(*parts)
)


def stateful_rng(seed: _ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A random generator with state, from a seed (by default one of the operating system).

    >>> rng = stateful_rng(0)
    >>> bool(rng.uniform() != rng.uniform())
    True
    """
    if seed is None:
        import secrets

        seed = secrets.randbits(31)
    return StatefulPRNG(_random.key(seed, impl=impl), _new_ref(_np.int32(0)))
