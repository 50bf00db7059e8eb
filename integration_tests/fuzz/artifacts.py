"""Mutated artifacts of ``export``, and modules crafted to crash or block the compiler."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import primax_core as pc
from primax_core import lax
from primax_core.errors import InvalidArtifactError
from primax_interpreters import export
from primax_interpreters._export import envelope
from test_support.mutation import mutate

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)
V = "tensor<2xf32>"
EXTREMES = (-1, 0, 1, 2, 7, 100, 2**15, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31), -(2**62))


class Fuzzer:
    """Artifacts that are loaded, and called if they are accepted."""

    def __init__(self, folder: Path, seed: int):
        self.seed = seed
        self.files = _originals()
        self.data = [data for data, _ in self.files]
        argument = np.arange(2, dtype=np.float32)
        self.template = export.export(pc.jit(lambda x: x + x))(argument)
        self.argument = argument

    def attempt(self, n: int) -> str | None:
        """Load one artifact, and call it."""
        rng = random.Random(f"artifacts {self.seed} {n}")
        if n % 2:
            what, data, args = *self.crafted(rng), (self.argument,)
        else:
            what, (data, args) = "mutated", self.mutated(rng)
        if data is None:
            return None
        try:
            exported = export.deserialize(data)
        except InvalidArtifactError:
            return None
        except Exception as e:
            return f"{what}: deserialize raised {type(e).__name__}: {e}"
        try:
            exported.call(*args)
            if exported.has_vjp():
                exported.vjp()
        except (AttributeError, AssertionError, KeyError, NameError, RecursionError) as e:
            return f"{what}: call raised {type(e).__name__}: {e}"
        except Exception:
            return None
        return None

    def mutated(self, rng: random.Random) -> tuple[bytes, Any]:
        """An artifact with some changed bytes."""
        data, args = rng.choice(self.files)
        if rng.random() < 0.5:
            return mutate(data, self.data, rng), args
        body = data[envelope._BODY :]  # with a correct checksum
        module = body.find(b"ML\xefR")
        if rng.random() < 0.6:  # only the module, of unchanged length
            changed = mutate(body[module:], self.data, rng)[: len(body) - module]
            body = (body[:module] + changed).ljust(len(body), b"\0")
        else:
            body = mutate(body, self.data, rng)
        return envelope.seal(body, 1, rng.randrange(3)), args

    def crafted(self, rng: random.Random) -> tuple[str, bytes | None]:
        """A well-formed artifact with a module or types made to do harm."""
        if rng.random() < 0.2:
            text = _dimension(rng, 0)
            aval = _Aval((_Text(text),), np.dtype("f4"))
            changed = dataclasses.replace(self.template, in_avals=(aval,))
            return f"dimension {text[:200]}", bytes(changed.serialize())
        make = rng.choice(CRAFTED)
        text = make(rng)
        module = _portable(text)
        if module is None:  # not StableHLO
            return text, None
        changed = dataclasses.replace(self.template, mlir_module_serialized=module)
        return text[:1500], bytes(changed.serialize())


def _originals() -> list[tuple[bytes, tuple]]:
    def nested(x, options):
        return {"out": [lax.sin(x) * options["k"], (lax.reduce_sum(x, (0, 1)), None)]}

    def chosen(x):
        return lax.platform_dependent(x, cpu=lax.sin, default=lax.cos)

    def looped(x):
        y = lax.sort(x, dimension=1)
        return lax.fori_loop(0, 3, lambda i, c: lax.cond(i > 1, lax.sin, lax.cos, c), y)

    rows, columns = export.symbolic_shape("r, 2*c + 1", constraints=["r >= 2", "c <= 100"])
    symbolic = pc.ShapeDtypeStruct((rows, columns), np.float32)
    several = export.export(pc.jit(chosen), platforms=["cpu", "tpu"])(X)
    polymorphic = export.export(pc.jit(lambda x: x + x.shape[0]))(symbolic)
    plain = export.export(pc.jit(nested))(X, {"k": 2.0}).serialize(vjp_order=1)
    return [
        (bytes(plain), (X, {"k": 2.0})),
        (bytes(several.serialize()), (X,)),
        (bytes(polymorphic.serialize()), (X,)),
        (bytes(export.export(pc.jit(looped))(X).serialize()), (X,)),
    ]


class _Text(str):
    """A size that is serialized unchanged."""


@dataclasses.dataclass
class _Aval:
    shape: tuple[Any, ...]
    dtype: Any
    weak_type: bool = False


def _dimension(rng: random.Random, depth: int) -> str:
    """A symbolic dimension, often too large to expand."""
    if depth > 4 or rng.random() < 0.2:
        return rng.choice(("a", "b", "c", "x1", "2", "7", "99999999999"))
    x, y = _dimension(rng, depth + 1), _dimension(rng, depth + 1)
    kind = rng.randrange(8)
    if kind < 4:
        return f"{('floordiv', 'mod', 'max', 'min')[kind]}({x}, {y})"
    if kind == 4:
        return f"floordiv({x}, 1)^{rng.choice((0, 2, 5, 20, 99))}"
    return f"{x} {'+-*'[kind - 5]} {y}"


def _portable(text: str) -> bytes | None:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    from primax_core._lower.context import context

    try:
        return stablehlo.serialize_portable_artifact(ir.Module.parse(text, context), "1.13.0")
    except Exception:
        return None


def _main(body: str, more: str = "") -> str:
    main = f"func.func public @main(%a: {V}) -> {V} {{\n{body}\nreturn %r : {V} }}"
    return f"module {{ {main}\n{more} }}"


def _chain(rng: random.Random) -> str:
    n = rng.choice((2, 50, 99, 101, 300, 1500))
    call = "%r = func.call @f{}(%a) : (" + f"{V}) -> {V}"
    functions = [f"func.func private @f0(%a: {V}) -> {V} {{ return %a : {V} }}"]
    functions += [
        f"func.func private @f{i}(%a: {V}) -> {V} {{ {call.format(i - 1)}\nreturn %r : {V} }}"
        for i in range(1, n)
    ]
    if rng.random() < 0.5:
        functions.reverse()
    return _main(call.format(n - 1), "\n".join(functions))


_TARGETS = (
    "ApproxTopK", "LayoutConstraint", "PartialReduce", "Sharding", "SPMDFullToShardShape",
    "annotate_device_placement", "shape_assertion", "stablehlo.dynamic_approx_top_k",
    "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k", "dce_sink", "lapack_spotrf_ffi", "lapack_sgetrf_ffi", "TopK",
)  # fmt: skip


def _custom_call(rng: random.Random) -> str:
    types = (V, "tensor<3xf32>", "tensor<f32>", "tensor<2xi32>", "tensor<2x2xf32>", "tensor<0xf32>")
    n = rng.randrange(4)
    operands = [rng.choice(types) for _ in range(n)]
    lines = [f"%c{i} = stablehlo.constant dense<0{'.0' if 'f32' in t else ''}> : {t}"
             for i, t in enumerate(operands)]  # fmt: skip
    passed = ", ".join(f"%c{i}" for i in range(n))
    attributes = ["has_side_effect = true"]
    version = rng.choice(("", "api_version = 4 : i32", "api_version = 2 : i32"))
    attributes += [version] if version else []
    attributes += rng.sample((
        "mhlo.backend_config = {top_k = 2 : i64, reduction_dim = 0 : i64, recall_target = 0.9 : f32"
        ", aggregate_to_topk = true, reduction_input_size_override = -1 : i64}",
        'mhlo.sharding = "{replicated}"', 'mhlo.frontend_attributes = {x = "y"}',
        'mhlo.sharding = "{devices=[2]0,1}"', "mhlo.backend_config = {}",
    ), rng.randrange(3))  # fmt: skip
    if "ApproxTopK" in (target := rng.choice(_TARGETS)) or rng.random() < 0.1:
        attributes.append("called_computations = [@less]")
    less = ("func.func private @less(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, "
            "%j: tensor<i32>) -> tensor<i1> { %c = stablehlo.compare GT, %x, %y, FLOAT : "
            "(tensor<f32>, tensor<f32>) -> tensor<i1>\nreturn %c : tensor<i1> }")  # fmt: skip
    unique = {a.split(" =")[0]: a for a in attributes}
    lines.append(
        f"%q = stablehlo.custom_call @{target}({passed}) {{{', '.join(unique.values())}}} : "
        f"({', '.join(operands)}) -> {rng.choice(types)}\n%r = stablehlo.add %a, %a : {V}"
    )
    return _main("\n".join(lines), less)


def _sort(rng: random.Random) -> str:
    e = rng.choice(("i32", "f32"))
    n = rng.choice((2, 17, 1000, 100_000))
    lines = []
    for i in range(rng.randrange(1, 4)):
        pair = rng.choice((("%x", "%y"), ("%y", "%x"), ("%x", "%x")))
        kind = rng.choice(("SIGNED", "UNSIGNED") if e == "i32" else ("FLOAT", "TOTALORDER"))
        direction = rng.choice(("LT", "GT", "NE", "EQ", "LE", "GE"))
        lines.append(f"%b{i} = stablehlo.compare {direction}, {pair[0]}, {pair[1]}, {kind} : "
                     f"(tensor<{e}>, tensor<{e}>) -> tensor<i1>")  # fmt: skip
        if i:
            lines.append(f"%c{i} = stablehlo.{rng.choice(('and', 'or', 'xor'))} %b{i}, "
                         f"%{'b' if i == 1 else 'c'}{i - 1} : tensor<i1>")  # fmt: skip
    last = lines[-1].split(" =")[0]
    t, stable = f"tensor<{n}x{e}>", rng.choice(("true", "false"))
    return _main(
        f"%i = stablehlo.iota dim = 0 : {t}\n%m = stablehlo.multiply %i, %i : {t}\n"
        f'%s = "stablehlo.sort"(%m) <{{dimension = 0 : i64, is_stable = {stable}'
        f"}}> ({{\n^bb0(%x: tensor<{e}>, %y: tensor<{e}>):\n" + "\n".join(lines)
        + f"\nstablehlo.return {last} : tensor<i1> }}) : ({t}) -> {t}\n"
        f"%p = stablehlo.slice %s [0:2] : ({t}) -> tensor<2x{e}>\n"
        f"%r = stablehlo.convert %p : (tensor<2x{e}>) -> {V}"
    )  # fmt: skip


def _window(rng: random.Random) -> str:
    w, s, d, b = (abs(rng.choice((1, 1, *EXTREMES))) or 1 for _ in range(4))
    if w in (2**31 - 1, 2**15) and d == 1:
        w = 7  # it would be computed, for seconds
    spread = (w - 1) * d + 1
    size = 1 + b  # two elements, dilated
    low = rng.choice((0, spread - 1, spread - size, *EXTREMES))
    high = s + spread - size - low  # so that there are two windows
    reducer = "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%s = stablehlo.{} %x, %y : tensor<f32>\n"
    return _main(
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        '%r = "stablehlo.reduce_window"(%a, %z) ({\n'
        + reducer.format(rng.choice(("add", "maximum", "subtract")))
        + "stablehlo.return %s : tensor<f32> })"
        f" {{window_dimensions = array<i64: {w}>, window_strides = array<i64: {s}>, "
        f"window_dilations = array<i64: {d}>, base_dilations = array<i64: {b}>, "
        f"padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}} : ({V}, tensor<f32>) -> {V}"
    )


def _padding(rng: random.Random) -> str:
    low, inner = rng.choice(EXTREMES), abs(rng.choice(EXTREMES))
    high = -low - inner
    return _main(
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%r = stablehlo.pad %a, %z, low = [{low}], high = [{high}], interior = [{inner}] : "
        f"({V}, tensor<f32>) -> {V}"
    )


def _large(rng: random.Random) -> str:
    n = rng.choice((2, 2**20, 2**36, 2**40, 2**58))
    t = f"tensor<{n}xi32>"
    return _main(
        f"%i = stablehlo.iota dim = 0 : {t}\n%p = stablehlo.slice %i [{n - 2}:{n}] : ({t}) -> "
        f"tensor<2xi32>\n%q = stablehlo.convert %p : (tensor<2xi32>) -> {V}\n"
        f"%r = stablehlo.add %q, %a : {V}"
    )


def _scattered(rng: random.Random) -> str:
    at = rng.choice(EXTREMES)
    return _main(
        f"%i = stablehlo.constant dense<{at}> : tensor<1xi64>\n"
        f"%u = stablehlo.slice %a [0:1] : ({V}) -> tensor<1xf32>\n"
        '%r = "stablehlo.scatter"(%a, %i, %u) ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
        "stablehlo.return %y : tensor<f32> }) {scatter_dimension_numbers = #stablehlo.scatter<"
        "update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, "
        f"indices_are_sorted = true, unique_indices = {rng.choice(('true', 'false'))}}} : "
        f"({V}, tensor<1xi64>, tensor<1xf32>) -> {V}"
    )


def _sliced(rng: random.Random) -> str:
    at = rng.choice(EXTREMES)
    return _main(
        f"%i = stablehlo.constant dense<{at}> : tensor<i64>\n"
        f"%u = stablehlo.dynamic_slice %a, %i, sizes = [1] : ({V}, tensor<i64>) -> tensor<1xf32>\n"
        f"%r = stablehlo.dynamic_update_slice %a, %u, %i : ({V}, tensor<1xf32>, tensor<i64>) -> {V}"
    )


CRAFTED: tuple[Callable[[random.Random], str], ...] = (
    _chain, _custom_call, _custom_call, _large, _padding, _scattered, _sliced, _sort, _window,
)  # fmt: skip
