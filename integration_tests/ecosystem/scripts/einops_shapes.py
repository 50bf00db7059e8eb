"""einops: rearrange, reduce, repeat, einsum, packing; compiled, mapped, differentiated."""

import json

import jax
import jax.numpy as jnp
from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack

images = jax.random.normal(jax.random.PRNGKey(0), (2, 4, 6, 3))
weights = jax.random.normal(jax.random.PRNGKey(1), (3, 5))


def patches(x):
    return rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=3)


def pooled(x):
    return reduce(x, "b (h p) (w q) c -> b h w c", "mean", p=2, q=2)


rows, shapes = pack([images, jnp.ones((2, 7))], "b *")
first, second = unpack(rows, shapes, "b *")
answers = {
    "patches": patches(images),
    "compiled patches": jax.jit(patches)(images),
    "mean": pooled(images),
    "largest": jax.jit(lambda x: reduce(x, "b h w c -> b c", "max"))(images),
    "product": reduce(images[:, :1, :2], "b h w c -> c", "prod"),
    "repeated": repeat(images[0, 0, :2], "w c -> (w two) c", two=2),
    "einsum": einsum(images, weights, "b h w c, c d -> b h d"),
    "columns": reduce(rows, "b n -> n", "sum"),
    "unpacked": second + first.sum(),
    "gradient": jax.grad(lambda x: jnp.sum(pooled(x) ** 2))(images),
    "mapped": jax.vmap(lambda x: rearrange(x, "h w c -> (h w) c"))(images),
    "stacked": rearrange([images[0], images[1]], "b h w c -> h (b w) c"),
}
numbers = {name: asnumpy(value).tolist() for name, value in answers.items()}
numbers["shape"] = parse_shape(images, "b _ _ c")
print(json.dumps(numbers))
