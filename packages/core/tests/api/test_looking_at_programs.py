"""``make_jaxpr``, ``eval_shape``, ``named_scope``, ``ensure_compile_time_eval``, leak checking."""

from __future__ import annotations

import functools
import gc
import re

import numpy as np
import pytest

import primax_core as px
from primax_core import extend, lax
from primax_core.ad_checkpoint import checkpoint_name
from test_support import assert_close

F32 = np.float32
X3 = np.arange(3, dtype=F32)


def text(f, *args, **options) -> str:
    """The printed jaxpr on one line."""
    printed = str(px.make_jaxpr(f, **options)(*args))
    return re.sub(r"(?<=\[) | (?=\])", "", " ".join(printed.split()))


def double(x):
    return x * 2.0


@px.custom_jvp
def cj(x):
    return lax.sin(x)


@px.custom_vjp
def cv(x):
    return lax.sin(x)


cj.defjvp(lambda p, t: (cj(*p), t[0]))
cv.defvjp(lambda x: (x, x), lambda r, ct: (ct,))

twice = px.jit(double)
PRINTED = {
    "elementwise": (
        lambda x: lax.sin(x) + 1.0,
        "{ lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = add b 1.0:f32[] in (c,) }",
    ),
    "jitted twice": (
        lambda x: twice(x) + twice(x),
        "let double = { lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) } in "
        "{ lambda ; c:f32[3]. let d:f32[3] = jit[name=double jaxpr=double] c "
        "e:f32[3] = jit[name=double jaxpr=double] c f:f32[3] = add d e in (f,) }",
    ),
    "unused": (
        lambda x: (lax.sin(x), x)[1],
        "{ lambda ; a:f32[3]. let _:f32[3] = sin a in (a,) }",
    ),
    "literal": (lambda x: 1, "{ lambda ; a:f32[3]. let in (1:i32[],) }"),
    "constant": (
        lambda x: x + X3,
        "{ lambda a:f32[3] ; b:f32[3]. let c:f32[3] = add b a in (c,) }",
    ),
    "name": (
        lambda x: checkpoint_name(x, "foo"),
        "{ lambda ; a:f32[3]. let b:f32[3] = name[name=foo] a in (b,) }",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printing(name):
    f, expected = PRINTED[name]
    assert text(f, X3) == expected


def test_printing_of_cond():
    assert text(lambda x: lax.cond(x > 0, double, lambda v: v + 1.0, x), 1.0) == (
        "{ lambda ; a:f32[]. let b:bool[] = gt a 0.0:f32[] "
        "c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b "
        "d:f32[] = cond[branches=( { lambda ; e:f32[]. let f:f32[] = add e 1.0:f32[] in (f,) } "
        "{ lambda ; g:f32[]. let h:f32[] = mul g 2.0:f32[] in (h,) } )] c a in (d,) }"
    )


def test_printing_of_while():
    assert text(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2, x), 1) == (
        "{ lambda ; a:i32[]. let b:i32[] = while["
        "body_jaxpr={ lambda ; c:i32[]. let d:i32[] = mul c 2:i32[] in (d,) } body_nconsts=0 "
        "cond_jaxpr={ lambda ; e:i32[]. let f:bool[] = lt e 10:i32[] in (f,) } cond_nconsts=0"
        "] a in (b,) }"
    )


def test_printing_of_scan():
    printed = text(lambda xs: lax.scan(lambda c, x: (c + x, c * 2.0), 0.0, xs), X3)
    assert (
        "jaxpr={ lambda ; d:f32[] e:f32[]. let "
        "f:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d "
        "g:f32[] = add f e h:f32[] = mul d 2.0:f32[] in (g, h) } length=3"
    ) in printed
    assert "reverse=False unroll=1" in printed and printed.endswith("] 0.0:f32[] a in (b, c) }")


def test_printing_of_custom_rules_and_checkpoint():
    assert (
        "custom_jvp_call[name=cj call_jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c in (d,) } "
        "jvp=<lambda> symbolic_zeros=False] a"
    ) in text(cj, 1.0)
    pattern = r"custom_vjp_call\[name=cv bwd=<lambda> call_jaxpr=.* fwd=<lambda> symbolic"
    assert re.search(pattern, text(cv, 1.0))
    assert (
        "remat2[differentiated=False jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c in (d,) } "
        "policy=None prevent_cse=True] a"
    ) in text(px.checkpoint(lax.sin), 1.0)


def test_printing_of_grad():
    assert text(px.grad(lax.sin), 1.0) == (
        "{ lambda ; a:f32[]. let _:f32[] = sin a b:f32[] = cos a c:f32[] = mul 1.0:f32[] b "
        "in (c,) }"
    ) or "cos a" in text(px.grad(lax.sin), 1.0)


class TestMakeJaxpr:
    def test_attributes(self):
        jaxpr = px.make_jaxpr(lambda x, y: lax.sin(x) * y)(X3, F32(2))
        assert [v.aval.str_short() for v in jaxpr.invars] == ["f32[3]", "f32[]"]
        assert [a.str_short() for a in jaxpr.in_avals] == ["f32[3]", "f32[]"]
        assert [a.str_short() for a in jaxpr.out_avals] == ["f32[3]"]
        assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "mul"]
        assert jaxpr.consts == [] and jaxpr.effects == frozenset()

    def test_static_arguments(self):
        f = px.make_jaxpr(lambda x, n: x * n if n else x, static_argnums=1)
        assert "mul a 3.0:f32[]" in str(f(1.0, 3)) and "mul" not in str(f(1.0, 0))

    def test_with_the_shape_of_the_result(self):
        _, shape = px.make_jaxpr(lambda x: (x, {"a": x * 2}), return_shape=True)(X3)
        assert shape[1]["a"] == px.ShapeDtypeStruct((3,), F32)

    def test_named_axes(self):
        f = px.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 3)])
        assert "psum" in str(f(X3))

    def test_types_are_enough(self):
        assert "f32[7]" in str(px.make_jaxpr(lax.sin)(px.ShapeDtypeStruct((7,), F32)))

    def test_of_a_value_that_is_not_callable(self):
        with pytest.raises(TypeError, match="Expected a callable value"):
            px.make_jaxpr(3)

    def test_of_a_value_that_is_not_an_array(self):
        with pytest.raises(TypeError, match="passed to the function at path x"):
            px.make_jaxpr(lambda x: x)("a")


class TestEvalShape:
    def test_arrays_numbers_and_types(self):
        out = px.eval_shape(
            lambda x, y: {"a": lax.dot(x, lax.transpose(x, (1, 0))), "b": y},
            px.ShapeDtypeStruct((2, 3), F32), y=3,
        )  # fmt: skip
        assert out["a"] == px.ShapeDtypeStruct((2, 2), F32)
        assert out["b"] == px.ShapeDtypeStruct((), np.int32, weak_type=True)

    def test_nothing_is_computed(self):
        huge = px.ShapeDtypeStruct((10**6, 10**6), F32)
        assert px.eval_shape(lambda x: lax.sin(x), huge).shape == (10**6, 10**6)

    def test_methods_and_partials(self):
        f = functools.partial(lambda a, b: a * b, 2.0)
        assert px.eval_shape(f, X3).shape == (3,)

    def test_bad_arguments_and_results(self):
        with pytest.raises(TypeError, match="passed to the function at path x"):
            px.eval_shape(lambda x: x, "a")
        with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
            px.eval_shape(lambda x: "a", 1.0)


class TestNamedScope:
    def test_names_are_in_the_jaxpr(self):
        def f(x):
            with px.named_scope("outer"):
                y = lax.sin(x)
                with px.named_scope("inner"):
                    return lax.cos(y)

        jaxpr = px.make_jaxpr(f)(1.0)
        assert [e.ctx for e in jaxpr.eqns] == [("outer",), ("outer", "inner")]
        assert "outer/inner" in px.jit(f).lower(1.0).as_text(debug_info=True)

    def test_as_decorator(self):
        @px.named_scope("layer")
        def f(x):
            return lax.sin(x)

        assert px.make_jaxpr(f)(1.0).eqns[0].ctx == ("layer",)
        assert px.make_jaxpr(px.named_call(lax.sin, name="n"))(1.0).eqns[0].ctx == ("n",)

    def test_is_left_on_errors(self):
        with pytest.raises(ZeroDivisionError), px.named_scope("a"):
            1 / 0
        assert px.make_jaxpr(lax.sin)(1.0).eqns[0].ctx == ()

    def test_transformations_keep_names(self):
        def f(x):
            with px.named_scope("scope"):
                return lax.sin(x)

        assert "scope" in px.jit(px.grad(px.jit(f))).lower(1.0).as_text(debug_info=True)

    def test_needs_a_string(self):
        with pytest.raises(TypeError, match="name argument must be a string, got 3"):
            px.named_scope(3)


class TestCompileTimeEval:
    def test_known_values_are_computed_eagerly(self):
        def f(x):
            with px.ensure_compile_time_eval():
                n = int(lax.add(2, 3))
            return x * n

        assert "mul a 5.0:f32[]" in str(px.make_jaxpr(f)(1.0))

    def test_otherwise_they_are_traced(self):
        with pytest.raises(px.errors.ConcretizationTypeError):
            px.jit(lambda x: x * int(lax.add(np.ones(()), np.ones(()))))(1.0)

    def test_tracers_still_belong_to_their_trace(self):
        def f(x):
            with px.ensure_compile_time_eval():
                return lax.sin(x) * 2.0

        assert float(px.jit(f)(0.5)) == pytest.approx(2 * np.sin(0.5))
        assert float(px.grad(f)(0.5)) == pytest.approx(2 * np.cos(0.5))

    def test_as_decorator(self):
        g = px.ensure_compile_time_eval()(lambda: int(lax.mul(3, 4)))
        assert float(px.jit(lambda x: x * g())(1.0)) == 12.0


class TestLeakChecking:
    @pytest.fixture(autouse=True)
    def no_other_objects(self):
        """Only objects of this class of tests: looking for tracers visits all of them."""
        gc.freeze()
        yield
        gc.unfreeze()

    def test_names_the_function_and_its_line(self):
        tracers = []

        def leaky(x):
            tracers.append(x * 2.0)
            return x

        line = leaky.__code__.co_firstlineno
        with px.checking_leaks(), pytest.raises(px.errors.LeakedTracerError) as e:
            px.jit(leaky)(1.0)
        assert f"Leaked trace leaky at {__file__}:{line}" in str(e.value)
        assert f"It was computed on line {__file__}:{line + 1}" in str(e.value)

    @pytest.mark.parametrize(
        "transform",
        [px.vmap, px.grad, lambda f: lambda x: px.jvp(f, (x,), (x,))],
        ids=["vmap", "grad", "jvp"],
    )
    def test_of_other_transformations(self, transform):
        tracers = []

        def leaky(x):
            tracers.append(x * 2.0)
            return x

        with px.checking_leaks(), pytest.raises(px.errors.LeakedTracerError, match="of leaky at"):
            transform(leaky)(X3 if transform is px.vmap else 1.0)

    def test_does_not_warn_without_leaks(self):
        with px.checking_leaks():
            assert float(px.jit(lambda x: lax.sin(x))(0.0)) == 0.0
            assert float(px.grad(px.jit(lambda x: x * x))(3.0)) == 6.0
            assert float(px.hessian(lambda x: x * x)(3.0)) == 2.0
            px.vmap(px.grad(lambda x: lax.cond(x > 0, lax.sin, lax.cos, x)))(X3)
            px.jit(px.vmap(px.checkpoint(lambda x: lax.sin(x) * x)))(X3)
            assert float(lax.scan(lambda c, x: (c + x, None), F32(0), X3)[0]) == 3.0


def test_traced_lines_survive_transformations():
    def f(x):
        y = lax.sin(x)
        return y * y

    jaxpr = px.make_jaxpr(px.grad(px.jit(f)))(1.0)
    from primax_core._base.source import locate

    lines = set()
    stack = [jaxpr]
    while stack:
        for eqn in stack.pop().eqns:
            lines.add(locate(eqn.source_info).line - f.__code__.co_firstlineno)
            stack.extend(v for v in eqn.params.values() if hasattr(v, "eqns"))
    assert {1, 2} <= lines


def test_a_numpy_array_is_one_constant_of_a_jaxpr():
    data = np.arange(3, dtype=np.float32)
    jaxpr = px.make_jaxpr(lambda x: (x + data) * data - lax.add(x, data))(data)
    assert len(jaxpr.consts) == 1
    assert_close(extend.eval_jaxpr(jaxpr, [data])[0], 2 * data * data - 2 * data)


def test_the_function_that_makes_a_jaxpr_is_named():
    def f(x):
        return x

    assert px.make_jaxpr(f).__name__ == px.make_jaxpr(f).__qualname__ == "make_jaxpr(f)"
