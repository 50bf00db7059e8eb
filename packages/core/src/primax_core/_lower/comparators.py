"""Recognition of strict orders among the comparators of sorts.

XLA's CPU sort uses `std::sort`, which reads and writes past its buffer if the comparator is not a
strict weak order. A comparator is accepted if it has the form that the lowering of `lax.sort`
writes: lexicographic order of keys, where each key is the same function of the left and of the
right elements, and keys are compared as integers or by the total order of floats.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from jaxlib.mlir import ir


class _Term(NamedTuple):
    """A function of the elements of one side; ``side`` is 2 for constants.

    Equal functions of the left and of the right elements have the same number.
    """

    side: int
    number: int


class _Order(NamedTuple):
    """True where the left keys precede the right ones; a negative number is a descending key.

    With ``equal``, in addition these keys are equal.
    """

    keys: tuple[int, ...]
    equal: frozenset[int] = frozenset()


class _Equal(NamedTuple):
    """True where keys are equal."""

    keys: frozenset[int]


_CONSTANT: Final = 2
# Functions of one side: elementwise, without effects, and deterministic.
_ELEMENTWISE: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs", "add", "and", "bitcast_convert", "compare", "convert", "imag", "is_finite",
        "multiply", "negate", "not", "or", "real", "select", "shift_left",
        "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
    )
)  # fmt: skip


class _Comparator:
    def __init__(self, block: Any):
        self.values: dict[Any, Any] = {}
        self.numbers: dict[Any, int] = {}
        for i, argument in enumerate(block.arguments):
            self.values[argument] = _Term(i % 2, self.number(("argument", i // 2)))

    def number(self, key: Any) -> int:
        """A positive number for each different function."""
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def operand(self, value: Any) -> Any:
        """A value of the comparator, or one from outside, which is a constant."""
        if value in self.values:
            return self.values[value]
        return _Term(_CONSTANT, self.number(("outside", value)))

    def value(self, op: Any) -> Any:
        """The result of an operation; ``None`` if it has no part in an order."""
        if op.name == "stablehlo.constant":
            return _Term(_CONSTANT, self.number(("constant", str(op.attributes["value"]))))
        operands = [self.operand(v) for v in op.operands]
        if op.name not in _ELEMENTWISE or None in operands:
            return None
        if all(type(x) is _Term for x in operands):
            sides = {x.side for x in operands} - {_CONSTANT}
            if len(sides) < 2:
                side = sides.pop() if sides else _CONSTANT
                return _Term(side, self.number((_function(op), *(x.number for x in operands))))
            return _comparison(op, *operands) if op.name == "stablehlo.compare" else None
        if op.name == "stablehlo.and":
            return _both(*operands)
        return _either(*operands) if op.name == "stablehlo.or" else None


def _function(op: Any) -> tuple[str, ...]:
    """The name, the attributes and the result type of an operation."""
    names = ("comparison_direction", "compare_type")
    attributes = [str(op.attributes[n]) for n in names if n in op.attributes]
    return (op.name, *attributes, str(op.results[0].type))


def _comparison(op: Any, x: _Term, y: _Term) -> Any:
    """Comparison of the same function of both sides."""
    integers = isinstance(ir.RankedTensorType(op.operands[0].type).element_type, ir.IntegerType)
    kind = str(op.attributes["compare_type"]) if "compare_type" in op.attributes else " NOTYPE>"
    if x.number != y.number or not (integers or " TOTALORDER>" in kind):
        return None
    direction = str(op.attributes["comparison_direction"])
    if " EQ>" in direction:
        return _Equal(frozenset((x.number,)))
    if " LT>" in direction or " GT>" in direction:
        ascending = (" LT>" in direction) == (x.side < y.side)
        return _Order((x.number if ascending else -x.number,))
    return None


def _both(x: Any, y: Any) -> Any:
    if type(x) is _Order:
        x, y = y, x
    if type(x) is not _Equal:
        return None
    if type(y) is _Equal:
        return _Equal(x.keys | y.keys)
    return _Order(y.keys, y.equal | x.keys) if type(y) is _Order else None


def _either(x: Any, y: Any) -> Any:
    """The first keys decide; the others do where they are equal."""
    if type(x) is not _Order or type(y) is not _Order:
        return None
    if x.equal:
        x, y = y, x
    if x.equal or y.equal != frozenset(map(abs, x.keys)):
        return None
    return _Order(x.keys + y.keys)


def is_order(region: Any) -> bool:
    """Return True if the comparator of a sort is recognized as a strict weak order."""
    if len(region.blocks) != 1:
        return False
    block = region.blocks[0]
    comparator = _Comparator(block)
    for op in block.operations:
        operation = op.operation
        if operation.name == "stablehlo.return":
            result = comparator.values.get(operation.operands[0])
            return type(result) is _Order and not result.equal
        if len(operation.results) != 1:
            return False
        comparator.values[operation.results[0]] = comparator.value(operation)
    return False
