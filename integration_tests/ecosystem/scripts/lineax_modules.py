"""Lineax: all operators and solvers, mapped and differentiated."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx

jax.config.update("jax_enable_x64", True)
keys = iter(jr.split(jr.key(0), 20))
results = {}


def record(name, *values):
    results[name] = [float(jnp.abs(v).sum()) for v in jax.tree.leaves(values)]


square = jr.normal(next(keys), (5, 5)) + 4 * jnp.eye(5)
definite = square @ square.T
tall, wide = jr.normal(next(keys), (7, 5)), jr.normal(next(keys), (3, 5))
b, b_tall, b_wide = (jr.normal(next(keys), (n,)) for n in (5, 7, 3))
diagonal, lower, upper = jnp.diag(square), jnp.diag(square, -1), jnp.diag(square, 1)
psd = lx.positive_semidefinite_tag
operators = {
    "matrix": lx.MatrixLinearOperator(square),
    "definite": lx.MatrixLinearOperator(definite, psd),
    "negative": lx.MatrixLinearOperator(-definite, lx.negative_semidefinite_tag),
    "symmetric": lx.MatrixLinearOperator(square + square.T, lx.symmetric_tag),
    "lower": lx.MatrixLinearOperator(jnp.tril(square), lx.lower_triangular_tag),
    "upper": lx.MatrixLinearOperator(jnp.triu(square), lx.upper_triangular_tag),
    "diagonal": lx.DiagonalLinearOperator(diagonal),
    "tridiagonal": lx.TridiagonalLinearOperator(diagonal, lower, upper),
    "identity": lx.IdentityLinearOperator(jax.eval_shape(lambda: b)),
    "function": lx.FunctionLinearOperator(lambda x: definite @ x, jax.eval_shape(lambda: b), psd),
    "jacobian": lx.JacobianLinearOperator(
        lambda x, a: a @ x + jnp.tanh(x), b, args=definite, tags=psd
    ),
    "sum": lx.MatrixLinearOperator(square) + lx.DiagonalLinearOperator(diagonal),
    "product": lx.MatrixLinearOperator(square) @ lx.DiagonalLinearOperator(diagonal),
    "scaled": 3.0 * lx.MatrixLinearOperator(square),
    "divided": lx.MatrixLinearOperator(square) / 2.0,
    "transposed": lx.MatrixLinearOperator(square).T,
    "tagged": lx.TaggedLinearOperator(lx.MatrixLinearOperator(definite), psd),
}
vector = jr.normal(next(keys), (5,))
for name, operator in operators.items():
    record(f"{name}: product", operator.mv(vector), operator.T.mv(vector), operator.as_matrix())
    record(f"{name}: diagonal", lx.diagonal(operator))
    results[f"{name}: tags"] = [
        bool(test(operator))
        for test in (
            lx.is_symmetric, lx.is_diagonal, lx.is_tridiagonal, lx.is_lower_triangular,
            lx.is_upper_triangular, lx.is_positive_semidefinite, lx.is_negative_semidefinite,
            lx.has_unit_diagonal,
        )
    ]  # fmt: skip
    for well_posed in (True, None, False):
        auto = lx.AutoLinearSolver(well_posed=well_posed)
        solution = jax.jit(lambda b, o=operator, s=auto: lx.linear_solve(o, b, s).value)(b)
        record(f"{name}: auto {well_posed}", solution)
    record(
        f"{name}: linearized",
        lx.linearise(operator).mv(vector),
        lx.materialise(operator).mv(vector),
    )
    record(f"{name}: conjugate", lx.conj(operator).mv(vector))

solvers = {
    "LU": (lx.LU(), "matrix"),
    "Cholesky": (lx.Cholesky(), "definite"),
    "negative Cholesky": (lx.Cholesky(), "negative"),
    "QR": (lx.QR(), "matrix"),
    "SVD": (lx.SVD(), "matrix"),
    "Triangular": (lx.Triangular(), "lower"),
    "Diagonal": (lx.Diagonal(), "diagonal"),
    "Tridiagonal": (lx.Tridiagonal(), "tridiagonal"),
    "CG": (lx.CG(rtol=1e-10, atol=1e-10), "definite"),
    "CG of a function": (lx.CG(rtol=1e-10, atol=1e-10), "function"),
    "GMRES": (lx.GMRES(rtol=1e-10, atol=1e-10), "matrix"),
    "BiCGStab": (lx.BiCGStab(rtol=1e-10, atol=1e-10), "matrix"),
    "normal CG": (lx.Normal(lx.CG(rtol=1e-10, atol=1e-10)), "matrix"),
    "normal Cholesky": (lx.Normal(lx.Cholesky()), "matrix"),
    "LSMR": (lx.LSMR(rtol=1e-10, atol=1e-10), "matrix"),
}
for name, (solver, kind) in solvers.items():
    operator = operators[kind]

    def solve(operator, b, solver=solver):
        return lx.linear_solve(operator, b, solver).value

    record(f"{name}: solution", eqx.filter_jit(solve)(operator, b))
    record(
        f"{name}: mapped", jax.vmap(lambda b, s=solve, o=operator: s(o, b))(jnp.stack([b, 2 * b]))
    )

    def loss(scale, b, operator=operator, solve=solve):
        arrays, rest = eqx.partition(operator, eqx.is_inexact_array)
        scaled = eqx.combine(jax.tree.map(lambda a: scale * a, arrays), rest)
        return jnp.sum(solve(scaled, b) ** 3)

    record(f"{name}: gradient", *jax.grad(loss, argnums=(0, 1))(1.5, b))
    record(f"{name}: tangent", jax.jvp(loss, (1.5, b), (1.0, b))[1])
    record(f"{name}: second derivative", jax.grad(jax.grad(loss))(1.5, b))

for name, matrix, right in (("tall", tall, b_tall), ("wide", wide, b_wide)):
    for solver in (lx.QR(), lx.SVD(), lx.LSMR(rtol=1e-10, atol=1e-10), lx.Normal(lx.Cholesky())):

        def solve(matrix, b, solver=solver):
            return lx.linear_solve(lx.MatrixLinearOperator(matrix), b, solver).value

        label = f"{name}: {type(solver).__name__}"
        record(label, solve(matrix, right))
        record(f"{label} gradient", jax.grad(lambda m, b: jnp.sum(solve(m, b) ** 2))(matrix, right))

# Pytrees as vectors, complex numbers, failures
structure = jax.eval_shape(lambda: {"a": jnp.zeros(3), "b": jnp.zeros((2, 2))})
tree = lx.FunctionLinearOperator(
    lambda x: jax.tree.map(lambda v: 2 * v + 1e-3 * jnp.flip(v), x), structure, psd
)
right = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}
record("tree", lx.linear_solve(tree, right, lx.CG(rtol=1e-8, atol=1e-8)).value)
record("tree, dense", lx.linear_solve(tree, right).value)
hermitian = definite + 1j * (square - square.T)
complex_operator = lx.MatrixLinearOperator(hermitian @ hermitian.conj().T, psd)
record("complex", lx.linear_solve(complex_operator, b + 1j, lx.Cholesky()).value)
record("complex CG", lx.linear_solve(complex_operator, b + 1j, lx.CG(rtol=1e-9, atol=1e-9)).value)
blocks = lx.PyTreeLinearOperator(
    {"x": {"a": jr.normal(next(keys), (2, 3)), "b": jr.normal(next(keys), (2,))}},
    jax.eval_shape(lambda: {"x": jnp.zeros(2)}),
)
record("blocks", blocks.mv({"a": jnp.arange(3.0), "b": jnp.array(2.0)}), blocks.as_matrix())
state = lx.LU().init(operators["matrix"], {})
record("state", lx.linear_solve(operators["matrix"], b, lx.LU(), state=state).value)
singular = lx.MatrixLinearOperator(jnp.zeros((5, 5)))
solution = lx.linear_solve(singular, b, lx.LU(), throw=False)
results["singular"] = bool(solution.result == lx.RESULTS.singular)
short = lx.linear_solve(operators["matrix"], b, lx.GMRES(1e-12, 1e-12, max_steps=1), throw=False)
results["steps"] = bool(short.result == lx.RESULTS.successful)
try:
    jax.block_until_ready(lx.linear_solve(singular, b, lx.LU()).value)
    results["raised"] = "nothing"
except Exception as error:
    results["raised"] = isinstance(error, RuntimeError)
print(json.dumps(results))
