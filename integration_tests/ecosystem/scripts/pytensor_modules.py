"""PyTensor's JAX linker: each operation that it translates to jax, compiled, with gradients."""

import json
import warnings

import jax.numpy as jnp
import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor import sparse, wrap_jax
from pytensor.compile.builders import OpFromGraph
from pytensor.conditional.op import ifelse
from pytensor.raise_op import Assert
from scipy.sparse import csr_matrix

warnings.filterwarnings("ignore")
results = {}
draws = np.random.default_rng(0)
square = draws.normal(size=(4, 4))
positive = square @ square.T + 4 * np.eye(4)
vector = draws.normal(size=4)
cube = draws.normal(size=(2, 3, 4))
matrices = np.stack([positive, positive + 1])
unit = draws.uniform(0.1, 0.9, size=6)
other = unit[::-1].copy()
whole = np.arange(1, 7)


def plain(value):
    """The numbers of an array as JSON."""
    value = np.asarray(value)
    return [value.real.tolist(), value.imag.tolist()] if value.dtype.kind == "c" else value.tolist()


def record(name, build, *values):
    """Compile ``build`` of symbolic inputs for jax; record its results."""
    inputs = [pt.as_tensor(value).type(f"x{n}") for n, value in enumerate(values)]
    compiled = pytensor.function(inputs, build(*inputs), mode="JAX", on_unused_input="ignore")
    answers = compiled(*values)
    results[name] = [plain(a) for a in (answers if isinstance(answers, list) else [answers])]


def gradient(name, build, *values):
    """Record the results of ``build``, and the gradients of their sum."""
    record(
        name,
        lambda *inputs: [build(*inputs), *pt.grad(pt.sum(build(*inputs)), list(inputs))],
        *values,
    )


# Elementwise functions
for name in (
    "abs", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
    "arctanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sqr", "reciprocal",
    "neg", "sigmoid", "softplus", "erf", "erfc", "erfinv", "erfcinv", "erfcx", "gamma", "gammaln",
    "digamma", "tri_gamma", "i0", "rad2deg", "deg2rad",
):  # fmt: skip
    gradient(name, getattr(pt, name), unit)
gradient("log1mexp", pt.log1mexp, -unit)
record("i1", pt.i1, unit)
for name in ("ceil", "floor", "round", "trunc", "sign", "isnan", "isinf"):
    record(name, getattr(pt, name), unit * 3)
for name in ("add", "sub", "mul", "true_div", "pow", "maximum", "minimum", "arctan2"):
    gradient(name, getattr(pt, name), unit, other)
for name in ("gammainc", "gammaincc"):
    record(name, getattr(pt, name), unit + 1, other)
record("betainc", pt.betainc, unit + 1, other + 2, np.full(6, 0.3))
for name in (
    "int_div", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "neq", "lt", "le", "gt",
    "ge",
):  # fmt: skip
    record(name, getattr(pt, name), whole, whole[::-1].copy())
record("logical", lambda x: [pt.and_(x > 2, x < 5), pt.or_(x > 4, x < 2), pt.invert(x)], whole)
gradient("clip", lambda x: pt.clip(x, 0.3, 0.6), unit)
gradient("switch", lambda x: pt.switch(x > 0.5, x**2, -x), unit)
record("casts", lambda x: [x.astype(t) for t in ("int32", "float32", "bool")], unit * 9)

# Reductions
for axis in (None, 1, (0, 2)):
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "logsumexp"):
        gradient(f"{name} {axis}", lambda x, n=name, a=axis: getattr(pt, n)(x, axis=a), cube)
    record(f"any {axis}", lambda x, a=axis: [pt.any(x > 1, axis=a), pt.all(x < 2, axis=a)], cube)
record("argmax", lambda x: [pt.argmax(x, axis=1), pt.argmin(x), pt.argmax(x, axis=(0, 2))], cube)
gradient("softmax", lambda x: pt.special.softmax(x, axis=1) ** 2, cube)
gradient("log_softmax", lambda x: pt.special.log_softmax(x, axis=-1) ** 2, cube)
gradient("cumsum", lambda x: pt.cumsum(x, axis=1) ** 2, cube)
gradient("cumprod", lambda x: pt.cumprod(x, axis=2), cube)

# Linear algebra
columns = draws.normal(size=(2, 4, 3))
gradient("dot", pt.dot, square, vector)
gradient("matmul", pt.matmul, cube, columns)
gradient("tensordot", lambda x, y: pt.tensordot(x, y, axes=[[2], [0]]), cube, square)
gradient("einsum", lambda x, y: pt.einsum("bij,jk->bik", x, y), cube, square)
gradient("kron", lambda x, y: pt.linalg.kron(x, pt.outer(y, y)), square, vector)
for name in ("cholesky", "inv", "pinv", "det"):
    gradient(name, getattr(pt.linalg, name), positive)
gradient("expm", pt.linalg.expm, square / 4)
record("slogdet", lambda a: list(pt.linalg.slogdet(a)), positive)
record("eigh", lambda a: [abs(v) for v in pt.linalg.eigh(a)], positive)
record("eig", lambda a: pt.sort(pt.linalg.eig(a)[0].real), square)
record("singular values", lambda a: pt.linalg.svd(a, compute_uv=False), square)
record("svd", lambda a: [abs(v) for v in pt.linalg.svd(a)], square)
record("qr", lambda a: [abs(v) for v in pt.linalg.qr(a)], square)
record("lu", lambda a: list(pt.linalg.lu(a)), square)
record("lu_factor", lambda a: list(pt.linalg.lu_factor(a)), square)
record("lu_solve", lambda a, b: pt.linalg.lu_solve(pt.linalg.lu_factor(a), b), square, vector)
record("schur", lambda a: [abs(v) for v in pt.linalg.schur(a)], positive)
gradient("block_diag", lambda a, b: pt.linalg.block_diag(a, b) ** 2, square, positive)
for kind in ("gen", "pos", "sym"):
    gradient(
        f"solve {kind}", lambda a, b, k=kind: pt.linalg.solve(a, b, assume_a=k), positive, vector
    )
band = np.diag(np.arange(4.0, 8)) + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
gradient("tridiagonal", lambda a, b: pt.linalg.solve(a, b, assume_a="tridiagonal"), band, vector)
lower = np.linalg.cholesky(positive)
gradient("lower", lambda a, b: pt.linalg.solve_triangular(a, b, lower=True), lower, vector)
gradient("upper", lambda a, b: pt.linalg.solve_triangular(a, b, trans=1), lower.T.copy(), vector)
gradient("cho_solve", lambda a, b: pt.linalg.cho_solve((a, True), b), lower, vector)
gradient("sylvester", pt.linalg.solve_sylvester, positive, positive.T + np.eye(4), square)
gradient("lyapunov", pt.linalg.solve_discrete_lyapunov, square / 8, positive)
record("cholesky of several", pt.linalg.cholesky, matrices)
gradient("several solves", lambda a, b: pt.linalg.solve(a, b, b_ndim=1), matrices, square[:2])
tables = csr_matrix(np.tril(square))
record("sparse dot", lambda x: sparse.dot(sparse.as_sparse_variable(tables), x), square)

# Shapes and indices
gradient("transpose", lambda x: x.reshape((4, 6)).T ** 2, cube)
gradient("dimshuffle", lambda x: x.dimshuffle(2, "x", 0, 1) ** 2, cube)
gradient("slices", lambda x: x[1, ::-1, 1:3] ** 2, cube)
gradient("indices", lambda x: x[:, np.array([0, 2, 2])] ** 2, cube)
gradient("apart", lambda x: x[np.array([0, 1]), :, np.array([3, 0])] ** 2, cube)
gradient("mask", lambda x: x[:, np.array([True, False, True])] ** 2, cube)
gradient("set", lambda x: x[0].set(x[1] * 2), cube)
gradient("inc", lambda x: x[:, np.array([0, 0])].inc(2.0) ** 2, cube)
gradient("take", lambda x: pt.take(x, np.array([[0, 3], [1, 1]]), axis=2), cube)
gradient("join", lambda x, y: pt.join(0, x, y) ** 2, square, positive)
gradient("stack", lambda x, y: pt.stack([x, y], axis=1) ** 2, square, positive)
record("split", lambda x: pt.split(x, [1, 3], n_splits=2, axis=0), square)
gradient("tile", lambda x: pt.repeat(x, 2, axis=0).sum() * pt.tile(x, (2, 1)), square)
for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "maximum", "linear_ramp"):
    gradient(f"pad {mode}", lambda x, m=mode: pt.pad(x, 1, mode=m) ** 2, square)
gradient("pad", lambda x: pt.pad(x, ((1, 2), (0, 1)), mode="constant"), square)
gradient("diag", lambda x: pt.outer(pt.diag(x), pt.diag(pt.diag(x) ** 2)), square)
record("triangles", lambda x: [pt.tril(x), pt.triu(x, 1), pt.eye(3, 4, 1), pt.trace(x)], square)
record("filled", lambda x: [pt.alloc(x[0, 0], 2, 3), pt.ones_like(x), pt.full((2,), 3.0)], square)
record("ranges", lambda x: [pt.arange(1, 9, 2) * x[0], pt.linspace(0, 1, 5)], vector)
record("shape", lambda x: [x.shape, x.shape[1], pt.broadcast_to(x, (2, 2, 3, 4))], cube)
gradient("fill_diagonal", lambda x: pt.fill_diagonal(x, 2.0) * x, square)
gradient("sort", lambda x: pt.sort(x, axis=0) * np.arange(4.0), square)
record("argsort", lambda x: [pt.argsort(x, axis=1), pt.sort(x, axis=None)], square)
record("searchsorted", lambda x, v: pt.searchsorted(x, v, side="right"), np.sort(vector), vector)
record("unravel_index", lambda x: list(pt.unravel_index(x, (3, 4))), whole)
record("bartlett", lambda x: pt.bartlett(6) * x[0], vector)
gradient("convolve", lambda x, y: pt.signal.convolve1d(x, y, mode="full") ** 2, vector, unit)
gradient("valid", lambda x, y: pt.signal.convolve1d(x, y, mode="valid") ** 2, unit, vector)

# Functions of functions
symbol = pt.vector("symbol")
operation = OpFromGraph([symbol], [pt.sin(symbol) * symbol])
gradient("OpFromGraph", operation, vector)
gradient("vectorize", pt.vectorize(lambda v: (v**2).sum(), signature="(n)->()"), cube)
gradient("ifelse", lambda x: ifelse(x.sum() > 0, x**2, -x), vector)
record("assert", lambda x: Assert("small")(x, pt.all(x > -9)) * 2, vector)


@wrap_jax
def wrapped(x, y):
    """A function of jax as an operation."""
    return jnp.sin(x) @ y


gradient("wrap_jax", wrapped, square, vector)


def scan(step, **more):
    """The outputs of a loop."""
    return pytensor.scan(step, **more, return_updates=False)


zero, one = pt.zeros(()), pt.ones(())
gradient(
    "scan",
    lambda x: scan(lambda v, c: c * 0.5 + v, sequences=[x], outputs_info=[zero]) ** 2,
    vector,
)
gradient(
    "scan with taps",
    lambda x: scan(
        lambda a, b, w: a * 0.3 + b * w,
        outputs_info=[{"initial": x[:2], "taps": [-2, -1]}],
        non_sequences=[x[2]],
        n_steps=5,
    ),
    vector,
)
gradient("map", lambda x: scan(lambda v: pt.sin(v).sum(), sequences=[x]), square)
gradient("product", lambda x: scan(lambda v, a: a * v, sequences=[x], outputs_info=[one])[-1], unit)

# Random variables
SAMPLES = {
    "normal": (0.5, 2.0), "uniform": (-1.0, 2.0), "beta": (2.0, 3.0), "gamma": (2.0, 1.5),
    "exponential": (2.0,), "cauchy": (0.0, 1.0), "gumbel": (0.0, 1.0), "laplace": (0.0, 2.0),
    "logistic": (0.0, 1.0), "poisson": (3.0,), "pareto": (2.0, 1.0), "bernoulli": (0.3,),
    "t": (4.0, 0.0, 1.0), "integers": (0, 9), "geometric": (0.3,), "lognormal": (0.0, 1.0),
    "halfnormal": (0.0, 1.0), "invgamma": (2.0, 1.0), "negative_binomial": (4, 0.4),
    "vonmises": (0.0, 1.0), "wald": (1.0, 2.0), "chisquare": (3.0,), "gengamma": (1.0, 2.0, 1.0),
    "dirichlet": (unit,), "categorical": (unit / unit.sum(),),
    "multinomial": (5, unit / unit.sum()), "multivariate_normal": (vector, positive),
}  # fmt: skip


def draw(name, *arguments, **more):
    """Record one sample of a random variable, with a generator of a fixed seed."""
    generator = pytensor.shared(np.random.default_rng(123))
    variable = getattr(pt.random, name)(*arguments, **more, rng=generator)
    results[f"random {name}"] = plain(pytensor.function([], variable, mode="JAX")())


for name, arguments in SAMPLES.items():
    draw(name, *arguments, size=(2,))
draw("permutation", vector)
draw("choice", whole, size=(3,), replace=False)
print(json.dumps(results))
