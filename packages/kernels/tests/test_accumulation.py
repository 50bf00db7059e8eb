"""Sums along sequential dimensions, computed at once, and steps that look alike and are not."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_under_test import CASES, F32, full, matmul, operands

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, clear_caches, device_put, grad, jit, lax, make_jaxpr, vmap
from primax_core.extend import expanded, walk
from primax_kernels._checking import check_steps
from primax_kernels._cpu.grid import plan_of
from primax_kernels.tpu import VMEM

RNG = np.random.default_rng(0)
A = RNG.standard_normal((8, 6)).astype(F32)
B = RNG.standard_normal((6, 4)).astype(F32)
BIAS = RNG.standard_normal((4,)).astype(F32)


def product(kernel, *args, block=2, scratch=True):
    """A kernel over blocks of A, B and whole other operands, along the inner dimension."""
    return pk.pallas_call(
        kernel, ShapeDtypeStruct((8, 4), F32), grid=(2, 6 // block),
        in_specs=[
            pk.BlockSpec((4, block), lambda i, k: (i, k)),
            pk.BlockSpec((block, 4), lambda i, k: (k, 0)),
            *[None] * (len(args) - 2),
        ],
        out_specs=pk.BlockSpec((4, 4), lambda i, k: (i, 0)),
        scratch_shapes=[VMEM((4, 4), F32)] if scratch else [],
    )  # fmt: skip


def first(fun):
    pk.when(pk.program_id(1) == 0)(fun)


def last(fun):
    pk.when(pk.program_id(1) == pk.num_programs(1) - 1)(fun)


def plain_matmul(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.dot(a[...], b[...])
    last(lambda: o.__setitem__(..., s[...]))


def with_bias_and_relu(a, b, bias, o, s):
    first(lambda: s.__setitem__(..., lax.broadcast(bias[...], (4,))))
    s[...] = lax.dot(a[...], b[...]) + s[...]
    last(lambda: o.__setitem__(..., lax.max(s[...], full((4, 4), 0))))


def in_the_result(a, b, o):
    first(lambda: o.__setitem__(..., full((4, 4), 1)))
    o[...] += lax.dot(a[...], b[...])


def not_a_product(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.exp(lax.dot(a[...], b[...]))
    last(lambda: o.__setitem__(..., s[...]))


def sign_of_the_step(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    k = lax.convert_element_type(pk.program_id(1), F32)
    s[...] += lax.dot(a[...], b[...]) * k
    last(lambda: o.__setitem__(..., s[...]))


def decays(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] = s[...] * F32(0.5) + lax.dot(a[...], b[...])
    last(lambda: o.__setitem__(..., s[...]))


def clamps_in_between(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.dot(a[...], b[...])
    pk.when(pk.program_id(1) == 1)(lambda: s.__setitem__(..., lax.max(s[...], full((4, 4), 0))))
    last(lambda: o.__setitem__(..., s[...]))


def adds_itself(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 1)))
    s[...] += s[...] * lax.dot(a[...], b[...])
    last(lambda: o.__setitem__(..., s[...]))


def other_term_at_the_end(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    scale = lax.select(pk.program_id(1) == 2, F32(2), F32(1))
    s[...] += lax.dot(a[...], b[...]) * scale
    last(lambda: o.__setitem__(..., s[...]))


def never_initialised(a, b, o, s):
    s[...] += lax.dot(a[...], b[...])
    last(lambda: o.__setitem__(..., s[...]))


def writes_in_the_middle(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.dot(a[...], b[...])
    pk.when(pk.program_id(1) == 1)(lambda: o.__setitem__(..., s[...]))


SCALES = [device_put(F32(2)), device_put(F32(5))]


def constants_differ(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.cond(
        pk.program_id(1) == 0,
        lambda: lax.dot(a[...], b[...]) * SCALES[0],
        lambda: lax.dot(a[...], b[...]) * SCALES[1],
    )
    last(lambda: o.__setitem__(..., s[...]))


def constants_in_functions_differ(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    two, five = [jit(lambda x, scale=scale: x * scale) for scale in SCALES]
    s[...] += lax.cond(
        pk.program_id(1) == 0,
        lambda: two(lax.dot(a[...], b[...])),
        lambda: five(lax.dot(a[...], b[...])),
    )
    last(lambda: o.__setitem__(..., s[...]))


def one_constant(a, b, o, s):
    first(lambda: s.__setitem__(..., full((4, 4), 0)))
    s[...] += lax.exp(lax.dot(a[...], b[...]) * SCALES[0])
    last(lambda: o.__setitem__(..., s[...]))


SUMS = [plain_matmul, with_bias_and_relu, in_the_result, not_a_product, one_constant]
OTHERS = [
    decays, clamps_in_between, adds_itself, other_term_at_the_end, never_initialised,
    writes_in_the_middle, constants_differ, constants_in_functions_differ,
]  # fmt: skip


def call_of(kernel):
    args = [A, B] + ([BIAS] if kernel is with_bias_and_relu else [])
    return product(kernel, *args, scratch=kernel is not in_the_result), args


@pytest.mark.parametrize("kernel", [*SUMS, *OTHERS, sign_of_the_step], ids=lambda f: f.__name__)
def test_values(kernel):
    call, args = call_of(kernel)
    (eqn,) = make_jaxpr(call)(*args).eqns
    traced = eqn.params["kernel"]
    if kernel is never_initialised:
        assert plan_of(traced).accumulation is None
        return
    expected = check_steps(traced, args)[0]
    np.testing.assert_allclose(call(*args), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", SUMS, ids=lambda f: f.__name__)
def test_recognised_sums(kernel):
    call, args = call_of(kernel)
    (eqn,) = make_jaxpr(call)(*args).eqns
    assert plan_of(eqn.params["kernel"]).accumulation is not None
    body = expanded(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
    names = [q.primitive.name for q in walk(body)]
    assert "while" not in names and "scan" not in names
    if kernel not in (not_a_product, one_constant):
        assert names.count("dot_general") == 1


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda f: f.__name__)
def test_other_steps_run_one_by_one(kernel):
    call, args = call_of(kernel)
    (eqn,) = make_jaxpr(call)(*args).eqns
    assert plan_of(eqn.params["kernel"]).accumulation is None


def test_memory_of_the_terms_decides(monkeypatch):
    from primax_kernels._cpu import accumulation

    clear_caches()  # of plans
    monkeypatch.setattr(accumulation, "BUDGET", 8)
    call, args = call_of(not_a_product)
    (eqn,) = make_jaxpr(call)(*args).eqns
    assert plan_of(eqn.params["kernel"]).accumulation is None
    call, args = call_of(plain_matmul)
    (eqn,) = make_jaxpr(call)(*args).eqns
    assert plan_of(eqn.params["kernel"]).accumulation is not None
    clear_caches()


def test_derivatives_and_batches_of_sums():
    call, args = call_of(with_bias_and_relu)

    def plain(a, b, bias):
        return lax.max(lax.dot(a, b) + lax.broadcast(bias, (8,)), full((8, 4), 0))

    def total(f):
        return lambda *xs: lax.reduce_sum(f(*xs) ** 2, (0, 1))

    for ours, theirs in zip(
        jit(grad(total(call), (0, 1, 2)))(*args), grad(total(plain), (0, 1, 2))(*args)
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    batches = [np.stack([x, 2 * x]) for x in args]
    np.testing.assert_allclose(vmap(call)(*batches), vmap(plain)(*batches), rtol=1e-4, atol=1e-4)


def test_a_matrix_product_in_blocks_is_one_product():
    args = operands(CASES["matmul"])
    (eqn,) = make_jaxpr(matmul)(*args).eqns
    body = expanded(eqn.primitive, [v.aval for v in eqn.invars], eqn.params)
    assert [q.primitive.name for q in walk(body)].count("dot_general") == 1
