"""Signatures of native functions, checked while tracing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import ShapedArray

from ._attributes import check_not_traced, check_numbers

_SHORT: Final = {
    **{f"i{n}": f"int{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16", "c64": "complex64", "c128": "complex128", "bool": "bool",
}  # fmt: skip
"""Names of dtypes in texts; NumPy's are accepted, too."""

_NUMBERS: Final = re.compile(r"bool|(?:u?int|b?float|complex)\d\w*")
_ARRAY: Final = re.compile(r"\s*(\w+)\s*(?:\[([^\[\]]*)\])?\s*")
_OTHER_ATTRIBUTES: Final = ("str", "dtype", "dict")


class ArrayType(NamedTuple):
    """The type of operands or results.

    Attributes:
      dtype: a dtype, or the letter of one that operands decide.
      sizes: sizes, or names of sizes that operands decide.
      leading: any number of axes may be in front.
    """

    dtype: np.dtype | str
    sizes: tuple[int | str, ...]
    leading: bool

    def __str__(self) -> str:
        sizes = ["..."] * self.leading + [str(n) for n in self.sizes]
        return f"{self.dtype}[{' '.join(sizes)}]"


class Signature:
    """The types of the operands, results and attributes of a native function.

    With it, a call that does not fit raises an error where it is written, and the types of the
    results follow from those of the operands. Declare it when you register the function:
    ``register_ffi_target(name, handler, signature=...)``.

    Args:
      args: the type of each operand, as a text such as ``"f32[b n]"`` or a pair ``("f32", "b n")``.
        Sizes are numbers, or names that stand for the same number everywhere; ``...`` in front
        stands for any leading axes, the same everywhere. A dtype is the name of one (``f32``,
        ``bf16``, ``int8``), or a capital letter that stands for the same dtype everywhere.
      results: a list of the types of the results, or a single type, whose call returns an array
        in place of a list. Their names occur among the operands.
      attrs: the type of each attribute by name: a dtype of numbers, ``"bool"``, ``"str"``,
        ``"dtype"``, ``"dict"``, or the dtype of an array, ``"i64[]"``. Python's numbers are
        converted to it.
      aliases: ``{operand: result}``, results that use the memory of operands.

    Raises:
      TypeError, ValueError: if a part is not a type, or a name occurs in results only.

    Attributes:
      operands, results: the types of operands and results.
      attrs: the type of each attribute.
      aliases: results that use the memory of operands.
      several: True if a call returns a list.

    >>> signature = Signature(["f32[... n]", "f32[n]"], "f32[... n]", {"eps": "f32"})
    >>> signature
    Signature('float32[... n], float32[n] -> float32[... n]', eps='f32')
    """

    __slots__ = ("operands", "results", "attrs", "aliases", "several")

    def __init__(
        self,
        args: Sequence[Any],
        results: Any,
        attrs: Mapping[str, str] | None = None,
        aliases: Mapping[int, int] | None = None,
    ) -> None:
        if isinstance(args, str):
            args = [args]
        self.several: bool = isinstance(results, list)
        self.operands: tuple[ArrayType, ...] = tuple([_type(a) for a in args])
        self.results: tuple[ArrayType, ...] = tuple(
            [_type(r) for r in (results if self.several else [results])]
        )
        self.attrs: dict[str, str] = {
            name: _attribute(name, kind) for name, kind in (attrs or {}).items()
        }
        self.aliases: dict[int, int] = {int(i): int(o) for i, o in dict(aliases or {}).items()}
        self._check()

    def _check(self) -> None:
        names = {n for t in self.operands for n in (*t.sizes, t.dtype) if isinstance(n, str)}
        for i, result in enumerate(self.results):
            unknown = {n for n in (*result.sizes, result.dtype) if isinstance(n, str)} - names
            if result.leading and not any(t.leading for t in self.operands):
                unknown.add("...")
            if unknown:
                raise ValueError(
                    f"result {i} of the signature {self} contains {sorted(unknown)}, which no "
                    "operand contains: use a number, or a name of an operand"
                )
        for i, o in self.aliases.items():
            if not (0 <= i < len(self.operands) and 0 <= o < len(self.results)):
                raise ValueError(f"the alias {i}: {o} of the signature {self} does not exist")
            if self.operands[i] != self.results[o]:
                raise ValueError(
                    f"result {o} of the signature {self} cannot use the memory of operand {i}: "
                    "their types differ"
                )

    @property
    def has_attributes(self) -> bool:
        """True if calls have attributes."""
        return bool(self.attrs)

    def result_types(self, target: str, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """The types of the results for operands of these types.

        Raises:
          TypeError, ValueError: if the operands do not fit.
        """
        if len(avals) != len(self.operands):
            hint = ""
            if len(avals) > len(self.operands) and self.attrs:
                hint = f" Attributes are keyword arguments: {next(iter(self.attrs))}=..."
            raise TypeError(
                f"{target!r} takes {len(self.operands)} operands, but the call has {len(avals)}. "
                f"Its signature is {self}.{hint}"
            )
        names: dict[str, tuple[Any, int]] = {}
        for i, (expected, aval) in enumerate(zip(self.operands, avals)):
            for difference in _differences(names, i, expected, aval):
                raise TypeError(
                    f"operand {i} of {target!r} has the type {aval}, but {difference}. The "
                    f"signature is {self}"
                )
        return [_filled(t, names) for t in self.results]

    def attributes(self, target: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of a call, with Python's numbers in the types of the signature.

        Raises:
          TypeError, OverflowError: if they do not fit.
        """
        missing, unknown = {*self.attrs} - {*values}, {*values} - {*self.attrs}
        if missing or unknown:
            raise TypeError(
                f"the call of {target!r} "
                + " and ".join(
                    f"{has} the attributes {sorted(names)}"
                    for has, names in (("lacks", missing), ("has", unknown))
                    if names
                )
                + f". The attributes of the signature are {_listed(self.attrs)}"
            )
        return {
            name: converted(self.attrs[name], value, f"attribute {name!r} of {target!r}")
            for name, value in values.items()
        }

    def __eq__(self, other: object) -> bool:
        return type(other) is Signature and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        return (
            f"{', '.join(map(str, self.operands))} -> {f'[{results}]' if self.several else results}"
        )

    def __repr__(self) -> str:
        attributes = "".join(f", {n}={k!r}" for n, k in sorted(self.attrs.items()))
        aliases = f", aliases={self.aliases}" if self.aliases else ""
        return f"Signature({str(self)!r}{attributes}{aliases})"


# Texts


def _type(text: Any) -> ArrayType:
    if isinstance(text, tuple) and len(text) == 2:
        dtype, sizes = text
        text = f"{dtype if isinstance(dtype, str) else np.dtype(dtype).name}[{sizes}]"
    match = _ARRAY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise TypeError(
            f"{text!r} is not the type of an array in a signature: write 'f32[b n]' or "
            "('f32', 'b n')"
        )
    words = (match[2] or "").replace(",", " ").split()
    leading = words[:1] == ["..."]
    sizes = [int(w) if w.isascii() and w.isdigit() else w for w in words[leading:]]
    for size in sizes:
        if isinstance(size, int) and size >= 2**63:
            raise ValueError(f"the size {size} in {text!r} has more than 64 bits")
        if isinstance(size, str) and not size.isidentifier():
            raise ValueError(
                f"the size {size!r} in {text!r} is neither a number nor a name (... may be in "
                "front only)"
            )
    name = match[1]
    dtype_ = name if len(name) == 1 and name.isupper() else _dtype(name, text)
    return ArrayType(dtype_, tuple(sizes), leading)


def _dtype(name: str, text: Any) -> np.dtype:
    full = _SHORT.get(name, name)
    try:  # other texts, such as "032" and "a", have meanings for NumPy, or warnings
        dtype = np.dtype(full) if _NUMBERS.fullmatch(full) else np.dtype(object)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.name != full or dtype.hasobject:
        raise TypeError(
            f"{name!r} in the signature's {text!r} is not a dtype: use f32, bf16, i32, bool, "
            "another of NumPy's names, or one capital letter for any dtype"
        )
    return dtype


def _attribute(name: str, kind: Any) -> str:
    if isinstance(kind, str) and kind not in _OTHER_ATTRIBUTES:
        _dtype(kind.removesuffix("[]"), kind)
    elif not isinstance(kind, str):
        raise TypeError(f"the type of the attribute {name!r} is a text such as 'f32', not {kind!r}")
    return kind


# Checks


def _differences(
    names: dict[str, tuple[Any, int]], i: int, expected: ArrayType, aval: ShapedArray
) -> Any:
    """Descriptions of what does not fit; the values of names are noted."""

    def check(name: Any, value: Any, what: str) -> Any:
        if not isinstance(name, str):
            return None if name == value else f"{what} {name} is expected"
        known, operand = names.setdefault(name, (value, i))
        if known == value:
            return None
        return f"{what} {name} is {known} in operand {operand}"

    yield from filter(None, [check(expected.dtype, aval.dtype, "the dtype")])
    extra = aval.ndim - len(expected.sizes)
    if extra < 0 or extra > 0 and not expected.leading:
        yield f"{len(expected.sizes)} axes are expected" + (" at least" if expected.leading else "")
        return
    if expected.leading:
        yield from filter(None, [check("...", aval.shape[:extra], "the shape")])
    for axis, (name, size) in enumerate(zip(expected.sizes, aval.shape[extra:]), extra):
        yield from filter(None, [check(name, size, f"for axis {axis} the size")])


def _filled(type_: ArrayType, names: dict[str, tuple[Any, int]]) -> ShapedArray:
    def value(name: Any) -> Any:
        return names[name][0] if isinstance(name, str) else name

    leading = value("...") if type_.leading else ()
    return ShapedArray((*leading, *map(value, type_.sizes)), value(type_.dtype))


def _listed(attributes: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in attributes.items()) or "none"


def converted(kind: str, value: Any, what: str) -> Any:
    """An attribute of a type, from a value of the same kind."""
    check_not_traced(value, what)
    if kind == "str":
        fits = isinstance(value, (str, bytes))
    elif kind == "dtype":
        fits = isinstance(value, (np.dtype, type))
    elif kind == "dict":
        fits = isinstance(value, Mapping)
    elif kind.endswith("[]"):
        if isinstance(value, (list, tuple)):
            check_numbers(value, what)
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        dtype = _dtype(kind[:-2], kind)
        fits = array.ndim == 1 and (array.dtype == dtype or not array.size)
        if not isinstance(value, np.ndarray) and array.ndim == 1 and not fits:
            numbers = [_number(dtype, x, what, kind) for x in value]
            return np.array(numbers, dtype)
        value = array.astype(dtype) if fits else value
    else:
        return _number(_dtype(kind, kind), value, what, kind)
    if not fits:
        raise _other_type(what, value, kind)
    return value


def _number(dtype: np.dtype, value: Any, what: str, kind: str) -> Any:
    if dtype.kind == "b":
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise _other_type(what, value, kind)
    if isinstance(value, np.generic):
        if value.dtype == dtype:
            return value
        raise _other_type(what, value, kind)
    integer = isinstance(value, int) and not isinstance(value, bool)
    if dtype.kind in "iu" and integer:
        limits = np.iinfo(dtype)
        if limits.min <= value <= limits.max:
            return dtype.type(value)
        raise OverflowError(f"{what} is {value}, but the signature has {kind}: it does not fit")
    if dtype.kind not in "iu" and (integer or isinstance(value, float)):
        with np.errstate(over="ignore"):
            try:
                number = dtype.type(value)
            except OverflowError:  # an integer that has no float64
                number = dtype.type(np.inf)
        if np.isinf(number) and value not in (math.inf, -math.inf):
            text = f"an integer of {value.bit_length()} bits" if integer else repr(value)
            raise OverflowError(f"{what} is {text}, but the signature has {kind}: it does not fit")
        return number
    raise _other_type(what, value, kind)


def _other_type(what: str, value: Any, kind: str) -> TypeError:
    dtype = getattr(value, "dtype", None)
    has = type(value).__name__ if dtype is None else f"{type(value).__name__} of dtype {dtype}"
    return TypeError(f"{what} is {value!r} ({has}), but the signature has {kind}")
