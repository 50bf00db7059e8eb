"""Types of results and layouts, as ``ffi_call`` takes them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primax_core.extend import ShapedArray, dtypes
from primax_core.extend.native import abstract_token
from primax_core.layout import Layout

from ._tokens import TOKEN

MajorToMinor = tuple[int, ...] | None


def result_types(target: str, results: Any) -> tuple[tuple[ShapedArray, ...], bool]:
    """The types of the results, and whether there may be several.

    Raises:
      TypeError, ValueError: if one of them is not a type of an array.
    """
    several = isinstance(results, (list, tuple))
    types = [_type(target, i, r) for i, r in enumerate(results if several else [results])]
    return tuple(types), several


def _type(target: str, i: int, result: Any) -> ShapedArray:
    if result is abstract_token:
        return TOKEN
    dtype: Any
    if isinstance(result, ShapedArray):
        shape, dtype = result.shape, result.dtype
    else:
        try:
            shape, dtype = tuple(result.shape), result.dtype
        except (AttributeError, TypeError):
            raise ValueError(
                f"result_shape_dtypes of {target!r} has {result!r} at position {i}, which has no "
                "shape and dtype: give the type of each result, such as "
                "ShapeDtypeStruct((2, 3), np.float32)"
            ) from None
    if isinstance(dtype, dtypes.ExtendedDType):
        if dtype == TOKEN.dtype:
            return TOKEN
        raise TypeError(
            f"result {i} of {target!r} has dtype {dtype.name}, which native functions do not have: "
            "return its data (for random keys, random.key_data) and wrap it again"
        )
    for size in shape:
        if isinstance(size, (float, str)) or isinstance(size, (int, np.integer)) and size < 0:
            raise ValueError(
                f"result {i} of {target!r} has the shape {shape}, but {size!r} is not the size of "
                "an axis"
            )
    return ShapedArray(shape, np.dtype(dtype))


def check_operand(target: str, i: int, aval: Any) -> None:
    """Raise an error for an operand that native functions cannot receive."""
    dtype = getattr(aval, "dtype", None)
    if not isinstance(aval, ShapedArray):
        raise TypeError(
            f"operand {i} of {target!r} is {aval}, but native functions receive arrays: pass the "
            "contents of a reference (ref[...])"
        )
    if isinstance(dtype, dtypes.ExtendedDType) and dtype != TOKEN.dtype:
        raise TypeError(
            f"operand {i} of {target!r} has dtype {dtype.name}, which native functions do not "
            "have: pass its data (for random keys, random.key_data)"
        )


def checked_layouts(
    target: str, what: str, layouts: Any, avals: Sequence[ShapedArray]
) -> tuple[MajorToMinor, ...] | None:
    """Layouts of all operands or results; ``None`` if all are row-major.

    Raises:
      TypeError, ValueError: if they do not fit the arrays.
    """
    if layouts is None:
        return None
    if not isinstance(layouts, (list, tuple)):
        raise TypeError(
            f"the layouts of the {what}s of {target!r} are {layouts!r}, but they are to be a "
            "sequence with the layout of each array"
        )
    if len(layouts) != len(avals):
        inputs = "input arguments" if what == "operand" else "outputs"
        input_ = "input" if what == "operand" else "output"
        raise ValueError(
            f"The number of {inputs} ({len(avals)}) must equal the number of "
            f"{input_} layouts ({len(layouts)}), in the call of {target!r}"
        )
    orders = [_layout(target, f"{what} {i}", x, a) for i, (x, a) in enumerate(zip(layouts, avals))]
    return None if all(o is None for o in orders) else tuple(orders)


def _layout(target: str, what: str, layout: Any, aval: ShapedArray) -> MajorToMinor:
    if layout is None:
        return None
    if isinstance(layout, Layout):
        if layout.tiling:
            raise ValueError(f"the layout of {what} of {target!r} has tiles: leave tiling out")
        layout = layout.major_to_minor
    try:
        order = tuple([operator.index(axis) for axis in layout])
    except (TypeError, ValueError):
        raise TypeError(
            f"the layout of {what} of {target!r} is {layout!r}, but a layout is a sequence of "
            "axes, slowest first, a Layout, or None for row-major"
        ) from None
    if sorted(order) != list(range(aval.ndim)):
        raise ValueError(
            f"the layout of {what} of {target!r} is {order}, but it is to contain each of the "
            f"{aval.ndim} axes once, slowest first; row-major is {tuple(range(aval.ndim))}"
        )
    return None if order == tuple(range(aval.ndim)) else order


def is_one_layout(layouts: Any) -> bool:
    """Return True for the layout of a single array, False for a sequence of layouts."""
    if isinstance(layouts, Layout):
        return True
    return isinstance(layouts, (list, tuple)) and all(
        isinstance(x, (int, np.integer)) for x in layouts
    )


def checked_aliases(
    target: str,
    aliases: Any,
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    orders: tuple[tuple[MajorToMinor, ...] | None, tuple[MajorToMinor, ...] | None],
) -> tuple[tuple[int, int], ...]:
    """Pairs of an operand and a result that uses its memory.

    Raises:
      TypeError, ValueError: if the arrays differ, or do not exist.
    """
    aliases = {} if aliases is None else aliases
    if not isinstance(aliases, Mapping) or not all(
        isinstance(n, (int, np.integer)) for pair in aliases.items() for n in pair
    ):
        raise TypeError(
            f"input_output_aliases of {target!r} is {aliases!r}, but it is to be a dictionary from "
            "the number of an operand to the number of a result, such as {0: 0}"
        )
    pairs = tuple(sorted((int(i), int(o)) for i, o in aliases.items()))
    for i, o in pairs:
        pair = f"input_output_aliases of {target!r} has {{{i}: {o}}}, but "
        for kind, n, count in (("operand", i, len(operands)), ("result", o, len(results))):
            if not 0 <= n < count:
                raise ValueError(
                    f"{pair}there is no {kind} {n} among the {count}: the keys are operands, the "
                    "values are results"
                )
        operand, result = operands[i], results[o]
        if (operand.shape, operand.dtype) != (result.shape, result.dtype):
            raise ValueError(
                f"{pair}the operand has the type {operand} and the result {result}: only arrays of "
                "one type share their memory"
            )
        ins, outs = orders
        layout_in, layout_out = ins and ins[i], outs and outs[o]
        if layout_in != layout_out:
            raise ValueError(
                f"{pair}the operand has the layout {layout_in or 'row-major'} and the result "
                f"{layout_out or 'row-major'}: give both the same"
            )
    if len({o for _, o in pairs}) != len(pairs):
        raise ValueError(
            f"input_output_aliases of {target!r} gives one result the memory of several operands"
        )
    return pairs
