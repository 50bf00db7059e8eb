"""`pmap` over the devices of two processes."""

from __future__ import annotations

from several import together

JOIN = """
import primax_numpy
from primax_core import lax
from primax_distributed import Mesh, NamedSharding, P, make_array_from_process_local_data, pmap
processes.initialize(f'127.0.0.1:{port}', n, rank, freeze_timeout_seconds=8)
mesh = Mesh(np.array(pc.devices()), ("i",))
total = len(pc.devices())
whole = np.arange(total * 3, dtype=np.float32).reshape(total, 3)
own = whole[2 * rank:2 * rank + 2]
"""


def test_functions_are_mapped_over_all_devices():
    outputs, statuses = together(
        JOIN
        + """
x = make_array_from_process_local_data(NamedSharding(mesh, P("i")), own)
f = pmap(lambda x: (x * 2, lax.psum(x, "i"), lax.axis_index("i")), axis_name="i",
         out_axes=(-1, None, 0))
for value in (own, pc.device_put(own), x):
    double, sum, index = f(value)
    assert double.shape == (3, 2) and double.is_fully_addressable
    assert np.array_equal(double, 2 * own.T) and np.array_equal(sum, whole.sum(0))
    assert index.tolist() == [2 * rank, 2 * rank + 1]
    assert {s.device for s in double.addressable_shards} == {*pc.local_devices()}
g = pmap(lambda a, x, y, *, k: a * lax.psum(x, "i") + y * k["k"], axis_name="i", axis_size=4,
         in_axes=(None, -1, None), static_broadcasted_argnums=0)
out = g(2, own.T, np.float32(rank), k={"k": np.ones(2, np.float32)})
assert np.array_equal(out, np.tile(2 * whole.sum(0) + rank, (2, 1))), out
again = f(f(own)[0].T)[1]
assert np.array_equal(again, 2 * whole.sum(0))
print("mapped", attempt(lambda: f(whole)))
""",
        variables=[{"PRIMAX_NUM_CPU_DEVICES": "2"}] * 2,
    )
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert "mapped ValueError: pmap of <lambda> over the devices of several" in output, output
        assert "the part of its 2 devices, but the mapped axis of an argument has the" in output


def test_devices_of_one_process():
    outputs, statuses = together(
        JOIN
        + """
f = pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=pc.local_devices())
print("sum", np.asarray(f(np.array([1.0, 2.0], np.float32) + rank))[0])
print(attempt(lambda: pmap(lambda x: x, devices=pc.local_devices())(whole)))

# Under transformations the devices of this process suffice.
h = pmap(lambda x, w: lax.psum((w * x).sum(), "i") / 2, axis_name="i", in_axes=(0, None))
gradient = pc.jit(pc.grad(lambda w, x: h(x, w).sum()))(np.ones(3, np.float32), own)
print("gradient", np.asarray(gradient).tolist() == own.sum(0).tolist())
""",
        variables=[{"PRIMAX_NUM_CPU_DEVICES": "2"}] * 2,
    )
    assert statuses == [0, 0], outputs
    for rank, output in enumerate(outputs):
        assert f"sum {3.0 + 2 * rank}" in output and "gradient True" in output, output
        assert "maps an axis of size 4, but there are 2 devices" in output, output
