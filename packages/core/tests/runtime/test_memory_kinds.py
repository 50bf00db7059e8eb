"""Arrays in host memory, and computations with results in host memory."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.ad_checkpoint import checkpoint_name
from primax_core.memory import Space

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HERE = px.device_put(0.0).sharding
KINDS = [m.kind for m in px.devices()[0].addressable_memories()]
pytestmark = pytest.mark.skipif("pinned_host" not in KINDS, reason="there is no such memory")
HOST = HERE.with_memory_kind("pinned_host")


def kind(x):
    return x.sharding.memory_kind


@pytest.mark.parametrize("place", [Space.Host, HOST])
def test_transfers(place):
    y = px.device_put(X, place)
    assert kind(y) == "pinned_host"
    np.testing.assert_array_equal(y, X)
    assert kind(px.device_put(y, Space.Device)) == HERE.memory_kind
    np.testing.assert_array_equal(lax.sin(y), lax.sin(X))


@pytest.mark.parametrize("place", [Space.Host, HOST])
def test_results_in_host_memory(place):
    f = px.jit(lambda x: (px.device_put(x * 2, place), x + 1))
    a, b = f(X)
    assert kind(a) == "pinned_host" and kind(b) == HERE.memory_kind
    np.testing.assert_array_equal(a, X * 2)
    np.testing.assert_array_equal(f(a)[1], X * 2 + 1)
    outer = px.jit(lambda x: f(x)[0])
    assert kind(outer(X)) == "pinned_host"
    assert '_xla_buffer_placement = "pinned_host"' in f.lower(X).as_text()
    assert kind(f.lower(X).compile()(X)[0]) == "pinned_host"


def test_results_of_custom_rules_and_checkpoint():
    def f(x):
        return px.device_put(lax.sin(x), HOST)

    vjp, jvp = px.custom_vjp(f), px.custom_jvp(f)
    vjp.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    jvp.defjvp(lambda primals, tangents: (f(*primals), *tangents))
    for g in (vjp, jvp, px.checkpoint(f)):
        assert kind(px.jit(g)(X)) == "pinned_host"


def test_results_by_out_shardings():
    f = px.jit(lambda x: (x * 2, x), out_shardings=(HOST, HERE))
    a, b = f(X)
    assert kind(a) == "pinned_host" and kind(b) == HERE.memory_kind
    np.testing.assert_array_equal(a, X * 2)


def test_round_trip():
    def f(x):
        away = px.device_put(lax.sin(x), Space.Host)
        return lax.cos(px.device_put(away, Space.Device))

    out = px.jit(f)(X)
    assert kind(out) == HERE.memory_kind
    np.testing.assert_allclose(out, np.cos(np.sin(X)), rtol=1e-6)
    g = px.grad(lambda x: lax.reduce_sum(f(x), (0, 1)))
    np.testing.assert_allclose(px.jit(g)(X), -np.sin(np.sin(X)) * np.cos(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(px.jit(px.vmap(f))(X), np.cos(np.sin(X)), rtol=1e-6)


POLICIES = {
    "names": px.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["a"],
        offload_src="device", offload_dst="pinned_host",
    ),
    "dots": px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("looped", [False, True])
def test_offloading_policies(policy, looped):
    w = np.full((3, 3), 0.3, np.float32)

    def layer(x):
        return lax.tanh(checkpoint_name(lax.dot(x, w), "a"))

    def loss(x, layer):
        if looped:
            x, _ = lax.scan(lambda c, _: (layer(c), None), x, None, length=3)
        else:
            x = layer(layer(x))
        return lax.reduce_sum(x * x, (0, 1))

    offloaded = px.checkpoint(layer, policy=POLICIES[policy])
    expected = px.grad(lambda x: loss(x, layer))(X)
    g = px.grad(lambda x: loss(x, offloaded))
    # 1 - tanh(x)**2 loses digits where tanh is close to 1, so rounding is that of the largest.
    np.testing.assert_allclose(g(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(px.jit(g)(X), expected, rtol=1e-5, atol=1e-6)
    text = px.jit(g).lower(X).as_text()
    assert '_xla_buffer_placement = "pinned_host"' in text
    assert '_xla_buffer_placement = "device"' in text


def test_unknown_kinds():
    with pytest.raises(ValueError, match=r"memory kinds: .*pinned_host"):
        HERE.with_memory_kind("moon")
