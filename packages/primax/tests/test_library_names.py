"""Tests of names that single libraries need: groups of scan, attributes of the class Array."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import primax
import primax.core as core
from primax import lax
from primax.errors import JaxRuntimeError
from primax.extend.core import primitives

XS = np.arange(3, dtype=np.float32)


def body(carry, x):
    return lax.add(lax.sin(carry), x), lax.mul(carry, x)


def loop(init, xs):
    return lax.scan(body, init, xs)


class Box(core.Tracer):
    def __init__(self, trace, val):
        super().__init__(trace, primax.typeof(val))
        self.val = val


class Rebinding(core.Trace):
    """Binds each operation to its values, and keeps the parameters of loops."""

    def __init__(self, parent_trace):
        super().__init__()
        self.parent_trace = parent_trace
        self.loops = []

    def process_primitive(self, primitive, tracers, params):
        values = [t.val if isinstance(t, Box) else t for t in tracers]
        if primitive is primitives.scan_p:
            self.loops.append(params)
        out = primitive.bind(*values, **params)
        return [Box(self, o) for o in out] if primitive.multiple_results else Box(self, out)


def rebound():
    """The results of a loop under the interpreter, and the parameters that it received."""
    with core.take_current_trace() as parent:
        trace = Rebinding(parent)
        with core.set_current_trace(trace):
            outs = loop(Box(trace, np.float32(0.5)), Box(trace, XS))
    return [np.asarray(o.val) for o in outs], trace.loops


def test_interpreters_receive_and_bind_groups_of_scan():
    code = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import test_library_names as here
outs, (before,) = here.rebound()
assert before["num_carry"] == 1 and "ft_in" not in before
from primax.as_jax._src import flattree
again, (after,) = here.rebound()
assert "num_carry" not in after and "num_consts" not in after
assert [len(g) for g in after["ft_in"].unpack()] == [0, 1, 1]
assert [len(g) for g in after["ft_out"].unpack()] == [1, 1]
for x, y in zip(outs, again):
    np.testing.assert_array_equal(x, y)
for x, y in zip(outs, here.loop(np.float32(0.5), here.XS)):
    np.testing.assert_array_equal(x, y)
"""
    folder = __file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_flat_trees():
    from primax._adapters.scan_groups import nones, pack

    tree = pack((nones(1), nones(0), pack((nones(2), nones(1)))))
    assert len(tree) == 4 and repr(tree) == "((None), (), ((None, None), (None)))"
    new = tree.update("abcd")
    first, empty, rest = new.unpack()
    assert (first.vals, empty.vals, rest.vals) == (["a"], [], ["b", "c", "d"])
    assert [group.vals for group in rest.unpack()] == [["b", "c"], ["d"]]
    assert [one.vals for one in first.unpack()] == [["a"]]
    assert list(new) == ["a", "b", "c", "d"]
    assert new == tree.update("abcd") != tree and hash(new) == hash(tree.update("abcd"))
    with pytest.raises(ValueError, match="the tree has 4 values and cannot hold 2; pass one new"):
        tree.update("ab")


@pytest.mark.parametrize("name", ["item", "sharding", "device", "is_fully_addressable"])
def test_attributes_of_arrays_are_attributes_of_the_class(name):
    x = lax.sin(np.float32(0.5))
    assert getattr(primax.Array, name) is getattr(type(x), name)
    assert getattr(x, name) is not None


def test_tracers_lack_attributes_of_arrays():
    def fun(x):
        assert not hasattr(x, "addressable_shards") and not hasattr(x, "is_fully_replicated")
        with pytest.raises(AttributeError, match="addressable_shards"):
            x.addressable_shards
        with pytest.raises(primax.errors.ConcretizationTypeError):
            x.item()
        return x

    primax.make_jaxpr(fun)(1.0)


def test_former_name_of_runtime_errors():
    from primax.as_jax._src import lib
    from primax.as_jax._src.lib import xla_client

    assert lib.xla_client is xla_client and xla_client.XlaRuntimeError is JaxRuntimeError


def test_modules_that_are_attributes_are_in_the_table_of_modules():
    code = """
import sys
import primax.as_jax
primax.as_jax.install()
import jax
assert sys.modules["jax.tree_util"] is jax.tree_util and "jax.lax" in sys.modules
assert "jax.as_jax" not in sys.modules and "jax.interpreters" not in sys.modules
assert jax.interpreters is sys.modules["jax.interpreters"]
import jax.experimental.pallas
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask
assert splash_attention_mask.FullMask((2, 3)).shape == (2, 3)
"""
    pytest.importorskip("primax_kernels")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
