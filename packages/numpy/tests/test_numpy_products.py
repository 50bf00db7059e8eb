"""Products: errors, jaxprs, and properties that cases do not cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import primax_numpy as pnp
from primax_core import lax, make_jaxpr

pytestmark = pytest.mark.optimised

x, m = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pnp.matmul(x, x), TypeError, r"matmul got incompatible shapes .*\(2, 3\) and"),
        (lambda: pnp.matmul(2.0, x), ValueError, "operand 0 must have ndim at least 1"),
        (lambda: pnp.matmul([1.0], x), TypeError, "matmul requires ndarray .* position 0"),
        (lambda: pnp.matmul(np.ones((2, 1, 3)), np.ones((3, 3, 1))), ValueError, "do not broad"),
        (lambda: pnp.dot(x, np.ones(4)), TypeError, r"dot got incompatible shapes .*\(4,\)"),
        (lambda: pnp.inner(x, m), TypeError, "inner got incompatible shapes"),
        (lambda: pnp.vdot(x, m), TypeError, "vdot got incompatible shapes"),
        (lambda: pnp.vecdot(x, m), ValueError, "axes must match"),
        (lambda: pnp.vecdot(1.0, x), ValueError, "at least one axis"),
        (lambda: pnp.matvec(x, np.ones(2)), ValueError, "inconsistent size .*: 3 vs 2"),
        (lambda: pnp.vecmat(np.ones(3), x), ValueError, "inconsistent size .*: 3 vs 2"),
        (lambda: pnp.matvec(np.ones(3), x), ValueError, "needs at least 2 axes and 1"),
        (lambda: pnp.tensordot(x, m, 3), TypeError, "exceeds input ranks"),
        (lambda: pnp.tensordot(x, m, "a"), TypeError, "must be an int, a pair"),
        (lambda: pnp.tensordot(x, m, ((0, 0), (0, 1))), TypeError, "duplicate value"),
        (lambda: pnp.tensordot(x, m, ((0,), (0, 1))), TypeError, "the same length"),
        (
            lambda: pnp.outer(x, m, out=x),
            NotImplementedError,
            "'out' argument of primax.numpy.outer",
        ),
        (lambda: pnp.cross(np.ones(2), np.ones(2)), ValueError, "Dimension must be 3"),
        (lambda: pnp.einsum("ij,jk", x), ValueError, "subscripts, 2, must be .* operands, 1"),
        (lambda: pnp.einsum("ij,jk->il", x, m), ValueError, "'l' did not appear"),
        (lambda: pnp.einsum("ij,jk->ii", x, m), ValueError, "'i' appears twice"),
        (lambda: pnp.einsum("ij,kj", x, m), ValueError, r"label 'j' for operand 1 \(4\)"),
        (lambda: pnp.einsum("ijk", x), ValueError, r"do not fit an operand of shape \(2, 3\)"),
        (lambda: pnp.einsum("i!", x), ValueError, "character '!'"),
        (lambda: pnp.einsum(x, 0), TypeError, "alternate with lists"),
        (lambda: pnp.einsum(x, [[0], 1]), TypeError, "labels that are hashable and comparable"),
        (lambda: pnp.einsum(x, ["i", 1]), TypeError, r"got \[\['i', 1\]\]"),
        (lambda: pnp.einsum("ij->", [[1.0]]), TypeError, "einsum requires ndarray"),
        (lambda: pnp.einsum("ij->", x, out=x), NotImplementedError, "'out' argument"),
        (lambda: pnp.einsum("a,b,c", *[x[0]] * 3, optimize="no"), ValueError, "find a path"),
        (lambda: pnp.convolve(x, x), ValueError, "only support 1-dimensional inputs"),
        (lambda: pnp.convolve(x[0], x[0, :0]), ValueError, "cannot be empty"),
        (lambda: pnp.correlate(x[0], x[0], mode="all"), ValueError, "mode must be one of"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_contraction_is_one_operation() -> None:
    a, b = np.ones((2, 3, 4), np.float32), np.ones((2, 4, 5), np.float32)
    for program in (
        make_jaxpr(lambda a, b: pnp.einsum("bij,bjk->bik", a, b))(a, b),
        make_jaxpr(lambda a, b: pnp.einsum("bij,bjk->bki", a, b))(a, b),
        make_jaxpr(pnp.matmul)(a, b),
    ):
        assert [e.primitive.name for e in program.eqns] == ["dot_general"]


def test_diagonals_are_slices() -> None:
    program = str(make_jaxpr(lambda a: pnp.einsum("ii->i", a))(np.ones((9, 9))))
    assert "strides=(10,)" in program and "gather" not in program


def test_contraction_order_is_the_cheapest() -> None:
    big, thin = np.ones((50, 50), np.float32), np.ones((50, 1), np.float32)
    program = make_jaxpr(lambda a, b, c: pnp.einsum("ij,jk,kl->il", a, b, c))(big, big, thin)
    sizes = [e.outvars[0].aval.size for e in program.eqns]
    assert max(sizes) == 50
    left = make_jaxpr(lambda a, b, c: pnp.einsum("ij,jk,kl->il", a, b, c, optimize=False))
    assert max(e.outvars[0].aval.size for e in left(big, big, thin).eqns) == 2500
    path, description = pnp.einsum_path("ij,jk,kl->il", big, big, thin)
    assert len(path) == 2 and path[0] == (1, 2)
    assert "Optimized" in str(description)


@given(st.data())
def test_random_subscripts(data: st.DataObject) -> None:
    sizes = {"a": 2, "b": 3, "c": 1, "d": 2}
    terms = [
        "".join(data.draw(st.lists(st.sampled_from("abcd"), max_size=3), label="term"))
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))])
    text = ",".join(terms) + "->" + output
    rng = np.random.default_rng(0)
    operands = [rng.integers(-3, 4, [sizes[c] for c in t]).astype(np.float32) for t in terms]
    expected = np.einsum(text, *operands)
    np.testing.assert_array_equal(pnp.einsum(text, *operands), expected)


@pytest.mark.parametrize(
    ("operands", "options", "expected"),
    [
        ((x, m), {}, np.float32),
        ((x.astype(np.float16), m), {}, np.float32),
        ((x.astype(np.float16), m.astype(np.float16)), {}, np.float16),
        ((x.astype(np.int8), m.astype(np.int32)), {}, np.int32),
        ((x, m), {"preferred_element_type": np.float16}, np.float16),
    ],
)
def test_contraction_of_einsum_receives_the_dtype_of_the_result(
    operands: Any, options: Any, expected: Any
) -> None:
    calls = []

    def contract(a: Any, b: Any, numbers: Any, precision: Any, *, preferred_element_type: Any):
        calls.append((numbers, precision, np.dtype(preferred_element_type)))
        return lax.dot_general(
            a, b, numbers, precision, preferred_element_type=preferred_element_type
        )

    out = pnp.einsum("ij,jk->ik", *operands, precision="highest", _dot_general=contract, **options)
    assert calls == [((((1,), (0,)), ((), ())), "highest", expected)]
    assert out.dtype == expected
