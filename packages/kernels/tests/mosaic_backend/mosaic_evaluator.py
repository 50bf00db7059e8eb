"""Evaluation of the text of Mosaic's kernels with NumPy, to check kernels without a TPU.

Blocks are copied as Mosaic's pipeline copies them: those of the next step before the results of a
step are written. Accesses outside of memory, and promises that do not hold, are errors.
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
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "bf16": ml_dtypes.bfloat16,
    "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
NAME = r"%\w+(?:#\d+)?"


class Region(NamedTuple):
    arguments: list[str]
    operations: list[Operation]


class Operation(NamedTuple):
    results: list[str]
    text: str
    regions: list[Region]


def parse_type(text: str) -> tuple[tuple[int, ...], str]:
    """Shape and element type of a vector, memory or scalar."""
    match = re.fullmatch(r"(?:vector|memref)<((?:\d+x)*)([^,]*?)(?:, .*)?>", text.strip())
    if match is None:
        return (), text.strip()
    return tuple(int(n) for n in match[1].split("x")[:-1]), match[2]


def _parse(lines: Iterator[str]) -> tuple[Region, str]:
    """Operations up to the end of a region, and the line that ends it."""
    region = Region([], [])
    for line in lines:
        line = line.strip()
        if line.startswith("^bb0"):
            region.arguments.extend(re.findall(NAME, line))
        elif line.startswith("}"):
            return region, line
        elif line:
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
    return Operation(results, text, regions)


class Function(NamedTuple):
    """A parsed function: names and types of its parameters, its attributes and its body."""

    parameters: list[tuple[str, str]]
    attributes: str
    body: Region


def parse_functions(text: str) -> dict[str, Function]:
    """The functions of a module, by name."""
    functions = {}
    lines = iter(text.splitlines())
    for line in lines:
        match = re.match(r"func\.func @(\w+)\((.*?)\)(?: attributes| ->) (.*)\{$", line)
        if match is None:
            continue
        parameters = re.findall(r"(%\w+): ((?:memref<.*?>>?)|\w+)", match[2])
        parameters = [(n, t + ">" if t.count("<") > t.count(">") else t) for n, t in parameters]
        functions[match[1]] = Function(parameters, match[3], _parse(lines)[0])
    return functions


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def _round_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _quotient(x: Any, y: Any) -> Any:
    # The hardware's result for a division by 0 is arbitrary.
    return np.where(y == 0, 12345, np.trunc(x.astype(np.float64) / np.where(y == 0, 1, y)))


def _remainder(x: Any, y: Any) -> Any:
    return np.where(y == 0, 12345, np.fmod(x, np.where(y == 0, 1, y)))


def _leading_zeros(x: Any) -> Any:
    return 32 - np.vectorize(lambda v: int(v).bit_length(), otypes=[np.int32])(x.view(np.uint32))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.subf": np.subtract,
    "arith.subi": np.subtract, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.divf": np.divide, "arith.remf": np.fmod, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.divsi": _quotient, "arith.remsi": _remainder, "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift, "math.powf": np.power, "math.atan2": np.arctan2,
}  # fmt: skip
UNSIGNED = {
    "arith.maxui": np.maximum, "arith.minui": np.minimum, "arith.divui": np.floor_divide,
    "arith.remui": np.remainder, "arith.shrui": np.right_shift,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "math.exp": np.exp, "math.exp2": np.exp2, "math.log": np.log, "math.log2": np.log2,
    "math.log1p": np.log1p, "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan,
    "math.tanh": np.tanh, "math.sqrt": np.sqrt, "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.absf": np.abs, "math.floor": np.floor, "math.ceil": np.ceil, "math.erf": _erf,
    "math.round": _round_away, "math.roundeven": np.rint, "arith.negf": np.negative,
    "math.ctpop": lambda x: np.bitwise_count(x.view(np.uint32)), "math.ctlz": _leading_zeros,
}  # fmt: skip
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
           "gt": np.greater, "ge": np.greater_equal}  # fmt: skip
REDUCE = {"add": np.add, "maximumf": np.fmax, "minimumf": np.fmin, "maxsi": np.maximum,
          "minsi": np.minimum}  # fmt: skip
"""Reductions; a maximum that drops NaN is allowed."""


def _unsigned(x: Any) -> Any:
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"uint{x.dtype.itemsize * 8}")


class Machine:
    """The values of a function while it runs, by name, and copies that are not awaited."""

    def __init__(self, values: dict[str, Any], copies: list[Any] | None = None):
        self.values = values
        self.copies: list[Any] = [] if copies is None else copies

    def run(self, region: Region) -> list[Any]:
        """Evaluate a region; the values that it yields."""
        for op in region.operations:
            head = op.text.split(" ")[0].split("(")[0].strip('"')
            if head in ("scf.yield", "return", "scf.condition"):
                return self.operands(op.text.split(" : ")[0])
            results = self.evaluate(head, op)
            for name, value in zip(op.results, results, strict=True):
                self.values[name] = value
        return []

    def operands(self, text: str) -> list[Any]:
        return [self.values[n] for n in re.findall(NAME, text)]

    def evaluate(self, head: str, op: Operation) -> Sequence[Any]:
        simple = not op.regions and "dma" not in head
        operands = self.operands(op.text.split(" : ")[0]) if simple else []
        with np.errstate(all="ignore"):
            if head in BINARY:
                x, y = operands
                assert x.shape == y.shape and x.dtype == y.dtype, op.text
                return [np.asarray(BINARY[head](x, y)).astype(x.dtype)]
            if head in UNSIGNED:
                x, y = (_unsigned(v) for v in operands)
                return [np.asarray(UNSIGNED[head](x, y)).view(operands[0].dtype)]
            if head in UNARY:
                (x,) = operands
                return [np.asarray(UNARY[head](x)).astype(x.dtype)]
            return getattr(self, "_" + head.replace(".", "_"))(op, *operands)

    # Constants, conversions, selection

    def _arith_constant(self, op: Operation) -> list[Any]:
        text = op.text[len("arith.constant ") :]
        if text in ("true", "false"):
            return [np.asarray(text == "true")]
        value, type_ = text.split(" : ")
        shape, element = parse_type(type_)
        value = value.removeprefix("dense<").removesuffix(">")
        dtype = np.dtype(np.int64 if element == "index" else DTYPES[element])
        if value in ("true", "false"):
            scalar = np.asarray(value == "true")
        elif value.startswith("0x"):
            scalar = np.asarray(int(value, 16), f"uint{dtype.itemsize * 8}").view(dtype)
        else:
            scalar = np.asarray(float(value) if element[0] in "fb" else int(value)).astype(dtype)
        return [np.full(shape, scalar, dtype)]

    def _arith_index_cast(self, op: Operation, x: Any) -> list[Any]:
        return [x.astype(np.int64)]

    def _cast(self, op: Operation, x: Any) -> list[Any]:
        return [x.astype(DTYPES[parse_type(op.text.split(" to ")[-1])[1]])]

    _arith_extf = _arith_truncf = _arith_sitofp = _arith_extsi = _arith_trunci = _cast

    def _from_unsigned(self, op: Operation, x: Any) -> list[Any]:
        return [_unsigned(x).astype(DTYPES[parse_type(op.text.split(" to ")[-1])[1]])]

    _arith_extui = _arith_uitofp = _from_unsigned

    def _to_integer(self, op: Operation, x: Any) -> list[Any]:
        # Numbers outside of the range give arbitrary integers.
        to = np.dtype(np.uint32 if "fptoui" in op.text else np.int32)
        info = np.iinfo(to)
        wide = np.trunc(np.asarray(x, np.float64))
        inside = (wide >= info.min) & (wide <= info.max)
        return [np.where(inside, wide, 999).astype(to).view(np.int32)]

    _arith_fptosi = _arith_fptoui = _to_integer

    def _tpu_bitcast(self, op: Operation, x: Any) -> list[Any]:
        return [x.view(DTYPES[parse_type(re.split(r" -> | to ", op.text)[-1])[1]])]

    _arith_bitcast = _tpu_bitcast

    def _arith_cmpi(self, op: Operation, x: Any, y: Any) -> list[Any]:
        predicate = op.text.split(" ")[1].rstrip(",")
        if predicate[0] == "u" or x.dtype == np.bool_:
            x, y = _unsigned(x), _unsigned(y)
        return [np.asarray(COMPARE[predicate[-2:]](x, y))]

    def _arith_cmpf(self, op: Operation, x: Any, y: Any) -> list[Any]:
        return [np.asarray(COMPARE[op.text.split(" ")[1].rstrip(",")[1:]](x, y))]

    def _arith_select(self, op: Operation, condition: Any, x: Any, y: Any) -> list[Any]:
        return [np.where(condition, x, y).astype(x.dtype)]

    # Shapes

    def _vector_broadcast(self, op: Operation, x: Any) -> list[Any]:
        return [np.broadcast_to(x, parse_type(op.text.split(" to ")[-1])[0])]

    def _vector_shape_cast(self, op: Operation, x: Any) -> list[Any]:
        return [x.reshape(parse_type(op.text.split(" to ")[-1])[0])]

    def _vector_extract(self, op: Operation, x: Any) -> list[Any]:
        assert x.size == 1
        return [x.reshape(())]

    def _vector_transpose(self, op: Operation, x: Any) -> list[Any]:
        return [np.transpose(x, _numbers(r", \[([^\]]*)\] :", op.text))]

    def _tpu_iota(self, op: Operation) -> list[Any]:
        shape, _ = parse_type(op.text.split(" : ")[-1])
        (axis,) = _numbers(r"array<i32: ([^>]*)>", op.text)
        places = np.arange(shape[axis], dtype=np.int32)
        places = places.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        return [np.broadcast_to(places, shape)]

    def _vector_extract_strided_slice(self, op: Operation, x: Any) -> list[Any]:
        starts = _numbers(r"offsets = \[([^\]]*)\]", op.text)
        sizes = _numbers(r"sizes = \[([^\]]*)\]", op.text)
        assert all(s + n <= m for s, n, m in zip(starts, sizes, x.shape)), op.text
        return [x[tuple(slice(s, s + n) for s, n in zip(starts, sizes))]]

    def _tpu_concatenate(self, op: Operation, *values: Any) -> list[Any]:
        return [np.concatenate(values, int(re.search(r" in (\d+) :", op.text)[1]))]  # type: ignore[index]

    def _tpu_dynamic_rotate(self, op: Operation, x: Any, amount: Any) -> list[Any]:
        axis = int(re.search(r" dim (\d+) ", op.text)[1])  # type: ignore[index]
        assert amount >= 0
        return [np.roll(x, int(amount), axis)]

    def _vector_multi_reduction(self, op: Operation, x: Any, start: Any) -> list[Any]:
        kind = re.search(r"<(\w+)>", op.text)[1]  # type: ignore[index]
        axes = tuple(_numbers(r" \[([^\]]*)\] :", op.text))
        return [REDUCE[kind](REDUCE[kind].reduce(x, axes), start).astype(x.dtype)]

    def _tpu_matmul(self, op: Operation, x: Any, y: Any, start: Any) -> list[Any]:
        lists = re.search(r"dot_dimension_numbers<(.*?)>", op.text)[1]  # type: ignore[index]
        over_x, over_y, _, _, order, batch_x, batch_y = (
            [int(n) for n in part.split(",") if n] for part in re.findall(r"\[([^\]]*)\]", lists)
        )
        names_x, names_y = list("abcdef"[: x.ndim]), list("uvwxyz"[: y.ndim])
        for i, j in zip([*over_x, *batch_x], [*over_y, *batch_y]):
            names_y[j] = names_x[i]
        out = "".join((names_x, names_y)[s][d] for s, d in zip(order[::2], order[1::2]))
        wide = np.float64 if start.dtype.kind == "f" else np.int64
        equation = f"{''.join(names_x)},{''.join(names_y)}->{out}"
        return [(start + np.einsum(equation, x.astype(wide), y.astype(wide))).astype(start.dtype)]

    # Memory

    def _tpu_assume_multiple(self, op: Operation, x: Any) -> list[Any]:
        n = int(re.search(r", (\d+) :", op.text)[1])  # type: ignore[index]
        assert x % n == 0, f"{x} is not a multiple of {n}"
        return [x]

    def _place(self, memory: Any, starts: Sequence[Any], shape: tuple[int, ...]) -> Any:
        assert len(starts) == memory.ndim
        for s, n, m in zip(starts, shape, memory.shape):
            assert 0 <= s and s + n <= m, f"access outside of the memory: {s}, {n} of {m}"
        return tuple(slice(int(s), int(s) + n) for s, n in zip(starts, shape))

    def _vector_load(self, op: Operation, memory: Any, *starts: Any) -> list[Any]:
        shape, _ = parse_type(op.text.split(", ")[-1])
        return [memory[self._place(memory, starts, shape)].copy()]

    def _tpu_vector_store(self, op: Operation, memory: Any, *rest: Any) -> list[Any]:
        starts = rest[: memory.ndim]
        x, *masked = rest[memory.ndim :]
        place = self._place(memory, starts, x.shape)
        assert memory.dtype == x.dtype
        memory[place] = np.where(masked[0], x, memory[place]) if masked else x
        return []

    def _memref_load(self, op: Operation, memory: Any, *at: Any) -> list[Any]:
        return [memory[self._place(memory, at, (1,) * memory.ndim)].reshape(()).copy()]

    def _memref_store(self, op: Operation, x: Any, memory: Any, *at: Any) -> list[Any]:
        memory[self._place(memory, at, (1,) * memory.ndim)] = x
        return []

    # Copies: a destination has arbitrary contents until the wait

    def _tpu_memref_slice(self, op: Operation, memory: Any, *starts: Any) -> list[Any]:
        shape, _ = parse_type(op.text.split(" -> ")[-1])
        return [memory[self._place(memory, starts, shape)]]

    def _tpu_memref_squeeze(self, op: Operation, memory: Any) -> list[Any]:
        return [memory.reshape(parse_type(op.text.split(" -> ")[-1])[0], copy=False)]

    def _copy_of(self, op: Operation) -> list[Any]:
        names = [re.search(rf"{kind}\(({NAME})", op.text) for kind in
                 (r"(?:source|src)", r"(?:target|dst)", r"semaphore")]  # fmt: skip
        return [self.values[name[1]] for name in names if name is not None]

    def _tpu_enqueue_dma(self, op: Operation, *_: Any) -> list[Any]:
        source, target, semaphore = self._copy_of(op)
        assert source.shape == target.shape and source.dtype == target.dtype
        assert not np.shares_memory(source, target)
        self.copies.append((source, target, _address(semaphore)))
        target[...] = garbage(target.shape, target.dtype)
        return []

    def _tpu_wait_dma2(self, op: Operation, *_: Any) -> list[Any]:
        _, target, semaphore = self._copy_of(op)
        begun = [c for c in self.copies if c[2] == _address(semaphore)]
        assert begun and begun[0][1].nbytes == target.nbytes, "a wait for a copy that is not begun"
        begun[0][1][...] = begun[0][0]
        self.copies[:] = [c for c in self.copies if c is not begun[0]]
        return []

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


def _numbers(pattern: str, text: str) -> list[int]:
    match = re.search(pattern, text)
    assert match is not None, text
    return [int(n) for n in match[1].split(",") if n.strip()]


def _address(x: Any) -> int:
    """The position of a semaphore in memory."""
    return x.__array_interface__["data"][0]


def garbage(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Contents of memory that nothing was written to."""
    return np.full(shape, 77).astype(dtype)


class Window:
    """A block of an array in the memory of the core."""

    def __init__(self, array: np.ndarray, params: str, function: Function | None):
        self.array, self.function = array, function
        self.at: tuple[int, ...] | None = None
        self.memory = array
        if function is not None:
            self.sizes = _numbers(r"window_bounds = array<i64: ([^>]*)>", params)
            self.elements = "element_window" in params
            self.low = _numbers(r"element_window<\[([^\]]*)\]", params) if self.elements else []

    def index(self, ids: Sequence[int], prefetched: Sequence[Any]) -> tuple[int, ...] | None:
        """The block of a step."""
        if self.function is None:
            return None
        names = [name for name, _ in self.function.parameters]
        values = [*(np.asarray(i, np.int32) for i in ids), *prefetched]
        machine = Machine(dict(zip(names, values, strict=True)))
        return tuple(int(i) for i in machine.run(self.function.body))

    def _slices(self, at: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the array, and of the block, that exists."""
        there, here = [], []
        for axis, (i, size, n) in enumerate(zip(at, self.sizes, self.array.shape)):
            start = i - self.low[axis] if self.elements else i * size
            first, last = max(start, 0), min(start + size, n)
            assert self.elements or first < last, "a block outside of the array"
            there.append(slice(first, max(last, first)))
            here.append(slice(first - start, max(last, first) - start))
        return tuple(there), tuple(here)

    def fetch(self, at: tuple[int, ...]) -> np.ndarray:
        """A copy of a block; what is outside of the array is arbitrary."""
        block = garbage(tuple(self.sizes), self.array.dtype)
        there, here = self._slices(at)
        block[here] = self.array[there]
        return block

    def write_back(self) -> None:
        """Write the block to the array."""
        if self.at is not None:
            there, here = self._slices(self.at)
            self.array[there] = self.memory[here]


class Call:
    """A module with the arrays of a call.

    Args:
      text: the module.
      inputs: the arrays that the call takes, prefetched scalars first.
      outputs: the arrays of the results.
      sizes: computed sizes of the grid.
    """

    def __init__(
        self, text: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
        sizes: Sequence[int] = (),
    ):  # fmt: skip
        functions = parse_functions(text)
        self.main = functions["main"]
        attributes = self.main.attributes
        bounds = _numbers(r"iteration_bounds = array<i64: ([^>]*)>", attributes)
        computed = iter(sizes)
        self.grid = [next(computed) if n == -(1 << 63) else n for n in bounds]
        n = int(re.search(r"scalar_prefetch = (\d+)", attributes)[1])  # type: ignore[index]
        params = re.search(r"window_params = \[(.*)\]", attributes)[1]  # type: ignore[index]
        windows = re.findall(r"\{([^}]*)\}", params)
        self.prefetched = list(inputs[:n])
        arrays = [*inputs[n:], *outputs]
        assert len(windows) == len(arrays)
        self.windows = []
        for array, w in zip(arrays, windows):
            match = re.search(r"@(\w+)", w)
            self.windows.append(Window(array, w, functions[match[1]] if match else None))
        self.n_inputs = len(inputs) - n
        first = len(self.grid) + n + len(arrays)
        self.scratch = []
        for _, type_ in self.main.parameters[first:]:
            shape, element = parse_type(type_)
            semaphores = element.startswith("!tpu.")
            dtype = np.int64 if semaphores else DTYPES[element]
            self.scratch.append(np.zeros(shape, dtype) if semaphores else garbage(shape, dtype))
        self.copies: list[Any] = []

    def run(self) -> None:
        """Run all steps of the grid."""
        steps = list(itertools.product(*map(range, self.grid)))
        if not steps:
            return
        names = [name for name, _ in self.main.parameters]
        self._fetch(steps[0])
        for ids, following in zip(steps, [*steps[1:], None]):
            for w in self.windows[self.n_inputs :]:
                at = w.index(ids, self.prefetched)
                if at is not None and at != w.at:
                    w.at, w.memory = at, garbage(tuple(w.sizes), w.array.dtype)
            blocks = [w.memory for w in self.windows]
            values = [*(np.asarray(i, np.int32) for i in ids), *self.prefetched, *blocks]
            for (name, type_), x in zip(self.main.parameters, values):
                assert not isinstance(x, np.ndarray) or parse_type(type_)[0] == x.shape, name
            bound = dict(zip(names, [*values, *self.scratch], strict=True))
            self.machine(bound).run(self.main.body)
            if following is not None:
                self._fetch(following)
            for w in self.windows[self.n_inputs :]:
                if following is None or w.index(following, self.prefetched) != w.at:
                    w.write_back()
        assert not self.copies, "a copy that is not awaited"

    def machine(self, values: dict[str, Any]) -> Machine:
        """The machine that evaluates a step, with the values of the parameters by name."""
        return Machine(values, self.copies)

    def _fetch(self, ids: Sequence[int]) -> None:
        for w in self.windows[: self.n_inputs]:
            at = w.index(ids, self.prefetched)
            if at is not None and at != w.at:
                w.at, w.memory = at, w.fetch(at)


def _in_memory(x: np.ndarray) -> np.ndarray:
    """An array with the type that it has for Mosaic."""
    x = np.array(x).reshape(x.shape or (1,))
    if x.dtype == np.bool_:
        x = x.astype(np.int32)
    return x.view(f"int{x.dtype.itemsize * 8}") if x.dtype.kind == "u" else x


def evaluate(
    program: Any, kernel: Any, args: Sequence[np.ndarray], call: Callable[..., Call] = Call
) -> list[np.ndarray]:
    """The results of a kernel's program.

    Memory that an operand and a result share is one array, as XLA makes it.
    """
    inputs = []
    for operand in program.operands:
        if operand.filled:
            aval = kernel.outputs[operand.number].aval
            fill = np.nan if aval.dtype.kind not in "iub" else 0
            inputs.append(_in_memory(np.full(aval.shape, fill, aval.dtype)))
        else:
            inputs.append(_in_memory(np.asarray(args[operand.number])))
    shared = {o: i for i, o in program.aliases}
    outputs = []
    for o, m in enumerate(kernel.outputs):
        unwritten = _in_memory(garbage(m.aval.shape, m.aval.dtype))
        outputs.append(inputs[shared[o]] if o in shared else unwritten)
    sizes = [max(int(args[j]), 0) for j in program.sizes]
    call(program.text, inputs, outputs, sizes).run()
    results = []
    for x, m in zip(outputs, kernel.outputs):
        x = x.reshape(m.aval.shape)
        results.append(x != 0 if m.aval.dtype == np.bool_ else x.view(m.aval.dtype))
    return results
