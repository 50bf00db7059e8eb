"""Indexing, compared with NumPy: values, shapes, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import primax.numpy as jnp

# Few sizes, so that executables are shared.
SIZES = (0, 1, 2, 3, 5)


class Fuzzer:
    """Random indices of random arrays."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed

    def attempt(self, n: int) -> str | None:
        """Read at an index, or write."""
        rng = random.Random(f"indices {self.seed} {n}")
        shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(4)))
        x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
        index = random_index(rng, shape)
        what = f"shape {shape}, index {index!r}"
        try:
            expected = x[index]
        except (IndexError, ValueError) as e:
            return self.refused(x, index, what, e)
        try:
            actual = np.asarray(jnp.asarray(x)[index])
        except Exception as e:
            return f"{what}: {type(e).__name__}: {e}"
        if actual.shape != expected.shape or not np.array_equal(actual, expected):
            return f"{what}: {actual.tolist()} of shape {actual.shape}, expected {expected.shape}"
        return self.updated(rng, x, index, expected.shape, what)

    def refused(self, x: np.ndarray, index: Any, what: str, error: Exception) -> str | None:
        """NumPy raised an error; indices out of bounds are clipped here."""
        if "out of bounds" in str(error):
            return None
        try:
            actual = jnp.asarray(x)[index]
        except (IndexError, TypeError, ValueError):
            return None
        except Exception as e:
            return f"{what}: {type(e).__name__}: {e}"
        return f"{what}: shape {actual.shape}, but NumPy raises {error}"

    def updated(
        self, rng: random.Random, x: np.ndarray, index: Any, shape: tuple[int, ...], what: str
    ) -> str | None:
        """Write values of the index's shape."""
        kind = rng.choice(("set", "add", "multiply"))
        value = np.full(shape, 2.0, np.float32)
        expected = x.copy()
        if kind == "set":
            expected[index] = value
        else:
            getattr(np, kind).at(expected, index, value)
        try:
            actual = np.asarray(getattr(jnp.asarray(x).at[index], kind)(value))
        except Exception as e:
            return f"{what}, {kind}: {type(e).__name__}: {e}"
        if np.array_equal(actual, expected):
            return None
        return f"{what}, {kind}: {actual.tolist()}, expected {expected.tolist()}"


def random_index(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """An index of an array of this shape; sometimes with too many entries."""
    entries: list[Any] = []
    axis = 0
    stack = rng.choice(((), (1,), (2,), (2, 1), (1, 3), (0,)))
    while axis < len(shape) + (rng.random() < 0.02) and rng.random() < 0.85:
        size = shape[axis] if axis < len(shape) else 1
        kind = rng.randrange(9)
        if kind == 0:
            entries.append(None)
            continue
        if kind == 1 and Ellipsis not in [e for e in entries if e is Ellipsis]:
            entries.append(...)
            axis += rng.randrange(2)
            continue
        if kind == 2 and rng.random() < 0.4:
            entries.append(rng.choice((True, False, np.True_, np.False_)))
            continue
        if kind == 3 and axis < len(shape):
            taken = rng.randrange(1, min(3, len(shape) - axis + 1))
            mask = np.array(
                [rng.random() < 0.5 for _ in range(int(np.prod(shape[axis : axis + taken])))]
            )
            entries.append(mask.astype(bool).reshape(shape[axis : axis + taken]))
            axis += taken
            continue
        axis += 1
        if kind <= 5:
            bounds = [None, 0, 1, 2, -1, -2, size, size + 1, -size - 1, 2**31, -(2**40)]
            step = rng.choice((None, None, 1, 2, -1, -2, 3, 2**31))
            entries.append(slice(rng.choice(bounds), rng.choice(bounds), step))
        elif kind <= 7 and size:
            entries.append(rng.choice((int, np.int32, np.int8))(rng.randrange(-size, size)))
        else:
            values = [rng.randrange(-size, size) if size else 0 for _ in range(int(np.prod(stack)))]
            dtype = rng.choice((np.int32, np.int64, np.int16))
            entries.append(np.array(values, dtype).reshape(stack))
    return entries[0] if len(entries) == 1 and rng.random() < 0.5 else tuple(entries)
