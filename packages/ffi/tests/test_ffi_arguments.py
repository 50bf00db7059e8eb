"""Calls whose parts do not fit: refused while tracing, with the name of the native function."""

from __future__ import annotations

import numpy as np
import pytest

from primax_core import ShapeDtypeStruct as S, jit, make_jaxpr, new_ref
from primax_core.layout import Layout
from primax_ffi import ffi_call

F32 = np.dtype(np.float32)
X = np.ones((2, 3), F32)
RESULT = S((2, 3), F32)


@pytest.mark.parametrize(
    ("name", "result", "options", "message"),
    [
        (3, RESULT, {}, "the name of a native function is a text, not 3"),
        ("f", None, {}, "of 'f' has None at position 0, which has no shape and dtype"),
        ("f", [RESULT, "x"], {}, "has 'x' at position 1"),
        ("f", RESULT, {"vmap_method": "auto"}, "vmap_method is 'auto': it is one of"),
        ("f", RESULT, {"custom_call_api_version": 5}, "custom_call_api_version of 'f' is 5"),
        ("f", RESULT, {"legacy_backend_config": "x"}, "=4, whose functions receive attributes"),
        ("f", RESULT, {"legacy_backend_config": 3, "custom_call_api_version": 2}, "not a text"),
        ("f", RESULT, {"output_layouts": (0, 0)}, r"result 0 of 'f' is \(0, 0\), but it is to con"),
        ("f", RESULT, {"output_layouts": 3}, "layouts of the results of 'f' are 3"),
        ("f", [RESULT], {"output_layouts": (0, 1)}, r"outputs \(1\) must equal .* layouts \(2\)"),
        ("f", S((-1, 3), F32), {}, r"result 0 of 'f' has the shape \(-1, 3\), but -1 is not"),
        ("f", RESULT, {"output_layouts": Layout((1, 0), ((2, 2),))}, "has tiles: leave tiling out"),
    ],
)  # fmt: skip
def test_options(name, result, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ffi_call(name, result, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_layouts": []}, r"input arguments \(1\) must equal .* input layouts \(0\), in the"),
        ({"input_layouts": [3]}, "operand 0 of 'f' is 3, but a layout is a sequence of axes"),
        ({"input_layouts": [(0.5, 1)]}, r"is \(0.5, 1\), but a layout is a sequence of axes"),
        ({"input_output_aliases": "ab"}, "aliases of 'f' is 'ab', but it is to be a dictionary"),
        ({"input_output_aliases": {0: 0.5}}, r"is \{0: 0.5\}, but it is to be a dictionary"),
        ({"input_layouts": [(0, 1, 2)]}, "each of the 2 axes once, slowest first; row-major is"),
        ({"input_output_aliases": {0: 1}}, "{0: 1}, but there is no result 1 among"),
        ({"input_output_aliases": {-1: 0}}, "{-1: 0}, but there is no operand -1"),
        ({"input_output_aliases": {0: 0}, "input_layouts": [(1, 0)]},
         r"the operand has the layout \(1, 0\) and the result row-major"),
    ],
)  # fmt: skip
def test_layouts_and_aliases(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make_jaxpr(ffi_call("f", RESULT, **options))(X)


def test_aliases_of_other_types_and_of_several_operands():
    with pytest.raises(ValueError, match=r"operand has the type float32\[2,3\] and the result"):
        make_jaxpr(ffi_call("f", S((3,), F32), input_output_aliases={0: 0}))(X)
    with pytest.raises(ValueError, match="gives one result the memory of several operands"):
        make_jaxpr(ffi_call("f", RESULT, input_output_aliases={0: 0, 1: 0}))(X, X)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "attribute 'a' of 'f' has the type complex"),
        (None, "has the type NoneType, which native functions cannot read"),
        (2**63, "more than 64 bits: use np.uint64"),
        (np.float16(1), "a number of dtype float16"),
        (np.ones((2, 2)), "2 axes.*array.ravel"),
        (np.complex64([1]), "an array of dtype complex64"),
        (["a"], "a sequence of values that are not numbers"),
        ({1: 2}, "the name 1 of an attribute is not a text"),
        ({"b": None}, "'b' of attribute 'a' of 'f' has the type NoneType"),
    ],
)
def test_attributes(value, message):
    with pytest.raises((TypeError, OverflowError), match=message):
        make_jaxpr(lambda x: ffi_call("f", RESULT)(x, a=value))(X)


def test_traced_attributes():
    with pytest.raises(TypeError, match=r"is a traced value \(.*\), but .* pass it as an operand"):
        jit(lambda x, a: ffi_call("f", RESULT)(x, a=a))(X, 1)


def test_attributes_of_earlier_interfaces():
    with pytest.raises(ValueError, match=r"attributes \['a'\] and custom_call_api_version=2"):
        ffi_call("f", RESULT, custom_call_api_version=2)(X, a=1)


def test_operands():
    with pytest.raises(TypeError, match="operand 0 of 'f' is a dict, but native functions take"):
        ffi_call("f", RESULT)({"a": X})
    with pytest.raises(TypeError, match=r"operand 0 of 'f' is .* contents of a reference"):
        ffi_call("f", RESULT)(new_ref(X))
