"""``checkpoint``, its policies, and ``print_saved_residuals``."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.ad_checkpoint import checkpoint_name, print_saved_residuals
from primax_core.extend import (
    MissingRule,
    Primitive,
    abstract,
    batch,
    impl,
    jvp,
    transpose,
)
from test_support import assert_close

F32 = np.float32
POLICIES = px.checkpoint_policies
W = np.linspace(-1, 1, 9, dtype=F32).reshape(3, 3)
X = np.linspace(-1, 2, 6, dtype=F32).reshape(2, 3)


def network(w, x):
    h = checkpoint_name(lax.dot(x, w), "lin")
    s = checkpoint_name(lax.sin(h), "act")
    left, right = lax.reshape(s, (2, 3, 1)), lax.reshape(s, (2, 1, 3))
    b = lax.dot_general(left, right, (((2,), (1,)), ((0,), (0,))))
    return lax.reduce_sum(lax.tanh(b), (0, 1, 2))


def saved(capsys, f, *args) -> list[str]:
    """The printed lines without file and line number, sorted."""
    print_saved_residuals(f, *args)
    lines = capsys.readouterr().out.splitlines()
    return sorted(line.split(" from /")[0].split(" from <")[0] for line in lines)


INPUTS = ["f32[2,3] from the argument x", "f32[3,3] from the argument w"]
COEFFICIENTS = [
    "f32[2,1,3] output of reshape",
    "f32[2,3,1] output of reshape",
    "f32[2,3,3] output of one_minus_square",
    *INPUTS[:1],
    "f32[2,3] output of cos",
    *INPUTS[1:],
]
LINEAR = [*INPUTS[:1], "f32[2,3] named 'lin'", *INPUTS[1:]]
UNBATCHED = [*INPUTS[:1], "f32[2,3] output of dot_general", *INPUTS[1:]]
SAVED = {
    "nothing_saveable": (POLICIES.nothing_saveable, INPUTS),
    "none": (None, INPUTS),
    "everything_saveable": (POLICIES.everything_saveable, COEFFICIENTS),
    "dots_saveable": (POLICIES.dots_saveable, ["f32[2,3,3] output of dot_general", *UNBATCHED]),
    "checkpoint_dots": (POLICIES.checkpoint_dots, ["f32[2,3,3] output of dot_general", *UNBATCHED]),
    "dots_with_no_batch_dims": (POLICIES.dots_with_no_batch_dims_saveable, UNBATCHED),
    "checkpoint_dots_with_no_batch_dims": (POLICIES.checkpoint_dots_with_no_batch_dims, UNBATCHED),
    "save_anything_except": (POLICIES.save_anything_except_these_names("act"), COEFFICIENTS),
    "save_only": (POLICIES.save_only_these_names("lin"), LINEAR),
    "save_any_names_but": (POLICIES.save_any_names_but_these("act"), LINEAR),
    "save_from_both": (
        POLICIES.save_from_both_policies(
            POLICIES.save_only_these_names("lin"), POLICIES.save_only_these_names("act")
        ),
        [INPUTS[0], "f32[2,3] named 'act'", "f32[2,3] named 'lin'", INPUTS[1]],
    ),
    "offload_dots": (
        POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host"),
        [*UNBATCHED[:1], "f32[2,3] output of device_put", *UNBATCHED[2:]],
    ),
    "save_and_offload": (
        POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=["lin"], names_which_can_be_offloaded=[],
            offload_src="device", offload_dst="pinned_host",
        ),
        LINEAR,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_what_policies_save(name, capsys):
    policy, expected = SAVED[name]
    f = px.checkpoint(network, policy=policy)
    assert saved(capsys, f, W, X) == sorted(expected)


@pytest.mark.parametrize("name", SAVED)
def test_policies_do_not_change_values(name):
    f = px.checkpoint(network, policy=SAVED[name][0])
    assert_close(f(W, X), network(W, X), rtol=1e-5)
    expected = px.grad(network)(W, X)
    assert_close(px.grad(f)(W, X), expected, rtol=1e-5)
    assert_close(px.jit(px.grad(f))(W, X), expected, rtol=1e-5)


def test_without_checkpoint_coefficients_are_saved(capsys):
    assert saved(capsys, network, W, X) == sorted(COEFFICIENTS)


def test_the_users_line_is_printed(capsys):
    print_saved_residuals(px.checkpoint(network, policy=POLICIES.dots_saveable), W, X)
    out = capsys.readouterr().out
    first = network.__code__.co_firstlineno
    assert f"test_checkpointing.py:{first + 1}:" in out and "(network)" in out


def test_constants_are_named_as_such(capsys):
    k = np.arange(3, dtype=F32)
    assert "f32[3] from a constant" in saved(capsys, lambda x: lax.sin(x) * k * x, k)


def test_the_argument_may_be_a_tree(capsys):
    lines = saved(capsys, lambda p: lax.sin(p["a"]) * p["a"], {"a": F32(1)})
    assert "f32[] from the argument p['a']" in lines


def test_recomputation_is_in_the_backward_pass():
    text = str(px.make_jaxpr(px.grad(px.checkpoint(lambda x: lax.sin(lax.sin(x)))))(1.0))
    assert "remat2[" in text and text.count("sin ") >= 3
    assert "differentiated=True" in text
    lowered = px.jit(px.grad(px.checkpoint(lambda x: lax.sin(lax.sin(x))))).lower(1.0).as_text()
    assert "optimization_barrier" in lowered
    loose = px.checkpoint(lambda x: lax.sin(lax.sin(x)), prevent_cse=False)
    assert "optimization_barrier" not in px.jit(px.grad(loose)).lower(1.0).as_text()


@pytest.mark.parametrize(
    "way",
    [
        lambda f: px.hessian(f)(1.0),
        lambda f: px.jvp(f, (1.0,), (1.0,))[1],
        lambda f: px.vmap(px.grad(f))(np.array([1.0, 2.0], F32)),
        lambda f: px.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(0.5),
        lambda f: px.grad(lambda x: lax.cond(x > 0, f, lambda y: y, x))(0.5),
        lambda f: px.grad(px.checkpoint(px.checkpoint(f)))(0.5),
        lambda f: px.grad(px.jit(f))(0.5),
    ],
    ids=["hessian", "jvp", "vmap", "scan", "cond", "nested", "jit"],
)
def test_composes(way):
    def f(x):
        return lax.sin(x) * lax.exp(x)

    assert_close(way(px.checkpoint(f)), way(f), rtol=1e-5)


def test_policies_apply_inside_jitted_functions(capsys):
    def f(w, x):
        return lax.reduce_sum(px.jit(lambda w, x: lax.sin(lax.dot(x, w)))(w, x), (0, 1))

    lines = saved(capsys, px.checkpoint(f, policy=POLICIES.dots_saveable), W, X)
    assert "f32[2,3] output of dot_general" in lines


def test_static_arguments():
    f = px.checkpoint(lambda x, n: lax.sin(x) if n else x * x, static_argnums=1)
    assert_close(px.grad(f)(2.0, True), np.cos(2.0), rtol=1e-5)
    assert_close(px.grad(f)(2.0, False), 4.0, rtol=1e-5)
    assert_close(px.grad(f)(2.0, []), 4.0, rtol=1e-5)  # not hashable
    g = px.checkpoint(lambda x, *, n: x * x if n else x, static_argnames="n")
    assert_close(px.grad(lambda x: g(x, n=True))(2.0), 4.0, rtol=1e-5)


def test_keyword_arguments():
    assert float(px.checkpoint(lambda x, y: x * y)(2.0, y=3.0)) == 6.0


def test_an_offloading_policy_refuses_a_name_on_both_sides():
    with pytest.raises(ValueError, match="both to be saved and to be offloaded"):
        POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host",
        )  # fmt: skip


def test_names_are_the_identity():
    tree = checkpoint_name({"a": 1.0, "b": X}, "n")
    assert float(tree["a"]) == 1.0
    np.testing.assert_array_equal(tree["b"], X)
    assert float(px.grad(lambda x: checkpoint_name(x, "n") * x)(3.0)) == 6.0
    assert "name[name=n]" in str(px.make_jaxpr(lambda x: checkpoint_name(x, "n"))(1.0))


def test_remat_is_checkpoint():
    assert px.remat is px.checkpoint


def test_control_flow_on_arguments_is_refused():
    with pytest.raises(px.errors.TracerBoolConversionError, match="for checkpoint / remat"):
        px.checkpoint(lambda x: x if x > 0 else -x)(1.0)


def test_arguments_that_are_not_arrays():
    with pytest.raises(TypeError, match="was passed to the function at path x"):
        px.checkpoint(lambda x: x)("a")


def eager_only() -> Primitive:
    """A primitive with an eager implementation, derivatives, and no lowering rule."""
    double_p = Primitive("double_in_python")
    double_p.rule(impl)(lambda x: px.device_put(np.asarray(x) * 2))
    double_p.rule(abstract)(lambda x: x)
    double_p.rule(jvp)(
        lambda primals, tangents: (double_p.bind(*primals), double_p.bind(*tangents))
    )
    double_p.rule(transpose)(lambda ct, x: [double_p.bind(ct)])
    double_p.rule(batch)(lambda axis, args, dims: (double_p.bind(*args), dims[0]))
    return double_p


def test_operations_without_a_lowering_run_eagerly():
    double_p = eager_only()
    f = px.checkpoint(lambda x: lax.sin(double_p.bind(x)))
    nested = px.checkpoint(lambda x: f(x) * 3)
    x = np.float32([0, 1, 2])
    assert_close(f(x), np.sin(2 * x), rtol=1e-6)
    assert_close(px.vmap(f)(x), np.sin(2 * x), rtol=1e-6)
    assert_close(px.jvp(nested, (x,), (x,))[1], 6 * x * np.cos(2 * x), rtol=1e-5)
    gradient = px.grad(lambda x: lax.reduce_sum(nested(x), (0,)))(x)
    assert_close(gradient, 6 * np.cos(2 * x), rtol=1e-5)
    with pytest.raises(MissingRule, match=r"double_in_python .* has no lower rule"):
        px.jit(f)(x)
