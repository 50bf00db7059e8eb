"""Calls that abort the process in jaxlib raise errors instead.

Each case runs in its own process, so that an abort is a failure of that case.
"""

import pytest
from processes import run

from primax_core._runtime.jaxlib_versions import MOST_ELEMENTS

PREAMBLE = """
import numpy as np
from primax_core import jit, lax
from primax_core._api.transfer import device_put
from primax_core._runtime.array import put
from primax_core._runtime.devices import devices
from primax_core._runtime import sharding
"""

CASES = {
    "no devices": "sharding.device_assignment(())",
    "copy of a deleted array": "x.delete(); x.__copy__()",
    "clone of a deleted array": "x.delete(); x.clone()",
    "move of a deleted array": "x.delete(); device_put(x, devices()[1])",
    "export of a deleted array": "x.delete(); x.__dlpack__()",
    "address of a deleted array": "x.delete(); x.unsafe_buffer_pointer()",
    "operation on a deleted array": "x.delete(); x + x",
    "jit on a deleted array": "f = jit(lambda x: x + 1); f(x); x.delete(); f(x)",
    "donated twice": "jit(lambda a, b: a + b, donate_argnums=(0, 1))(x, x)",
    "donated and used": "jit(lambda a, b: a + b, donate_argnums=0)(x, x)",
    "donated again": "f = jit(lambda a: a + 1, donate_argnums=0); f(x); f(x)",
    "deleted and donated": "x.delete(); jit(lambda a: a + 1, donate_argnums=0)(x)",
    "deleted on another device": "y = device_put(x, devices()[1]); y.delete(); y + x",
}


@pytest.mark.parametrize("case", CASES)
def test_calls_that_would_abort_raise(case):
    code = f"""
x = put(np.arange(3, dtype=np.float32))
try:
    {CASES[case]}
except (RuntimeError, ValueError) as error:
    print("refused:", error)
"""
    assert run(PREAMBLE + code, PRIMAX_NUM_CPU_DEVICES="2").startswith("refused: ")


READS = {
    "asarray": "np.asarray(x)",
    "str": "str(x)",
    "tolist": "x.tolist()",
    "device_get": "device_get(x)",
    "iteration": "next(iter(x))",
    "address": "x.unsafe_buffer_pointer()",
    "clone": "np.asarray(x.clone())",
    "copy to another device": "np.asarray(device_put(x, devices()[1]))",
    "one result of two": "np.asarray(jit(lambda: (large(), lax.iota(np.int32, 3)))()[1])",
    "narrow floats": "np.asarray(jit(lambda: lax.abs(narrow(large())))())",
    "memoryview": "memoryview(x) if sys.version_info >= (3, 12) else np.asarray(x)",
}


@pytest.mark.parametrize("case", READS)
def test_reading_what_memory_did_not_suffice_for_raises(case):
    """jaxlib aborts for a buffer that was not allocated."""
    code = f"""
import resource, sys
from primax_core import device_get, dtypes
resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
def large():
    return lax.convert_element_type(lax.iota(np.int32, 2**34), np.float32)
def narrow(x):
    return lax.convert_element_type(x, dtypes.bfloat16)
x = jit(large)()
try:
    {READS[case]}
except RuntimeError as error:
    print("refused:", error)
"""
    assert "RESOURCE_EXHAUSTED" in run(PREAMBLE + code, PRIMAX_NUM_CPU_DEVICES="2")


def test_shapes_beyond_64_bits():
    code = """
try:
    jit(lambda: lax.broadcast_in_dim(np.float32(0), (2**40, 2**40), ()))()
except (ValueError, TypeError, RuntimeError) as error:
    print("refused:", error)
"""
    assert run(PREAMBLE + code).startswith("refused: ")


def test_an_array_beyond_the_memory():
    code = """
try:
    lax.iota("uint8", 2**40)
except (ValueError, RuntimeError) as error:
    print("refused:", error)
"""
    assert run(PREAMBLE + code).startswith("refused: ")


@pytest.mark.skipif(MOST_ELEMENTS > 2**36, reason="this jaxlib computes them")
@pytest.mark.parametrize("function", [
    "lambda: lax.reduce_sum(lax.iota('uint8', 2**36), (0,))",
    "lambda: lax.fori_loop(0, 2, lambda i, s: "
    "lax.reduce_max(lax.iota('uint8', 2**36), (0,)), np.uint8(0))",
])  # fmt: skip
def test_loops_over_more_elements_than_xla_divides(function):
    code = f"""
try:
    jit({function})()
except ValueError as error:
    print("refused:", error)
"""
    text = run(PREAMBLE + code, PRIMAX_NUM_CPU_DEVICES="1")
    assert "iota has a result of type u8[68719476736]" in text and "Compute it in parts" in text


def test_donation_of_memory_with_other_users():
    code = """
x = put(np.arange(1000, dtype=np.float32))
view, capsule, y, z = np.asarray(x), np.from_dlpack(x), x.clone(), device_put(x, devices()[0])
out = jit(lambda x: x * 2, donate_argnums=0)(x)
assert (view == np.arange(1000)).all() and (capsule == np.arange(1000)).all()
assert (np.asarray(out) == 2 * np.arange(1000)).all()
del x, y, z, capsule
out.delete()
print("fine")
"""
    assert run(PREAMBLE + code) == "fine"


def test_text_for_donating_and_using_one_buffer():
    code = """
from primax_core.errors import JaxRuntimeError
x = put(np.arange(3, dtype=np.float32))
try:
    jit(lambda a, b: a + b, donate_argnums=1)(x, x)
except JaxRuntimeError as error:
    print(error)
"""
    assert "is donated, but the same buffer is also argument" in run(PREAMBLE + code)


def test_donating_moves():
    code = """
x = put(np.arange(1000, dtype=np.float32))
y = device_put(x, devices()[1], donate=True)
assert (np.asarray(y) == np.arange(1000)).all()
print("fine")
"""
    assert run(PREAMBLE + code, PRIMAX_NUM_CPU_DEVICES="2") == "fine"
