"""A user program over the facade, for the type checkers; never run."""

from __future__ import annotations

import primax
import primax.numpy as jnp
from primax import lax, random


def loss(weights: primax.Array, images: primax.Array) -> primax.Array:
    """A scalar function of two arrays."""
    return jnp.mean(jnp.tanh(images @ weights) ** 2)


def train(steps: int) -> float:
    """Use names with known types."""
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
