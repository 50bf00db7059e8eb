"""Public functions with odd arguments: counts, shapes, dtypes and types.

A call may return anything, or raise an error. Errors that come from inside the library
(`AttributeError`, `KeyError` ...) are faults: they tell the user nothing.
"""

from __future__ import annotations

import importlib
import inspect
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import primax

MODULES = (
    "primax", "primax.numpy", "primax.numpy.linalg", "primax.numpy.fft", "primax.lax",
    "primax.lax.linalg", "primax.nn", "primax.nn.initializers", "primax.random", "primax.image",
    "primax.ops", "primax.tree_util", "primax.tree", "primax.dlpack", "primax.export",
    "primax.scipy.special", "primax.scipy.linalg", "primax.scipy.fft", "primax.scipy.ndimage",
    "primax.scipy.signal", "primax.scipy.integrate", "primax.scipy.cluster.vq",
    "primax.scipy.interpolate", "primax.scipy.sparse.linalg", "primax.scipy.optimize",
    *(f"primax.scipy.stats.{n}" for n in ("norm", "beta", "gamma", "poisson", "multinomial", "t")),
)  # fmt: skip
# Functions with effects beyond the call.
EXCLUDED = frozenset((
    "breakpoint", "clear_caches", "clear_backends", "distributed", "fromfile", "from_dlpack",
    "live_arrays", "load", "loadtxt", "genfromtxt", "print_environment_info", "save", "savez",
    "savez_compressed", "set_printoptions", "make_user_context", "start_trace", "stop_trace",
    "start_server", "stop_server", "trace", "inspect_array_sharding", "fuzz", "printoptions",
    "set_mesh", "register_dataclass", "register_static", "io_callback", "pure_callback",
    "print", "callback", "register_pytree_node", "register_pytree_with_keys",
    "register_pytree_node_class", "register_pytree_with_keys_class", "ensure_compile_time_eval",
    "register_pytree_node_serialization", "register_namedtuple_serialization", "Array", "ndarray",
    "host_callback", "initialize_cache", "profiler",
    "distribution_function",
))  # fmt: skip
INSIDE = (
    AttributeError, AssertionError, KeyError, NameError, RecursionError, SystemError,
    StopIteration, UnicodeError, ModuleNotFoundError,
)  # fmt: skip
EXTREMES = (-(2**63), -(2**31), -7, -1, 0, 1, 2, 3, 5, 2**31 - 1, 2**31, 2**40, 2**63, 2**70)
DTYPES = (
    "float32", "int32", "bool", "complex64", "uint8", "float16", "int8", "uint32", "bfloat16",
    "int4",
)  # fmt: skip
# Without floats of 8 bits: jaxlib 0.12 compiles special functions of them for minutes.
SHAPES = ((), (0,), (1,), (3,), (3,), (2, 3), (3, 3), (3, 3), (2, 3, 3), (0, 3), (1, 1, 1, 1))


class _Silent:
    """An object without the protocols of arrays."""

    def __repr__(self) -> str:
        return "<odd>"


class Fuzzer:
    """Calls of random functions; half of them begin from arguments that may be right."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed
        os.chdir(folder)
        self.functions = _functions()
        self.array = primax.numpy.asarray(np.arange(9, dtype=np.float32).reshape(3, 3))
        self.key = primax.random.key(0)

    def attempt(self, n: int) -> str | None:
        """Call one function."""
        rng = random.Random(f"calls {self.seed} {n}")
        name, function, parameters = self.functions[rng.randrange(len(self.functions))]
        args, options = self.arguments(rng, name, parameters)
        try:
            primax.block_until_ready(function(*args, **options))
        except INSIDE as e:
            # Functions on tree structures call methods of what they are given instead of one.
            if "unbound axis name" in str(e) or name.startswith("primax.tree"):
                return None
            return f"{name}{_shown(args, options)}: {type(e).__name__}: {e}"
        except Exception:
            return None
        return None

    def describe(self, n: int) -> str:
        """The call of input ``n``."""
        rng = random.Random(f"calls {self.seed} {n}")
        name, _, parameters = self.functions[rng.randrange(len(self.functions))]
        return name + _shown(*self.arguments(rng, name, parameters))

    def arguments(
        self, rng: random.Random, name: str, parameters: list[inspect.Parameter]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments."""
        positional = [
            p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        needed = [p for p in positional if p.default is p.empty]
        odd = 0.1 if rng.random() < 0.6 else 0.5
        count = len(needed) if rng.random() < 0.85 else rng.randrange(len(positional) + 2)
        args = [
            self.odd(rng, 0)
            if rng.random() < odd or i >= len(positional)
            else self.plausible(rng, positional[i].name)
            for i in range(count)
        ]
        options = {}
        named = [
            p for p in parameters[count:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        for p in named:
            required = p.default is p.empty
            if rng.random() < (0.9 if required else 0.15):
                usual = rng.random() > odd
                options[p.name] = self.plausible(rng, p.name) if usual else self.odd(rng, 0)
        return args, options

    def plausible(self, rng: random.Random, name: str) -> Any:
        """A value that suits the name of a parameter."""
        if name in ("key", "keys"):
            return self.key
        if name in ("f", "fun", "func", "op", "body", "body_fun", "cond_fun", "computation"):
            return rng.choice((lambda *x: x[0], lambda *x: (x[0], x[-1]), primax.numpy.add))
        if "axis" in name or "axes" in name or "dim" in name:
            return rng.choice((0, 1, -1, (0,), (0, 1), None))
        if "shape" in name or "size" in name:
            return rng.choice(((2, 3), (3,), 3, (), (9,)))
        if "dtype" in name:
            return rng.choice(DTYPES)
        if name in ("n", "k", "m", "num", "length", "order", "N", "M"):
            return rng.choice((0, 1, 2, 3))
        if name in ("tree", "operand", "operands", "arrays", "xs", "init", "primals", "tangents"):
            return rng.choice((self.array, [self.array, self.array], {"a": self.array}))
        return self.values(rng) if rng.random() < 0.9 else rng.choice((1.5, 2, True))

    def values(self, rng: random.Random) -> Any:
        """An array."""
        shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES if rng.random() < 0.5 else DTYPES[:2])
        x = np.asarray(np.arange(int(np.prod(shape))) % 5).reshape(shape)
        x = primax.numpy.asarray(x, dtype)
        return x if rng.random() < 0.8 or dtype not in DTYPES[:4] else np.asarray(x)

    def odd(self, rng: random.Random, depth: int) -> Any:
        """A value of any type."""
        kind = rng.randrange(14)
        if kind <= 1:
            return rng.choice(EXTREMES)
        if kind == 2:
            return rng.choice((0.0, -0.0, 1.5, float("nan"), float("inf"), 1e300, 1j))
        if kind <= 4:
            return self.values(rng)
        if kind == 5:
            return rng.choice(("", "float32", "same", "no such name", "i,i->", "\0", b"bytes"))
        if kind == 6:
            return rng.choice((None, True, False, Ellipsis, slice(0, 2), range(3), NotImplemented))
        if kind == 7:
            return rng.choice((_Silent(), object, int, np.float32, np.dtype("O"), len, set()))
        if kind == 8:
            return rng.choice((
                np.array(["a", "b"]), np.array([None, 1]), np.zeros(3, "M8[s]"),
                np.zeros(2, [("a", "i4")]), np.float64(1), np.array(2**63, np.uint64),
            ))  # fmt: skip
        if kind == 9:
            return self.key
        if kind == 10:
            return primax.ShapeDtypeStruct((3,), np.float32)
        if kind == 11:
            return rng.choice((lambda x: x, lambda *x: None, lambda: 3))
        if depth > 2:
            return ()
        inner = [self.odd(rng, depth + 1) for _ in range(rng.randrange(4))]
        if kind == 12:
            return {str(i): x for i, x in enumerate(inner)}
        return rng.choice((tuple, list))(inner)


def _functions() -> list[tuple[str, Callable[..., Any], list[inspect.Parameter]]]:
    """The public functions with their parameters, by name."""
    functions = {}
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name in sorted(set(dir(module))):
            if name.startswith("_") or name in EXCLUDED:
                continue
            try:
                function = getattr(module, name)
                if not callable(function) or inspect.isclass(function):
                    continue
                parameters = list(inspect.signature(function).parameters.values())
            except (AttributeError, ValueError, TypeError):
                continue
            functions[f"{module_name}.{name}"] = function, parameters
    return [(name, *functions[name]) for name in sorted(functions)]


def _shown(args: list[Any], options: dict[str, Any]) -> str:
    parts = [_text(x) for x in args] + [f"{k}={_text(v)}" for k, v in options.items()]
    return f"({', '.join(parts)})"


def _text(x: Any) -> str:
    if isinstance(x, (primax.Array, np.ndarray)):
        return f"{type(x).__name__} {x.dtype}{list(x.shape)}"
    if isinstance(x, (tuple, list)):
        return f"{type(x).__name__}({', '.join(map(_text, x))})"
    return repr(x)[:60]
