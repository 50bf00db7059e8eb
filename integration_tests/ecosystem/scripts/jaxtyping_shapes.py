"""jaxtyping: run-time checks of shapes and dtypes in annotations."""

# ruff: noqa: F722 (the strings are shapes)

import json

import beartype
import jax
import jax.numpy as jnp
from jaxtyping import (
    Array,
    ArrayLike,
    Float,
    Float32,
    Int,
    Key,
    PyTree,
    Shaped,
    TypeCheckError,
    jaxtyped,
)

calls = []


def expect(name, function, *args):
    """Record whether the call was accepted."""
    try:
        function(*args)
        calls.append([name, "accepted"])
    except TypeCheckError:
        calls.append([name, "refused"])


def checks(typechecker):
    @jaxtyped(typechecker=typechecker)
    def affine(
        w: Float[Array, "out in"], b: Float[Array, " out"], x: Float[Array, "*batch in"]
    ) -> Float[Array, "*batch out"]:
        return x @ w.T + b

    @jaxtyped(typechecker=typechecker)
    def wrong_result(x: Float[Array, "a b"]) -> Float[Array, "b a"]:
        return x

    @jaxtyped(typechecker=typechecker)
    def pick(x: Shaped[Array, "n ..."], i: Int[ArrayLike, ""]) -> Shaped[Array, "..."]:
        return x[i]

    @jaxtyped(typechecker=typechecker)
    def norm(tree: PyTree[Float[Array, "..."]]) -> Float32[Array, ""]:
        return sum(jnp.sum(leaf**2) for leaf in jax.tree_util.tree_leaves(tree))

    @jaxtyped(typechecker=typechecker)
    def draw(key: Key[Array, ""]) -> Float[Array, "3"]:
        return jax.random.normal(key, (3,))

    w, b, x = jnp.ones((3, 4)), jnp.zeros(3), jnp.ones((5, 4))
    name = typechecker.__module__.split(".")[0]
    expect(f"{name}: affine", affine, w, b, x)
    expect(f"{name}: affine of a vector", affine, w, b, x[0])
    expect(f"{name}: affine with a wrong width", affine, w, b, x[:, :3])
    expect(f"{name}: affine with a wrong bias", affine, w, jnp.zeros(4), x)
    expect(f"{name}: affine of integers", affine, w, b, jnp.ones((5, 4), int))
    expect(f"{name}: affine of half floats", affine, w, b, x.astype(jnp.bfloat16))
    expect(f"{name}: a wrong result", wrong_result, w)
    expect(f"{name}: a right result", wrong_result, jnp.ones((2, 2)))
    expect(f"{name}: compiled", jax.jit(affine), w, b, x)
    expect(f"{name}: compiled with a wrong width", jax.jit(affine), w, b, x[:, :3])
    expect(f"{name}: mapped", jax.vmap(affine, (None, None, 0)), w, b, x)
    expect(f"{name}: mapped over the wrong axis", jax.vmap(affine, (None, None, 1)), w, b, x)
    expect(f"{name}: differentiated", jax.grad(lambda w: affine(w, b, x).sum()), w)
    expect(f"{name}: pick", pick, x, 1)
    expect(f"{name}: pick by an array", pick, x, jnp.array(1))
    expect(f"{name}: pick by a vector", pick, x, jnp.array([1]))
    expect(f"{name}: norm", norm, {"w": w, "b": (b, x)})
    expect(f"{name}: norm of a tree with an integer", norm, {"w": w, "n": jnp.array(1)})
    expect(f"{name}: draw", draw, jax.random.key(0))
    expect(f"{name}: draw with raw words", draw, jax.random.PRNGKey(0))


checks(beartype.beartype)
instances = [
    isinstance(jnp.zeros(2), Float[Array, "2"]),
    isinstance(jnp.zeros(2), Float[Array, "3"]),
    isinstance(jnp.zeros(2, jnp.float16), Float32[Array, "2"]),
    isinstance(1.0, Float[Array, ""]),
]
print(json.dumps({"calls": calls, "instances": instances}))
