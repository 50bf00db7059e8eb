"""Copies and signals to other devices on a CPU, as collectives, and errors of bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from remote_kernels import DMA, F32, REMOTE, ROW, call_of, on_mesh, operands

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, eval_shape, jit, lax, make_jaxpr, vmap
from primax_kernels import tpu
from test_support import check_derivatives

REGULAR = tpu.SemaphoreType.REGULAR
X = ShapeDtypeStruct(ROW, F32)


def on_all(name: str) -> Callable[[Any], Any]:
    """The kernel as a function of the operands of all devices, by ``vmap`` over its axes."""
    case = REMOTE[name]
    with on_mesh(**case.axes):
        (eqn,) = make_jaxpr(case.call)(operands(case)[0]).eqns
    sizes = case.axes

    def run(x: Any) -> Any:
        mapped: Any = lambda part: eqn.primitive.bind(part, **eqn.params)[0]
        for axis in reversed(sizes):
            mapped = vmap(mapped, axis_name=axis)
        out = mapped(lax.reshape(x, (*sizes.values(), *case.shape)))
        return lax.reshape(out, (x.shape[0], *out.shape[len(sizes) :]))

    return run


@pytest.mark.parametrize("name", REMOTE)
def test_values(name: str) -> None:
    x = operands(REMOTE[name])
    expected = REMOTE[name].expected(x)
    result = jit(on_all(name))(x)
    np.testing.assert_allclose(
        result, np.reshape(expected, result.shape), rtol=1e-5, atol=1e-5
    )  # fmt: skip


def test_derivatives() -> None:
    x = operands(REMOTE["pair"])[:, :1, :2]

    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        after = lax.sub(np.int32(1), lax.axis_index("d"))
        tpu.async_remote_copy(x, o.at[1], send, recv, (after,)).wait()
        o[0] = x[...] * x[...]

    def both(x: Any) -> Any:
        call = pk.pallas_call(
            kernel, ShapeDtypeStruct((2, 1, 2), x.dtype), scratch_shapes=[DMA, DMA]
        )  # fmt: skip
        with on_mesh(d=2):
            (eqn,) = make_jaxpr(call)(ShapeDtypeStruct((1, 2), x.dtype)).eqns
        return vmap(lambda part: eqn.primitive.bind(part, **eqn.params)[0], axis_name="d")(x)

    expected = np.stack([x * x, x[::-1]], 1)
    np.testing.assert_allclose(both(x), expected, rtol=1e-6)
    check_derivatives(both, x)


def fails(error: type[Exception], text: str, body: Callable[..., None], **axes: int) -> None:
    """Check the error of a kernel with two semaphores of each kind on a mesh."""

    def kernel(x: Any, o: Any, send: Any, recv: Any, ready: Any) -> None:
        body(x, o, send, recv, ready)

    call = call_of(kernel, ROW, [DMA((2,)), DMA((2,)), REGULAR((2,))])
    with on_mesh(**(axes or {"x": 2, "y": 2})), pytest.raises(error, match=text):
        eval_shape(call, X)


def copies(device_id: Any, device_id_type: Any = None) -> Callable[..., None]:
    def body(x: Any, o: Any, send: Any, recv: Any, ready: Any) -> None:
        tpu.make_async_remote_copy(x, o, send.at[0], recv.at[0], device_id, device_id_type)

    return body


@pytest.mark.parametrize(
    ("device_id", "kind", "error", "text"),
    [
        ((0,), None, ValueError, r"device_id has 1 positions and the mesh 2 axes \('x', 'y'\)"),
        (1, None, ValueError, "device_id has 1 positions"),
        ((0, 1, 2), "mesh", ValueError, "device_id has 3 positions"),
        ({"z": 0}, None, ValueError, "the axis 'z'; the axes of the mesh are 'x', 'y'"),
        ({"x": 0, ("x", "y"): 0}, None, ValueError, "the axis 'x' twice"),
        ((0, 2), None, ValueError, "the position along 'y' is 2; it is from 0 to 1"),
        ((0, -1), None, ValueError, "the position along 'y' is -1"),
        ({("x", "y"): 4}, None, ValueError, "is 4; it is from 0 to 3"),
        (4, "logical", ValueError, "the device is 4; it is from 0 to 3"),
        ((0, 1), pk.DeviceIdType.LOGICAL, TypeError, "the device is an integer scalar"),
        ((0, 1.0), None, TypeError, "the position along 'y' is an integer scalar, got 1.0"),
        ((0, True), None, TypeError, "the position along 'y' is an integer scalar"),
        ((0, None), None, TypeError, "the position along 'y' is an integer scalar, got None"),
        ((0, np.arange(2)), None, ValueError, r"is a scalar, got an array of shape \(2,\)"),
        ((0, 1), "rows", ValueError, "device_id_type is DeviceIdType.MESH, .* got 'rows'"),
    ],
)
def test_errors_of_device_ids(device_id: Any, kind: Any, error: Any, text: str) -> None:
    fails(error, "make_async_remote_copy: .*" + text, copies(device_id, kind))


def test_errors_of_semaphores_and_types() -> None:
    def with_refs(*choose: Any) -> Callable[..., None]:
        def body(x: Any, o: Any, send: Any, recv: Any, ready: Any) -> None:
            args = [f(x, o, send, recv, ready) for f in choose]
            tpu.make_async_remote_copy(*args, (0, 0))

        return body

    first = [lambda *r: r[0], lambda *r: r[1], lambda *r: r[2].at[0], lambda *r: r[3].at[0]]
    fails(ValueError, "choose one by an index", with_refs(*first[:3], lambda *r: r[3]))
    fails(
        TypeError, "send_sem is a semaphore of kind SemaphoreType.DMA",
        with_refs(*first[:2], lambda *r: r[4].at[0], first[3]),
    )  # fmt: skip
    fails(TypeError, "recv_sem is a semaphore of kind", with_refs(*first[:3], lambda *r: None))
    fails(
        ValueError, "shapes and dtypes have to agree",
        with_refs(lambda *r: r[0].at[0:4], *first[1:]),
    )  # fmt: skip

    def signals(which: int, **options: Any) -> Callable[..., None]:
        def body(*refs: Any) -> None:
            pk.semaphore_signal(refs[which].at[0], device_id={"x": 1}, **options)

        return body

    fails(TypeError, "takes a semaphore of kind SemaphoreType.REGULAR", signals(2))
    fails(NotImplementedError, "tpu.core_barrier", signals(4, core_index=1))
    fails(
        TypeError, "semaphore_signal takes an integer scalar",
        lambda *refs: pk.semaphore_signal(refs[4].at[0], 1.5),
    )  # fmt: skip


def test_no_mesh() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        tpu.async_remote_copy(x, o, send, recv, (0,)).wait()

    call = pk.pallas_call(kernel, X, scratch_shapes=[DMA, DMA])
    with pytest.raises(RuntimeError, match="no mesh is around the kernel: call the kernel inside"):
        call(np.zeros(ROW, F32))


@pytest.mark.parametrize("loop", [False, True])
def test_conditions_that_differ(loop: bool) -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        def copy() -> None:
            tpu.async_remote_copy(x, o, send, recv, (0,)).wait()

        if loop:
            lax.fori_loop(np.int32(0), lax.axis_index("d"), lambda i, _: copy(), None)
        else:
            pk.when(lax.gt(x[0, 0], np.float32(0)))(copy)

    call = call_of(kernel, ROW, [DMA, DMA])
    with on_mesh(d=2):
        traced = jit(call).trace(X)
        with pytest.raises(NotImplementedError, match="whose condition may differ") as caught:
            traced.lower()
    assert "test_remote_copies.py" in str(caught.value)


def test_kernels_for_gpus() -> None:
    with on_mesh(d=4):
        traced = jit(REMOTE["all_gather"].call).trace(X)
        with pytest.raises(NotImplementedError, match="mesh, which Triton does not have"):
            traced.lower(lowering_platforms=("cuda",))


def test_steps_are_sequential() -> None:
    with on_mesh(d=4):
        (kernel,) = pk.explain_kernel(REMOTE["grid"].call, ShapeDtypeStruct((32, 128), F32)).kernels
    assert not kernel.dimensions[0].parallel
    assert "communicate with other devices" in kernel.dimensions[0].reason


def test_selected_references() -> None:
    def kernel(x: Any, o: Any, send: Any, recv: Any) -> None:
        other = lax.sub(np.int32(1), lax.axis_index("d"))
        source = pk.select_ref(pk.program_id(0), x.at[0], x.at[1])
        target = pk.select_ref(lax.sub(np.int32(1), pk.program_id(0)), o.at[0], o.at[1])
        tpu.async_remote_copy(source, target, send, recv, (other,)).wait()

    x = np.random.default_rng(0).standard_normal((2, 2, *ROW)).astype(F32)
    call = call_of(kernel, (2, *ROW), [DMA, DMA], grid=(2,))
    with on_mesh(d=2):
        (eqn,) = make_jaxpr(call)(x[0]).eqns
    both = vmap(lambda part: eqn.primitive.bind(part, **eqn.params)[0], axis_name="d")
    np.testing.assert_array_equal(jit(both)(x), x[::-1, ::-1])


def test_local_semaphores() -> None:
    def kernel(o: Any, ready: Any) -> None:
        pk.semaphore_signal(ready, 3)
        pk.semaphore_wait(ready, 1)
        pk.semaphore_wait(ready, 1, decrement=False)
        o[0] = pk.semaphore_read(ready)
        pk.semaphore_wait(ready, 2)

    for interpret in (False, "python", "check"):
        call = pk.pallas_call(
            kernel, ShapeDtypeStruct((1,), np.int32), scratch_shapes=[REGULAR], interpret=interpret
        )
        assert call().tolist() == [2]
