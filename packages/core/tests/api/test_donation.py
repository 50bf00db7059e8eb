"""Donated arguments: reuse, deletion, warnings, errors."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px

pytestmark = pytest.mark.optimised

F32 = np.float32


def array(n=3):
    return px.device_put(np.arange(n, dtype=F32))


@pytest.mark.parametrize(
    "options",
    [{"donate_argnums": 0}, {"donate_argnums": (-2,)}, {"donate_argnames": "x"}],
    ids=["position", "from the end", "name"],
)
def test_donated_arguments_are_deleted(options):
    x, y = array(), array()
    f = px.jit(lambda x, y: x + y, **options)
    np.testing.assert_array_equal(f(x, y), [0.0, 2.0, 4.0])
    assert x.is_deleted() and not y.is_deleted()


def test_each_call_deletes_its_own():
    f = px.jit(lambda x: x + 1.0, donate_argnums=0)
    x = array()
    for _ in range(3):
        x = f(x)
    np.testing.assert_array_equal(x, [3.0, 4.0, 5.0])


def test_all_leaves_of_a_tree():
    tree = {"a": array(), "b": [array()]}
    px.jit(lambda t: {"a": t["a"] + 1.0, "b": [t["b"][0] * 2.0]}, donate_argnums=0)(tree)
    assert tree["a"].is_deleted() and tree["b"][0].is_deleted()


def test_beside_static_arguments():
    x = array()
    f = px.jit(lambda n, x: x * n, static_argnums=0, donate_argnums=1)
    np.testing.assert_array_equal(f(3, x), [0.0, 3.0, 6.0])
    assert x.is_deleted()


def test_by_keyword():
    x = array()
    px.jit(lambda x: x + 1.0, donate_argnames="x")(x=x)
    assert x.is_deleted()


def test_numpy_arguments_are_unchanged():
    x = np.arange(3, dtype=F32)
    f = px.jit(lambda x: x + 1.0, donate_argnums=0)
    f(x)
    np.testing.assert_array_equal(f(x), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])


def test_a_warning_if_no_result_can_reuse_the_buffer():
    f = px.jit(lambda x: x.shape[0] * 2.0, donate_argnums=0)
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3\]"):
        f(array())


def test_under_a_trace_nothing_is_donated():
    f = px.jit(lambda x: x + 1.0, donate_argnums=0)
    x = array()
    np.testing.assert_array_equal(px.jit(lambda x: f(x) + x)(x), [1.0, 3.0, 5.0])
    assert not x.is_deleted()
    px.jvp(f, (x,), (x,))
    assert not x.is_deleted()


def test_a_donated_array_used_again():
    x = array()
    f = px.jit(lambda x: x + 1.0, donate_argnums=0)
    f(x)
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
        f(x)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


def test_the_same_buffer_donated_and_used():
    x = array()
    f = px.jit(lambda x, y: x + y, donate_argnums=0)
    with pytest.raises(px.errors.JaxRuntimeError, match=r"argument 0 .* is donated.*argument 1"):
        f(x, x)
    assert not x.is_deleted()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"donate_argnums": 2}, r"donate_argnums=\(2,\), but only accepts 2 positional"),
        ({"donate_argnames": "z"}, "invalid argnames {'z'} in donate_argnames"),
        ({"donate_argnums": 1, "static_argnums": 1}, "cannot intersect: .* y are both"),
        ({"donate_argnums": 1, "static_argnames": "y"}, "cannot intersect"),
    ],
    ids=["position", "name", "static", "static by name"],
)
def test_invalid_options(options, message):
    with pytest.raises(ValueError, match=message):
        px.jit(lambda x, y: x, **options)


def test_stages_have_donated_arguments():
    lowered = px.jit(lambda x, y: x + y, donate_argnums=0).lower(array(), array())
    assert lowered.donate_argnums == (0,)
    (x, y), _ = lowered.args_info
    assert x.donated and not y.donated
    assert "tf.aliasing_output" in lowered.as_text() or "jax.buffer_donor" in lowered.as_text()
    consumed = array()
    lowered.compile()(consumed, array())
    assert consumed.is_deleted()
