"""``ragged_all_to_all``: exchange of slices of any size along a named axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.effects import NamedAxisEffect
from .._ir.primitive import Primitive, abstract, batch, effects, jvp, transpose
from .._ir.samples import Sample, bf16, f32, samples
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import Axis, batch_of, move_axis
from .._transform.zeros import Zero, instantiate, is_linear, zeros
from .arithmetic import add, max, sub
from .axis_binding import AxisName, axis_size, bind, checked_groups, names_of
from .bitwise import bitwise_and
from .broadcasting import broadcast_in_dim, broadcasted_iota, full_like
from .collective_exchanges import all_to_all
from .collective_rules import lower_over_mesh
from .comparison import eq, ge, lt
from .conversion import convert_element_type
from .gathering import gather
from .index_numbers import GatherDimensionNumbers, GatherScatterMode
from .reducing import reduce_max
from .reshaping import expand_dims, reshape
from .selection import select_n

ragged_all_to_all_p: Final = Primitive("ragged_all_to_all")

_INDICES: Final = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:
    """Send slices of ``operand`` to other indices of a named axis, which write them to ``output``.

    Args:
      operand: ``[m, ...]``, the array with the slices to send.
      output: ``[n, ...]``, the array to which received slices are written. Other elements are
        unchanged.
      input_offsets: ``integer[k]``: start of each slice in ``operand``. There is one slice, or an
        equal number of slices, for each index of the axis, in order.
      send_sizes: ``integer[k]``: size of each slice.
      output_offsets: ``integer[k]``: start of each slice in the receiver's ``output``.
      recv_sizes: ``integer[k]``: sizes of the received slices, by index of the sender.
      axis_name: the name of the axis, or a tuple of names.
      axis_index_groups: a partition of the indices into groups that exchange separately.

    Returns:
      ``output`` with the received rows written into it.

    The function is linear in ``operand`` and ``output``.

    Raises:
      ValueError: if offsets or sizes are not integers of rank 1, or their number is not a multiple
        of the size of the axis.

    >>> from primax_core import vmap
    >>> x, out = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))
    >>> here, one = np.array([[0, 1], [0, 1]]), np.ones((2, 2), int)
    >>> there = np.array([[0, 0], [1, 1]])
    >>> send = lambda *a: ragged_all_to_all(*a, axis_name="i")
    >>> vmap(send, axis_name="i")(x, out, here, one, there, one).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    names = names_of(axis_name)
    size = axis_size(names)
    groups = checked_groups("ragged_all_to_all", axis_index_groups, names, equal=True)
    size = size if groups is None else len(groups[0])
    for name, x in zip(_INDICES, (input_offsets, send_sizes, output_offsets, recv_sizes)):
        aval = typeof(x)
        if not dtypes.issubdtype(aval.dtype, np.integer):
            raise ValueError(f"ragged_all_to_all {name} must be integer type.")
        if aval.ndim != 1 or not aval.shape[0]:
            raise ValueError(
                f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got "
                f"shape {aval.shape}"
            )
        if aval.shape[0] % size:
            raise ValueError(
                f"ragged_all_to_all {name} must have as many elements for each of the {size} "
                f"positions of {axis_name}, but got shape {aval.shape}"
            )
    indices = (input_offsets, send_sizes, output_offsets, recv_sizes)
    _check_types(typeof(operand), typeof(output), [typeof(i) for i in indices])
    return bind(ragged_all_to_all_p, (operand, output, *indices), names, axis_index_groups=groups)


@ragged_all_to_all_p.rule(abstract)
def _abstract(operand, output, *indices, axis_name, axis_index_groups):
    _check_types(operand, output, indices)
    return output


def _check_types(operand, output, indices: Sequence) -> None:
    if operand.dtype != output.dtype:
        raise TypeError(
            "ragged_all_to_all operand and output must have the same dtype, got "
            f"{operand.dtype.name} and {output.dtype.name}"
        )
    if not operand.ndim or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            "ragged_all_to_all operand and output must have the same shape except for their first "
            f"axis, got {operand.shape} and {output.shape}"
        )
    if len({i.shape for i in indices}) > 1:
        raise ValueError(
            "ragged_all_to_all offsets and sizes must have equal shapes, got "
            f"{', '.join(str(i.shape) for i in indices)}"
        )


@ragged_all_to_all_p.rule(effects)
def _effects(*avals, axis_name, axis_index_groups):
    return frozenset(NamedAxisEffect(n) for n in axis_name)


lower_over_mesh(ragged_all_to_all_p)


@ragged_all_to_all_p.rule(jvp)
def _jvp(primals, tangents, **params):
    out = ragged_all_to_all_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents[:2]):
        return out, Zero.like(out)
    return out, ragged_all_to_all_p.bind(*map(instantiate, tangents[:2]), *primals[2:], **params)


@ragged_all_to_all_p.rule(transpose)
def _transpose(
    ct, operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, **params
):
    rest = [None] * 4
    if type(ct) is Zero:
        return [None, None, *rest]
    name, groups = params["axis_name"], params["axis_index_groups"]
    there = [
        all_to_all(x, name, 0, 0, axis_index_groups=groups, tiled=True)
        for x in (output_offsets, input_offsets)
    ]
    cotangents: list[Any] = [None, None]
    if is_linear(operand):
        cotangents[0] = ragged_all_to_all_p.bind(
            ct, zeros(operand.aval), there[0], recv_sizes, there[1], send_sizes, **params
        )
    if is_linear(output):
        shape = (operand.aval if is_linear(operand) else typeof(operand)).shape[:1]
        ones = broadcast_in_dim(np.int32(1), shape, ())
        none = broadcast_in_dim(np.int32(0), output.aval.shape[:1], ())
        written = ragged_all_to_all_p.bind(
            ones, none, input_offsets, send_sizes, output_offsets, recv_sizes, **params
        )
        unchanged = broadcast_in_dim(eq(written, full_like(written, 0)), output.aval.shape, (0,))
        cotangents[1] = select_n(unchanged, full_like(ct, 0), ct)
    return [*cotangents, *rest]


@ragged_all_to_all_p.rule(batch)
def _batch(axis, args, dims, *, axis_name, axis_index_groups):
    if axis.name not in axis_name:
        if any(d is not None for d in dims[2:]):
            raise NotImplementedError(
                "ragged_all_to_all with offsets or sizes that are mapped over another axis than "
                f"{axis_name}: use a loop over that axis (lax.map)"
            )
        operand, output = (move_axis(x, d, 1, axis.size) for x, d in zip(args[:2], dims[:2]))
        params = {"axis_name": axis_name, "axis_index_groups": axis_index_groups}
        return ragged_all_to_all_p.bind(operand, output, *args[2:], **params), 1
    if len(axis_name) > 1:
        raise ValueError(
            "ragged_all_to_all over several axis names at once cannot be mapped over one of them "
            f"({axis.name} of {axis_name}): apply it to one axis at a time"
        )
    operand, output, *indices = (move_axis(x, d, 0, axis.size) for x, d in zip(args, dims))
    return _exchanged(operand, output, *indices[:3]), 0


def _exchanged(operand, output, input_offsets, send_sizes, output_offsets):
    """The exchange of a whole batch: a gather of the received element of each output index."""
    n = typeof(operand).shape[0]
    per = typeof(input_offsets).shape[1] // n
    indices = (
        reshape(convert_element_type(x, np.int32), (n, n, per))
        for x in (input_offsets, send_sizes, output_offsets)
    )
    return received(operand, output, *indices)


def received(
    operand: ArrayLike, output: ArrayLike, start: ArrayLike, size: ArrayLike, put: Any
) -> Any:
    """The arrays that some indices of the axis receive from all.

    Args:
      operand: ``[n, m, ...]``, the operands of all ``n`` senders.
      output: ``[k, width, ...]``, the arrays of ``k`` receivers.
      start, size, put: ``i32[n, k, per]``: the slices that each sender sends to each receiver.
    """
    n, m = typeof(operand).shape[:2]
    width = typeof(output).shape[1]
    _, k, per = typeof(start).shape
    full = (n, k, per, width)  # sender, receiver, slice, output index
    start, size, put = (broadcast_in_dim(x, full, (0, 1, 2)) for x in (start, size, put))
    step = sub(broadcasted_iota(np.int32, full, 3), put)
    arrives = bitwise_and(ge(step, full_like(step, 0)), lt(step, size))
    first = broadcasted_iota(np.int32, full, 0) * np.int32(m)
    element = add(add(first, start), step)
    chosen = reduce_max(select_n(arrives, full_like(element, -1), element), (0, 2))
    if not m:
        return output
    rows = reshape(operand, (n * m, *typeof(operand).shape[2:]))
    tail = typeof(operand).shape[2:]
    numbers = GatherDimensionNumbers(tuple(range(2, 2 + len(tail))), (0,), (0,))
    values = gather(
        rows,
        expand_dims(max(chosen, full_like(chosen, 0)), (2,)),
        numbers,
        (1, *tail),
        mode=GatherScatterMode.CLIP,
    )
    mask = broadcast_in_dim(ge(chosen, full_like(chosen, 0)), typeof(values).shape, (0, 1))
    return select_n(mask, output, values)


@ragged_all_to_all_p.rule(samples)
def _samples():
    starts = np.array([[0, 1], [0, 1]], np.int32)
    sizes = np.array([[1, 2], [1, 1]], np.int32)
    places = np.array([[0, 0], [1, 2]], np.int32)
    arriving = np.ascontiguousarray(sizes.T)

    def exchange(x, out):
        def one(*args):
            return [ragged_all_to_all(*args, axis_name="i")]

        values = [x, out, starts, sizes, places, arriving]
        (received,), (dim,) = batch_of(one, values, [0] * len(values), Axis(2, "i"))
        return move_axis(received, dim, 0, 2)

    options = {"call": exchange, "without": {"parameters": "batching leaves no equation of it"}}
    yield Sample(f32(2, 3), f32(2, 4)).set(**options)
    yield Sample(bf16(2, 3, 2), bf16(2, 4, 2)).set(**options)
