"""Loop-invariant code of loop bodies is computed once, before the loop."""

from __future__ import annotations

import re

import numpy as np
import pytest
from portable import portable

import primax_core as px
from primax_core import debug, export, lax
from primax_core._ir.check import check_jaxpr
from primax_core._lower.loop_invariants import split

RNG = np.random.default_rng(0)
M = px.device_put(RNG.uniform(-0.5, 0.5, (200, 200)).astype(np.float32))
CORNER = np.asarray(M)[:8, :8]
H = np.linspace(-1, 1, 8, dtype=np.float32)
ROW = px.device_put(np.asarray(M)[0])
HS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
N = 5


def matmul(a, b):
    return lax.dot_general(a, b, (((a.ndim - 1,), (0,)), ((), ())))


def corner(m):
    return lax.slice(m, (0, 0), (8, 8))


def total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def first(x):
    return lax.index_in_dim(x, 0, 0, keepdims=False)


def by_scan(step, h, n=N, **options):
    return lax.scan(lambda h, _: (step(h), None), h, None, length=n, **options)[0]


def by_fori_loop(step, h, n=N):
    return lax.fori_loop(0, n, lambda i, h: step(h), h)


def by_while_loop(step, h, n=N):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(c[1])), (0, h))[1]


LOOPS = [by_scan, by_fori_loop, by_while_loop]


def operations_inside(fun, *args, depth: int = 1) -> list[str]:
    """Operations in the loops of a lowered function, including functions called there."""
    text = px.jit(fun).lower(*args).as_text()
    functions = dict(re.findall(r"func\.func private @(\w+)\(.*?\{\n(.*?)\n  \}", text, re.S))
    indent = " " * (2 + 2 * depth)
    inside = "".join(re.findall(rf"^{indent}cond {{\n(.*?)^{indent}}}$", text, re.S | re.M))
    assert inside
    called = re.findall(r"\bcall @(\w+)\(", inside)
    inside += "".join(functions[name] for name in called)
    return re.findall(r"(?:stablehlo|chlo)\.(\w+)", inside)


def step(h):
    return lax.tanh(matmul(h, corner(M)))


def expected(h, n=N):
    for _ in range(n):
        h = np.tanh(h @ CORNER)
    return h


def doubled(h):
    return matmul(h, corner(M)) + matmul(h, lax.sin(corner(M)))


jitted = px.jit(step)
rematerialized = px.checkpoint(step)


def half_jitted(h):
    return px.jit(lambda h, m: lax.tanh(matmul(h, corner(m))))(h, M)


@pytest.mark.parametrize("body", [step, jitted, half_jitted, rematerialized])
@pytest.mark.parametrize("loop", LOOPS)
def test_invariant_operations_precede_the_loop(loop, body) -> None:
    inside = operations_inside(lambda h: loop(body, h), H)
    assert "slice" not in inside
    assert inside.count("dot_general") == inside.count("tanh") == 1
    for run in (lambda h: loop(body, h), px.jit(lambda h: loop(body, h))):
        np.testing.assert_allclose(run(H), expected(H), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
def test_arguments_are_invariant_too(loop) -> None:
    def fun(h, m):
        return loop(lambda h: lax.tanh(matmul(h, corner(m))), h)

    assert "slice" not in operations_inside(fun, H, M)
    np.testing.assert_allclose(px.jit(fun)(H, M), expected(H), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"unroll": 2}, {"reverse": True}, {"unroll": 5}])
def test_unrolled_and_reversed_scans(options) -> None:
    fun = px.jit(lambda h: by_scan(step, h, **options))
    assert fun.lower(H).as_text().count("stablehlo.slice") == 1
    np.testing.assert_allclose(fun(H), expected(H), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", [by_scan, by_fori_loop])
@pytest.mark.parametrize("body", [step, doubled, jitted, rematerialized])
def test_gradients(loop, body) -> None:
    def by_hand(h, m):
        for _ in range(N):
            h = body(h)
        return total(h * h)

    grad = px.grad(lambda h: total(loop(body, h) ** 2))
    if body is not rematerialized:
        assert "slice" not in operations_inside(grad, H)
    for run in (grad, px.jit(grad)):
        np.testing.assert_allclose(
            run(H), px.grad(by_hand)(H, M), rtol=1e-4, atol=1e-6
        )  # fmt: skip


def test_gradients_of_what_is_hoisted() -> None:
    def fun(h, m):
        return total(by_scan(lambda h: lax.tanh(matmul(h, lax.sin(corner(m)))), h))

    def by_hand(h, m):
        for _ in range(N):
            h = lax.tanh(matmul(h, lax.sin(corner(m))))
        return total(h)

    assert "sine" not in operations_inside(px.grad(fun, (0, 1)), H, M)
    for got, want in zip(px.jit(px.grad(fun, (0, 1)))(H, M), px.grad(by_hand, (0, 1))(H, M)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_forward_mode_of_while_loops() -> None:
    def fun(h):
        return by_while_loop(step, h)

    assert "slice" not in operations_inside(lambda h: px.jvp(fun, (h,), (h,)), H)
    got = px.jit(lambda h: px.jvp(fun, (h,), (h,)))(H)
    for a, b in zip(got, px.jvp(lambda h: by_scan(step, h), (H,), (H,))):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
def test_mapped_loops(loop) -> None:
    mapped = px.vmap(lambda h: loop(step, h))
    assert "slice" not in operations_inside(mapped, HS)
    np.testing.assert_allclose(px.jit(mapped)(HS), expected(HS), rtol=1e-5, atol=1e-6)
    ms = np.stack([np.asarray(M)[:20, :20]] * 3)
    over_both = px.vmap(lambda h, m: loop(lambda h: lax.tanh(matmul(h, corner(m))), h))
    assert "slice" not in operations_inside(over_both, HS, ms)
    np.testing.assert_allclose(px.jit(over_both)(HS, ms), expected(HS), rtol=1e-5, atol=1e-6)


def test_mapped_numbers_of_steps() -> None:
    def fun(n, h):
        return by_while_loop(step, h, n)

    counts = np.array([0, 1, 3], np.int32)
    got = px.jit(px.vmap(fun))(counts, HS)
    for n, h, out in zip(counts, HS, got):
        np.testing.assert_allclose(out, expected(h, n), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_without_steps(loop) -> None:
    np.testing.assert_array_equal(px.jit(lambda h: loop(step, h, 0))(H), H)
    np.testing.assert_array_equal(px.jit(lambda h, n: by_while_loop(step, h, n))(H, 0), H)


def test_loops_that_may_not_end_stay_inside() -> None:
    def endless(h):
        return h + lax.while_loop(lambda x: first(x) > -1, lambda x: x * 2, first(corner(M)) ** 2)

    def fun(h, n):
        return by_while_loop(endless, h, n)

    # It is not run: XLA itself moves the inner loop out.
    assert "while" in operations_inside(fun, H, 0)


def test_two_nested_loops() -> None:
    def inner(h):
        return by_scan(step, h, 2)

    def fun(h):
        return by_while_loop(inner, h)

    assert "slice" not in operations_inside(fun, H)
    np.testing.assert_allclose(px.jit(fun)(H), expected(H, 2 * N), rtol=1e-5, atol=1e-6)
    wholly = operations_inside(lambda h: by_scan(lambda h: h + by_scan(step, H, 2), h), H)
    assert "while" not in wholly


def test_invariants_of_the_inner_loop_alone() -> None:
    def fun(h):
        return by_scan(lambda h: by_scan(lambda x: x * lax.reduce_max(lax.sin(h), (0,)), h, 2), h)

    assert operations_inside(fun, H).count("sine") == 1
    assert "sine" not in operations_inside(fun, H, depth=2)
    h = H
    for _ in range(N):
        h = h * np.sin(h).max() ** 2
    np.testing.assert_allclose(px.jit(fun)(H), h, rtol=1e-5, atol=1e-6)


def test_large_results_stay_inside() -> None:
    def grown(h):  # 160,000 bytes from 800
        row = lax.exp(lax.broadcast_in_dim(ROW, (200, 200), (1,)))
        return h + total(lax.sin(row) * lax.broadcast_in_dim(first(h), (200, 200), ()))

    assert {"exponential", "sine"} < set(operations_inside(lambda h: by_scan(grown, h), H))

    def as_large(h):
        return h + total(lax.exp(M) * lax.broadcast_in_dim(first(h), (200, 200), ()))

    assert "exponential" not in operations_inside(lambda h: by_scan(as_large, h), H)

    def also_read(h):
        return as_large(h) + total(M * lax.broadcast_in_dim(first(h), (200, 200), ()))

    assert "exponential" in operations_inside(lambda h: by_scan(also_read, h), H)


def test_broadcasts_and_scalars_stay_inside() -> None:
    s = px.device_put(np.float32(0.5))

    def body(h):
        return h * lax.broadcast_in_dim(lax.sin(s), (8,), ())

    inside = operations_inside(lambda h: by_scan(body, h), H)
    assert {"sine", "broadcast_in_dim"} < set(inside)


def test_branches_stay_inside() -> None:
    def body(h):
        return lax.cond(total(h) > 0, lambda h: matmul(h, corner(M)), lambda h: -h, h)

    assert "slice" in operations_inside(lambda h: by_scan(body, h), H)


def test_callbacks_stay_inside() -> None:
    calls: list[int] = []

    def body(h):
        return h + px.pure_callback(np.asarray, px.ShapeDtypeStruct((8,), np.float32), CORNER[0])

    assert "custom_call" in operations_inside(lambda h, n: by_while_loop(body, h, n), H, 0)

    def shown(h):
        debug.callback(lambda x: calls.append(2), total(corner(M)))
        return step(h)

    px.block_until_ready(px.jit(lambda h: by_scan(shown, h))(H))
    px.effects_barrier()
    assert calls == [2] * N


def test_conditions_of_while_loops() -> None:
    def fun(h, m):
        return lax.while_loop(
            lambda h: first(h) < lax.reduce_max(lax.sin(m), (0, 1)), lambda h: h + 1, h
        )

    assert "sine" not in operations_inside(fun, H, M)
    np.testing.assert_allclose(px.jit(fun)(H, M), H + 2, rtol=1e-6)


def test_references_in_bodies() -> None:
    def fun(h):
        count = px.new_ref(np.float32(0))

        def body(h):
            count[...] += lax.reduce_max(corner(M), (0, 1))
            return step(h)

        return by_scan(body, h), count[...]

    h, count = px.jit(fun)(H)
    np.testing.assert_allclose(h, expected(H), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(count, N * CORNER.max(), rtol=1e-5)


def test_symbolic_dimensions() -> None:
    (n,) = export.symbolic_shape("n")
    args = [px.ShapeDtypeStruct((n, 8), np.float32), px.ShapeDtypeStruct((n,), np.float32)]

    def fun(hs, xs):
        return lax.scan(lambda h, x: (step(h) * x, total(h)), hs, xs)

    called = portable(fun, *args)
    for a, b in zip(called(HS, HS[:, 0]), px.jit(fun)(HS, HS[:, 0])):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_jaxprs_stay_as_traced() -> None:
    jaxpr = px.make_jaxpr(lambda h: by_scan(half_jitted, h))(H)
    before = str(jaxpr)
    (scan,) = jaxpr.eqns
    body = scan.params["jaxpr"]
    parts = split(body, (True, False))
    assert parts is not None
    check_jaxpr(parts.before)
    check_jaxpr(parts.rest)
    assert split(body, (True, False)) is parts
    px.jit(lambda h: by_scan(half_jitted, h))(H)
    assert str(jaxpr) == before
    assert "slice" in before


def test_names_and_lines_of_hoisted_operations() -> None:
    def named(h):
        with px.named_scope("layer"):
            return lax.tanh(matmul(h, corner(M)))

    text = px.jit(lambda h: by_scan(named, h)).lower(H).as_text(debug_info=True)
    (at,) = re.findall(r"stablehlo\.slice .* loc\((#\w+)\)", text)
    assert re.search(rf'{at} = loc\("jit\([^"]*\)/layer/slice"', text)
    assert "while/body/layer/dot_general" in text
