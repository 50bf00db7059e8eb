"""Kernels that copy to other devices of a mesh, and what they compute."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, lax
from primax_core.extend.traces import AxisOwner, named_axes
from primax_kernels import tpu

F32 = np.float32
ANY = pk.BlockSpec(memory_space=pk.ANY)
DMA = tpu.SemaphoreType.DMA
ROW = (8, 128)


class MeshOwner(AxisOwner):
    """The owner of the axes of a mesh, without the wheel that has meshes."""

    def __init__(self, **sizes: int) -> None:
        self.mesh = types.SimpleNamespace(shape=sizes)

    def bind(self, prim: Any, args: Any, params: Any, to: str = "varying") -> Any:
        return prim.bind(*args, **params)

    def cast(self, x: Any, names: Any, to: str) -> Any:
        return x


def on_mesh(**sizes: int) -> Any:
    """A context manager in which kernels are traced for the devices of a mesh."""
    return named_axes(sizes, MeshOwner(**sizes))


class Remote(NamedTuple):
    """A kernel for a mesh.

    Attributes:
      axes: sizes of the axes of the mesh, by name.
      call: the call, from the operand of a device.
      expected: from the operands of all devices, in the order of their numbers, to the results.
    """

    axes: dict[str, int]
    call: Callable[[Any], Any]
    expected: Callable[[np.ndarray], Any]
    shape: tuple[int, ...] = ROW


def call_of(
    kernel: Callable[..., None], shape: Sequence[int], scratch: Sequence[Any], blocks: Any = ANY,
    **options: Any,
) -> Callable[[Any], Any]:  # fmt: skip
    params = tpu.CompilerParams(collective_id=0)
    return pk.pallas_call(
        kernel, ShapeDtypeStruct(tuple(shape), F32), in_specs=[blocks], out_specs=blocks,
        scratch_shapes=scratch, compiler_params=params, **options,
    )  # fmt: skip


def neighbours(axis: str, n: int) -> tuple[Any, Any, Any]:
    """The position along an axis, and those before and after it."""
    here = lax.axis_index(axis)
    before = lax.rem(lax.add(here, np.int32(n - 1)), np.int32(n))
    return here, before, lax.rem(lax.add(here, np.int32(1)), np.int32(n))


def meet(axis: str, *positions: Any) -> None:
    """Wait until the devices at positions along an axis, which also wait for this one, are here."""
    barrier = tpu.get_barrier_semaphore()
    for position in positions:
        pk.semaphore_signal(barrier, device_id={axis: position})
    pk.semaphore_wait(barrier, len(positions))


def all_gather(n: int = 4) -> Remote:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        here, before, after = neighbours("d", n)
        meet("d", before, after)
        tpu.sync_copy(x, o.at[here])

        def step(i: Any, _: None) -> None:
            slot = lax.rem(lax.sub(lax.add(here, np.int32(n)), i), np.int32(n))
            side = lax.rem(i, np.int32(2))
            tpu.async_remote_copy(
                o.at[slot], o.at[slot], send.at[side], recv.at[side], (after,)
            ).wait()  # fmt: skip

        lax.fori_loop(np.int32(0), np.int32(n - 1), step, None)

    call = call_of(kernel, (n, *ROW), [DMA((2,)), DMA((2,))])
    return Remote({"d": n}, call, lambda x: [x] * n)


def reduce_scatter(n: int = 4) -> Remote:
    """Ring: in each step a partial sum goes to the next device, which adds its own term.

    The two buffers alternate; a device tells the one before when its buffer is free again.
    """

    def kernel(x: Any, o: Any, buffer: Any, send: Any, recv: Any, free: Any) -> None:
        here, before, after = neighbours("d", n)
        meet("d", before, after)

        def chunk(back: int) -> Any:
            """The chunk that this device has after ``back`` steps more."""
            return lax.rem(lax.add(here, np.int32(2 * n - 1 - back)), np.int32(n))

        buffer[0] = x[chunk(0)]
        for i in range(n - 1):
            now, later = i % 2, (i + 1) % 2
            if i:
                pk.semaphore_wait(free)
            copy = tpu.make_async_remote_copy(
                buffer.at[now], buffer.at[later], send.at[now], recv.at[later], after
            )
            copy.start()
            copy.wait()
            if i < n - 2:
                pk.semaphore_signal(free, device_id=before)
            buffer[later] = buffer[later] + x[chunk(i + 1)]
        o[...] = buffer[(n - 1) % 2]

    scratch = [tpu.VMEM((2, *ROW), F32), DMA((2,)), DMA((2,)), tpu.SemaphoreType.REGULAR]
    call = call_of(kernel, ROW, scratch, pk.BlockSpec())

    def expected(x: np.ndarray) -> Any:
        return x.sum(0)

    return Remote({"d": n}, call, expected, (n, *ROW))


def exchange() -> Remote:
    """The devices of a column of a 2 by 2 mesh exchange their blocks."""

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        _, _, other = neighbours("x", 2)
        meet("x", other)
        copy = tpu.make_async_remote_copy(x, o, send, recv, (other, lax.axis_index("y")))
        copy.start()
        copy.wait_recv()
        copy.wait_send()

    call = call_of(kernel, ROW, [DMA, DMA])
    return Remote({"x": 2, "y": 2}, call, lambda x: x[[2, 3, 0, 1]])


def all_to_all(n: int = 4) -> Remote:
    """Each device sends a row to each device, itself included, by its number."""

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        here = lax.add(lax.mul(lax.axis_index("x"), np.int32(2)), lax.axis_index("y"))
        barrier = tpu.get_barrier_semaphore()
        logical = pk.DeviceIdType.LOGICAL
        for to in range(n):
            pk.semaphore_signal(barrier, device_id=to, device_id_type=logical)
        pk.semaphore_wait(barrier, n)
        copies = [
            tpu.async_remote_copy(x.at[to], o.at[here], send, recv, np.int32(to), "logical")
            for to in range(n)
        ]
        for copy in copies:
            copy.wait()

    call = call_of(kernel, (n, *ROW), [DMA, DMA])
    return Remote({"x": 2, "y": 2}, call, lambda x: x.swapaxes(0, 1), (n, *ROW))


def grid_of_shifts(n: int = 4) -> Remote:
    """Steps of a grid; in odd ones the block is sent to the device after this one."""

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        _, before, after = neighbours("d", n)
        rows = pk.ds(lax.mul(pk.program_id(0), np.int32(8)), 8)

        @pk.when(lax.eq(lax.rem(pk.program_id(0), np.int32(2)), np.int32(0)))
        def _here() -> None:
            tpu.sync_copy(x.at[rows], o.at[rows])

        @pk.when(lax.eq(lax.rem(pk.program_id(0), np.int32(2)), np.int32(1)))
        def _there() -> None:
            meet("d", before, after)
            tpu.async_remote_copy(x.at[rows], o.at[rows], send, recv, {"d": after}).wait()

    call = call_of(kernel, (32, 128), [DMA, DMA], grid=(4,))

    def expected(x: np.ndarray) -> Any:
        parts = x.reshape(n, 4, *ROW)
        return np.where(np.arange(4)[:, None, None] % 2, np.roll(parts, 1, 0), parts)

    return Remote({"d": n}, call, expected, (32, 128))


def counted() -> Remote:
    """Semaphores of a scope, which are read, and awaited without being changed."""

    def kernel(x: Any, o: Any) -> None:
        _, before, after = neighbours("d", 4)

        def body(credits: Any, send: Any, recv: Any) -> None:
            meet("d", before, after)
            one = credits.at[1]
            pk.semaphore_signal(one, 2, device_id=after)
            pk.semaphore_signal(one)
            pk.semaphore_wait(one, 3, decrement=False)
            count = lax.convert_element_type(pk.semaphore_read(one), F32)
            pk.semaphore_wait(one, 3)
            tpu.async_remote_copy(x, o, send, recv, after).wait()
            o[...] = o[...] * count

        regular = tpu.SemaphoreType.REGULAR((2,))
        pk.run_scoped(body, regular, DMA, DMA)

    call = call_of(kernel, ROW, [], pk.BlockSpec())
    return Remote({"d": 4}, call, lambda x: 3 * np.roll(x, 1, 0))


def scaled() -> Remote:
    """No communication: each device multiplies by its position."""

    def kernel(x: Any, o: Any) -> None:
        place = lax.add(lax.mul(lax.axis_index("x"), np.int32(10)), lax.axis_index("y"))
        o[...] = x[...] * lax.convert_element_type(place, F32)

    call = call_of(kernel, ROW, [], pk.BlockSpec())
    places = np.array([0, 1, 10, 11], F32)[:, None, None]
    return Remote({"x": 2, "y": 2}, call, lambda x: x * places)


REMOTE = {
    "all_gather": all_gather(), "reduce_scatter": reduce_scatter(), "exchange": exchange(),
    "all_to_all": all_to_all(), "grid": grid_of_shifts(), "counted": counted(), "scaled": scaled(),
    "pair": all_gather(2), "eight": reduce_scatter(8),
}  # fmt: skip


def operands(case: Remote) -> np.ndarray:
    """The operands of all devices."""
    count = int(np.prod([*case.axes.values()]))
    return np.random.default_rng(3).standard_normal((count, *case.shape)).astype(F32)
