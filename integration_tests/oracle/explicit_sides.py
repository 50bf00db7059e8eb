"""Programs on arrays with explicit mesh axes: the types of their results are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

f32 = np.float32

SPECS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "A": ((8, 16), ("x", "y")),
    "B": ((16, 32), ("y",)),
    "C": ((16, 32), (None, "y")),
    "K": ((16, 32), ()),
    "R": ((8, 16), ()),
    "X": ((8, 16), ("x",)),
    "Y": ((8, 16), (None, "y")),
    "XY": ((8, 16), (("x", "y"),)),
    "T": ((8, 16), ("y", "x")),
    "V": ((16,), ("y",)),
    "V8": ((8,), ("x",)),
    "N": ((8, 4, 8), ("x", None, "y")),
    "M": ((8, 4, 4), ("x",)),
    "MY": ((8, 4, 4), (None, "y")),
    "H": ((4, 8, 16), (None, "x", "y")),
    "S": ((), ()),
    "Q": ((8, 4, 16, 2), ("x", "y")),
    "O": ((1, 16), (None, "y")),
    "O8": ((8, 1), ("x",)),
}


class Side:
    """A library, a mesh of 2 and 4 devices, and arrays with the types of `SPECS`."""

    def __init__(self, lib: Any, placed: bool = True) -> None:
        self.lib, self.lax, self.jnp, self.placed = lib, lib.lax, lib.numpy, placed
        self.P = lib.sharding.PartitionSpec
        self.grad, self.vmap, self.jit = lib.grad, lib.vmap, lib.jit

    @cached_property
    def mesh(self) -> Any:
        sh = self.lib.sharding
        devices = np.array(self.lib.devices()[:8]).reshape(2, 4)
        return sh.Mesh(devices, ("x", "y"), axis_types=(sh.AxisType.Explicit,) * 2)

    def ns(self, *spec: Any) -> Any:
        return self.lib.sharding.NamedSharding(self.mesh, self.P(*spec)) if self.placed else None

    def spec(self, *spec: Any) -> Any:
        return self.P(*spec) if self.placed else None

    def put(self, x: Any, *spec: Any) -> Any:
        return self.lib.device_put(x, self.ns(*spec))

    def reshard(self, x: Any, *spec: Any) -> Any:
        return self.lib.sharding.reshard(x, self.P(*spec)) if self.placed else x

    def dot(self, a: Any, b: Any, la: Any, lb: Any, ba: Any = (), bb: Any = (), **kw: Any) -> Any:
        la, lb = ((n,) if isinstance(n, int) else n for n in (la, lb))
        return self.lax.dot_general(a, b, ((la, lb), (ba, bb)), **kw)

    def sum(self, x: Any) -> Any:
        return self.lax.reduce_sum(x, tuple(range(x.ndim)))

    def ggrad(self, f: Callable[..., Any], *args: Any) -> Any:
        """The gradients of the sum of sin of a function's result."""
        lax = self.lax
        return self.grad(lambda *a: self.sum(lax.sin(f(*a))), tuple(range(len(args))))(*args)

    @cached_property
    def I(self) -> Any:  # noqa: E743
        return self.put(np.arange(8, dtype=np.int32), "x")

    @cached_property
    def key(self) -> Any:
        return self.lib.random.key(0)

    def __getattr__(self, name: str) -> Any:
        shape, spec = SPECS[name]
        n = int(np.prod(shape))
        value = (np.arange(n, dtype=f32).reshape(shape) * 0.37 % 1.9 + 0.1).astype(f32)
        if name in ("M", "MY"):
            value = np.eye(4, dtype=f32) * 3 + value * 0.1
            value = value + value.swapaxes(1, 2)
        array = self.__dict__[name] = self.put(value, *spec)
        return array


Program = Callable[[Side], Any]
PROGRAMS: dict[str, Program] = {}


def group(prefix: str, **programs: Program) -> None:
    for name, program in programs.items():
        PROGRAMS[f"{prefix} {name}"] = program


def text_of(side: Side, aval: Any) -> str:
    return aval.str_short(short_dtypes=True) if side.lib.__name__ == "jax" else aval.str_short()


def result(side: Side, name: str) -> str:
    """The types of a program's results, or the error."""
    lib = side.lib
    try:
        with lib.set_mesh(side.mesh):
            out = PROGRAMS[name](side)
            leaves = lib.tree_util.tree_leaves(out)
            return " ".join(text_of(side, lib.typeof(x)) for x in leaves)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
