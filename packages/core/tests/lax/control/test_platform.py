"""``platform_dependent`` and ``linear_call``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.custom_derivatives import linear_call
from primax_core.lax.control.platform import platform_dependent

F32 = np.float32
X = np.array([1.0, 2.0], F32)


def square_here(x):
    return platform_dependent(x, cpu=lambda x: x * x, tpu=lax.tan, default=lambda x: -x)


def total(x):
    return lax.reduce_sum(x, (0,))


class TestPlatform:
    @pytest.mark.parametrize(
        ("fun", "expected"),
        [
            (square_here, X * X),
            (px.grad(lambda x: total(square_here(x))), 2 * X),
            (px.vmap(square_here), X * X),
            (lambda x: px.jvp(square_here, (x,), (x,))[1], 2 * X * X),
            (px.vmap(px.grad(square_here)), 2 * X),
            (lambda x: platform_dependent(x, cuda=lax.tan, default=lambda x: -x), -X),
            (lambda x: platform_dependent(x, default=lambda x: -x), -X),
        ],
    )
    def test_values(self, fun, expected):
        np.testing.assert_allclose(fun(X), expected)
        np.testing.assert_allclose(px.jit(fun)(X), expected)

    @pytest.mark.parametrize("fun", [square_here, px.grad(lambda x: total(square_here(x)))])
    def test_other_branches_are_not_lowered(self, fun):
        assert "tan" in str(px.make_jaxpr(fun)(X)) or "cond" in str(px.make_jaxpr(fun)(X))
        text = px.jit(fun).lower(X).as_text()
        assert "multiply" in text and "case" not in text and "chlo.tan" not in text
        assert "cosine" not in text and "negate" not in text

    def test_only_the_branch_for_the_platform_runs_eagerly(self):
        ran = []
        fun = lambda name: lambda x: ran.append(name) or x
        platform_dependent(X, cpu=fun("cpu"), tpu=fun("tpu"), default=fun("default"))
        assert ran == ["cpu"]

    def test_no_branch(self):
        with pytest.raises(NotImplementedError, match=r"no branch for platform cpu.*tpu"):
            px.jit(lambda x: platform_dependent(x, tpu=lax.tan))(X)
        with pytest.raises(NotImplementedError, match="no branch for platform cpu"):
            platform_dependent(X, tpu=lax.tan)

    def test_gpu_is_ambiguous(self):
        with pytest.raises(ValueError, match="Use 'cuda', 'rocm'"):
            platform_dependent(X, gpu=lax.tan, default=lax.sin)

    def test_branches_that_differ(self):
        with pytest.raises(TypeError, match="branch 0 has type float32\\[2\\]"):
            px.jit(lambda x: platform_dependent(x, cpu=lambda x: x, tpu=total))(X)


def divided(r, x):
    return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, r, x)


class TestLinearCall:
    def test_the_custom_transpose_is_used(self):
        np.testing.assert_allclose(divided(F32(2), X), X / 2)
        np.testing.assert_allclose(px.grad(lambda x: total(divided(F32(2), x)))(X), [5.0, 5.0])
        (ct,) = px.linear_transpose(lambda x: divided(F32(2), x), X)(X)
        np.testing.assert_allclose(ct, 5 * X)

    def test_the_transpose_of_the_transpose_is_the_function(self):
        def transposed(f):
            return lambda y: px.linear_transpose(f, F32(1))(y)[0]

        f = lambda x: divided(F32(2), x)
        assert float(transposed(transposed(f))(F32(1))) == 0.5
        assert float(transposed(transposed(transposed(f)))(F32(1))) == 5.0

    def test_forward_mode_and_batches(self):
        _, dot = px.jvp(divided, (F32(2), X), (F32(1), X))
        np.testing.assert_allclose(dot, X / 2 - X / 4)
        np.testing.assert_allclose(px.vmap(divided)(X, X), [1.0, 1.0])
        np.testing.assert_allclose(px.vmap(px.grad(lambda x: divided(F32(2), x)))(X), [5.0, 5.0])

    def test_closures(self):
        @px.jit
        def f(c, x):
            call = lambda x: linear_call(lambda _, x: x * c, lambda _, ct: ct * c * c, (), x)
            return px.grad(lambda x: total(call(x)))(x)

        np.testing.assert_allclose(f(F32(3), X), [9.0, 9.0])

    def test_refused(self):
        with pytest.raises(TypeError, match="transpose output pytree structure"):
            linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, X)
        with pytest.raises(ValueError, match="Expected cotangent type float32\\[2\\]"):
            linear_call(lambda r, x: x, lambda r, ct: total(ct), 1.0, X)
        with pytest.raises(TypeError, match="takes two functions"):
            linear_call(lambda r, x: x, None, 1.0, X)
