"""Native functions whose calls are divided among devices."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from primax_core.extend import Axis, ShapedArray, lowering
from primax_core.extend.dimensions import is_static
from primax_core.extend.traces import trace_function

from ._signatures import ArrayType, Signature
from ._tokens import TOKEN

Names = tuple[str, ...]
"""Axes of a mesh."""

_MESH: Final = re.compile(r'mesh<\[((?:"[^"]*"=\d+(?:, )?)*)\]>')
_AXIS: Final = re.compile(r'"([^"]*)"=(\d+)')
_DIMENSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r'"([^"]*)"')


class Mapped(NamedTuple):
    """The letter of an axis that ``vmap`` maps.

    Attributes:
      level: the number of mapped axes before it.
      mesh_axes: those that divide it in any case (``spmd_axis_name``).
    """

    level: int
    mesh_axes: Names


class Division(NamedTuple):
    """The axes of a call that may be divided among devices.

    Attributes:
      operands, results: for each array the letters of its axes; ``None`` for one that stays whole.
    """

    operands: tuple[tuple[Any, ...], ...]
    results: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        sides = (
            ", ".join(" ".join(map(_letter, axes)) for axes in side)
            for side in (self.operands, self.results)
        )
        return " -> ".join(sides)

    def mapped(self, axis: Axis, leading: Sequence[bool]) -> Division:
        """The division of a call for all examples of ``vmap``, whose axis is the first.

        Args:
          leading: for each operand, whether it has all examples; otherwise the first axis has
            the length 1.
        """
        level = sum(isinstance(name, Mapped) for name in (self.results[0] if self.results else ()))
        names = axis.spmd_name
        mesh_axes = () if names is None else names if isinstance(names, tuple) else (names,)
        letter = Mapped(level, tuple(map(str, mesh_axes)))
        return Division(
            tuple((letter if m else None, *own) for m, own in zip(leading, self.operands)),
            tuple((letter, *own) for own in self.results),
        )


def _letter(name: Any) -> str:
    return "_" if name is None else f"v{name.level}" if isinstance(name, Mapped) else str(name)


def division(
    target: str,
    partition: Any,
    signature: Signature | None,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
) -> Division | None:
    """The axes of a call that may be divided; ``None`` if sizes are symbolic.

    Shardy does not propagate shardings in programs with symbolic sizes.

    Args:
      partition: ``"batch"`` or a rule.

    Raises:
      TypeError, ValueError: if it does not fit the arrays.
    """
    if not isinstance(partition, str):
        raise TypeError(
            f"partition of {target!r} is {partition!r}: it is 'batch', or a rule such as "
            "'b _, _ -> b _'"
        )
    if any(a.dtype == TOKEN.dtype for a in (*operands, *results)):
        raise ValueError(f"the call of {target!r} has tokens, and cannot be divided: leave "
                         "partition out")  # fmt: skip
    if partition != "batch":
        own = _by_rule(target, partition, operands, results)
    elif signature is not None:
        own = _by_signature(target, signature, operands, results)
    else:
        own = _by_position(target, operands, results)
    _check(target, own, operands, results)
    if signature is not None:
        _check_sizes(target, own, signature)
    return own if all(is_static(a.shape) for a in (*operands, *results)) else None


def _by_rule(
    target: str, text: str, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> Division:
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(
            f"partition of {target!r} is {text!r}: write 'batch', or the axes of operands and "
            "results, such as 'b _, _ -> b _'"
        )
    arrays = []
    for side, avals, what in zip(sides, (operands, results), ("operand", "result")):
        parts = side.split(",") if side.strip() or len(avals) == 1 else []
        if len(parts) != len(avals):
            raise ValueError(
                f"the partition {text!r} has {len(parts)} {what}s, but the call of {target!r} has "
                f"{len(avals)}"
            )
        arrays.append(
            tuple(
                _axes(target, text, f"{what} {i}", part.split(), aval)
                for i, (part, aval) in enumerate(zip(parts, avals))
            )
        )
    return Division(arrays[0], arrays[1])


def _axes(
    target: str, text: str, what: str, words: list[str], aval: ShapedArray
) -> tuple[Any, ...]:
    leading = words[:1] == ["..."]
    words = words[leading:]
    for word in words:
        if not word.isidentifier():
            raise ValueError(
                f"the partition {text!r} of {target!r} has the axis {word!r}: it is a letter for "
                "an axis that may be divided, _ for one that stays whole, or ... in front"
            )
    extra = aval.ndim - len(words)
    if extra < 0 or extra > 0 and not leading:
        raise ValueError(
            f"the partition {text!r} of {target!r} has {len(words)} axes for {what}, whose type is "
            f"{aval}"
        )
    own = (*(f"...{k}" for k in range(extra)), *(None if w == "_" else w for w in words))
    letters = [w for w in own if w is not None]
    if len({*letters}) != len(letters):
        raise ValueError(f"the partition {text!r} of {target!r} has a letter twice for {what}")
    return own


def _by_signature(
    target: str,
    signature: Signature,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
) -> Division:
    """Leading axes of a signature: those of ``...``, or the first letter of all results."""
    first = {t.sizes[:1] for t in signature.results}
    leading = any(t.leading for t in signature.results)
    letter = next(iter(first))[0] if len(first) == 1 and first != {()} else None
    if not leading and not isinstance(letter, str):
        raise ValueError(
            f"partition of {target!r} is 'batch', but the results of its signature {signature} "
            "have neither ... nor one letter in front"
        )

    def axes(type_: ArrayType, aval: ShapedArray) -> tuple[Any, ...]:
        extra = aval.ndim - len(type_.sizes)
        if leading:
            return (*(f"...{k}" for k in range(extra)), *[None] * len(type_.sizes))
        if letter in type_.sizes[1:]:
            raise ValueError(
                f"partition of {target!r} is 'batch', but the letter {letter} is not in front in "
                f"the type {type_} of its signature {signature}: write a rule such as "
                "'b _, _ -> b _'"
            )
        return tuple(name if name == letter else None for name in type_.sizes)

    return Division(
        tuple(map(axes, signature.operands, operands)),
        tuple(map(axes, signature.results, results)),
    )


def _by_position(
    target: str, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> Division:
    """The first axis of all operands and results, apart from scalars."""
    arrays = [a for a in (*operands, *results) if a.ndim]
    if any(a.ndim == 0 for a in results) or len({a.shape[0] for a in arrays}) != 1:
        types = f"{', '.join(map(str, operands))} -> {', '.join(map(str, results))}"
        raise ValueError(
            f"partition of {target!r} is 'batch', but its operands and results {types} do not have "
            "the same first axis: write a rule such as 'b _, _ -> b _', with _ for axes that stay "
            "whole"
        )

    def axes(aval: ShapedArray) -> tuple[Any, ...]:
        return ("batch", *[None] * (aval.ndim - 1)) if aval.ndim else ()

    return Division(tuple(map(axes, operands)), tuple(map(axes, results)))


def _check(
    target: str, own: Division, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> None:
    sizes: dict[Any, Any] = {}
    for letters, aval in zip((*own.operands, *own.results), (*operands, *results)):
        for letter, size in zip(letters, aval.shape):
            if letter is not None and sizes.setdefault(letter, size) != size:
                raise ValueError(
                    f"the partition {own} of {target!r} has the letter {letter} for axes of the "
                    f"sizes {sizes[letter]} and {size}"
                )
    for letter in sizes:
        if not own.results or not all(letter in letters for letters in own.results):
            raise ValueError(
                f"the partition {own} of {target!r} has the letter {letter}, which not all results "
                "have: a function cannot be divided along an axis over which it computes as a "
                "whole; write _"
            )


def _check_sizes(target: str, own: Division, signature: Signature) -> None:
    """Raise an error for parts of arrays that do not fit the signature."""
    letters_of: dict[Any, tuple[Any, str]] = {}
    sides = (
        ("operand", own.operands, signature.operands), ("result", own.results, signature.results)
    )  # fmt: skip
    for what, arrays, types in sides:
        for i, (letters, type_) in enumerate(zip(arrays, types)):
            extra = len(letters) - len(type_.sizes)
            sizes = [*(("...", k) for k in range(extra)), *type_.sizes]
            for axis, (letter, size) in enumerate(zip(letters, sizes)):
                where = f"axis {axis} of {what} {i}"
                if isinstance(size, int):
                    if letter is not None:
                        raise ValueError(
                            f"the partition {own} of {target!r} divides {where}, which has the "
                            f"size {size} in the signature {signature}: write _"
                        )
                    continue
                first, there = letters_of.setdefault(size, (letter, where))
                if first != letter:
                    name = size if isinstance(size, str) else "..."
                    raise ValueError(
                        f"the partition {own} of {target!r} has {_letter(first)} for {there} and "
                        f"{_letter(letter)} for {where}, but both have the size {name} in the "
                        f"signature {signature}: write the same letter, or _ for both"
                    )


# Lowering


def axis_rule(own: Division, operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Shardy's rule of a call."""
    numbers: dict[Any, int] = {}
    sizes: list[int] = []
    whole: set[int] = set()

    def factors(letters: Sequence[Any], aval: Any) -> tuple[tuple[int, ...], ...]:
        axes = []
        for letter, size in zip(letters, aval.shape):
            number = len(sizes) if letter is None else numbers.setdefault(letter, len(sizes))
            if number == len(sizes):
                sizes.append(size)
            if letter is None:
                whole.add(number)
            axes.append((number,))
        return tuple(axes)

    ins = tuple(map(factors, own.operands, operands))
    outs = tuple(map(factors, own.results, results))
    return lowering.AxisRule(tuple(sizes), ins, outs, frozenset(), frozenset(whole), frozenset())


def partitioning(prim: Any, eqn: Any) -> Any:
    """The division of a call over the devices of a program.

    Args:
      prim: the primitive of calls that are not divided.
    """
    params = dict(eqn.params)
    own: Division = params.pop("division")
    ins, outs = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]

    def partition(operands: Sequence[Any], results: Sequence[Any]) -> Any:
        avals, letters = (*outs, *ins), (*own.results, *own.operands)
        texts = [s._sdy(a.ndim) for s, a in zip((*results, *operands), avals)]
        chosen = _Chosen(texts, letters, [a.shape for a in avals])
        part = [
            ShapedArray(chosen.part_shape(names, a.shape), a.dtype)
            for names, a in zip(letters, avals)
        ]
        local = {**params, "result_avals": tuple(part[: len(outs)])}
        traced = trace_function(
            lambda *xs: prim.bind(*xs, **local), tuple(part[len(outs) :]), {}, params["target_name"]
        )
        shardings = [chosen.text(names) for names in letters]
        behind = [
            None if before == after else before
            for before, after in zip(chosen.propagated(), shardings[: len(outs)])
        ]
        return lowering.PartitionedBody(
            traced.jaxpr, chosen.sizes, shardings[len(outs) :], shardings[: len(outs)], behind
        )

    return lowering.Partitioning(axis_rule(own, ins, outs), partition)


class _Chosen:
    """The axes of a mesh that divide each letter of a call.

    Args:
      texts: the shardings of results and operands that Shardy has propagated.
      letters: the letters of their axes.
      shapes: their shapes.
    """

    def __init__(self, texts: Sequence[str], letters: Sequence[Any], shapes: Sequence[Any]) -> None:
        divided = [t for t in texts if _MESH.search(t) and _NAME.search(_dimensions(t))]
        main = _MESH.search((divided or texts)[0])
        assert main is not None
        self._mesh = main[0]
        self.sizes: dict[str, int] = {name: int(n) for name, n in _AXIS.findall(main[1])}
        self._letters = letters
        self._propagated = [
            [self._dividing(names, size) for names, size in zip(self._axes(t, len(shape)), shape)]
            for t, shape in zip(texts, shapes)
        ]
        self.axes: dict[Any, Names] = {}
        used: set[str] = set()
        for names, shape in zip(letters, shapes):
            for letter, size in zip(names, shape):
                if isinstance(letter, Mapped) and letter.mesh_axes:
                    self.axes[letter] = self._required(letter.mesh_axes, size)
                    used |= {*letter.mesh_axes}
        for names, propagated in zip(letters, self._propagated):
            for letter, mesh_axes in zip(names, propagated):
                if letter is not None and mesh_axes and letter not in self.axes:
                    self.axes[letter] = tuple(n for n in mesh_axes if n not in used)
                    used |= {*mesh_axes}

    def _required(self, names: Names, size: int) -> Names:
        """The axes that ``vmap`` requires for a mapped axis."""
        if not {*names} <= {*self.sizes} or self._dividing(names, size) != names:
            raise ValueError(
                f"vmap with spmd_axis_name={', '.join(names)} maps an axis of size {size} of a "
                f"native function, which the mesh {self.sizes} does not divide so"
            )
        return names

    def _axes(self, text: str, ndim: int) -> list[Names]:
        """The axes of the mesh that divide each axis of an array; none for those of others."""
        mesh = _MESH.search(text)
        if mesh is None or mesh[0] != self._mesh:
            return [()] * ndim
        return [tuple(_NAME.findall(d)) for d in _DIMENSION.findall(_dimensions(text))]

    def _dividing(self, names: Names, size: int) -> Names:
        """The first of these axes that together divide a size into equal parts."""
        for count in range(len(names), 0, -1):
            if size % math.prod(self.sizes[n] for n in names[:count]) == 0:
                return names[:count]
        return ()

    def part_shape(self, letters: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part of one device."""
        parts = [math.prod(self.sizes[n] for n in self.axes.get(letter, ())) for letter in letters]
        return tuple(size // n for size, n in zip(shape, parts))

    def text(self, letters: Sequence[Any]) -> str:
        """The sharding of an array that is divided along some letters."""
        return self._text([self.axes.get(letter, ()) for letter in letters])

    def propagated(self) -> list[str]:
        """The shardings of the arrays as far as they are into equal parts."""
        return [self._text(axes) for axes in self._propagated]

    def _text(self, axes: Sequence[Names]) -> str:
        dims = ", ".join("{" + ", ".join(f'"{n}"' for n in names) + "}" for names in axes)
        return f"#sdy.sharding<{self._mesh}, [{dims}]>"


def _dimensions(text: str) -> str:
    """The part of a sharding behind the mesh."""
    return text[text.rindex(">, [") :]
