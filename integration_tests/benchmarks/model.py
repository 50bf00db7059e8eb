"""A small GPT and its training step in plain array operations, for any namespace.

A library must provide these names:

- root: jit, value_and_grad, tree.map, block_until_ready
- numpy: arange, exp, log, max, mean, sum, tanh, where
- lax: rsqrt
- arrays: ``+ - * / @ ==`` and their reflections, ``**``, reshape, transpose, ``table[tokens]``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Namespace


@dataclass(frozen=True)
class Size:
    """Sizes of the model and its batch."""

    layers: int
    width: int = 64
    heads: int = 4
    vocabulary: int = 128
    length: int = 32
    batch: int = 4


def initial(size: Size) -> dict[str, Any]:
    """Parameters as NumPy arrays."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.02).astype(np.float32)

    def norm() -> dict[str, np.ndarray]:
        return {"scale": np.ones(size.width, np.float32), "bias": np.zeros(size.width, np.float32)}

    d = size.width
    block = {
        "norm1": norm,
        "query": lambda: weight(d, d),
        "key": lambda: weight(d, d),
        "value": lambda: weight(d, d),
        "out": lambda: weight(d, d),
        "norm2": norm,
        "up": lambda: weight(d, 4 * d),
        "up_bias": lambda: np.zeros(4 * d, np.float32),
        "down": lambda: weight(4 * d, d),
        "down_bias": lambda: np.zeros(d, np.float32),
    }
    return {
        "table": weight(size.vocabulary, d),
        "position": weight(size.length, d),
        "blocks": [{name: make() for name, make in block.items()} for _ in range(size.layers)],
        "norm": norm(),
        "head": weight(d, size.vocabulary),
    }


def batch(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and the following tokens."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, size.vocabulary, (size.batch, size.length + 1)).astype(np.int32)
    return tokens[:, :-1], tokens[:, 1:]


def make_loss(ns: Namespace, size: Size) -> Callable[..., Any]:
    """Create the loss: mean cross-entropy of the next token."""
    jnp, lax = ns.jnp, ns.lax
    mask = np.tril(np.ones((size.length, size.length), bool))
    split = (size.batch, size.length, size.heads, size.width // size.heads)

    def layer_norm(p: Any, x: Any) -> Any:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        return centred * lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]

    def softmax(x: Any) -> Any:
        powers = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        return powers / jnp.sum(powers, axis=-1, keepdims=True)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def attention(p: Any, x: Any) -> Any:
        query = (x @ p["query"]).reshape(split).transpose(0, 2, 1, 3)
        key = (x @ p["key"]).reshape(split).transpose(0, 2, 3, 1)
        value = (x @ p["value"]).reshape(split).transpose(0, 2, 1, 3)
        scores = jnp.where(mask, query @ key * split[-1] ** -0.5, -1e9)
        mixed = softmax(scores) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]

    def block(p: Any, x: Any) -> Any:
        x = x + attention(p, layer_norm(p["norm1"], x))
        hidden = gelu(layer_norm(p["norm2"], x) @ p["up"] + p["up_bias"])
        return x + hidden @ p["down"] + p["down_bias"]

    def loss(params: Any, tokens: Any, targets: Any) -> Any:
        x = params["table"][tokens] + params["position"]
        for p in params["blocks"]:
            x = block(p, x)
        logits = layer_norm(params["norm"], x) @ params["head"]
        logits = logits - jnp.max(logits, axis=-1, keepdims=True)
        log_norm = jnp.log(jnp.sum(jnp.exp(logits), axis=-1))
        hit = targets.reshape(size.batch, size.length, 1) == jnp.arange(size.vocabulary)
        return jnp.mean(log_norm - jnp.sum(jnp.where(hit, logits, 0.0), axis=-1))

    return loss


def make_step(ns: Namespace, size: Size) -> Callable[..., Any]:
    """Create one Adam step: ``step(state, tokens, targets) -> (state, loss)``, not jitted."""
    tree_map = ns.jax.tree.map
    value_and_grad = ns.jax.value_and_grad(make_loss(ns, size))

    def step(state: Any, tokens: Any, targets: Any) -> tuple[Any, Any]:
        params, mean, square = state
        loss, grads = value_and_grad(params, tokens, targets)
        mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
        params = tree_map(
            lambda p, m, s: p - 1e-3 * m / (s**0.5 + 1e-8),
            params,
            mean,
            square,
        )
        return (params, mean, square), loss

    return step


def make_arguments(ns: Namespace, size: Size) -> tuple[Any, Any, Any]:
    """Create state, tokens and targets for ``step``, on the device."""
    params = initial(size)
    zeros = ns.jax.tree.map(np.zeros_like, params)
    state = ns.jax.device_put((params, zeros, zeros))
    return (state, *ns.jax.device_put(batch(size)))
