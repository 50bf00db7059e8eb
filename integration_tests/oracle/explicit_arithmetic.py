"""Programs on arrays with explicit axes: arithmetic, products, reductions."""

from __future__ import annotations

import numpy as np
from explicit_sides import PROGRAMS, f32, group

UNARY = (
    "abs acos asin asinh atan atanh cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1 "
    "floor is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt square tan tanh "
    "bessel_i0e bessel_i1e stop_gradient"
).split()
BINARY = "add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub igamma".split()
for _name in UNARY:
    PROGRAMS[f"unary {_name}"] = lambda w, n=_name: getattr(w.lax, n)(w.A)
for _name in BINARY:
    PROGRAMS[f"binary {_name}"] = lambda w, n=_name: getattr(w.lax, n)(w.A, w.R)
    PROGRAMS[f"binary {_name} partly"] = lambda w, n=_name: getattr(w.lax, n)(w.X, w.Y)
for _a, _b in map(str.split, ("A A", "A T", "XY X", "XY A", "X XY", "Y X", "T Y", "T X", "XY Y")):
    PROGRAMS[f"mul {_a} {_b}"] = lambda w, a=_a, b=_b: w.lax.mul(getattr(w, a), getattr(w, b))

group(
    "elementwise",
    scalar=lambda w: w.A + 1.0,
    scalar_left=lambda w: 2 * w.A,
    numpy=lambda w: w.lax.add(w.A, np.ones((8, 16), f32)),
    weak=lambda w: w.lax.mul(w.A, 2.0),
    convert=lambda w: w.lax.convert_element_type(w.A, np.int32),
    select=lambda w: w.lax.select(w.lax.gt(w.A, w.A), w.A, w.A),
    select_n_scalar=lambda w: w.lax.select_n(np.bool_(True), w.A, w.A),
    select_replicated_which=lambda w: w.lax.select(w.lax.gt(w.R, w.R), w.A, w.A),
    select_replicated_case=lambda w: w.lax.select(w.lax.gt(w.A, w.A), w.A, w.R),
    select_different=lambda w: w.lax.select(w.lax.gt(w.X, w.X), w.X, w.Y),
    clamp=lambda w: w.lax.clamp(f32(0), w.A, f32(1)),
    clamp_arrays=lambda w: w.lax.clamp(w.R, w.A, w.R),
    clamp_same=lambda w: w.lax.clamp(w.A, w.A, w.A),
    clamp_different=lambda w: w.lax.clamp(w.X, w.Y, w.X),
    integer_pow=lambda w: w.lax.integer_pow(w.A, 3),
    clz=lambda w: w.lax.clz(w.I),
    popcount=lambda w: w.lax.population_count(w.I),
    bits=lambda w: w.lax.bitwise_and(w.I, 3),
    shift=lambda w: w.lax.shift_left(w.I, w.I),
    bool_and=lambda w: w.lax.bitwise_and(w.lax.gt(w.A, w.R), w.lax.gt(w.R, w.A)),
    bitcast=lambda w: w.lax.bitcast_convert_type(w.A, np.int32),
    bitcast_narrow=lambda w: w.lax.bitcast_convert_type(w.A, np.int16),
    reduce_precision=lambda w: w.lax.reduce_precision(w.A, 5, 10),
    barrier=lambda w: w.lax.optimization_barrier(w.A),
    betainc=lambda w: w.lax.betainc(w.A, w.A, w.A),
    gamma_grad=lambda w: w.lax.random_gamma_grad(w.A, w.A),
    complex=lambda w: w.lax.complex(w.A, w.R),
    real=lambda w: w.lax.real(w.lax.complex(w.A, w.A)),
    conj=lambda w: w.lax.conj(w.lax.complex(w.A, w.R)),
    three=lambda w: w.A + w.R * w.X - w.Y,
    zeta=lambda w: w.lax.zeta(w.A + 1.5, w.A),
    polygamma=lambda w: w.lax.polygamma(w.A, w.A),
    not_=lambda w: w.lax.bitwise_not(w.I),
    is_weak=lambda w: w.jnp.sin(w.lax.full_like(w.A, 1.0)),
)

_DOT = {"A": "A X Y R XY T".split(), "B": "B C K".split()}
for _a in _DOT["A"]:
    for _b in _DOT["B"]:
        PROGRAMS[f"dot {_a}{_b}"] = lambda w, a=_a, b=_b: w.dot(getattr(w, a), getattr(w, b), 1, 0)
        PROGRAMS[f"dot {_a}{_b} out"] = lambda w, a=_a, b=_b: w.dot(
            getattr(w, a), getattr(w, b), 1, 0, out_sharding=w.spec("x", "y")
        )
        PROGRAMS[f"dot {_a}{_b} grad"] = lambda w, a=_a, b=_b: w.ggrad(
            lambda p, q: w.dot(p, q, 1, 0), getattr(w, a), getattr(w, b)
        )
group(
    "dot",
    both_x=lambda w: w.dot(w.X, w.put(np.ones((16, 32), f32), None, "x"), 1, 0),
    batch=lambda w: w.dot(w.N, w.N, 1, 1, (0,), (0,)),
    batch_square=lambda w: w.dot(w.M, w.M, 2, 1, (0,), (0,)),
    batch_replicated=lambda w: w.dot(w.M, np.ones((8, 4, 4), f32), 2, 1, (0,), (0,)),
    batch_two=lambda w: w.dot(w.N, w.N, 1, 1, (0, 2), (0, 2)),
    batch_contract=lambda w: w.dot(w.N, w.N, 2, 2, (0,), (0,)),
    batch_second=lambda w: w.dot(w.MY, w.MY, 2, 2, (1,), (1,)),
    vector=lambda w: w.dot(w.A, w.V, 1, 0),
    vector_x=lambda w: w.dot(w.X, np.ones(16, f32), 1, 0),
    outer=lambda w: w.dot(w.V8, w.V, (), ()),
    same_axis=lambda w: w.dot(w.X, w.X, 1, 1),
    three_two=lambda w: w.dot(w.N, np.ones((8, 6), f32), 2, 0),
    three_free=lambda w: w.dot(w.N, np.ones((4, 6), f32), 1, 0),
    two=lambda w: w.dot(w.N, w.N, (1, 2), (1, 2)),
    contract_out=lambda w: w.dot(w.Y, w.B, 1, 0, out_sharding=w.spec()),
    contract_out_unreduced=lambda w: w.dot(
        w.Y, w.B, 1, 0, out_sharding=w.placed and w.P(unreduced={"y"}) or None
    ),
    matmul=lambda w: w.jnp.matmul(w.X, w.C),
    matmul_operator=lambda w: w.X @ w.C,
    matmul_out=lambda w: w.jnp.matmul(w.A, w.B, out_sharding=w.spec("x")),
    dot_out=lambda w: w.jnp.dot(w.A, w.B, out_sharding=w.spec("x")),
    jnp_dot=lambda w: w.jnp.dot(w.X, w.C),
    tensordot=lambda w: w.jnp.tensordot(w.X, w.C, 1),
    vdot=lambda w: w.jnp.vdot(w.V, w.V),
    inner=lambda w: w.jnp.inner(w.X, w.Y),
    jnp_outer=lambda w: w.jnp.outer(w.V8, w.V),
    preferred=lambda w: w.dot(w.X, w.C, 1, 0, preferred_element_type=f32),
    batch_grad=lambda w: w.ggrad(lambda a, b: w.dot(a, b, 2, 1, (0,), (0,)), w.M, w.M),
    out_grad=lambda w: w.ggrad(lambda a, b: w.dot(a, b, 1, 0, out_sharding=w.spec("x")), w.A, w.B),
    ragged=lambda w: w.lax.ragged_dot(w.X, np.ones((2, 16, 4), f32), np.array([4, 4], np.int32)),
)

EINSUMS = {
    "ij,jk": "XC",
    "ij,jk->ki": "XC",
    "ij,ij->i": "AA",
    "ij->ji": "A",
    "ij->i": "A",
    "ij->": "A",
    "abc,acd->abd": "MM",
    "ij,kj->ik": "XR",
    "aij,jk->aik": "HK",
    "ij,jk ": "YB",
    "abc,abc->b": "NN",
}
for _text, _operands in EINSUMS.items():
    PROGRAMS[f"einsum {_text}"] = lambda w, t=_text, o=_operands: w.jnp.einsum(
        t.strip(), *[getattr(w, n) for n in o]
    )
PROGRAMS["einsum out"] = lambda w: w.jnp.einsum("ij,jk->ik", w.A, w.B, out_sharding=w.spec("x"))
PROGRAMS["einsum out transposed"] = lambda w: w.jnp.einsum(
    "ij,jk->ki", w.Y, w.B, out_sharding=w.spec(None, "x")
)
PROGRAMS["einsum grad"] = lambda w: w.ggrad(lambda a, b: w.jnp.einsum("ij,jk->ik", a, b), w.X, w.C)

for _name in "reduce_sum reduce_max reduce_min reduce_prod".split():
    for _axes in ((0,), (1,), (0, 1)):
        PROGRAMS[f"reduce {_name} {_axes}"] = lambda w, n=_name, a=_axes: getattr(w.lax, n)(w.A, a)
        PROGRAMS[f"reduce {_name} {_axes} grad"] = lambda w, n=_name, a=_axes: w.ggrad(
            lambda x: getattr(w.lax, n)(x, a), w.A
        )
group(
    "reduce",
    and_=lambda w: w.lax.reduce_and(w.lax.gt(w.A, w.A), (0,)),
    or_=lambda w: w.lax.reduce_or(w.lax.gt(w.N, w.N), (2,)),
    middle=lambda w: w.lax.reduce_min(w.N, (1,)),
    outer=lambda w: w.lax.reduce_sum(w.N, (0, 2)),
    argmax0=lambda w: w.lax.argmax(w.A, 0, np.int32),
    argmax1=lambda w: w.lax.argmax(w.A, 1, np.int32),
    argmin=lambda w: w.lax.argmin(w.N, 1, np.int32),
    general=lambda w: w.lax.reduce(w.A, f32(0), w.lax.add, (0,)),
    general_own=lambda w: w.lax.reduce(w.X, f32(0), lambda a, b: a + 2 * b, (1,)),
    sum_out=lambda w: w.lax.reduce_sum(w.A, (0,), out_sharding=w.spec("y")),
    sum_out_same=lambda w: w.lax.reduce_sum(w.A, (1,), out_sharding=w.spec("x")),
    xor=lambda w: w.lax.reduce_xor(w.I, (0,)),
    jnp_sum=lambda w: w.jnp.sum(w.A, axis=1),
    jnp_sum_keep=lambda w: w.jnp.sum(w.A, 0, keepdims=True),
    mean=lambda w: w.jnp.mean(w.A, axis=1),
    var=lambda w: w.jnp.var(w.A, axis=1),
    std=lambda w: w.jnp.std(w.X, axis=1),
    softmax=lambda w: w.lib.nn.softmax(w.A, axis=1),
    softmax_free=lambda w: w.lib.nn.softmax(w.X, axis=1),
    attention_of_groups=lambda w: w.lib.nn.dot_product_attention(
        *(w.put(np.ones((4, 3, n, 2), np.float32), None, None, "x") for n in (4, 2, 2))
    ),
    logsumexp=lambda w: w.lib.nn.logsumexp(w.A, axis=0),
    max_keep=lambda w: w.jnp.max(w.A, axis=1, keepdims=True),
    any=lambda w: w.jnp.any(w.A > 0, axis=0),
    all=lambda w: w.jnp.all(w.A > 0),
    jnp_argmax=lambda w: w.jnp.argmax(w.A, axis=1),
    norm=lambda w: w.jnp.linalg.norm(w.A, axis=1),
    trace=lambda w: w.jnp.trace(w.M, axis1=1, axis2=2),
    layernorm=lambda w: (
        (w.A - w.jnp.mean(w.A, 1, keepdims=True)) / w.jnp.std(w.A, 1, keepdims=True)
    ),
    median=lambda w: w.jnp.median(w.X, axis=1),
)
group(
    "cumulative",
    sum0=lambda w: w.lax.cumsum(w.A, 0),
    sum_free=lambda w: w.lax.cumsum(w.X, 1),
    max_free=lambda w: w.lax.cummax(w.X, 1),
    min_3d=lambda w: w.lax.cummin(w.N, 1),
    logsumexp=lambda w: w.lax.cumlogsumexp(w.N, 2),
    logsumexp_free=lambda w: w.lax.cumlogsumexp(w.N, 1),
    prod_reverse=lambda w: w.lax.cumprod(w.X, 1, reverse=True),
    jnp_cumsum=lambda w: w.jnp.cumsum(w.X, axis=1),
    jnp_cumsum_divided=lambda w: w.jnp.cumsum(w.X, axis=0),
    grad=lambda w: w.ggrad(lambda x: w.lax.cumsum(x, 1), w.X),
    prod_grad=lambda w: w.ggrad(lambda x: w.lax.cumprod(x, 1), w.X),
    max_grad=lambda w: w.ggrad(lambda x: w.lax.cummax(x, 1), w.X),
    sort=lambda w: w.lax.sort(w.X, dimension=1),
    sort_divided=lambda w: w.lax.sort(w.A, dimension=1),
    sort_two=lambda w: w.lax.sort((w.X, w.X), dimension=1, num_keys=1),
    sort_two_divided=lambda w: w.lax.sort((w.A, w.A), dimension=0, num_keys=1),
    sort_mixed=lambda w: w.lax.sort((w.X, w.R), dimension=1, num_keys=1),
    top_k=lambda w: w.lax.top_k(w.X, 2),
    top_k_divided=lambda w: w.lax.top_k(w.A, 2),
    jnp_sort=lambda w: w.jnp.sort(w.X, axis=1),
    jnp_argsort=lambda w: w.jnp.argsort(w.X, axis=1),
    sort_grad=lambda w: w.ggrad(lambda x: w.lax.sort(x, dimension=1), w.X),
    top_k_grad=lambda w: w.ggrad(lambda x: w.lax.top_k(x, 2)[0], w.X),
    associative=lambda w: w.lax.associative_scan(w.lax.add, w.X, axis=1),
    approx=lambda w: w.lax.approx_max_k(w.X, 2)[0],
)
