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


def test_attributes_of_the_class_start_no_client():
    code = """if True:
        import primax.as_jax
        primax.as_jax.install()
        import jax
        from jax._src.array import ArrayImpl
        from jax._src.xla_bridge import _backends
        assert jax.Array.item is ArrayImpl.item and jax.Array.sharding is ArrayImpl.sharding
        assert not _backends
        assert type(jax.lax.add(1.0, 2.0)) is ArrayImpl and _backends
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tracers_lack_attributes_of_arrays():
    def fun(x):
        assert not hasattr(x, "addressable_shards") and not hasattr(x, "is_fully_replicated")
        with pytest.raises(AttributeError, match="addressable_shards"):
            x.addressable_shards
        with pytest.raises(primax.errors.ConcretizationTypeError):
            x.item()
        return x

    primax.make_jaxpr(fun)(1.0)


def test_tracers_of_vmap_hold_a_batch():
    def fun(x):
        assert x.val.shape == (2, 3) and x.batch_dim == 1 and x.shape == (2,)
        return x

    primax.vmap(fun, 1)(np.zeros((2, 3), np.float32))
    for transform in (primax.jit, primax.grad):
        transform(lambda x: x * (not hasattr(x, "val") and not hasattr(x, "batch_dim")))(1.0)


def test_private_names_of_mlir():
    from primax.as_jax._src.interpreters import mlir
    from primax.as_jax._src.lib.mlir import dialects, ir

    assert dialects.hlo.AddOp is dialects.stablehlo.AddOp and ir.Module is mlir.ir.Module
    with pytest.raises(AttributeError, match=r"'primax\.as_jax\._src\.lib\.mlir\.dialects' has no"):
        dialects.no_dialect


def test_private_context_managers_of_options():
    from primax.as_jax._src import config

    assert config.enable_x64.value is False
    option = config.jax_export_calling_convention_version
    with option(10):
        assert option.value == 10 == config.export_calling_convention_version.value
    with pytest.warns(UserWarning, match="has no effect"), option(9):
        assert option.value == 9
    assert option.value == 10
    with pytest.raises(AttributeError, match="no attribute 'no_option'"):
        config.no_option


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


def test_comparison_of_results():
    from primax.as_jax._src.public_test_util import check_close

    one = np.float32(1)
    check_close({"a": one, "b": [1, 2.0]}, {"a": one * np.float32(1 + 5e-7), "b": [1.0, 2]})
    check_close(1.0, 1.1, rtol={np.float32: 0.2})
    check_close(1.0, 1.1, atol=0.2, rtol=0)
    check_close(np.float16(1), np.float32(1.001))
    check_close(np.array([np.nan]), np.array([np.nan]))
    with pytest.raises(AssertionError, match="in the second step"):
        check_close(1.0, 1.001, err_msg="in the second step")
    with pytest.raises(AssertionError, match=r"shapes \(2,\) and \(\) differ"):
        check_close(np.ones(2), 1.0)
    with pytest.raises(ValueError):
        check_close({"a": 1.0}, {"b": 1.0})


def test_version_of_the_bindings():
    from importlib.metadata import version

    from primax.as_jax._src import lib

    assert ".".join(map(str, lib.version)) == version("jaxlib")
    assert lib.jaxlib_extension_version >= 448  # grain then profiles its worker processes
    with pytest.raises(AttributeError, match="no attribute 'xla_client_version'"):
        lib.xla_client_version


@pytest.mark.parametrize(
    "dtype, numeric, inexact, floating, complex_",
    [
        ("bool", "int32", "float32", "float32", "complex64"),
        ("int8", "int8", "float32", "float32", "complex64"),
        ("uint64", "uint64", "float64", "float64", "complex128"),
        ("float16", "float16", "float16", "float16", "complex64"),
        ("float64", "float64", "float64", "float64", "complex128"),
        ("complex64", "complex64", "complex64", "float32", "complex64"),
        ("complex128", "complex128", "complex128", "float64", "complex128"),
    ],
)
def test_conversions_of_dtypes(dtype, numeric, inexact, floating, complex_):
    from primax.as_jax._src import dtypes

    assert dtypes.to_numeric_dtype(dtype) == numeric
    assert dtypes.to_inexact_dtype(dtype) == inexact
    assert dtypes.to_floating_dtype(dtype) == floating
    assert dtypes.to_complex_dtype(dtype) == complex_


def test_numbers_with_a_dtype():
    import pickle

    from primax.as_jax._src.literals import TypedComplex, TypedFloat, TypedInt

    for cls, value, dtype in (
        (TypedInt, 5, "int16"),
        (TypedFloat, 5.5, "float32"),
        (TypedComplex, 1 + 2j, "complex64"),
    ):
        number = cls(value, np.dtype(dtype))
        assert number == value and number.dtype == dtype and type(number + 1) is type(value)
        assert repr(number) == f"{cls.__name__}({value!r}, dtype={dtype})"
        assert number.aval == core.ShapedArray((), np.dtype(dtype), weak_type=True)
        copy = pickle.loads(pickle.dumps(number))
        assert (copy, copy.dtype, type(copy)) == (value, dtype, cls)
    assert str(TypedFloat(5.5, "float32")) == "5.5"


def test_current_trace_of_the_private_core():
    from primax.as_jax._src.core import eval_trace, trace_ctx

    seen = []
    primax.jit(lambda x: (seen.append(trace_ctx.trace), x)[1])(1.0)
    assert trace_ctx.trace is eval_trace and seen[0] is not eval_trace


def test_default_generator_on_arrays_of_words():
    pytest.importorskip("primax_numpy")
    from primax.as_jax._src import load

    words = load("random.threefry2x32")
    key = words.threefry_seed(np.int32(3))
    assert key.tolist() == [0, 3]
    assert words.threefry_split(key, (2,)).tolist() == [
        [3716834203, 3481239269],
        [1946498123, 2217676430],
    ]
    assert words.threefry_random_bits(key, 32, (2,)).tolist() == [318053758, 4029299397]
    assert words.threefry_fold_in(key, np.uint32(3)).tolist() == [877192987, 3448417067]


def test_prefix_errors():
    from primax.as_jax._src.tree_util import prefix_errors

    assert prefix_errors({"a": 1}, {"a": (2, 3)}) == []
    (error,) = prefix_errors({"a": [1]}, {"a": 2})
    with pytest.raises(ValueError, match=r"different types at key path\n    in_axes\['a'\]"):
        raise error("in_axes")
    assert prefix_errors({"a": [1]}, {"a": 2}, lambda node: isinstance(node, list)) == []
