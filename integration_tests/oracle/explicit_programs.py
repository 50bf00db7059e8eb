"""Programs on arrays with explicit mesh axes: the types of their results are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

f32 = np.float32

SPECS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "A": ((8, 16), ("x", "y")),
    "B": ((16, 32), ("y",)),
    "C": ((16, 32), (None, "y")),
    "K": ((16, 32), ()),
    "R": ((8, 16), ()),
    "X": ((8, 16), ("x",)),
    "Y": ((8, 16), (None, "y")),
    "XY": ((8, 16), (("x", "y"),)),
    "T": ((8, 16), ("y", "x")),
    "V": ((16,), ("y",)),
    "V8": ((8,), ("x",)),
    "N": ((8, 4, 8), ("x", None, "y")),
    "M": ((8, 4, 4), ("x",)),
    "MY": ((8, 4, 4), (None, "y")),
    "H": ((4, 8, 16), (None, "x", "y")),
    "S": ((), ()),
    "Q": ((8, 4, 16, 2), ("x", "y")),
    "O": ((1, 16), (None, "y")),
    "O8": ((8, 1), ("x",)),
}


class Side:
    """A library, a mesh of 2 and 4 devices, and arrays with the types of `SPECS`."""

    def __init__(self, lib: Any, placed: bool = True) -> None:
        self.lib, self.lax, self.jnp, self.placed = lib, lib.lax, lib.numpy, placed
        self.P = lib.sharding.PartitionSpec
        self.grad, self.vmap, self.jit = lib.grad, lib.vmap, lib.jit

    @cached_property
    def mesh(self) -> Any:
        sh = self.lib.sharding
        devices = np.array(self.lib.devices()[:8]).reshape(2, 4)
        return sh.Mesh(devices, ("x", "y"), axis_types=(sh.AxisType.Explicit,) * 2)

    def ns(self, *spec: Any) -> Any:
        return self.lib.sharding.NamedSharding(self.mesh, self.P(*spec)) if self.placed else None

    def spec(self, *spec: Any) -> Any:
        return self.P(*spec) if self.placed else None

    def put(self, x: Any, *spec: Any) -> Any:
        return self.lib.device_put(x, self.ns(*spec))

    def reshard(self, x: Any, *spec: Any) -> Any:
        return self.lib.sharding.reshard(x, self.P(*spec)) if self.placed else x

    def dot(self, a: Any, b: Any, la: Any, lb: Any, ba: Any = (), bb: Any = (), **kw: Any) -> Any:
        la, lb = ((n,) if isinstance(n, int) else n for n in (la, lb))
        return self.lax.dot_general(a, b, ((la, lb), (ba, bb)), **kw)

    def sum(self, x: Any) -> Any:
        return self.lax.reduce_sum(x, tuple(range(x.ndim)))

    def ggrad(self, f: Callable[..., Any], *args: Any) -> Any:
        """The gradients of the sum of sin of a function's result."""
        lax = self.lax
        return self.grad(lambda *a: self.sum(lax.sin(f(*a))), tuple(range(len(args))))(*args)

    @cached_property
    def I(self) -> Any:  # noqa: E743
        return self.put(np.arange(8, dtype=np.int32), "x")

    @cached_property
    def key(self) -> Any:
        return self.lib.random.key(0)

    def __getattr__(self, name: str) -> Any:
        shape, spec = SPECS[name]
        n = int(np.prod(shape))
        value = (np.arange(n, dtype=f32).reshape(shape) * 0.37 % 1.9 + 0.1).astype(f32)
        if name in ("M", "MY"):
            value = np.eye(4, dtype=f32) * 3 + value * 0.1
            value = value + value.swapaxes(1, 2)
        array = self.__dict__[name] = self.put(value, *spec)
        return array


Program = Callable[[Side], Any]
PROGRAMS: dict[str, Program] = {}


def group(prefix: str, **programs: Program) -> None:
    for name, program in programs.items():
        PROGRAMS[f"{prefix} {name}"] = program


UNARY = (
    "abs acos asin asinh atan atanh cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor "
    "is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt square tan tanh "
    "bessel_i0e bessel_i1e stop_gradient"
).split()
BINARY = "add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub igamma".split()
for _name in UNARY:
    PROGRAMS[f"unary {_name}"] = lambda w, n=_name: getattr(w.lax, n)(w.A)
for _name in BINARY:
    PROGRAMS[f"binary {_name}"] = lambda w, n=_name: getattr(w.lax, n)(w.A, w.R)
    PROGRAMS[f"binary {_name} partly"] = lambda w, n=_name: getattr(w.lax, n)(w.X, w.Y)
for _pair in ("A A", "A T", "XY X", "XY A", "X XY", "Y X", "T Y", "T X", "XY Y"):
    PROGRAMS[f"mul {_pair}"] = lambda w, p=_pair.split(): w.lax.mul(
        getattr(w, p[0]), getattr(w, p[1])
    )

group(
    "elementwise",
    scalar=lambda w: w.A + 1.0, scalar_left=lambda w: 2 * w.A, numpy=lambda w: w.lax.add(w.A, np.ones((8, 16), f32)),
    weak=lambda w: w.lax.mul(w.A, 2.0), convert=lambda w: w.lax.convert_element_type(w.A, np.int32),
    select=lambda w: w.lax.select(w.lax.gt(w.A, w.A), w.A, w.A),
    select_n_scalar=lambda w: w.lax.select_n(np.bool_(True), w.A, w.A),
    select_replicated_which=lambda w: w.lax.select(w.lax.gt(w.R, w.R), w.A, w.A),
    select_replicated_case=lambda w: w.lax.select(w.lax.gt(w.A, w.A), w.A, w.R),
    select_different=lambda w: w.lax.select(w.lax.gt(w.X, w.X), w.X, w.Y),
    clamp=lambda w: w.lax.clamp(f32(0), w.A, f32(1)), clamp_arrays=lambda w: w.lax.clamp(w.R, w.A, w.R),
    clamp_same=lambda w: w.lax.clamp(w.A, w.A, w.A), clamp_different=lambda w: w.lax.clamp(w.X, w.Y, w.X),
    integer_pow=lambda w: w.lax.integer_pow(w.A, 3), clz=lambda w: w.lax.clz(w.I),
    popcount=lambda w: w.lax.population_count(w.I), bits=lambda w: w.lax.bitwise_and(w.I, 3),
    shift=lambda w: w.lax.shift_left(w.I, w.I), bool_and=lambda w: w.lax.bitwise_and(w.lax.gt(w.A, w.R), w.lax.gt(w.R, w.A)),
    bitcast=lambda w: w.lax.bitcast_convert_type(w.A, np.int32),
    bitcast_narrow=lambda w: w.lax.bitcast_convert_type(w.A, np.int16),
    reduce_precision=lambda w: w.lax.reduce_precision(w.A, 5, 10), barrier=lambda w: w.lax.optimization_barrier(w.A),
    betainc=lambda w: w.lax.betainc(w.A, w.A, w.A), gamma_grad=lambda w: w.lax.random_gamma_grad(w.A, w.A),
    complex=lambda w: w.lax.complex(w.A, w.R), real=lambda w: w.lax.real(w.lax.complex(w.A, w.A)),
    conj=lambda w: w.lax.conj(w.lax.complex(w.A, w.R)), three=lambda w: w.A + w.R * w.X - w.Y,
    zeta=lambda w: w.lax.zeta(w.A + 1.5, w.A), polygamma=lambda w: w.lax.polygamma(w.A, w.A),
    not_=lambda w: w.lax.bitwise_not(w.I), is_weak=lambda w: w.jnp.sin(w.lax.full_like(w.A, 1.0)),
)  # fmt: skip

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
    batch=lambda w: w.dot(w.N, w.N, 1, 1, (0,), (0,)), batch_square=lambda w: w.dot(w.M, w.M, 2, 1, (0,), (0,)),
    batch_replicated=lambda w: w.dot(w.M, np.ones((8, 4, 4), f32), 2, 1, (0,), (0,)),
    batch_two=lambda w: w.dot(w.N, w.N, 1, 1, (0, 2), (0, 2)), batch_contract=lambda w: w.dot(w.N, w.N, 2, 2, (0,), (0,)),
    batch_second=lambda w: w.dot(w.MY, w.MY, 2, 2, (1,), (1,)), vector=lambda w: w.dot(w.A, w.V, 1, 0),
    vector_x=lambda w: w.dot(w.X, np.ones(16, f32), 1, 0), outer=lambda w: w.dot(w.V8, w.V, (), ()),
    same_axis=lambda w: w.dot(w.X, w.X, 1, 1), three_two=lambda w: w.dot(w.N, np.ones((8, 6), f32), 2, 0),
    three_free=lambda w: w.dot(w.N, np.ones((4, 6), f32), 1, 0), two=lambda w: w.dot(w.N, w.N, (1, 2), (1, 2)),
    contract_out=lambda w: w.dot(w.Y, w.B, 1, 0, out_sharding=w.spec()),
    contract_out_unreduced=lambda w: w.dot(w.Y, w.B, 1, 0, out_sharding=w.placed and w.P(unreduced={"y"}) or None),
    matmul=lambda w: w.jnp.matmul(w.X, w.C), matmul_operator=lambda w: w.X @ w.C,
    matmul_out=lambda w: w.jnp.matmul(w.A, w.B, out_sharding=w.spec("x")),
    dot_out=lambda w: w.jnp.dot(w.A, w.B, out_sharding=w.spec("x")), jnp_dot=lambda w: w.jnp.dot(w.X, w.C),
    tensordot=lambda w: w.jnp.tensordot(w.X, w.C, 1), vdot=lambda w: w.jnp.vdot(w.V, w.V),
    inner=lambda w: w.jnp.inner(w.X, w.Y), jnp_outer=lambda w: w.jnp.outer(w.V8, w.V),
    preferred=lambda w: w.dot(w.X, w.C, 1, 0, preferred_element_type=f32),
    batch_grad=lambda w: w.ggrad(lambda a, b: w.dot(a, b, 2, 1, (0,), (0,)), w.M, w.M),
    out_grad=lambda w: w.ggrad(lambda a, b: w.dot(a, b, 1, 0, out_sharding=w.spec("x")), w.A, w.B),
    ragged=lambda w: w.lax.ragged_dot(w.X, np.ones((2, 16, 4), f32), np.array([4, 4], np.int32)),
)  # fmt: skip

EINSUMS = {
    "ij,jk": "XC", "ij,jk->ki": "XC", "ij,ij->i": "AA", "ij->ji": "A", "ij->i": "A", "ij->": "A", "abc,acd->abd": "MM",
    "ij,kj->ik": "XR", "aij,jk->aik": "HK", "ij,jk ": "YB", "abc,abc->b": "NN",
}  # fmt: skip
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
    and_=lambda w: w.lax.reduce_and(w.lax.gt(w.A, w.A), (0,)), or_=lambda w: w.lax.reduce_or(w.lax.gt(w.N, w.N), (2,)),
    middle=lambda w: w.lax.reduce_min(w.N, (1,)), outer=lambda w: w.lax.reduce_sum(w.N, (0, 2)),
    argmax0=lambda w: w.lax.argmax(w.A, 0, np.int32), argmax1=lambda w: w.lax.argmax(w.A, 1, np.int32),
    argmin=lambda w: w.lax.argmin(w.N, 1, np.int32), general=lambda w: w.lax.reduce(w.A, f32(0), w.lax.add, (0,)),
    general_own=lambda w: w.lax.reduce(w.X, f32(0), lambda a, b: a + 2 * b, (1,)),
    sum_out=lambda w: w.lax.reduce_sum(w.A, (0,), out_sharding=w.spec("y")),
    sum_out_same=lambda w: w.lax.reduce_sum(w.A, (1,), out_sharding=w.spec("x")),
    xor=lambda w: w.lax.reduce_xor(w.I, (0,)), jnp_sum=lambda w: w.jnp.sum(w.A, axis=1), jnp_sum_keep=lambda w: w.jnp.sum(w.A, 0, keepdims=True),
    mean=lambda w: w.jnp.mean(w.A, axis=1), var=lambda w: w.jnp.var(w.A, axis=1), std=lambda w: w.jnp.std(w.X, axis=1),
    softmax=lambda w: w.lib.nn.softmax(w.A, axis=1), softmax_free=lambda w: w.lib.nn.softmax(w.X, axis=1), logsumexp=lambda w: w.lib.nn.logsumexp(w.A, axis=0),
    max_keep=lambda w: w.jnp.max(w.A, axis=1, keepdims=True), any=lambda w: w.jnp.any(w.A > 0, axis=0), all=lambda w: w.jnp.all(w.A > 0),
    jnp_argmax=lambda w: w.jnp.argmax(w.A, axis=1), norm=lambda w: w.jnp.linalg.norm(w.A, axis=1), trace=lambda w: w.jnp.trace(w.M, axis1=1, axis2=2),
    layernorm=lambda w: (w.A - w.jnp.mean(w.A, 1, keepdims=True)) / w.jnp.std(w.A, 1, keepdims=True), median=lambda w: w.jnp.median(w.X, axis=1),
)  # fmt: skip
group(
    "cumulative",
    sum0=lambda w: w.lax.cumsum(w.A, 0), sum_free=lambda w: w.lax.cumsum(w.X, 1), max_free=lambda w: w.lax.cummax(w.X, 1),
    min_3d=lambda w: w.lax.cummin(w.N, 1), logsumexp=lambda w: w.lax.cumlogsumexp(w.N, 2), logsumexp_free=lambda w: w.lax.cumlogsumexp(w.N, 1),
    prod_reverse=lambda w: w.lax.cumprod(w.X, 1, reverse=True), jnp_cumsum=lambda w: w.jnp.cumsum(w.X, axis=1), jnp_cumsum_divided=lambda w: w.jnp.cumsum(w.X, axis=0),
    grad=lambda w: w.ggrad(lambda x: w.lax.cumsum(x, 1), w.X), prod_grad=lambda w: w.ggrad(lambda x: w.lax.cumprod(x, 1), w.X), max_grad=lambda w: w.ggrad(lambda x: w.lax.cummax(x, 1), w.X),
    sort=lambda w: w.lax.sort(w.X, dimension=1), sort_divided=lambda w: w.lax.sort(w.A, dimension=1), sort_two=lambda w: w.lax.sort((w.X, w.X), dimension=1, num_keys=1),
    sort_two_divided=lambda w: w.lax.sort((w.A, w.A), dimension=0, num_keys=1), sort_mixed=lambda w: w.lax.sort((w.X, w.R), dimension=1, num_keys=1),
    top_k=lambda w: w.lax.top_k(w.X, 2), top_k_divided=lambda w: w.lax.top_k(w.A, 2), jnp_sort=lambda w: w.jnp.sort(w.X, axis=1), jnp_argsort=lambda w: w.jnp.argsort(w.X, axis=1),
    sort_grad=lambda w: w.ggrad(lambda x: w.lax.sort(x, dimension=1), w.X), top_k_grad=lambda w: w.ggrad(lambda x: w.lax.top_k(x, 2)[0], w.X),
    associative=lambda w: w.lax.associative_scan(w.lax.add, w.X, axis=1), approx=lambda w: w.lax.approx_max_k(w.X, 2)[0],
)  # fmt: skip

RESHAPES = {
    "A": "128 2,4,16 4,2,16 8,4,4 8,2,8 16,8 8,1,16 8,16,1 1,8,16 8,1,16,1 2,4,4,4 2,64 32,4 8,16 4,32",
    "X": "128 2,4,16 4,32 8,4,4 2,4,4,4 8,1,16 2,2,2,16", "Y": "128 8,4,4 8,2,8 8,16,1 2,4,16 2,4,4,4",
    "XY": "128 2,4,16 4,2,16 8,2,8 8,1,16 1,8,16", "N": "32,8 8,32 256 8,4,8,1 8,2,2,8 8,4,4,2 8,4,2,4 2,4,4,8", "V": "4,4 2,8 16,1 1,16 8,2 2,2,4", "Q": "32,16,2 8,4,32 8,128 512,2",
    "R": "128 2,64", "T": "128 4,2,16 2,4,16 8,2,8 8,4,4",
}  # fmt: skip
for _name, _shapes in RESHAPES.items():
    for _shape in _shapes.split():
        _new = tuple(map(int, _shape.split(",")))
        PROGRAMS[f"reshape {_name} {_shape}"] = lambda w, n=_name, s=_new: w.lax.reshape(
            getattr(w, n), s
        )
group(
    "reshape",
    out=lambda w: w.lax.reshape(w.A, (16, 8), out_sharding=w.spec("x", "y")), out_flat=lambda w: w.lax.reshape(w.Y, (128,), out_sharding=w.spec()),
    jnp=lambda w: w.jnp.reshape(w.A, (8, 4, 4)), jnp_out=lambda w: w.jnp.reshape(w.A, (128,), out_sharding=w.spec("y")), method=lambda w: w.A.reshape(2, 4, 16), ravel=lambda w: w.jnp.ravel(w.X),
    ravel_out=lambda w: w.jnp.ravel(w.A, out_sharding=w.spec("x")), order=lambda w: w.jnp.reshape(w.X, (128,), order="F"), grad=lambda w: w.ggrad(lambda a: w.lax.reshape(a, (2, 4, 16)), w.A),
    out_grad=lambda w: w.ggrad(lambda a: w.lax.reshape(a, (16, 8), out_sharding=w.spec("x")), w.A), merge_grad=lambda w: w.ggrad(lambda a: w.lax.reshape(a, (128,)), w.A),
    expand=lambda w: w.lax.expand_dims(w.A, (1,)), squeeze=lambda w: w.lax.squeeze(w.lax.expand_dims(w.A, (1,)), (1,)), collapse=lambda w: w.lax.collapse(w.N, 0, 2), newaxis=lambda w: w.A[:, None],
    squeeze_all=lambda w: w.jnp.squeeze(w.O), expand_grad=lambda w: w.ggrad(lambda a: w.lax.expand_dims(a, (0, 3)), w.A), flatten=lambda w: w.X.flatten(),
)  # fmt: skip
group(
    "permute",
    transpose=lambda w: w.lax.transpose(w.A, (1, 0)), transpose_3d=lambda w: w.lax.transpose(w.N, (2, 0, 1)), T=lambda w: w.A.T, swap=lambda w: w.jnp.swapaxes(w.N, 0, 1), move=lambda w: w.jnp.moveaxis(w.N, 2, 0),
    rev=lambda w: w.lax.rev(w.A, (0,)), rev_both=lambda w: w.lax.rev(w.A, (0, 1)), flip=lambda w: w.jnp.flip(w.A), roll=lambda w: w.jnp.roll(w.A, 1, axis=0), roll_free=lambda w: w.jnp.roll(w.X, 1, axis=1),
    transpose_grad=lambda w: w.ggrad(lambda a: a.T, w.A), rev_grad=lambda w: w.ggrad(lambda a: w.lax.rev(a, (0,)), w.A),
)  # fmt: skip
group(
    "broadcast",
    front=lambda w: w.lax.broadcast(w.A, (3,)), in_dim=lambda w: w.lax.broadcast_in_dim(w.A, (8, 5, 16), (0, 2)), size1=lambda w: w.lax.add(w.A, w.lax.broadcast_in_dim(w.V, (1, 16), (1,))),
    vector=lambda w: w.lax.broadcast_in_dim(w.V, (5, 16), (1,)), scalar=lambda w: w.lax.broadcast_in_dim(w.lax.reduce_sum(w.A, (0, 1)), (3, 4), ()),
    out=lambda w: w.lax.broadcast_in_dim(w.V, (8, 16), (1,), out_sharding=w.spec("x", "y")), out_scalar=lambda w: w.lax.broadcast_in_dim(f32(1), (8, 16), (), out_sharding=w.spec("x")),
    out_other=lambda w: w.lax.broadcast_in_dim(w.V, (8, 16), (1,), out_sharding=w.spec("x")), jnp=lambda w: w.jnp.broadcast_to(w.V, (8, 16)), jnp_out=lambda w: w.jnp.broadcast_to(w.V, (8, 16), out_sharding=w.spec("x", "y")),
    one=lambda w: w.A + w.O, one8=lambda w: w.A * w.O8, vector_add=lambda w: w.A + w.V, vector_add_other=lambda w: w.X + w.V, vector_x=lambda w: w.Y + w.V, expand_add=lambda w: w.V8[:, None] + w.V[None, :],
    vector_conflict=lambda w: w.T + w.V, grad=lambda w: w.ggrad(lambda v: w.lax.broadcast_in_dim(v, (8, 16), (1,)), w.V), grad_add=lambda w: w.ggrad(lambda a, v: a * v, w.A, w.V), grad_scalar=lambda w: w.ggrad(lambda a, s: a * s, w.A, w.S),
    tile=lambda w: w.jnp.tile(w.X, (1, 2)), repeat=lambda w: w.jnp.repeat(w.X, 2, axis=1), stack=lambda w: w.jnp.stack([w.A, w.A]), stack1=lambda w: w.jnp.stack([w.A, w.A], axis=1), grad_out=lambda w: w.ggrad(lambda v: w.lax.broadcast_in_dim(v, (8, 16), (1,), out_sharding=w.spec("x", "y")), w.V),
    grad_one=lambda w: w.ggrad(lambda a, v: a * v, w.A, w.O), grad_replicated=lambda w: w.ggrad(lambda a, v: a * v, w.A, w.R), grad_partly=lambda w: w.ggrad(lambda a, v: a * v, w.X, w.Y), meshgrid=lambda w: w.jnp.meshgrid(w.V8, w.V, indexing="ij"),
)  # fmt: skip
group(
    "concatenate",
    divided=lambda w: w.lax.concatenate([w.A, w.A], 0), free=lambda w: w.lax.concatenate([w.X, w.X], 1), mixed=lambda w: w.lax.concatenate([w.A, w.R], 0), three=lambda w: w.lax.concatenate([w.X, w.X, w.X], 1),
    replicated_first=lambda w: w.lax.concatenate([w.R, w.A], 1), mixed_free=lambda w: w.lax.concatenate([w.X, w.R], 1), numpy=lambda w: w.lax.concatenate([w.X, np.ones((8, 2), f32)], 1), jnp=lambda w: w.jnp.concatenate([w.X, w.X], axis=1),
    hstack=lambda w: w.jnp.hstack([w.X, w.X]), vstack=lambda w: w.jnp.vstack([w.Y, w.Y]), append=lambda w: w.jnp.append(w.X, w.X, axis=1), grad=lambda w: w.ggrad(lambda a, b: w.lax.concatenate([a, b], 1), w.X, w.X), uneven=lambda w: w.lax.concatenate([w.V, np.ones(2, f32)], 0),
    different=lambda w: w.lax.concatenate([w.X, w.Y], 0),
)  # fmt: skip
group(
    "pad",
    divided=lambda w: w.lax.pad(w.A, f32(0), [(0, 8, 0), (0, 0, 0)]), free=lambda w: w.lax.pad(w.X, f32(0), [(0, 0, 0), (1, 1, 0)]), interior=lambda w: w.lax.pad(w.X, f32(0), [(0, 0, 0), (0, 0, 1)]), uneven=lambda w: w.lax.pad(w.A, f32(0), [(1, 0, 0), (0, 0, 0)]),
    negative=lambda w: w.lax.pad(w.X, f32(0), [(0, 0, 0), (-1, 0, 0)]), nothing=lambda w: w.lax.pad(w.A, f32(0), [(0, 0, 0), (0, 0, 0)]), jnp=lambda w: w.jnp.pad(w.X, ((0, 0), (1, 1))), reflect=lambda w: w.jnp.pad(w.X, ((0, 0), (1, 1)), mode="reflect"),
    grad=lambda w: w.ggrad(lambda x: w.lax.pad(x, f32(0), [(0, 0, 0), (1, 1, 0)]), w.X), divided_negative=lambda w: w.lax.pad(w.A, f32(0), [(0, -4, 0), (0, 0, 0)]),
)  # fmt: skip
group(
    "slice",
    divided=lambda w: w.lax.slice(w.A, (0, 0), (4, 16)), free=lambda w: w.lax.slice(w.X, (0, 0), (8, 4)), uneven=lambda w: w.lax.slice(w.A, (0, 0), (5, 16)), strided=lambda w: w.lax.slice(w.X, (0, 0), (8, 16), (1, 2)), strided_divided=lambda w: w.lax.slice(w.A, (0, 0), (8, 16), (2, 1)),
    in_dim=lambda w: w.lax.slice_in_dim(w.N, 0, 2, axis=1), split=lambda w: w.lax.split(w.X, (8, 8), 1), split_divided=lambda w: w.lax.split(w.A, (4, 4), 0), jnp_split=lambda w: w.jnp.split(w.X, 2, axis=1), dynamic=lambda w: w.lax.dynamic_slice(w.A, (0, 0), (4, 16)), dynamic_free=lambda w: w.lax.dynamic_slice(w.X, (0, 0), (8, 4)),
    dynamic_3d=lambda w: w.lax.dynamic_slice(w.N, (0, 1, 0), (8, 2, 8)), dynamic_uneven=lambda w: w.lax.dynamic_slice(w.A, (0, 0), (3, 16)), update=lambda w: w.lax.dynamic_update_slice(w.A, np.ones((1, 16), f32), (0, 0)), update_same=lambda w: w.lax.dynamic_update_slice(w.A, w.A, (0, 0)),
    update_free=lambda w: w.lax.dynamic_update_slice(w.X, w.put(np.ones((8, 4), f32), "x"), (0, 0)), update_replicated=lambda w: w.lax.dynamic_update_slice(w.X, np.ones((8, 4), f32), (0, 0)), update_into_replicated=lambda w: w.lax.dynamic_update_slice(w.R, w.X, (0, 0)),
    index=lambda w: w.lax.index_in_dim(w.N, 1, 1, keepdims=False), index_divided=lambda w: w.lax.index_in_dim(w.N, 1, 0, keepdims=False), dynamic_index=lambda w: w.lax.dynamic_index_in_dim(w.A, 0, 0, keepdims=False), dynamic_index_free=lambda w: w.lax.dynamic_index_in_dim(w.X, 0, 1, keepdims=False),
    dynamic_in_dim=lambda w: w.lax.dynamic_slice_in_dim(w.X, 2, 4, axis=1), update_index=lambda w: w.lax.dynamic_update_index_in_dim(w.X, w.V8, 0, 1), grad=lambda w: w.ggrad(lambda x: w.lax.slice(x, (0, 0), (8, 4)), w.X), divided_grad=lambda w: w.ggrad(lambda x: w.lax.slice(x, (0, 0), (4, 16)), w.A),
    dynamic_grad=lambda w: w.ggrad(lambda x: w.lax.dynamic_slice(x, (0, 2), (8, 4)), w.X), update_grad=lambda w: w.ggrad(lambda x, u: w.lax.dynamic_update_slice(x, u, (0, 0)), w.A, w.A), strided_grad=lambda w: w.ggrad(lambda x: w.lax.slice(x, (0, 0), (8, 16), (1, 2)), w.X),
)  # fmt: skip
group(
    "index",
    int=lambda w: w.A[0], int_free=lambda w: w.X[:, 0], last=lambda w: w.X[:, -1], slice=lambda w: w.X[:, 2:6], slice_divided=lambda w: w.A[:4], step=lambda w: w.X[:, ::2], reverse=lambda w: w.A[::-1], ellipsis=lambda w: w.N[..., 0, :], newaxis=lambda w: w.A[:, None, :],
    array=lambda w: w.A[np.array([0, 1])], array_free=lambda w: w.X[:, np.array([0, 1])], array_replicated=lambda w: w.R[np.array([0, 1])], get_out=lambda w: w.A.at[np.array([0, 1])].get(out_sharding=w.spec(None, "y")), get=lambda w: w.R.at[w.I].get(out_sharding=w.spec("x")),
    embedding=lambda w: w.K.at[w.I].get(out_sharding=w.spec("x", "y")), embedding_plain=lambda w: w.K[w.I], embedding_divided=lambda w: w.C[w.I], take=lambda w: w.jnp.take(w.K, w.I, axis=0), take_along=lambda w: w.jnp.take_along_axis(w.X, w.put(np.zeros((8, 1), np.int32), "x"), axis=1), mask=lambda w: w.jnp.where(w.A > 0, w.A, 0.0),
    set=lambda w: w.X.at[:, 0].set(1.0), set_row=lambda w: w.A.at[0].set(1.0), add=lambda w: w.X.at[:, 1].add(w.V8), scatter=lambda w: w.K.at[np.array([0, 1])].set(0.0), scatter_divided=lambda w: w.A.at[np.array([0, 1])].add(1.0), set_out=lambda w: w.R.at[np.array([0, 1])].set(1.0),
    get_grad=lambda w: w.ggrad(lambda k: k.at[w.I].get(out_sharding=w.spec("x", "y")), w.K), take_grad=lambda w: w.ggrad(lambda k: k[w.I], w.K), get_spec=lambda w: w.X.at[:, 0].get(out_sharding=w.spec("x")), dynamic=lambda w: w.jit(lambda i: w.X[:, i])(3), dynamic_divided=lambda w: w.jit(lambda i: w.X[i])(3),
    set_slice=lambda w: w.X.at[:, 2:4].set(0.0), set_all=lambda w: w.A.at[:].set(1.0), int_grad=lambda w: w.ggrad(lambda x: x[:, 0], w.X), get_out_slice=lambda w: w.A.at[0:5].get(out_sharding=w.spec(None, "y")), get_out_int=lambda w: w.A.at[0].get(out_sharding=w.spec("y")),
)  # fmt: skip
group(
    "create",
    iota=lambda w: w.lax.iota(np.int32, 8), broadcasted_iota=lambda w: w.lax.broadcasted_iota(np.int32, (8, 16), 0), iota_out=lambda w: w.lax.broadcasted_iota(np.int32, (8, 16), 0, out_sharding=w.spec("x")), full_like=lambda w: w.lax.full_like(w.A, 1.0), zeros_like=lambda w: w.jnp.zeros_like(w.A),
    ones_like=lambda w: w.jnp.ones_like(w.A), full_like_shape=lambda w: w.jnp.full_like(w.A, 1.0, shape=(4,)), full_like_dtype=lambda w: w.jnp.zeros_like(w.A, dtype=np.int32), empty_like=lambda w: w.jnp.empty_like(w.A), zeros=lambda w: w.jnp.zeros((8, 16)), zeros_out=lambda w: w.jnp.zeros((8, 16), out_sharding=w.spec("x")),
    ones_out=lambda w: w.jnp.ones((8, 16), out_sharding=w.spec(None, "y")), full_out=lambda w: w.jnp.full((8, 16), 2.0, out_sharding=w.spec(("x", "y"))), arange_out=lambda w: w.jnp.arange(16, out_sharding=w.spec("y")), arange=lambda w: w.jnp.arange(16), eye_out=lambda w: w.jnp.eye(8, out_sharding=w.spec("x")),
    linspace_out=lambda w: w.jnp.linspace(0, 1, 16, out_sharding=w.spec("y")) , array_out=lambda w: w.jnp.array(np.ones((8, 16), f32), out_sharding=w.spec("x")), asarray_out=lambda w: w.jnp.asarray(np.ones((8, 16), f32), out_sharding=w.spec("x")), full_out_uneven=lambda w: w.jnp.zeros((3, 16), out_sharding=w.spec("x")),
    tril=lambda w: w.jnp.tril(w.A), identity=lambda w: w.jnp.identity(8, out_sharding=w.spec("x")) , diag=lambda w: w.jnp.diag(w.V8), empty_out=lambda w: w.jnp.empty((8, 16), out_sharding=w.spec("x")), full_array_out=lambda w: w.jnp.full((8, 16), w.V, out_sharding=w.spec("x", "y")), one_hot=lambda w: w.lib.nn.one_hot(w.I, 4), copy=lambda w: w.jnp.copy(w.A), astype=lambda w: w.A.astype(np.int32),
    full_lax=lambda w: w.lax.full((8, 16), 1.0, sharding=w.ns("x")) ,
)  # fmt: skip
group(
    "random",
    normal=lambda w: w.lib.random.normal(w.key, (8, 16)), normal_out=lambda w: w.lib.random.normal(w.key, (8, 16), out_sharding=w.spec("x")), uniform_out=lambda w: w.lib.random.uniform(w.key, (8, 16), out_sharding=w.spec("x", "y")), bits_out=lambda w: w.lib.random.bits(w.key, (8, 16), out_sharding=w.spec(None, "y")),
    randint_out=lambda w: w.lib.random.randint(w.key, (8, 16), 0, 9, out_sharding=w.spec("x")), bernoulli=lambda w: w.lib.random.bernoulli(w.key, w.A), split=lambda w: w.lib.random.split(w.key, 8), categorical=lambda w: w.lib.random.categorical(w.key, w.X), rng_bit=lambda w: w.lax.rng_bit_generator(np.zeros(4, np.uint32), (8, 16))[1],
    rng_bit_out=lambda w: w.lax.rng_bit_generator(np.zeros(4, np.uint32), (8, 16), out_sharding=w.spec("x"))[1], truncated=lambda w: w.lib.random.truncated_normal(w.key, -1.0, 1.0, (8, 16), out_sharding=w.spec("x")), gumbel_out=lambda w: w.lib.random.gumbel(w.key, (8, 16), out_sharding=w.spec("x")), permutation=lambda w: w.lib.random.permutation(w.key, w.Y),
    exponential_out=lambda w: w.lib.random.exponential(w.key, (8, 16), out_sharding=w.spec("x")), fold_in=lambda w: w.lib.random.fold_in(w.key, 3), keys_normal=lambda w: w.vmap(lambda k: w.lib.random.normal(k, (4,)))(w.lib.random.split(w.key, 8)), choice=lambda w: w.lib.random.choice(w.key, w.V, (4,)), dropout=lambda w: w.jnp.where(w.lib.random.bernoulli(w.key, 0.5, (8, 16)), w.A, 0),
)  # fmt: skip
_W = np.ones((4, 4, 3), f32)
group(
    "window",
    conv=lambda w: w.lax.conv_general_dilated(w.put(np.ones((8, 4, 8), f32), "x"), _W, (1,), "SAME"), conv_spatial=lambda w: w.lax.conv_general_dilated(w.N, _W, (1,), "SAME"), conv_kernel=lambda w: w.lax.conv_general_dilated(np.ones((8, 4, 8), f32), w.put(np.ones((8, 4, 3), f32), "x"), (1,), "SAME"),
    conv_features=lambda w: w.lax.conv_general_dilated(w.put(np.ones((8, 4, 8), f32), None, "y"), _W, (1,), "SAME"), conv_grad=lambda w: w.ggrad(lambda x, k: w.lax.conv_general_dilated(x, k, (1,), "SAME"), w.put(np.ones((8, 4, 8), f32), "x"), w.put(_W)), reduce_window=lambda w: w.lax.reduce_window(w.X, -np.inf, w.lax.max, (1, 2), (1, 2), "VALID"),
    reduce_window_divided=lambda w: w.lax.reduce_window(w.A, f32(0), w.lax.add, (2, 1), (2, 1), "VALID"), reduce_window_overlap=lambda w: w.lax.reduce_window(w.X, f32(0), w.lax.add, (1, 3), (1, 1), "SAME"), pool_grad=lambda w: w.ggrad(lambda x: w.lax.reduce_window(x, -np.inf, w.lax.max, (1, 2), (1, 2), "VALID"), w.X),
    fft=lambda w: w.lax.fft(w.X, "fft", (16,)), fft_divided=lambda w: w.lax.fft(w.A, "fft", (16,)), fft_3d=lambda w: w.lax.fft(w.lax.complex(w.H, w.H).transpose(1, 2, 0), "fft", (4,)), rfft=lambda w: w.jnp.fft.rfft(w.X, axis=1), irfft=lambda w: w.jnp.fft.irfft(w.jnp.fft.rfft(w.X, axis=1), axis=1), fft_grad=lambda w: w.ggrad(lambda x: w.lax.real(w.lax.fft(x, "rfft", (16,))), w.X),
)  # fmt: skip
group(
    "linalg",
    cholesky=lambda w: w.lax.linalg.cholesky(w.M), eigh=lambda w: w.lax.linalg.eigh(w.M), qr=lambda w: w.lax.linalg.qr(w.M), svd=lambda w: w.lax.linalg.svd(w.M), lu=lambda w: w.lax.linalg.lu(w.M), triangular=lambda w: w.lax.linalg.triangular_solve(w.M, w.M, left_side=True), solve=lambda w: w.jnp.linalg.solve(w.M, w.M),
    inv=lambda w: w.jnp.linalg.inv(w.M), det=lambda w: w.jnp.linalg.det(w.M), cholesky_divided=lambda w: w.lax.linalg.cholesky(w.MY), eigh_divided=lambda w: w.lax.linalg.eigh(w.MY), eig=lambda w: w.lax.linalg.eig(w.M)[0], eigvals=lambda w: w.jnp.linalg.eigvalsh(w.M), triangular_one=lambda w: w.lax.linalg.triangular_solve(w.M, np.ones((8, 4, 4), f32), left_side=True),
    tridiagonal=lambda w: w.lax.linalg.tridiagonal_solve(w.put(np.ones((8, 4), f32), "x"), w.put(3 * np.ones((8, 4), f32), "x"), w.put(np.ones((8, 4), f32), "x"), w.put(np.ones((8, 4, 2), f32), "x")), schur=lambda w: w.lax.linalg.schur(w.M)[0], hessenberg=lambda w: w.lax.linalg.hessenberg(w.M)[0], pinv=lambda w: w.jnp.linalg.pinv(w.M), slogdet=lambda w: w.jnp.linalg.slogdet(w.M),
    eigh_grad=lambda w: w.ggrad(lambda m: w.lax.linalg.eigh(m)[1], w.M), triangular_grad=lambda w: w.ggrad(lambda a, b: w.lax.linalg.triangular_solve(a, b, left_side=True), w.M, w.M), matrix_power=lambda w: w.jnp.linalg.matrix_power(w.M, 2), vector_norm=lambda w: w.jnp.linalg.norm(w.A),
)  # fmt: skip
group(
    "control",
    scan=lambda w: w.lax.scan(lambda c, x: (c + x, c), w.V, w.Y), scan_sharded=lambda w: w.lax.scan(lambda c, x: (c, x), f32(0), w.A)[1], scan_none=lambda w: w.lax.scan(lambda c, x: (c + x, None), w.V, w.Y)[0], scan_3d=lambda w: w.lax.scan(lambda c, x: (c, w.lax.sin(x)), f32(0), w.H)[1], scan_length=lambda w: w.lax.scan(lambda c, _: (c * 2, c), w.A, None, length=3),
    scan_carry=lambda w: w.lax.scan(lambda c, x: (c + x, None), np.zeros(16, f32), w.Y)[0], scan_grad=lambda w: w.ggrad(lambda v, y: w.lax.scan(lambda c, x: (c * x, c), v, y)[1], w.V, w.Y), scan_closed=lambda w: w.lax.scan(lambda c, x: (c + x, w.A), w.V, w.Y)[1], scan_reverse=lambda w: w.lax.scan(lambda c, x: (c + x, c), w.V, w.Y, reverse=True)[1],
    while_=lambda w: w.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, w.lax.sin(c[1])), (0, w.A))[1], while_carry=lambda w: w.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + w.A), (0, w.R))[1], fori=lambda w: w.lax.fori_loop(0, 3, lambda i, a: w.lax.sin(a), w.N), fori_grad=lambda w: w.ggrad(lambda a: w.lax.fori_loop(0, 3, lambda i, b: w.lax.sin(b), a), w.N),
    cond=lambda w: w.lax.cond(True, w.lax.sin, w.lax.cos, w.A), cond_traced=lambda w: w.jit(lambda p: w.lax.cond(p, w.lax.sin, w.lax.cos, w.A))(True), cond_branches=lambda w: w.jit(lambda p: w.lax.cond(p, lambda: w.A, lambda: w.R))(True), cond_grad=lambda w: w.ggrad(lambda a: w.lax.cond(w.sum(a) > 0, w.lax.sin, w.lax.cos, a), w.A), switch=lambda w: w.jit(lambda i: w.lax.switch(i, [w.lax.sin, w.lax.cos, w.lax.tan], w.XY))(1),
    map=lambda w: w.lax.map(w.lax.sin, w.Y), jit=lambda w: w.jit(lambda a, b: a @ b)(w.X, w.C), jit_constant=lambda w: w.jit(lambda: w.A * 2)(), remat=lambda w: w.lib.checkpoint(lambda a: w.lax.sin(a))(w.A), remat_grad=lambda w: w.ggrad(w.lib.checkpoint(lambda a: w.lax.sin(w.lax.sin(a))), w.A),
    cond_zero=lambda w: w.jit(lambda p: w.lax.cond(p, lambda: w.A, lambda: w.jnp.zeros((8, 16), f32)))(True), custom_jvp=lambda w: w.ggrad(w.lib.nn.relu, w.A), gelu=lambda w: w.lib.nn.gelu(w.A), gelu_grad=lambda w: w.ggrad(w.lib.nn.gelu, w.A), silu_grad=lambda w: w.ggrad(w.lib.nn.silu, w.A),
)  # fmt: skip
for _name in "sin exp log tanh logistic rsqrt sqrt erf log1p expm1 abs cumsum".split()[:-1]:
    PROGRAMS[f"grad {_name}"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.A)
for _name in "add mul sub div max min pow atan2".split():
    PROGRAMS[f"grad {_name} replicated"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.A, w.R)
    PROGRAMS[f"grad {_name} partly"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.X, w.Y)
group(
    "grad",
    select=lambda w: w.ggrad(lambda a, b: w.lax.select(w.A > 1, a, b), w.A, w.A), convert=lambda w: w.ggrad(lambda a: w.lax.convert_element_type(a, np.float16), w.A), clamp=lambda w: w.ggrad(lambda a: w.lax.clamp(f32(0), a, f32(1)), w.A), where=lambda w: w.ggrad(lambda a: w.jnp.where(a > 0, a, 0), w.A), softmax=lambda w: w.ggrad(lambda a: w.lib.nn.softmax(a, axis=1), w.X),
    softmax_divided=lambda w: w.ggrad(lambda a: w.lib.nn.softmax(a, axis=1), w.A), mean=lambda w: w.ggrad(lambda a: w.jnp.mean(a, 1), w.A), logsumexp=lambda w: w.ggrad(lambda a: w.lib.nn.logsumexp(a, axis=1), w.A), mlp=lambda w: w.ggrad(lambda a, b: w.lax.tanh(a @ b), w.X, w.C), second=lambda w: w.grad(lambda a: w.sum(w.grad(lambda b: w.sum(w.lax.sin(b)))(a)))(w.A),
    vjp=lambda w: w.lib.vjp(w.lax.sin, w.A)[1](np.ones((8, 16), f32)), jvp=lambda w: w.lib.jvp(w.lax.sin, (w.A,), (w.A,)), value_and_grad=lambda w: w.lib.value_and_grad(lambda a: w.sum(a * w.R))(w.A), jit=lambda w: w.jit(w.grad(lambda a: w.sum(a * w.R)))(w.A), linear=lambda w: w.lib.linearize(w.lax.sin, w.A)[1](w.A), reshard=lambda w: w.ggrad(lambda a: w.reshard(a, "y"), w.X),
    replicated=lambda w: w.grad(lambda r: w.sum(r * w.A))(w.R), embed=lambda w: w.grad(lambda r: w.sum(r[w.I]))(w.R), unused=lambda w: w.grad(lambda a, b: w.sum(a), (0, 1))(w.A, w.X), stop=lambda w: w.grad(lambda a: w.sum(w.lax.stop_gradient(a)))(w.A),
)  # fmt: skip
group(
    "vmap",
    sin=lambda w: w.vmap(w.lax.sin)(w.A), sum=lambda w: w.vmap(lambda r: w.lax.reduce_sum(r, (0,)))(w.A), y=lambda w: w.vmap(w.lax.sin, in_axes=1, out_axes=1)(w.A), move=lambda w: w.vmap(w.lax.sin, in_axes=1)(w.A), dot=lambda w: w.vmap(lambda r: w.dot(r, np.ones((16, 3), f32), 0, 0))(w.X), sort=lambda w: w.vmap(lambda r: w.lax.sort(r))(w.X), cumsum=lambda w: w.vmap(lambda r: w.lax.cumsum(r, 0))(w.N),
    unmapped=lambda w: w.vmap(lambda r: w.V)(w.A), out_unmapped=lambda w: w.vmap(lambda r, v: r + v, in_axes=(0, None))(w.A, w.V), constant=lambda w: w.vmap(lambda r: r * np.ones(16, f32))(w.A), zeros=lambda w: w.vmap(lambda r: w.jnp.zeros(4))(w.A), zeros_like=lambda w: w.vmap(w.jnp.zeros_like)(w.A), two=lambda w: w.vmap(lambda a, b: a * b)(w.A, w.A), two_different=lambda w: w.vmap(lambda a, b: a * b)(w.X, w.Y),
    two_axes=lambda w: w.vmap(lambda a, b: a * b, in_axes=(0, 1))(w.XY, w.lax.transpose(w.XY, (1, 0))), matmul=lambda w: w.vmap(lambda a, b: a @ b, in_axes=(0, None))(w.N, np.ones((8, 3), f32)), batched_dot=lambda w: w.vmap(lambda a, b: a @ b)(w.M, w.M), nested=lambda w: w.vmap(w.vmap(w.lax.sin))(w.N), nested_sum=lambda w: w.vmap(lambda m: w.vmap(lambda r: r.sum())(m))(w.N), grad=lambda w: w.vmap(w.grad(lambda r: w.sum(w.lax.sin(r))))(w.A),
    grad_of=lambda w: w.ggrad(lambda a: w.vmap(lambda r: w.lax.cumsum(r, 0))(a), w.X), reshape=lambda w: w.vmap(lambda r: r.reshape(4, 4))(w.X), concatenate=lambda w: w.vmap(lambda r: w.lax.concatenate([r, r], 0))(w.X), scan=lambda w: w.vmap(lambda r: w.lax.scan(lambda c, x: (c + x, c), f32(0), r)[1])(w.X), cond=lambda w: w.vmap(lambda r: w.lax.cond(r[0] > 0, w.lax.sin, w.lax.cos, r))(w.X), while_=lambda w: w.vmap(lambda r: w.lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, r))(w.X),
    broadcast=lambda w: w.vmap(lambda r: w.lax.broadcast_in_dim(r, (3, 16), (1,)))(w.A), out_sharding=lambda w: w.vmap(lambda r: w.lax.broadcast_in_dim(r, (4, 16), (1,), out_sharding=w.spec("y")))(w.X), dot_out=lambda w: w.vmap(lambda r: w.dot(r, w.B, 0, 0, out_sharding=w.spec(None)))(w.A), index=lambda w: w.vmap(lambda r: r[0])(w.X), gather=lambda w: w.vmap(lambda r, i: r[i])(w.X, w.I), spmd=lambda w: w.vmap(w.lax.sin, spmd_axis_name="x")(w.R), spmd_same=lambda w: w.vmap(w.lax.sin, spmd_axis_name="x")(w.A),
    random=lambda w: w.vmap(lambda k: w.lib.random.bits(k, (4,)))(w.lib.random.split(w.key, 8)), zeros_out=lambda w: w.vmap(lambda r: w.jnp.zeros((4,), out_sharding=w.spec("y")))(w.X), iota=lambda w: w.vmap(lambda r: r + w.lax.iota(f32, 16))(w.A), outer=lambda w: w.vmap(lambda a: w.vmap(lambda b: a * b)(w.V))(w.V8), axis_size=lambda w: w.vmap(lambda: f32(1), axis_size=8)(), linalg=lambda w: w.vmap(w.lax.linalg.eigh)(w.M),
)  # fmt: skip
group(
    "sharding",
    reshard=lambda w: w.reshard(w.A, "y", "x"), reshard_numpy=lambda w: w.reshard(np.ones((8, 16), f32), "x"), reshard_scalar=lambda w: w.reshard(1.0), reshard_replicated=lambda w: w.reshard(w.A), reshard_uneven=lambda w: w.reshard(w.jnp.ones((3, 4)), "x"), reshard_unknown=lambda w: w.reshard(w.A, "z"), reshard_jit=lambda w: w.jit(lambda a: w.reshard(a, None, "x"))(w.A),
    constraint_same=lambda w: w.lax.with_sharding_constraint(w.A, w.P("x", "y")), constraint_other=lambda w: w.lax.with_sharding_constraint(w.A, w.P("y")), constraint_jit=lambda w: w.jit(lambda a: w.lax.with_sharding_constraint(a, w.P("y")))(w.A), constraint_jit_same=lambda w: w.jit(lambda a: w.lax.with_sharding_constraint(a, w.P("x", "y")))(w.A),
    auto=lambda w: w.lib.sharding.auto_axes(lambda a: w.lax.sin(a) + 1, out_sharding=w.P("x"))(w.A), auto_jit=lambda w: w.jit(w.lib.sharding.auto_axes(lambda a, b: a @ b, out_sharding=w.P("x")))(w.A, w.B), auto_partial=lambda w: w.lib.sharding.auto_axes(lambda a: a * 2, axes="x", out_sharding=w.P("x", "y"))(w.A), auto_grad=lambda w: w.ggrad(w.lib.sharding.auto_axes(lambda a: w.lax.sin(a), out_sharding=w.P("x", "y")), w.A),
    auto_type=lambda w: w.jit(w.lib.sharding.auto_axes(lambda a: a, out_sharding=w.P("y")))(w.A), auto_two=lambda w: w.lib.sharding.auto_axes(lambda a, b: (a + b, a), out_sharding=(w.P("x"), w.P()))(w.A, w.T), auto_vmap=lambda w: w.vmap(w.lib.sharding.auto_axes(lambda a: a * 2, out_sharding=w.P("y")))(w.A), explicit=lambda w: w.lib.sharding.auto_axes(lambda a: w.lib.sharding.explicit_axes(lambda b: b * 2, in_sharding=w.P("x"))(a), out_sharding=w.P("x"))(w.A),
    device_put=lambda w: w.lib.device_put(w.A, w.ns("y")), device_put_spec=lambda w: w.lib.device_put(w.A, w.P("y")), device_put_jit=lambda w: w.jit(lambda a: w.lib.device_put(a, w.ns("y")))(w.A), jit_out=lambda w: w.jit(lambda a: a * 2, out_shardings=w.ns("y"))(w.A), jit_in=lambda w: w.jit(lambda a: a * 2, in_shardings=w.ns("y"))(w.R), jit_in_other=lambda w: w.jit(lambda a: a * 2, in_shardings=w.ns("y"))(w.A), jit_out_spec=lambda w: w.jit(lambda a: a * 2, out_shardings=w.P("y"))(w.A),
    zeros_uneven=lambda w: w.jnp.zeros((7,), out_sharding=w.P("x")), doubled=lambda w: w.jnp.zeros((8, 8), out_sharding=w.P("x", "x")), long=lambda w: w.jnp.zeros((8,), out_sharding=w.P("x", "y")), reshard_grad=lambda w: w.ggrad(lambda a: w.reshard(a, "y"), w.A), reshard_vmap=lambda w: w.vmap(lambda a: w.reshard(a, "y"))(w.X), reshard_tree=lambda w: w.lib.sharding.reshard((w.A, w.X), w.P("y")),
)  # fmt: skip


def text_of(side: Side, aval: Any) -> str:
    return aval.str_short(short_dtypes=True) if side.lib.__name__ == "jax" else aval.str_short()


def result(side: Side, name: str) -> str:
    """The types of a program's results, or the error."""
    lib = side.lib
    try:
        with lib.set_mesh(side.mesh):
            out = PROGRAMS[name](side)
            leaves = lib.tree_util.tree_leaves(out)
            return " ".join(text_of(side, lib.typeof(x)) for x in leaves)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


__all__ = ["PROGRAMS", "SPECS", "Side", "partial", "result", "text_of"]
