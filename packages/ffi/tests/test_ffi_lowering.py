"""Native functions as lowering rules of primitives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ffi_library import registered

from primax_core import jit, vmap
from primax_core.extend import Primitive, ShapedArray, abstract, batch, lower, move_axis
from primax_core.layout import Layout
from primax_ffi import build_ffi_lowering_function, ffi_lowering

F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def primitive(rule: Any, out: Any = None, name: str = "own") -> Primitive:
    prim = Primitive(name)
    prim.rule(abstract)(lambda x, **_: out or x)
    prim.rule(lower)(rule)
    return prim


def test_parameters_are_attributes():
    prim = primitive(ffi_lowering(registered("acme_scale")))
    bound = jit(lambda x: prim.bind(x, by=np.float32(2), fail=""))
    assert np.asarray(bound(X)).tolist() == (2 * X).tolist()


def test_a_primitive_with_rules_of_its_own():
    prim = primitive(
        ffi_lowering(registered("acme_scale"), backend_config={"by": np.float32(2), "fail": ""})
    )

    @prim.rule(batch)
    def _batch(axis, args, dims):
        return prim.bind(move_axis(args[0], dims[0], 0, axis.size)), 0

    assert np.asarray(vmap(prim.bind)(X)).tolist() == (2 * X).tolist()


@pytest.mark.parametrize("order", [(0, 1), Layout((1, 0))])
def test_layouts_are_fastest_first(order):
    rule = ffi_lowering(registered("acme_memory"), operand_layouts=[order])
    prim = primitive(rule, ShapedArray((6,), F32))
    assert np.asarray(prim.bind(X)).tolist() == X.T.ravel().tolist()


def test_several_results_and_other_options():
    registered("acme_increment")
    prim = Primitive("own", multiple_results=True)
    prim.rule(abstract)(lambda x: [x, ShapedArray((1,), np.dtype(np.int32))])

    @prim.rule(lower)
    def _lower(ctx, x):
        build = build_ffi_lowering_function("acme_increment", operand_output_aliases={0: 0})
        out = build(ctx, x)
        assert out.results == list(out)
        return out

    out, same = jit(lambda x: prim.bind(x * 2.0))(X)
    assert np.asarray(out).tolist() == (2 * X + 1).tolist() and np.asarray(same).tolist() == [1]
    prim.rule(lower, override=True)(
        ffi_lowering("acme_increment", has_side_effect=True, extra_attributes={"kernel_name": "k"})
    )
    text = jit(prim.bind).lower(X).as_text()
    assert "has_side_effect = true" in text and 'kernel_name = "k"' in text


def test_earlier_interfaces():
    text = registered("acme_text", api_version=0)
    prim = primitive(ffi_lowering(text, api_version=3, backend_config="hello"))
    assert np.asarray(prim.bind(np.float32(4))) == 9


@pytest.mark.parametrize(
    ("options", "params", "error", "message"),
    [
        ({"operand_layout": []}, {}, TypeError, "unknown options .*'operand_layout'"),
        ({"api_version": 2}, {"by": 1}, ValueError, r"the attributes \['by'\] and api_version=2"),
        ({"operand_layouts": []}, {}, ValueError, "has 1 operands and 0 operand_layouts"),
        ({"operand_layouts": [(1, 0)], "skip_ffi_layout_processing": True}, {}, ValueError,
         "leave one of the options out"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options, params, error, message):
    registered("acme_memory")
    with pytest.raises(error, match=message):
        prim = primitive(ffi_lowering("acme_memory", **options))
        jit(lambda x: prim.bind(x, **params)).lower(X)


def test_layouts_are_left_to_xla():
    prim = primitive(ffi_lowering(registered("acme_memory"), skip_ffi_layout_processing=True))
    assert np.asarray(prim.bind(X)).tolist() == X.tolist()
