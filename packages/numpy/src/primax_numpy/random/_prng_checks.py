"""Checks of an implementation for its authors: types, determinism, batches, distinct keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from primax_core import enable_x64, vmap
from primax_core.extend import random_unwrap_p, random_wrap_p

from ._ciphers import U32
from ._implementations import Implementation
from ._key_types import random_bits_p, random_fold_in_p, random_seed_p, random_split_p

_SHAPES: Final = ((), (3,), (2, 3), (0,))
_CHILDREN: Final = 1000
_SEEDS: Final = (0, 1, -1, 7, 42, 2**31 - 1)


class _Operations:
    """The operations of an implementation as functions of words."""

    def __init__(self, impl: Implementation) -> None:
        self.impl = impl

    def _wrap(self, words: Any) -> Any:
        return random_wrap_p.bind(words, impl=self.impl)

    def seed(self, seed: Any) -> Any:
        return random_unwrap_p.bind(random_seed_p.bind(seed, impl=self.impl))

    def split(self, words: Any, shape: tuple[int, ...] = (2,)) -> Any:
        return random_unwrap_p.bind(random_split_p.bind(self._wrap(words), shape=shape))

    def fold_in(self, words: Any, data: Any) -> Any:
        return random_unwrap_p.bind(random_fold_in_p.bind(self._wrap(words), data))

    def bits(self, words: Any, width: int = 32, shape: tuple[int, ...] = (3,)) -> Any:
        return random_bits_p.bind(self._wrap(words), bit_width=width, shape=shape)


def check_prng_impl(impl: Implementation, *, without: Collection[str] = ()) -> None:
    """Test an implementation; statistical quality is not tested.

    | Check | Property |
    |---|---|
    | ``types`` | shapes and dtypes, for several shapes and all widths |
    | ``determinism`` | equal arguments give equal results, also if traced again |
    | ``batching`` | ``vmap`` over keys equals a loop over them |
    | ``distinct seeds`` | different seeds give different keys |
    | ``distinct children`` | ``split`` gives no key twice, nor the key itself |
    | ``distinct data`` | ``fold_in`` of different numbers gives different keys, and not the key |
    | ``distinct bits`` | different keys draw different bits, and a key not only equal ones |

    Args:
      impl: the result of :func:`define_prng_impl`; it need not be registered.
      without: names of checks that do not apply, such as ``"batching"`` for a generator on
        ``lax.rng_bit_generator``.

    Raises:
      AssertionError: with each check that failed.
      ValueError: if a name in ``without`` is not that of a check.
    """
    unknown = sorted(set(without) - set(CHECKS))
    if unknown:
        raise ValueError(f"no check is named {unknown[0]!r}; the checks are {', '.join(CHECKS)}")
    operations = _Operations(impl)
    problems = []
    for name, check in CHECKS.items():
        if name in without:
            continue
        try:
            problems += [f"{name}: {problem}" for problem in check(operations)]
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
    if problems:
        raise AssertionError(f"the PRNG {impl.name} failed\n  " + "\n  ".join(problems))


def _keys(do: _Operations) -> np.ndarray:
    return np.stack([np.asarray(do.seed(np.int32(s))) for s in _SEEDS])


def _types(do: _Operations) -> Iterator[str]:
    """The functions themselves compare types; this runs them."""
    words = do.seed(np.int32(1))
    do.seed(np.uint32(2**32 - 1))
    do.fold_in(words, np.uint32(3))
    for shape in _SHAPES:
        do.split(words, shape)
        for width in (8, 16, 32):
            do.bits(words, width, shape)
    with enable_x64(True):
        do.seed(np.int64(2**40))
        do.bits(words, 64, (3,))
    yield from ()


def _determinism(do: _Operations) -> Iterator[str]:
    """A copy of the implementation is another dtype, so that its functions are traced again."""
    again = _Operations(replace(do.impl))
    words = do.seed(np.int32(1))
    calls: dict[str, Callable[[_Operations], Any]] = {
        "seed": lambda ops: ops.seed(np.int32(1)),
        "split": lambda ops: ops.split(words),
        "fold_in": lambda ops: ops.fold_in(words, np.uint32(3)),
        "random_bits": lambda ops: ops.bits(words),
    }
    for name, call in calls.items():
        first = np.asarray(call(do))
        if not all(np.array_equal(first, call(ops)) for ops in (do, again)):
            yield f"{name} gives different results for equal arguments"


def _batching(do: _Operations) -> Iterator[str]:
    keys = _keys(do)
    data = np.arange(len(keys), dtype=U32)
    cases: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
        "seed": (do.seed, (np.asarray(_SEEDS, np.int32),)),
        "split": (do.split, (keys,)),
        "fold_in": (do.fold_in, (keys, data)),
        "random_bits": (do.bits, (keys,)),
        "random_bits of 8 bits": (lambda k: do.bits(k, 8, (2, 3)), (keys,)),
    }
    for name, (function, args) in cases.items():
        batch = np.asarray(vmap(function)(*args))
        loop = np.stack([np.asarray(function(*row)) for row in zip(*args)])
        if not np.array_equal(batch, loop):
            yield f"{name} under vmap differs from a loop over the keys"
        last = vmap(function, len(args) * (-1,))(*(np.moveaxis(a, 0, -1) for a in args))
        if not np.array_equal(last, loop):
            yield f"{name} under vmap over the last axis differs from a loop over the keys"


def _repeated(rows: Any) -> int:
    """The number of rows that occur before."""
    array = np.asarray(rows)
    flat = array.reshape(len(array), -1)
    return len(flat) - len(np.unique(flat, axis=0))


def _distinct_seeds(do: _Operations) -> Iterator[str]:
    seeds = np.concatenate([np.arange(_CHILDREN), [2**31 - 1, -1]]).astype(np.int32)
    n = _repeated(vmap(do.seed)(seeds))
    if n:
        yield f"{n} of {len(seeds)} seeds give a key that another seed gives"


def _distinct_children(do: _Operations) -> Iterator[str]:
    for words in _keys(do)[:2]:
        children = np.asarray(do.split(words, (_CHILDREN,)))
        n = _repeated(children)
        if n:
            yield f"split into {_CHILDREN} keys gives {n} of them twice"
        elif _repeated(np.concatenate([children, words[None]])):
            yield "split gives the key itself"


def _distinct_data(do: _Operations) -> Iterator[str]:
    data = np.concatenate([np.arange(_CHILDREN), [2**31, 2**32 - 1]]).astype(U32)
    for words in _keys(do)[:2]:
        keys = np.asarray(vmap(do.fold_in, (None, 0))(words, data))
        n = _repeated(keys)
        if n:
            yield f"fold_in of {len(data)} numbers gives {n} keys twice"
        elif _repeated(np.concatenate([keys, words[None]])):
            yield "fold_in gives the key itself"


def _distinct_bits(do: _Operations) -> Iterator[str]:
    rows = np.stack([np.asarray(do.bits(words, 32, (8,))) for words in _keys(do)])
    if _repeated(rows):
        yield "two keys draw the same bits"
    if any((row == row[0]).all() for row in rows):
        yield "all bits of a key are the same"


CHECKS: Final[dict[str, Callable[[_Operations], Iterator[str]]]] = {
    "types": _types,
    "determinism": _determinism,
    "batching": _batching,
    "distinct seeds": _distinct_seeds,
    "distinct children": _distinct_children,
    "distinct data": _distinct_data,
    "distinct bits": _distinct_bits,
}
