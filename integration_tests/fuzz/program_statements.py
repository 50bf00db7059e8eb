"""Statements without functions of their own: a function draws one for a scope."""

from __future__ import annotations

from collections.abc import Callable

from .program_generator import Draft, Scope, Var

_UNARY = (
    "jnp.sin({})", "jnp.cos({})", "jnp.tanh({})", "jnp.exp(-jnp.abs({}))", "jnp.square({})",
    "jnp.log1p(jnp.abs({}))", "jnp.sqrt(jnp.abs({}) + 0.1)", "jnp.arctan({})", "jnp.abs({})",
    "jnp.floor({})", "jnp.sign({})", "jax.nn.sigmoid({})", "jax.nn.softplus({})", "-{}",
    "jax.nn.relu({})", "jax.nn.gelu({})", "jnp.cbrt({})", "jnp.arcsinh({})", "jnp.sinc({})",
    "lax.rsqrt(jnp.abs({}) + 1)", "jnp.nan_to_num({})", "lax.erf({})", "jnp.expm1({})",
    "lax.lgamma(jnp.abs({}) + 0.5)", "lax.digamma(jnp.abs({}) + 0.5)", "jnp.round({}, 1)",
    "jax.nn.silu({})", "jax.nn.elu({})", "jnp.clip({}, -0.5, 1)", "lax.stop_gradient({})",
    "lax.reduce_precision({}, 5, 10)", "lax.integer_pow({}, 3)", "lax.integer_pow({}, -2)",
    "jax.nn.hard_tanh({})", "jax.nn.log_sigmoid({})", "jnp.logaddexp({}, 0.3)", "jnp.mod({}, 1.5)",
    "lax.log1p(lax.exp({}))", "jnp.heaviside({}, 0.5)", "jnp.reciprocal({} + 3)", "+{}",
    "lax.optimization_barrier({})", "jnp.trunc({})", "jnp.exp2({})", "jnp.deg2rad({})",
    "jnp.copysign(1.5, {})", "lax.bessel_i1e({})", "jax.scipy.special.ndtri(jax.nn.sigmoid({}))",
    "jax.scipy.special.xlogy({0}, jnp.abs({0}) + 0.2)", "jnp.frexp({})[0]", "jnp.modf({})[0]",
)  # fmt: skip
_ANY = (
    "jnp.conj({})", "jnp.real({})", "jnp.imag({})", "{} ** 2", "{} * {}", "jnp.angle({})",
    "jnp.zeros_like({})", "jnp.ones_like({}, dtype=jnp.float32)", "jnp.isnan({})", "jnp.array({})",
    "jnp.exp(1j * {})", "lax.complex(jnp.real({0}), jnp.imag({0}))", "jnp.logical_not({})",
)  # fmt: skip
_BINARY = (
    "{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} + {}", "{} * {}", "jnp.maximum({}, {})",
    "jnp.minimum({}, {})", "jnp.power(jnp.abs({}), {})", "jnp.arctan2({}, {})", "jnp.mod({}, {})",
    "jnp.floor_divide({}, jnp.nan_to_num({}))", "jnp.hypot({}, {})", "{} ** {}",
    "jnp.logaddexp({}, {})",
    "jnp.where({0} > {1}, {0}, {1})", "jnp.where({0} < {1}, 0, {1})", "{} > {}", "{} <= {}",
    "jnp.equal({}, {})", "jnp.remainder({}, {})", "jnp.fmax({}, {})", "jnp.nextafter({}, {})",
    "jnp.float_power({}, {})", "jnp.where({} != 0, {}, 1.5)", "jnp.copysign({}, {})",
    "jnp.logical_and({}, {})", "jnp.select([{0} > 0, {1} > 0], [{0}, {1}], 2)", "jnp.fmod({}, {})",
    "lax.select({0} > {1}, {0}, {1})", "lax.atan2({}, {})", "lax.rem({}, {})", "lax.pow({}, {})",
    "lax.max({}, {})", "lax.clamp(-1.0, {}, {})", "jnp.logaddexp2({}, {})", "jnp.ldexp({}, {})",
    "jnp.divmod({}, {})[1]", "jnp.heaviside({}, {})", "jnp.nanmax(jnp.stack([{}, {}]))",
)  # fmt: skip
_REDUCTIONS = (
    "sum", "sum", "mean", "max", "min", "prod", "var", "std", "any", "all", "argmax", "argmin",
    "nansum", "nanmean", "ptp", "median", "count_nonzero", "linalg.norm", "nanmax", "nanprod",
)  # fmt: skip
_ALONG = (
    "jnp.cumsum({}, {})", "jnp.cumprod({}, {})", "jnp.sort({}, {})", "jnp.argsort({}, {})",
    "jnp.flip({}, {})", "jnp.roll({}, 1, {})", "jax.nn.softmax({}, {})", "jnp.diff({}, axis={})",
    "jax.nn.log_softmax({}, {})", "jax.nn.logsumexp({}, {})", "lax.cummax({}, {})",
    "lax.cummin({}, {}, reverse=True)", "lax.cumlogsumexp({}, {})", "lax.cumsum({}, {}, True)",
    "lax.associative_scan(jnp.multiply, {}, axis={})", "lax.rev({}, ({},))",
    "jnp.nancumsum({}, {})",
    "jnp.repeat({}, 2, axis={})", "jnp.take({}, jnp.array([0, 0]), axis={})",
    "jnp.expand_dims({}, {})", "jnp.concatenate([{0}, {0}], {1})", "jnp.stack([{0}, {0}], {1})",
    "jnp.split({}, [1], {})[0]", "jnp.gradient({}, axis={})", "jnp.trapezoid({}, axis={})",
    "lax.slice_in_dim({}, 0, 1, axis={})", "lax.index_in_dim({}, 0, {})", "jnp.unwrap({}, axis={})",
    "jnp.take_along_axis({0}, jnp.argsort({0}, {1}), {1})", "jnp.partition({0}, 1, {1}).max({1})",
    "jnp.delete({}, 0, axis={})", "jnp.quantile({}, 0.3, axis={})", "jax.nn.standardize({}, {})",
    "lax.sort([{0}, {0} * 2], dimension={1})[1]", "jax.nn.glu({}, {})", "jnp.fft.fft({}, axis={})",
    "lax.associative_scan(jnp.maximum, {}, axis={}, reverse=True)", "jnp.average({}, {})",
    "jnp.max({0}, {1}, keepdims=True) + {0}", "jnp.sum({}, {}, where=True, initial=2)",
    "lax.reduce({}, np.array(-1, np.float32), lax.max, ({},))", "jnp.insert({}, 1, 2, axis={})",
    "lax.reduce({}, 0., lax.add, ({},))", "lax.reduce({}, 1., lambda a, b: a * b, ({},))",
)  # fmt: skip
_SHAPES = (
    "jnp.ravel({})", "jnp.transpose({})", "{}.reshape(-1)", "jnp.tile({}, 2)", "{}[None]",
    "jnp.tril({})", "jnp.triu({}, 1)", "jnp.diagonal({})", "jnp.diag({})", "jnp.trace({})",
    "jnp.pad({}, 1)", "jnp.pad({}, 1, mode='edge')", "jnp.pad({}, 1, mode='reflect')",
    "jnp.atleast_2d({})", "jnp.squeeze({})", "jnp.broadcast_to({0}, (2, *{0}.shape))",
    "lax.pad({0}, jnp.zeros((), {0}.dtype), [(1, -1, 1)] * {0}.ndim)",
    "jnp.pad({}, 2, mode='wrap')",
    "jnp.swapaxes({}, 0, -1)", "jnp.moveaxis({}, 0, -1)", "{}.reshape(-1, 1)", "jnp.rot90({})",
    "lax.expand_dims({}, (0,))", "lax.squeeze({}[None], (0,))", "jnp.kron({}, jnp.ones(2))",
    "jnp.resize({}, (2, 2))", "jnp.vander(jnp.ravel({})[:2], 3)", "jnp.meshgrid({0}, {0})[1]",
    "jnp.pad({}, 1, mode='mean')", "jnp.pad({}, (2, 1), mode='symmetric')", "jnp.unstack({})[0]",
)  # fmt: skip
_READS = (
    "{}[0]", "{}[-1]", "{}[..., 0]", "{}[::2]", "{}[::-1]", "{}[1:]", "{}[jnp.array([0, -1, 0])]",
    "{}[jnp.array([[0, 1], [1, 5]])]", "{0}[{0} > 0] if False else {0}", "{}[:, None]",
    "{}.at[jnp.array([0, 9])].get(mode='fill', fill_value=7)", "{}.at[-1].get(mode='clip')",
    "lax.dynamic_slice_in_dim({}, {i}, 1)", "lax.dynamic_index_in_dim({}, {i}, keepdims=False)",
    "{}[{i}]", "{}[{i}, ...]", "jnp.take({}, {i}, axis=-1)", "jnp.take({}, {i}, mode='wrap')",
    "jnp.take({}, {i}, axis=0, mode='fill')", "{}[jnp.array([True, False, True])[:1]]",
    "lax.dynamic_slice({0}, [{i}] * {0}.ndim, [min(n, 1) for n in {0}.shape])",
    "{}.at[jnp.array([0, 7, 0])].get(mode='drop', fill_value=3)", "{}[..., jnp.array([0, 0, 1])]",
    "lax.top_k({}, 1)[0]", "lax.top_k({}, 2)[1]", "{0}[jnp.argmax({0}, 0)]", "{}[{i}:{i}]",
    "lax.approx_max_k({}, 1)[0]",
)  # fmt: skip
_WRITES = (
    "{}.at[0].set({})", "{}.at[jnp.array([0, -1])].add({})", "{}.at[::2].multiply({})",
    "{}.at[jnp.array([0, 0, 1])].set({})", "{}.at[jnp.array([1, 1])].max({})",
    "{}.at[jnp.array([0, 9])].set({}, mode='drop')", "{}.at[..., 0].min({})",
    "{}.at[jnp.array([0, 0])].multiply({})", "{}.at[{i}].add({})", "{}.at[{i}].set({})",
    "{}.at[0].divide({})", "{}.at[0].power({})", "{}.at[jnp.array([0, 1])].apply(jnp.sin) + {}",
    "lax.dynamic_update_index_in_dim({}, {}, {i}, 0)", "{}.at[jnp.array([[0], [1]]), 0].add({})",
    "{}.at[jnp.array([0, 9])].add({}, mode='clip')", "{0}.at[{0} > 0].set({1})",
    "{}.at[jnp.array([0, 9])].multiply({}, mode='promise_in_bounds') if False else {}",
    "{}.at[jnp.array([0, 1])].set({}, unique_indices=True, indices_are_sorted=True)",
    "lax.dynamic_update_slice({0}, {1}.astype({0}.dtype)[..., :1], [{i}] * {0}.ndim)",
    "jnp.put_along_axis({0}, jnp.argsort({0}, 0), {1}, 0, inplace=False)", "{}.at[1:].subtract({})",
)  # fmt: skip
_PRODUCTS = (
    "jnp.dot({}, {})", "{} @ {}", "jnp.outer({}, {})", "jnp.tensordot({}, {}, 1)", "{0} @ {0}.T",
    "jnp.vdot({}, {})", "jnp.inner({}, {})", "jnp.einsum('...i,...i->...', {0}, {0})",
    "jnp.einsum('i,j->ij', {}, {})", "jnp.einsum('ij,ij->j', {0}, {0})", "jnp.convolve({}, {})",
    "jnp.einsum('ij,jk->ik', {}, {})", "jnp.einsum('i...->...', {})", "jnp.einsum('ii->i', {})",
    "jnp.einsum('ij,kj->ik', {0}, {0}, _dot_general=hook)", "jnp.einsum('ii', {})",
    "jnp.einsum('i,i', {0}, {0}, preferred_element_type=jnp.float32)", "jnp.einsum('ij->ji', {})",
    "jnp.einsum('ij,jk,kl->il', {0}, {0}, {0}, _dot_general=hook)", "jnp.cross({}, {})",
    "lax.dot_general({0}, {0}, (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32)",
    "lax.dot_general({0}, {0}, (((1,), (1,)), ((0,), (0,))))", "jnp.matmul({}, {})",
    "lax.dot({0}, {0}.T, precision='highest')", "jnp.linalg.multi_dot([{0}, {0}.T, {0}])",
    "jnp.einsum('abc,abd->acd', {0}, {0})", "jnp.einsum('abc,cde->abde', {}, {})",
    "jnp.correlate({}, {}, 'same')", "jnp.linalg.matrix_power({}, 2)", "jnp.vecdot({}, {})",
    "jnp.einsum('i,ij,j', {0}[0], {0}, {0}[0])", "jnp.polyval({}, {})",
    "lax.conv({0}[None, None], {0}[None, None], (1, 1), 'SAME')[0, 0]",
    "lax.conv_general_dilated({0}[None, None], {0}[None, None], (1,), 'SAME', (2,))[0, 0]",
    "lax.reduce_window({}, 0.0, lax.add, (2,), (1,), 'SAME')", "jnp.cov({})",
    "lax.reduce_window({}, -jnp.inf, lax.max, (2, 2), (1, 1), 'VALID')",
    "lax.reduce_window({}, 1.0, lax.mul, (2,), (2,), 'SAME')",
)  # fmt: skip
_LINALG = (
    "jnp.linalg.solve({0} + 4 * jnp.eye(3), {0})", "jnp.linalg.inv({} + 4 * jnp.eye(3))",
    "jnp.linalg.cholesky({0} @ {0}.T + jnp.eye(3))", "jnp.linalg.det({})",
    "jnp.linalg.slogdet({} + 4 * jnp.eye(3))[1]", "jnp.linalg.eigvalsh({})",
    "jax.scipy.linalg.solve_triangular({0} + 4 * jnp.eye(3), {0}, lower=True, trans=1)",
    "jnp.abs(jnp.linalg.qr({} + 4 * jnp.eye(3))[1])", "jnp.linalg.svd({}, compute_uv=False)",
    "jax.scipy.linalg.expm({})", "jnp.linalg.eigh({0} + {0}.T)[0]", "jnp.linalg.pinv({})",
    "jax.scipy.linalg.cho_solve((jnp.eye(3) * 2, True), {})", "jnp.linalg.norm({}, 'nuc')",
    "lax.linalg.triangular_solve({0} + 4 * jnp.eye(3), {0}, transpose_a=True, left_side=False)",
    "jax.scipy.linalg.lu({} + 4 * jnp.eye(3))[2]", "jnp.linalg.norm({}, 2)",
)  # fmt: skip
_DTYPES = (
    "float32", "float32", "float64", "int32", "bool", "bfloat16", "float16", "complex64", "int8",
    "uint8", "complex128",
)  # fmt: skip
_RANDOM = (
    "jax.random.normal(jax.random.key({k}), {0}.shape)",
    "jax.random.uniform(jax.random.PRNGKey({k}))",
    "jax.random.bernoulli(jax.random.key({k}), 0.4, {0}.shape) * {0}",
    "jax.random.permutation(jax.random.key({k}), {0})",
    "jax.random.randint(jax.random.fold_in(jax.random.key({k}), 3), {0}.shape, 0, 9)",
    "jax.random.categorical(jax.random.key({k}), {0})", "jnp.arange({0}.size) * 0.5",
    "jax.random.gamma(jax.random.key({k}), jnp.abs({0}) + 0.5)", "jnp.eye(3) * {0}.size",
    "jax.random.split(jax.random.key({k}))[0] if False else {0}", "jnp.linspace(0, {0}.size, 3)",
)  # fmt: skip
_AXIS = (
    "lax.psum({}, {a})", "lax.pmean({}, {a})", "lax.pmax({}, {a})", "lax.all_gather({}, {a})",
    "lax.ppermute({}, {a}, [(0, 1), (1, 0)])", "lax.axis_index({a}) + {}", "lax.psum(1, {a}) * {}",
    "lax.all_gather({}, {a}, axis=-1, tiled=True)", "lax.pmin({}, {a})", "lax.axis_size({a}) * {}",
    "lax.ppermute({}, {a}, [(0, 1)])", "lax.pshuffle({}, {a}, [1, 0])",
)  # fmt: skip


def _index(s: Scope) -> str:
    """An index that depends on data, when there is an integer."""
    i = s.matching(lambda v: "int" in v.dtype and not v.shape)
    return i.name if i is not None and s.rng.random() < 0.7 else str(s.rng.choice((0, -1, 1)))


def unary(s: Scope) -> Draft:
    """A function of one array."""
    if s.rng.random() < 0.15:
        return Draft(s.rng.choice(_ANY).format(s.any(), s.any()))
    v = s.inexact() if s.rng.random() < 0.95 else s.array(0)
    return Draft(s.rng.choice(_UNARY).format(v.name, v.name))


def binary(s: Scope) -> Draft:
    """A function of two operands that broadcast."""
    v = s.array(0)

    def joins(w: Var) -> bool:
        sizes = zip(reversed(v.shape), reversed(w.shape), strict=False)
        return all(m == n or 1 in (m, n) for m, n in sizes)

    other = s.operand() if s.rng.random() < 0.3 else s.need(joins).name
    pair = [v.name, other]
    s.rng.shuffle(pair)
    return Draft(s.rng.choice(_BINARY).format(*pair, pair[0]))


def reduction(s: Scope) -> Draft:
    """A reduction over some axes."""
    v = s.array(0)
    axes = ["None", *map(str, range(-len(v.shape), len(v.shape)))]
    axes += [str(tuple(range(len(v.shape))))]
    options = s.rng.choice(("", "", ", keepdims=True"))
    name = s.rng.choice(_REDUCTIONS)
    if name in ("sum", "prod", "mean") and s.rng.random() < 0.2:
        options += s.rng.choice((f", where={v.name} > 0", ", dtype=jnp.float32"))
    return Draft(f"jnp.{name}({v.name}, axis={s.rng.choice(axes)}{options})")


def along(s: Scope) -> Draft:
    """A function along one axis."""
    v = s.inexact(1) if s.rng.random() < 0.8 else s.array(1)
    axis = s.rng.choice((0, len(v.shape) - 1, s.rng.randrange(-len(v.shape), len(v.shape))))
    return Draft(s.rng.choice(_ALONG).format(v.name, axis))


def _of(texts: tuple[str, ...], rank: int) -> Callable[[Scope], Draft]:
    def draw(s: Scope) -> Draft:
        v = s.inexact(rank) if s.rng.random() < 0.8 else s.array(rank)
        other = s.inexact(rank).name if s.rng.random() < 0.6 else s.any()
        text = s.rng.choice(texts)
        return Draft(text.format(v.name, other, other, i=_index(s), k=s.rng.randrange(9)))

    return draw


def linear_algebra(s: Scope) -> Draft:
    """A function of a square matrix."""
    v = s.need(lambda v: v.shape == (3, 3) and v.dtype in ("float32", "float64", "complex64"))
    return Draft(s.rng.choice(_LINALG).format(v.name))


def conversion(s: Scope) -> Draft:
    """Another dtype."""
    dtype = s.rng.choice(_DTYPES)
    if s.rng.random() < 0.2:
        return Draft(f"lax.convert_element_type({s.any()}, jnp.{dtype.replace('bool', 'bool_')})")
    return Draft(f"{s.any()}.astype(jnp.{dtype.replace('bool', 'bool_')})")


def collective(s: Scope) -> Draft | None:
    """A collective over a mapped axis."""
    if not s.axes:
        return None
    names = list(s.axes)
    axis = repr(s.rng.choice(names))
    if len(names) > 1 and s.rng.random() < 0.3:
        axis = repr(tuple(names))
    return Draft(s.rng.choice(_AXIS).format(s.any(), a=axis))


STATEMENTS: list[tuple[Callable[[Scope], Draft | None], float]] = [
    (unary, 6), (binary, 8), (reduction, 3), (along, 4), (_of(_SHAPES, 1), 2), (_of(_READS, 1), 3),
    (_of(_WRITES, 1), 3), (_of(_PRODUCTS, 1), 3), (linear_algebra, 0.7), (conversion, 1.5),
    (_of(_RANDOM, 0), 0.7), (collective, 4),
]  # fmt: skip
