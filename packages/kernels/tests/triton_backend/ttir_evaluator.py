"""Evaluation of the text of Triton functions with NumPy, to check kernels without a GPU.

Programs run one after the other. Accesses outside of a buffer, and two programs that write the same
element, are errors.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
NAME = r"%\w+(?:#\d+)?"


class Pointer(NamedTuple):
    """Positions in a buffer."""

    buffer: Buffer
    positions: Any


class Buffer:
    """An array in memory; Booleans are bytes."""

    def __init__(self, x: np.ndarray):
        self.array = x
        flat = x.reshape(-1)
        self.flat = flat.view(np.int8) if x.dtype == np.bool_ else flat
        if self.flat.dtype.kind == "u":
            self.flat = self.flat.view(f"int{self.flat.dtype.itemsize * 8}")
        self.writers = np.full(flat.shape, -1)


class Region(NamedTuple):
    arguments: list[str]
    operations: list[Operation]


class Operation(NamedTuple):
    results: list[str]
    text: str
    regions: list[Region]


def parse_type(text: str) -> tuple[tuple[int, ...], str]:
    """Shape and element type."""
    match = re.fullmatch(r"tensor<((?:\d+x)+)(.*)>", text.strip())
    if match is None:
        return (), text.strip()
    return tuple(int(n) for n in match[1].split("x")[:-1]), match[2]


def _parse(lines: Iterator[str]) -> tuple[Region, str]:
    """Operations up to the end of a region, and the line that ends it."""
    region = Region([], [])
    for line in lines:
        line = line.strip()
        if not line:
            continue
        if line.startswith("^bb0"):
            region.arguments.extend(re.findall(NAME, line))
        elif line.startswith("}"):
            return region, line
        else:
            region.operations.append(_operation(line, lines))
    return region, ""


def _operation(line: str, lines: Iterator[str]) -> Operation:
    match = re.match(r"(%\w+)(?::(\d+))? = (.*)", line)
    results, text = [], line
    if match is not None:
        n = match[2]
        results = [match[1]] if n is None else [f"{match[1]}#{i}" for i in range(int(n))]
        text = match[3]
    regions = []
    if text.endswith("{"):
        while True:
            region, end = _parse(lines)
            regions.append(region)
            if not end.endswith("{"):
                break
        if end.startswith("})"):
            text += end
    return Operation(results, text, regions)


class Function:
    """A parsed function.

    Args:
      text: a module with one function.
    """

    def __init__(self, text: str):
        lines = iter(text.splitlines())
        head = next(line for line in lines if "tt.func" in line)
        self.parameters = re.findall(r"(%\w+): (!tt\.ptr<\w+>)", head)
        self.body, _ = _parse(lines)

    def run(self, buffers: Sequence[Buffer], grid: tuple[int, int, int]) -> None:
        """Run all programs of a grid."""
        assert len(buffers) == len(self.parameters)
        for number, (z, y, x) in enumerate(itertools.product(*map(range, reversed(grid)))):
            program = _Program((x, y, z), number)
            for (name, type_), buffer in zip(self.parameters, buffers):
                element = np.dtype(DTYPES[type_[len("!tt.ptr<") : -1]])
                assert element == buffer.flat.dtype, (name, type_, buffer.flat.dtype)
                program.values[name] = Pointer(buffer, np.zeros((), np.int64))
            program.run(self.body)


def _round_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _quotient(x: Any, y: Any) -> Any:
    # The hardware's result for a division by 0 is arbitrary.
    return np.where(y == 0, 12345, np.trunc(x.astype(np.float64) / y))


def _remainder(x: Any, y: Any) -> Any:
    return np.where(y == 0, 12345, np.fmod(x, np.where(y == 0, 1, y)))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.subf": np.subtract,
    "arith.subi": np.subtract, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.divf": np.divide, "arith.remf": np.fmod, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.divsi": _quotient, "arith.remsi": _remainder,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
}  # fmt: skip
UNSIGNED = {
    "arith.maxui": np.maximum, "arith.minui": np.minimum, "arith.divui": np.floor_divide,
    "arith.remui": np.remainder, "arith.shrui": np.right_shift,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "math.exp": np.exp, "math.exp2": np.exp2, "math.log": np.log, "math.log2": np.log2,
    "math.sin": np.sin, "math.cos": np.cos, "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.absf": np.abs, "math.floor": np.floor,
    "math.ceil": np.ceil, "arith.negf": np.negative, "math.erf": _erf,
}  # fmt: skip
EXTERNAL: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "expm1": np.expm1, "log1p": np.log1p,
    "cbrt": np.cbrt, "pow": np.power, "rint": np.rint, "round": _round_away,
    "nextafter": np.nextafter,
}  # fmt: skip
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
           "gt": np.greater, "ge": np.greater_equal}  # fmt: skip


def _unsigned(x: Any) -> Any:
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"uint{x.dtype.itemsize * 8}")


class _Program:
    """One program: its position in the grid, and its values by name."""

    def __init__(self, ids: tuple[int, int, int], number: int):
        self.ids = ids
        self.number = number
        self.values: dict[str, Any] = {}

    def run(self, region: Region) -> list[Any]:
        """Evaluate a region; the values that it yields."""
        for op in region.operations:
            head = op.text.split(" ")[0].split("(")[0].strip('"')
            if head in ("scf.yield", "tt.reduce.return", "tt.scan.return", "tt.return"):
                return self.operands(op.text)
            if head == "scf.condition":
                return self.operands(op.text)
            results = self.evaluate(head, op)
            for name, value in zip(op.results, results, strict=True):
                self.values[name] = value
        return []

    def operands(self, text: str) -> list[Any]:
        return [self.values[n] for n in re.findall(NAME, text)]

    def evaluate(self, head: str, op: Operation) -> Sequence[Any]:
        text = op.text
        with np.errstate(all="ignore"):
            if head in BINARY:
                x, y = self.operands(text)
                return [np.asarray(BINARY[head](x, y)).astype(x.dtype)]
            if head in UNSIGNED:
                x, y = (_unsigned(v) for v in self.operands(text))
                return [np.asarray(UNSIGNED[head](x, y)).view(self.operands(text)[0].dtype)]
            if head in UNARY:
                (x,) = self.operands(text)
                return [np.asarray(UNARY[head](x)).astype(x.dtype)]
            method = getattr(self, "_" + head.replace(".", "_"))
            return method(op)

    # Constants, conversions, selection

    def _arith_constant(self, op: Operation) -> list[Any]:
        text = op.text[len("arith.constant ") :]
        if text in ("true", "false"):
            return [np.asarray(text == "true")]
        value, type_ = text.split(" : ")
        shape, element = parse_type(type_)
        value = value.removeprefix("dense<").removesuffix(">")
        dtype = np.dtype(DTYPES[element])
        if value in ("true", "false"):
            scalar = np.asarray(value == "true")
        elif value.startswith("0x"):
            scalar = np.asarray(int(value, 16), f"uint{dtype.itemsize * 8}").view(dtype)
        else:
            scalar = np.asarray(float(value) if element[0] in "fb" else int(value)).astype(dtype)
        return [np.full(shape, scalar, dtype)]

    def _cast(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        _, element = parse_type(re.split(r" to | -> ", op.text)[-1])
        return [x.astype(DTYPES[element])]

    _arith_extf = _arith_truncf = _arith_sitofp = _arith_extsi = _arith_trunci = _cast
    _tt_fp_to_fp = _cast

    def _from_unsigned(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        _, element = parse_type(op.text.split(" to ")[-1])
        return [_unsigned(x).astype(DTYPES[element])]

    _arith_extui = _arith_uitofp = _from_unsigned

    def _to_integer(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        _, element = parse_type(op.text.split(" to ")[-1])
        to = np.dtype(DTYPES[element])
        if "fptoui" in op.text:
            to = np.dtype(f"uint{to.itemsize * 8}")
        info = np.iinfo(to)
        limited = np.clip(np.nan_to_num(np.asarray(x, np.float64)), info.min, info.max)
        return [limited.astype(to).view(DTYPES[element])]

    _arith_fptosi = _arith_fptoui = _to_integer

    def _tt_bitcast(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        return [x.view(DTYPES[parse_type(op.text.split(" -> ")[-1])[1]])]

    def _arith_cmpi(self, op: Operation) -> list[Any]:
        predicate = op.text.split(" ")[1].rstrip(",")
        x, y = self.operands(op.text)
        if predicate[0] == "u" or x.dtype == np.bool_:
            x, y = _unsigned(x), _unsigned(y)
        return [np.asarray(COMPARE[predicate[-2:]](x, y))]

    def _arith_cmpf(self, op: Operation) -> list[Any]:
        x, y = self.operands(op.text)
        return [np.asarray(COMPARE[op.text.split(" ")[1].rstrip(",")[1:]](x, y))]

    def _arith_select(self, op: Operation) -> list[Any]:
        condition, x, y = self.operands(op.text)
        return [np.where(condition, x, y).astype(x.dtype)]

    def _tt_extern_elementwise(self, op: Operation) -> list[Any]:
        symbol = re.search(r'symbol = "__nv_(\w+)"', op.text)[1]  # type: ignore[index]
        values = self.operands(op.text.split(" {")[0])
        if symbol.startswith(("popc", "clz")):
            bits = values[0].dtype.itemsize * 8
            words = _unsigned(values[0])
            if symbol.startswith("popc"):
                return [np.bitwise_count(words).astype(np.int32)]
            length = np.vectorize(lambda v: int(v).bit_length(), otypes=[np.int32])
            return [np.asarray(bits - length(words), np.int32)]
        if values[0].dtype == np.float32:
            symbol = symbol.removesuffix("f")
        return [np.asarray(EXTERNAL[symbol](*values)).astype(values[0].dtype)]

    # Shapes

    def _tt_get_program_id(self, op: Operation) -> list[Any]:
        return [np.asarray(self.ids["xyz".index(op.text.split(" ")[1])], np.int32)]

    def _tt_make_range(self, op: Operation) -> list[Any]:
        shape, _ = parse_type(op.text.split(" : ")[-1])
        return [np.arange(shape[0], dtype=np.int32)]

    def _reshaped(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        shape, _ = parse_type(op.text.split(" -> ")[-1])
        change = np.reshape if "reshape" in op.text or "expand_dims" in op.text else np.broadcast_to
        if isinstance(x, Pointer):
            return [Pointer(x.buffer, change(x.positions, shape))]
        return [change(x, shape)]

    _tt_splat = _tt_broadcast = _tt_expand_dims = _tt_reshape = _reshaped

    def _tt_unsplat(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text)
        assert x.size == 1
        return [x.reshape(())]

    def _tt_trans(self, op: Operation) -> list[Any]:
        (x,) = self.operands(op.text.split(" : ")[0])
        order = re.search(r"array<i32: ([^>]*)>", op.text)[1]  # type: ignore[index]
        return [np.transpose(x, [int(n) for n in order.split(",")])]

    def _tt_gather(self, op: Operation) -> list[Any]:
        x, positions = self.operands(op.text.split(" : ")[0])
        axis = int(re.search(r"axis = (\d+)", op.text)[1])  # type: ignore[index]
        assert positions.min() >= 0 and positions.max() < x.shape[axis]
        return [np.take_along_axis(x, positions, axis)]

    def _tt_dot(self, op: Operation) -> list[Any]:
        x, y, start = self.operands(op.text.split(" : ")[0])
        wide = np.float64 if start.dtype.kind == "f" else np.int64
        return [(start + np.matmul(x.astype(wide), y.astype(wide))).astype(start.dtype)]

    def _tt_reduce(self, op: Operation) -> list[Any]:
        return self._folded(op, scanned=False)

    def _tt_scan(self, op: Operation) -> list[Any]:
        return self._folded(op, scanned=True)

    def _folded(self, op: Operation, scanned: bool) -> list[Any]:
        values = self.operands(op.text.split(" <{")[0])
        axis = int(re.search(r"axis = (\d+)", op.text)[1])  # type: ignore[index]
        rows = [np.moveaxis(x, axis, 0) for x in values]
        order = range(len(rows[0]))
        if "reverse = true" in op.text:
            order = reversed(order)  # type: ignore[assignment]
        total: list[Any] | None = None
        sums = [np.empty_like(x) for x in rows]
        region = op.regions[0]
        for i in order:
            row = [x[i] for x in rows]
            if total is None:
                total = row
            else:
                self.values.update(zip(region.arguments, [*total, *row], strict=True))
                total = self.run(region)
            for s, t in zip(sums, total):
                s[i] = t
        assert total is not None
        return (
            [np.moveaxis(s, 0, axis) for s in sums] if scanned else [np.asarray(t) for t in total]
        )

    # Memory

    def _gpu_barrier(self, op: Operation) -> list[Any]:
        return []

    def _tt_addptr(self, op: Operation) -> list[Any]:
        pointer, offset = self.operands(op.text.split(" : ")[0])
        return [Pointer(pointer.buffer, pointer.positions + offset.astype(np.int64))]

    def _tt_load(self, op: Operation) -> list[Any]:
        pointer, *masked = self.operands(op.text.split(" : ")[0])
        mask = masked[0] if masked else np.ones(pointer.positions.shape, bool)
        where = self._checked(pointer, mask)
        x = pointer.buffer.flat[where]
        if not masked:
            return [np.asarray(x)]
        other = masked[1] if len(masked) > 1 else np.asarray(77).astype(x.dtype)  # undefined
        return [np.where(mask, x, other).astype(x.dtype)]

    def _tt_store(self, op: Operation) -> list[Any]:
        pointer, value, *masked = self.operands(op.text.split(" : ")[0])
        mask = masked[0] if masked else np.ones(pointer.positions.shape, bool)
        where = self._checked(pointer, mask)[mask]
        writers = pointer.buffer.writers[where]
        if ((writers != -1) & (writers != self.number)).any():
            raise AssertionError("two programs write the same element")
        pointer.buffer.writers[where] = self.number
        assert value.dtype == pointer.buffer.flat.dtype
        pointer.buffer.flat[where] = value[mask]
        return []

    def _tt_atomic_rmw(self, op: Operation) -> list[Any]:
        pointer, value, mask = self.operands(op.text.split(" : ")[0])
        where = self._checked(pointer, mask)
        old = pointer.buffer.flat[where]
        np.add.at(pointer.buffer.flat, where[mask], value[mask])
        return [old]

    def _checked(self, pointer: Pointer, mask: Any) -> Any:
        where = np.where(mask, pointer.positions, 0)
        if where.min() < 0 or where.max() >= pointer.buffer.flat.size:
            raise AssertionError(f"access outside of the buffer: {where.min()}, {where.max()}")
        return where

    # Control flow

    def _scf_for(self, op: Operation) -> list[Any]:
        head = re.match(
            rf"scf\.for (%\w+) = ({NAME}) to ({NAME}) step ({NAME})(?: iter_args\(([^)]*)\))?",
            op.text,
        )
        assert head is not None
        low, high, step = (int(self.values[head[i]]) for i in (2, 3, 4))
        pairs = re.findall(rf"(%\w+) = ({NAME})", head[5] or "")
        carry = [self.values[x] for _, x in pairs]
        for i in range(low, high, step):
            self.values[head[1]] = np.asarray(i, np.int32)
            self.values.update(zip([a for a, _ in pairs], carry))
            carry = self.run(op.regions[0])
        return carry

    def _scf_if(self, op: Operation) -> list[Any]:
        condition = self.values[re.findall(NAME, op.text)[0]]
        return self.run(op.regions[0 if condition else 1])

    def _scf_while(self, op: Operation) -> list[Any]:
        pairs = re.findall(rf"(%\w+) = ({NAME})", op.text)
        carry = [self.values[x] for _, x in pairs]
        before, after = op.regions
        while True:
            self.values.update(zip([a for a, _ in pairs], carry))
            condition, *carry = self.run(before)
            if not condition:
                return carry
            self.values.update(zip(after.arguments, carry))
            carry = self.run(after)


def evaluate(program: Any, kernel: Any, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a kernel's program.

    Memory that two operands share is one buffer, as XLA makes it.
    """
    operands = [np.array(args[i]) for i in program.operands]
    for o in program.filled:
        aval = kernel.outputs[o].aval
        fill = 0 if aval.dtype.kind in "iub" else np.nan
        operands.append(np.full(aval.shape, fill, aval.dtype))
    inputs = [Buffer(x) for x in operands]
    shared = {o: i for i, o in program.aliases}
    outputs = []
    for o, m in enumerate(kernel.outputs):
        if o in shared:
            outputs.append(inputs[shared[o]])
        else:
            garbage = np.full(m.aval.shape, 77).astype(m.aval.dtype)
            outputs.append(Buffer(garbage))
    Function(program.text).run([*inputs, *outputs], program.grid)
    return [b.array for b in outputs]
