"""Kernels that the Triton backend refuses, with the line and the rewrite."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from triton_operations import ELEMENTWISE, F32, Case, array, call_of, kernel_of, like, maps

from primax_core import ShapeDtypeStruct, jit, lax
from primax_core.extend import Primitive, abstract, native
from primax_kernels import ds, run_scoped
from primax_kernels._triton.errors import TritonError
from primax_kernels._triton.limits import checked, limits
from primax_kernels.triton import CompilerParams, limits as public_limits, load

mystery_p = Primitive("mystery")
mystery_p.rule(abstract)(lambda x: x)


def reasons_of(case: Case, params: Any = None, target: str | None = None) -> tuple[str, ...]:
    return limits(kernel_of(call_of(case), *case.args), params, target)


def _sorted(x: Any, o: Any) -> None:
    o[...] = lax.sort(x[...])


def _scratch_slice(x: Any, i: Any, o: Any) -> None:
    def body(ref: Any) -> None:
        ref[...] = x[...]
        o[...] = load(ref.at[ds(i[0], 4)], mask=lax.lt(lax.iota(np.int32, 4), np.int32(2)))

    run_scoped(body, ShapeDtypeStruct((8,), F32))


_DOT = (((1,), (0,)), ((), ()))
_BIG = array((512, 512))

REFUSED: dict[str, tuple[Case, str]] = {
    "operation": (Case(_sorted, like(8), array((8,))),
                  "the operation sort has no rule for Triton; sort before or after the kernel"),
    "foreign": (maps(mystery_p.bind, array((8,))), r"add a rule with @mystery_p.rule\(triton\)"),
    "complex": (maps(lax.neg, array((8,)).astype(np.complex64)),
                r"in_specs\[0\]: Triton has no elements of type complex64.*two arrays"),
    "large": (maps(lax.neg, np.zeros((2048, 1025), F32)),
              "a tensor of 4194304 elements .* the limit is 1048576: use smaller blocks"),
    "reshape": (maps(lambda x: lax.reshape(x, (15,)), array((3, 5))),
                r"reshape from \(3, 5\) to \(15,\): axes can be merged and split if all sizes are"),
    "gather": (maps(lambda x: lax.pad(x, F32(0), ((0, 0, 1),)), array((8,))),
               "pad adds elements between elements"),
    "product": (maps(lambda x, y: lax.dot_general(x, y, _DOT), array((128, 256), np.int32),
                     array((256, 128), np.int32)), "has no tensor cores and needs 4194304"),
    "shared": (maps(lambda x, y: lax.dot_general(x, y, _DOT), _BIG, _BIG),
               r"the product of float32\[512,512\] and .* needs at least 2097152 bytes of shared"),
    "scratch": (Case(_scratch_slice, like(4), array((8,)), np.array([1], np.int32)),
                "a masked access to a computed slice of scratch memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, pattern = REFUSED[name]
    (reason, *_) = reasons_of(case)
    assert re.search(pattern, reason), reason
    assert "compiled by Triton" in reason


def test_the_line_is_named() -> None:
    (reason,) = reasons_of(REFUSED["operation"][0])
    line = _sorted.__code__.co_firstlineno
    assert reason.startswith(f"{__file__}:{line + 1}:")
    assert "_sorted" in reason


@pytest.mark.parametrize(
    ("params", "pattern"),
    [
        ({"num_warps": 3}, "num_warps is 3; it is 1, 2, 4, 8, 16 or 32"),
        ({"num_warps": 64}, "num_warps is 64"),
        ({"num_warps": 2.0}, "num_warps is an integer, got 2.0"),
        ({"num_stages": 0}, "num_stages is 0"),
    ],
)
def test_parameters(params: dict[str, Any], pattern: str) -> None:
    (reason,) = reasons_of(ELEMENTWISE["add"], params)
    assert pattern in reason


def test_targets() -> None:
    add = ELEMENTWISE["add"]
    assert reasons_of(add, target="sm_80") == () == reasons_of(add, target="sm_90a")
    assert "Triton needs sm_80 or later" in reasons_of(add, target="sm_75")[0]
    with pytest.raises(ValueError, match="a compute capability such as 'sm_90', got 'h100'"):
        reasons_of(add, target="h100")
    f8 = maps(lax.neg, array((8,)).astype(np.dtype("float8_e4m3fn")))
    assert reasons_of(f8) == () == reasons_of(f8, target="sm_89")
    assert "float8_e4m3fn needs sm_89" in reasons_of(f8, target="sm_80")[0]
    inside = maps(
        lambda x: lax.convert_element_type(lax.convert_element_type(x, f8.args[0].dtype), F32),
        array((8,)),
    )
    assert reasons_of(inside, target="sm_89") == ()
    assert "use float8_e5m2" in reasons_of(inside, target="sm_80")[0]


def test_stages_that_exceed_shared_memory() -> None:
    def kernel(x: Any, y: Any, o: Any) -> None:
        def body(k: Any, total: Any) -> Any:
            parts = x[:, ds(k * 64, 64)], y[ds(k * 64, 64), :]
            return total + lax.dot_general(*parts, _DOT)

        o[...] = lax.fori_loop(0, 4, body, lax.full(o.shape, 0, F32))

    case = Case(kernel, like(128, 128), array((128, 256)), array((256, 128)))
    assert reasons_of(case, target="sm_89") == ()
    assert reasons_of(case, CompilerParams(num_stages=3), "sm_90") == ()
    (reason,) = reasons_of(case, CompilerParams(num_stages=3), "sm_89")
    assert "131072 bytes of shared memory, 101376 are available" in reason
    kernel = kernel_of(call_of(case), *case.args)
    stages = [checked(kernel, None, t).params.num_stages for t in ("sm_80", "sm_89", "sm_90")]
    assert stages == [3, 2, 3]


def test_limits_of_functions() -> None:
    call = call_of(REFUSED["operation"][0])

    def function(x: Any) -> Any:
        return jit(call)(lax.neg(x))[0], call_of(maps(lax.neg, array((8,))))(x)

    (reason,) = public_limits(function, ShapeDtypeStruct((8,), F32))
    assert "the operation sort has no rule for Triton" in reason
    assert public_limits(lax.neg, array((8,))) == ()
    negative = call_of(maps(lax.neg, array((8,))))
    (reason,) = public_limits(negative, array((8,)), target="sm_75")
    assert "Triton needs sm_80 or later" in reason
    with pytest.raises(ValueError, match="a compute capability such as"):
        public_limits(call, array((8,)), target="h100")


def test_products_of_8_bit_floats_for_an_absent_gpu() -> None:
    """XLA ends the process for some of them."""
    x = np.zeros((32, 32), "float8_e4m3fn")
    case = maps(lambda x, y: lax.dot_general(x, y, _DOT, preferred_element_type=F32), x, x)
    lowered = jit(call_of(case)).trace(x, x).lower(lowering_platforms=("cuda",))
    with pytest.raises(TritonError, match="float8_e4m3fn needs sm_89, the GPU has sm_80"):
        lowered.compile(devices=[native.AbsentDevice("cuda", "sm_80", None)])


def test_checked_raises_the_first_reason() -> None:
    case = REFUSED["operation"][0]
    kernel = kernel_of(call_of(case), *case.args)
    with pytest.raises(TritonError, match="the operation sort"):
        checked(kernel)
