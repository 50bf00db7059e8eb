"""Rules of the kind `partition` divide an operation over devices."""

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import Primitive, ShapedArray, abstract, lower, partition, stage
from primax_core.extend.lowering import AxisRule, PartitionedBody, Partitioning, hlo
from primax_core.extend.runtime import TiledSharding, Tiling

double_p = Primitive("double")
double_p.rule(abstract)(lambda x: x)
double_p.rule(lower)(lambda ctx, x: hlo.add(x, x))
calls = []


@double_p.rule(partition)
def _partition(eqn, everywhere):
    (x,) = eqn.invars
    n = everywhere.num_devices
    rule = AxisRule(x.aval.shape, (((0,),),), (((0,),),), frozenset(), frozenset(), frozenset())

    def divide(operands, results):
        calls.append([s.is_fully_replicated for s in (*operands, *results)])
        part = ShapedArray((x.aval.shape[0] // n,), x.aval.dtype)
        jaxpr = stage(lambda x: [lax.mul(x, lax.full_like(x, 2))], [part])
        text = f'#sdy.sharding<mesh<["d"={n}]>, [{{"d"}}]>'
        return PartitionedBody(jaxpr, {"d": n}, [text], [text], [None])

    return Partitioning(rule, divide)


def test_the_operation_is_divided_on_several_devices():
    devices = px.devices()[:2]
    if len(devices) < 2:
        pytest.skip("needs two devices")
    sharding = TiledSharding(devices, Tiling.along_mesh((2,), [(0,)]))
    x = px.device_put(np.arange(8, dtype=np.float32), sharding)
    calls.clear()
    f = px.jit(lambda x: double_p.bind(px.jit(lax.neg)(double_p.bind(x))))
    assert f(x).tolist() == (-4 * np.arange(8)).tolist()
    assert calls == [[False, False]] * 2
    assert "manual_computation" in f.lower(x).as_text()


def test_on_one_device_the_rule_lower_is_used():
    calls.clear()
    assert px.jit(double_p.bind)(np.ones(4, np.float32)).tolist() == [2] * 4
    assert calls == []
