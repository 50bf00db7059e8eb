"""Lineax: solvers, structured operators, derivatives of solves, jit and vmap."""

import json

import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx

key = jr.PRNGKey(0)
matrix = jr.normal(key, (4, 4)) + 4.0 * jnp.eye(4)
vector = jr.normal(jr.fold_in(key, 1), (4,))
positive = matrix @ matrix.T
tall = jr.normal(jr.fold_in(key, 2), (6, 3))
observed = jr.normal(jr.fold_in(key, 3), (6,))


@jax.jit
def solve(matrix, vector):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, lx.LU()).value


answers = {
    "auto": lx.linear_solve(lx.MatrixLinearOperator(matrix), vector).value,
    "lu": solve(matrix, vector),
    "qr": lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, lx.QR()).value,
    "svd": lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, lx.SVD()).value,
    "least squares": lx.linear_solve(lx.MatrixLinearOperator(tall), observed, lx.QR()).value,
    "smallest": lx.linear_solve(lx.MatrixLinearOperator(tall.T), vector[:3], lx.SVD()).value,
}

definite = lx.MatrixLinearOperator(positive, lx.positive_semidefinite_tag)
answers["cholesky"] = lx.linear_solve(definite, vector, lx.Cholesky()).value
answers["conjugate gradients"] = lx.linear_solve(definite, vector, lx.CG(1e-5, 1e-5)).value
wide = lx.MatrixLinearOperator(jr.normal(jr.fold_in(key, 4), (12, 12)) + 9.0 * jnp.eye(12))
answers["gmres"] = lx.linear_solve(wide, jnp.cos(jnp.arange(12.0)), lx.GMRES(1e-4, 1e-4)).value

diagonal = lx.DiagonalLinearOperator(jnp.arange(1.0, 5.0))
banded = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.full(3, 1.0), jnp.full(3, -1.0))
triangular = lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag)
answers["diagonal"] = lx.linear_solve(diagonal, vector).value
answers["tridiagonal"] = lx.linear_solve(banded, vector).value
answers["triangular"] = lx.linear_solve(triangular, vector).value
answers["sum of operators"] = lx.linear_solve(
    diagonal + 2.0 * banded, vector, lx.AutoLinearSolver(well_posed=True)
).value

# An operator on pytrees: the Jacobian of another function at a point.
point = {"a": jnp.array([0.3, -0.2]), "b": jnp.array(1.5)}
function = lambda p, _: {"a": p["a"] * p["b"] + jnp.sin(p["a"]), "b": jnp.sum(p["a"]) + p["b"] ** 2}
jacobian = lx.JacobianLinearOperator(function, point)
answers["tree"] = lx.linear_solve(jacobian, function(point, None), lx.QR()).value
answers["matrix of the tree"] = jacobian.as_matrix()
linear = lx.FunctionLinearOperator(lambda x: positive @ x, jax.ShapeDtypeStruct((4,), jnp.float32))
answers["function"] = lx.linear_solve(lx.linearise(linear), vector, lx.LU()).value

# Derivatives in both modes and under vmap.
answers["gradient"] = jax.grad(lambda m: jnp.sum(solve(m, vector) ** 2))(matrix)
answers["tangent"] = jax.jvp(solve, (matrix, vector), (jnp.ones((4, 4)), vector))[1]
answers["mapped"] = jax.vmap(solve, in_axes=(None, 0))(matrix, jnp.eye(4))
answers["gradient of least squares"] = jax.grad(
    lambda m: jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(m), observed, lx.QR()).value)
)(tall)
answers["second derivative"] = jax.hessian(lambda v: jnp.sum(solve(matrix, v) ** 3))(vector)

singular = lx.linear_solve(
    lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), lx.LU(), throw=False
)
numbers = jax.tree_util.tree_map(lambda a: a.tolist(), answers)
numbers["singular matrix is reported"] = bool(singular.result != lx.RESULTS.successful)
print(json.dumps(numbers))
