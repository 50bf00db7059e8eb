"""A user's program over the facade, as the type checkers see it; read by them, never run."""

from __future__ import annotations

import primax
import primax.numpy as jnp
from primax import lax, random


def loss(weights: primax.Array, images: primax.Array) -> primax.Array:
    """A scalar of two arrays."""
    return jnp.mean(jnp.tanh(images @ weights) ** 2)


def train(steps: int) -> float:
    """Uses what the checkers should know the types of."""
    key, subkey = random.split(random.PRNGKey(0))
    weights = random.normal(key, (4, 3))
    images = random.normal(subkey, (8, 4))
    step = primax.jit(primax.value_and_grad(loss))
    for _ in range(steps):
        _, gradient = step(weights, images)
        weights = weights - 0.1 * gradient
    rows = primax.vmap(lambda image: lax.sin(image))(images)
    total = jnp.sum(rows)
    shape: tuple[int, ...] = total.shape
    return float(total) + len(shape)
