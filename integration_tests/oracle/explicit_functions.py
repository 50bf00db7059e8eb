"""Programs on arrays with explicit axes: creation, control flow, gradients, batches."""

from __future__ import annotations

import numpy as np
from explicit_sides import PROGRAMS, f32, group

group(
    "create",
    iota=lambda w: w.lax.iota(np.int32, 8),
    broadcasted_iota=lambda w: w.lax.broadcasted_iota(np.int32, (8, 16), 0),
    iota_out=lambda w: w.lax.broadcasted_iota(np.int32, (8, 16), 0, out_sharding=w.spec("x")),
    full_like=lambda w: w.lax.full_like(w.A, 1.0),
    zeros_like=lambda w: w.jnp.zeros_like(w.A),
    ones_like=lambda w: w.jnp.ones_like(w.A),
    full_like_shape=lambda w: w.jnp.full_like(w.A, 1.0, shape=(4,)),
    full_like_dtype=lambda w: w.jnp.zeros_like(w.A, dtype=np.int32),
    empty_like=lambda w: w.jnp.empty_like(w.A),
    zeros=lambda w: w.jnp.zeros((8, 16)),
    zeros_out=lambda w: w.jnp.zeros((8, 16), out_sharding=w.spec("x")),
    ones_out=lambda w: w.jnp.ones((8, 16), out_sharding=w.spec(None, "y")),
    full_out=lambda w: w.jnp.full((8, 16), 2.0, out_sharding=w.spec(("x", "y"))),
    arange_out=lambda w: w.jnp.arange(16, out_sharding=w.spec("y")),
    arange=lambda w: w.jnp.arange(16),
    eye_out=lambda w: w.jnp.eye(8, out_sharding=w.spec("x")),
    linspace_out=lambda w: w.jnp.linspace(0, 1, 16, out_sharding=w.spec("y")),
    array_out=lambda w: w.jnp.array(np.ones((8, 16), f32), out_sharding=w.spec("x")),
    asarray_out=lambda w: w.jnp.asarray(np.ones((8, 16), f32), out_sharding=w.spec("x")),
    full_out_uneven=lambda w: w.jnp.zeros((3, 16), out_sharding=w.spec("x")),
    tril=lambda w: w.jnp.tril(w.A),
    identity=lambda w: w.jnp.identity(8, out_sharding=w.spec("x")),
    diag=lambda w: w.jnp.diag(w.V8),
    empty_out=lambda w: w.jnp.empty((8, 16), out_sharding=w.spec("x")),
    full_array_out=lambda w: w.jnp.full((8, 16), w.V, out_sharding=w.spec("x", "y")),
    one_hot=lambda w: w.lib.nn.one_hot(w.I, 4),
    copy=lambda w: w.jnp.copy(w.A),
    astype=lambda w: w.A.astype(np.int32),
    full_lax=lambda w: w.lax.full((8, 16), 1.0, sharding=w.ns("x")),
)
group(
    "random",
    normal=lambda w: w.lib.random.normal(w.key, (8, 16)),
    normal_out=lambda w: w.lib.random.normal(w.key, (8, 16), out_sharding=w.spec("x")),
    uniform_out=lambda w: w.lib.random.uniform(w.key, (8, 16), out_sharding=w.spec("x", "y")),
    bits_out=lambda w: w.lib.random.bits(w.key, (8, 16), out_sharding=w.spec(None, "y")),
    randint_out=lambda w: w.lib.random.randint(w.key, (8, 16), 0, 9, out_sharding=w.spec("x")),
    bernoulli=lambda w: w.lib.random.bernoulli(w.key, w.A),
    split=lambda w: w.lib.random.split(w.key, 8),
    categorical=lambda w: w.lib.random.categorical(w.key, w.X),
    rng_bit=lambda w: w.lax.rng_bit_generator(np.zeros(4, np.uint32), (8, 16))[1],
    rng_bit_out=lambda w: w.lax.rng_bit_generator(
        np.zeros(4, np.uint32), (8, 16), out_sharding=w.spec("x")
    )[1],
    truncated=lambda w: w.lib.random.truncated_normal(
        w.key, -1.0, 1.0, (8, 16), out_sharding=w.spec("x")
    ),
    gumbel_out=lambda w: w.lib.random.gumbel(w.key, (8, 16), out_sharding=w.spec("x")),
    permutation=lambda w: w.lib.random.permutation(w.key, w.Y),
    exponential_out=lambda w: w.lib.random.exponential(w.key, (8, 16), out_sharding=w.spec("x")),
    fold_in=lambda w: w.lib.random.fold_in(w.key, 3),
    keys_normal=lambda w: w.vmap(lambda k: w.lib.random.normal(k, (4,)))(
        w.lib.random.split(w.key, 8)
    ),
    choice=lambda w: w.lib.random.choice(w.key, w.V, (4,)),
    dropout=lambda w: w.jnp.where(w.lib.random.bernoulli(w.key, 0.5, (8, 16)), w.A, 0),
)
_W = np.ones((4, 4, 3), f32)
group(
    "window",
    conv=lambda w: w.lax.conv_general_dilated(
        w.put(np.ones((8, 4, 8), f32), "x"), _W, (1,), "SAME"
    ),
    conv_spatial=lambda w: w.lax.conv_general_dilated(w.N, _W, (1,), "SAME"),
    conv_kernel=lambda w: w.lax.conv_general_dilated(
        np.ones((8, 4, 8), f32), w.put(np.ones((8, 4, 3), f32), "x"), (1,), "SAME"
    ),
    conv_features=lambda w: w.lax.conv_general_dilated(
        w.put(np.ones((8, 4, 8), f32), None, "y"), _W, (1,), "SAME"
    ),
    conv_grad=lambda w: w.ggrad(
        lambda x, k: w.lax.conv_general_dilated(x, k, (1,), "SAME"),
        w.put(np.ones((8, 4, 8), f32), "x"),
        w.put(_W),
    ),
    reduce_window=lambda w: w.lax.reduce_window(w.X, -np.inf, w.lax.max, (1, 2), (1, 2), "VALID"),
    reduce_window_divided=lambda w: w.lax.reduce_window(
        w.A, f32(0), w.lax.add, (2, 1), (2, 1), "VALID"
    ),
    reduce_window_overlap=lambda w: w.lax.reduce_window(
        w.X, f32(0), w.lax.add, (1, 3), (1, 1), "SAME"
    ),
    pool_grad=lambda w: w.ggrad(
        lambda x: w.lax.reduce_window(x, -np.inf, w.lax.max, (1, 2), (1, 2), "VALID"), w.X
    ),
    fft=lambda w: w.lax.fft(w.X, "fft", (16,)),
    fft_divided=lambda w: w.lax.fft(w.A, "fft", (16,)),
    fft_3d=lambda w: w.lax.fft(w.lax.complex(w.H, w.H).transpose(1, 2, 0), "fft", (4,)),
    rfft=lambda w: w.jnp.fft.rfft(w.X, axis=1),
    irfft=lambda w: w.jnp.fft.irfft(w.jnp.fft.rfft(w.X, axis=1), axis=1),
    fft_grad=lambda w: w.ggrad(lambda x: w.lax.real(w.lax.fft(x, "rfft", (16,))), w.X),
)
group(
    "linalg",
    cholesky=lambda w: w.lax.linalg.cholesky(w.M),
    eigh=lambda w: w.lax.linalg.eigh(w.M),
    qr=lambda w: w.lax.linalg.qr(w.M),
    svd=lambda w: w.lax.linalg.svd(w.M),
    lu=lambda w: w.lax.linalg.lu(w.M),
    triangular=lambda w: w.lax.linalg.triangular_solve(w.M, w.M, left_side=True),
    solve=lambda w: w.jnp.linalg.solve(w.M, w.M),
    inv=lambda w: w.jnp.linalg.inv(w.M),
    det=lambda w: w.jnp.linalg.det(w.M),
    cholesky_divided=lambda w: w.lax.linalg.cholesky(w.MY),
    eigh_divided=lambda w: w.lax.linalg.eigh(w.MY),
    eig=lambda w: w.lax.linalg.eig(w.M)[0],
    eigvals=lambda w: w.jnp.linalg.eigvalsh(w.M),
    triangular_one=lambda w: w.lax.linalg.triangular_solve(
        w.M, np.ones((8, 4, 4), f32), left_side=True
    ),
    tridiagonal=lambda w: w.lax.linalg.tridiagonal_solve(
        w.put(np.ones((8, 4), f32), "x"),
        w.put(3 * np.ones((8, 4), f32), "x"),
        w.put(np.ones((8, 4), f32), "x"),
        w.put(np.ones((8, 4, 2), f32), "x"),
    ),
    schur=lambda w: w.lax.linalg.schur(w.M)[0],
    hessenberg=lambda w: w.lax.linalg.hessenberg(w.M)[0],
    pinv=lambda w: w.jnp.linalg.pinv(w.M),
    slogdet=lambda w: w.jnp.linalg.slogdet(w.M),
    eigh_grad=lambda w: w.ggrad(lambda m: w.lax.linalg.eigh(m)[1], w.M),
    triangular_grad=lambda w: w.ggrad(
        lambda a, b: w.lax.linalg.triangular_solve(a, b, left_side=True), w.M, w.M
    ),
    matrix_power=lambda w: w.jnp.linalg.matrix_power(w.M, 2),
    vector_norm=lambda w: w.jnp.linalg.norm(w.A),
)
group(
    "control",
    scan=lambda w: w.lax.scan(lambda c, x: (c + x, c), w.V, w.Y),
    scan_sharded=lambda w: w.lax.scan(lambda c, x: (c, x), f32(0), w.A)[1],
    scan_none=lambda w: w.lax.scan(lambda c, x: (c + x, None), w.V, w.Y)[0],
    scan_3d=lambda w: w.lax.scan(lambda c, x: (c, w.lax.sin(x)), f32(0), w.H)[1],
    scan_length=lambda w: w.lax.scan(lambda c, _: (c * 2, c), w.A, None, length=3),
    scan_carry=lambda w: w.lax.scan(lambda c, x: (c + x, None), np.zeros(16, f32), w.Y)[0],
    scan_grad=lambda w: w.ggrad(
        lambda v, y: w.lax.scan(lambda c, x: (c * x, c), v, y)[1], w.V, w.Y
    ),
    scan_closed=lambda w: w.lax.scan(lambda c, x: (c + x, w.A), w.V, w.Y)[1],
    scan_reverse=lambda w: w.lax.scan(lambda c, x: (c + x, c), w.V, w.Y, reverse=True)[1],
    while_=lambda w: w.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, w.lax.sin(c[1])), (0, w.A)
    )[1],
    while_carry=lambda w: w.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + w.A), (0, w.R)
    )[1],
    fori=lambda w: w.lax.fori_loop(0, 3, lambda i, a: w.lax.sin(a), w.N),
    fori_grad=lambda w: w.ggrad(lambda a: w.lax.fori_loop(0, 3, lambda i, b: w.lax.sin(b), a), w.N),
    cond=lambda w: w.lax.cond(True, w.lax.sin, w.lax.cos, w.A),
    cond_traced=lambda w: w.jit(lambda p: w.lax.cond(p, w.lax.sin, w.lax.cos, w.A))(True),
    cond_branches=lambda w: w.jit(lambda p: w.lax.cond(p, lambda: w.A, lambda: w.R))(True),
    cond_grad=lambda w: w.ggrad(lambda a: w.lax.cond(w.sum(a) > 0, w.lax.sin, w.lax.cos, a), w.A),
    switch=lambda w: w.jit(lambda i: w.lax.switch(i, [w.lax.sin, w.lax.cos, w.lax.tan], w.XY))(1),
    map=lambda w: w.lax.map(w.lax.sin, w.Y),
    jit=lambda w: w.jit(lambda a, b: a @ b)(w.X, w.C),
    jit_constant=lambda w: w.jit(lambda: w.A * 2)(),
    remat=lambda w: w.lib.checkpoint(lambda a: w.lax.sin(a))(w.A),
    remat_grad=lambda w: w.ggrad(w.lib.checkpoint(lambda a: w.lax.sin(w.lax.sin(a))), w.A),
    cond_zero=lambda w: w.jit(
        lambda p: w.lax.cond(p, lambda: w.A, lambda: w.jnp.zeros((8, 16), f32))
    )(True),
    custom_jvp=lambda w: w.ggrad(w.lib.nn.relu, w.A),
    gelu=lambda w: w.lib.nn.gelu(w.A),
    gelu_grad=lambda w: w.ggrad(w.lib.nn.gelu, w.A),
    silu_grad=lambda w: w.ggrad(w.lib.nn.silu, w.A),
)
for _name in "sin exp log tanh logistic rsqrt sqrt erf log1p expm1 abs cumsum".split()[:-1]:
    PROGRAMS[f"grad {_name}"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.A)
for _name in "add mul sub div max min pow atan2".split():
    PROGRAMS[f"grad {_name} replicated"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.A, w.R)
    PROGRAMS[f"grad {_name} partly"] = lambda w, n=_name: w.ggrad(getattr(w.lax, n), w.X, w.Y)
group(
    "grad",
    select=lambda w: w.ggrad(lambda a, b: w.lax.select(w.A > 1, a, b), w.A, w.A),
    convert=lambda w: w.ggrad(lambda a: w.lax.convert_element_type(a, np.float16), w.A),
    clamp=lambda w: w.ggrad(lambda a: w.lax.clamp(f32(0), a, f32(1)), w.A),
    where=lambda w: w.ggrad(lambda a: w.jnp.where(a > 0, a, 0), w.A),
    softmax=lambda w: w.ggrad(lambda a: w.lib.nn.softmax(a, axis=1), w.X),
    softmax_divided=lambda w: w.ggrad(lambda a: w.lib.nn.softmax(a, axis=1), w.A),
    mean=lambda w: w.ggrad(lambda a: w.jnp.mean(a, 1), w.A),
    logsumexp=lambda w: w.ggrad(lambda a: w.lib.nn.logsumexp(a, axis=1), w.A),
    mlp=lambda w: w.ggrad(lambda a, b: w.lax.tanh(a @ b), w.X, w.C),
    second=lambda w: w.grad(lambda a: w.sum(w.grad(lambda b: w.sum(w.lax.sin(b)))(a)))(w.A),
    vjp=lambda w: w.lib.vjp(w.lax.sin, w.A)[1](np.ones((8, 16), f32)),
    jvp=lambda w: w.lib.jvp(w.lax.sin, (w.A,), (w.A,)),
    value_and_grad=lambda w: w.lib.value_and_grad(lambda a: w.sum(a * w.R))(w.A),
    jit=lambda w: w.jit(w.grad(lambda a: w.sum(a * w.R)))(w.A),
    linear=lambda w: w.lib.linearize(w.lax.sin, w.A)[1](w.A),
    reshard=lambda w: w.ggrad(lambda a: w.reshard(a, "y"), w.X),
    replicated=lambda w: w.grad(lambda r: w.sum(r * w.A))(w.R),
    embed=lambda w: w.grad(lambda r: w.sum(r[w.I]))(w.R),
    unused=lambda w: w.grad(lambda a, b: w.sum(a), (0, 1))(w.A, w.X),
    stop=lambda w: w.grad(lambda a: w.sum(w.lax.stop_gradient(a)))(w.A),
)
group(
    "vmap",
    sin=lambda w: w.vmap(w.lax.sin)(w.A),
    sum=lambda w: w.vmap(lambda r: w.lax.reduce_sum(r, (0,)))(w.A),
    y=lambda w: w.vmap(w.lax.sin, in_axes=1, out_axes=1)(w.A),
    move=lambda w: w.vmap(w.lax.sin, in_axes=1)(w.A),
    dot=lambda w: w.vmap(lambda r: w.dot(r, np.ones((16, 3), f32), 0, 0))(w.X),
    sort=lambda w: w.vmap(lambda r: w.lax.sort(r))(w.X),
    cumsum=lambda w: w.vmap(lambda r: w.lax.cumsum(r, 0))(w.N),
    unmapped=lambda w: w.vmap(lambda r: w.V)(w.A),
    out_unmapped=lambda w: w.vmap(lambda r, v: r + v, in_axes=(0, None))(w.A, w.V),
    constant=lambda w: w.vmap(lambda r: r * np.ones(16, f32))(w.A),
    zeros=lambda w: w.vmap(lambda r: w.jnp.zeros(4))(w.A),
    zeros_like=lambda w: w.vmap(w.jnp.zeros_like)(w.A),
    two=lambda w: w.vmap(lambda a, b: a * b)(w.A, w.A),
    two_different=lambda w: w.vmap(lambda a, b: a * b)(w.X, w.Y),
    two_axes=lambda w: w.vmap(lambda a, b: a * b, in_axes=(0, 1))(
        w.XY, w.lax.transpose(w.XY, (1, 0))
    ),
    matmul=lambda w: w.vmap(lambda a, b: a @ b, in_axes=(0, None))(w.N, np.ones((8, 3), f32)),
    batched_dot=lambda w: w.vmap(lambda a, b: a @ b)(w.M, w.M),
    nested=lambda w: w.vmap(w.vmap(w.lax.sin))(w.N),
    nested_sum=lambda w: w.vmap(lambda m: w.vmap(lambda r: r.sum())(m))(w.N),
    grad=lambda w: w.vmap(w.grad(lambda r: w.sum(w.lax.sin(r))))(w.A),
    grad_of=lambda w: w.ggrad(lambda a: w.vmap(lambda r: w.lax.cumsum(r, 0))(a), w.X),
    reshape=lambda w: w.vmap(lambda r: r.reshape(4, 4))(w.X),
    concatenate=lambda w: w.vmap(lambda r: w.lax.concatenate([r, r], 0))(w.X),
    scan=lambda w: w.vmap(lambda r: w.lax.scan(lambda c, x: (c + x, c), f32(0), r)[1])(w.X),
    cond=lambda w: w.vmap(lambda r: w.lax.cond(r[0] > 0, w.lax.sin, w.lax.cos, r))(w.X),
    while_=lambda w: w.vmap(lambda r: w.lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, r))(
        w.X
    ),
    broadcast=lambda w: w.vmap(lambda r: w.lax.broadcast_in_dim(r, (3, 16), (1,)))(w.A),
    out_sharding=lambda w: w.vmap(
        lambda r: w.lax.broadcast_in_dim(r, (4, 16), (1,), out_sharding=w.spec("y"))
    )(w.X),
    dot_out=lambda w: w.vmap(lambda r: w.dot(r, w.B, 0, 0, out_sharding=w.spec(None)))(w.A),
    index=lambda w: w.vmap(lambda r: r[0])(w.X),
    gather=lambda w: w.vmap(lambda r, i: r[i])(w.X, w.I),
    spmd=lambda w: w.vmap(w.lax.sin, spmd_axis_name="x")(w.R),
    spmd_same=lambda w: w.vmap(w.lax.sin, spmd_axis_name="x")(w.A),
    random=lambda w: w.vmap(lambda k: w.lib.random.bits(k, (4,)))(w.lib.random.split(w.key, 8)),
    zeros_out=lambda w: w.vmap(lambda r: w.jnp.zeros((4,), out_sharding=w.spec("y")))(w.X),
    iota=lambda w: w.vmap(lambda r: r + w.lax.iota(f32, 16))(w.A),
    outer=lambda w: w.vmap(lambda a: w.vmap(lambda b: a * b)(w.V))(w.V8),
    axis_size=lambda w: w.vmap(lambda: f32(1), axis_size=8)(),
    linalg=lambda w: w.vmap(w.lax.linalg.eigh)(w.M),
)
group(
    "sharding",
    reshard=lambda w: w.reshard(w.A, "y", "x"),
    reshard_numpy=lambda w: w.reshard(np.ones((8, 16), f32), "x"),
    reshard_scalar=lambda w: w.reshard(1.0),
    reshard_replicated=lambda w: w.reshard(w.A),
    reshard_uneven=lambda w: w.reshard(w.jnp.ones((3, 4)), "x"),
    reshard_unknown=lambda w: w.reshard(w.A, "z"),
    reshard_jit=lambda w: w.jit(lambda a: w.reshard(a, None, "x"))(w.A),
    constraint_same=lambda w: w.lax.with_sharding_constraint(w.A, w.P("x", "y")),
    constraint_other=lambda w: w.lax.with_sharding_constraint(w.A, w.P("y")),
    constraint_jit=lambda w: w.jit(lambda a: w.lax.with_sharding_constraint(a, w.P("y")))(w.A),
    constraint_jit_same=lambda w: w.jit(lambda a: w.lax.with_sharding_constraint(a, w.P("x", "y")))(
        w.A
    ),
    auto=lambda w: w.lib.sharding.auto_axes(lambda a: w.lax.sin(a) + 1, out_sharding=w.P("x"))(w.A),
    auto_jit=lambda w: w.jit(w.lib.sharding.auto_axes(lambda a, b: a @ b, out_sharding=w.P("x")))(
        w.A, w.B
    ),
    auto_partial=lambda w: w.lib.sharding.auto_axes(
        lambda a: a * 2, axes="x", out_sharding=w.P("x", "y")
    )(w.A),
    auto_grad=lambda w: w.ggrad(
        w.lib.sharding.auto_axes(lambda a: w.lax.sin(a), out_sharding=w.P("x", "y")), w.A
    ),
    auto_type=lambda w: w.jit(w.lib.sharding.auto_axes(lambda a: a, out_sharding=w.P("y")))(w.A),
    auto_two=lambda w: w.lib.sharding.auto_axes(
        lambda a, b: (a + b, a), out_sharding=(w.P("x"), w.P())
    )(w.A, w.T),
    auto_vmap=lambda w: w.vmap(w.lib.sharding.auto_axes(lambda a: a * 2, out_sharding=w.P("y")))(
        w.A
    ),
    explicit=lambda w: w.lib.sharding.auto_axes(
        lambda a: w.lib.sharding.explicit_axes(lambda b: b * 2, in_sharding=w.P("x"))(a),
        out_sharding=w.P("x"),
    )(w.A),
    device_put=lambda w: w.lib.device_put(w.A, w.ns("y")),
    device_put_spec=lambda w: w.lib.device_put(w.A, w.P("y")),
    device_put_jit=lambda w: w.jit(lambda a: w.lib.device_put(a, w.ns("y")))(w.A),
    jit_out=lambda w: w.jit(lambda a: a * 2, out_shardings=w.ns("y"))(w.A),
    jit_in=lambda w: w.jit(lambda a: a * 2, in_shardings=w.ns("y"))(w.R),
    jit_in_other=lambda w: w.jit(lambda a: a * 2, in_shardings=w.ns("y"))(w.A),
    jit_out_spec=lambda w: w.jit(lambda a: a * 2, out_shardings=w.P("y"))(w.A),
    zeros_uneven=lambda w: w.jnp.zeros((7,), out_sharding=w.P("x")),
    doubled=lambda w: w.jnp.zeros((8, 8), out_sharding=w.P("x", "x")),
    long=lambda w: w.jnp.zeros((8,), out_sharding=w.P("x", "y")),
    reshard_grad=lambda w: w.ggrad(lambda a: w.reshard(a, "y"), w.A),
    reshard_vmap=lambda w: w.vmap(lambda a: w.reshard(a, "y"))(w.X),
    reshard_tree=lambda w: w.lib.sharding.reshard((w.A, w.X), w.P("y")),
)
