"""Functions with symbolic shapes, written once for both libraries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    name: str
    fun: Any
    specs: tuple[str, ...]
    constraints: tuple[str, ...]


def _resizing(p: Any, jax: Any, image: Any, method: str) -> None:
    def resize(x, *shape, antialias=True):
        return image.resize(x, shape, method, antialias=antialias)

    p(f"resize {method}", lambda x: resize(x, 2 * x.shape[0], x.shape[1]), "a, b")
    p(f"resize {method} smaller", lambda x: resize(x, x.shape[0] // 2, 3, antialias=False), "a, b")
    p(
        f"grad resize {method}",
        lambda x: jax.grad(lambda x: (resize(x, 5, x.shape[0]) ** 2).sum())(x),
        "a, b",
    )


def programs(jax: Any, jnp: Any, lax: Any, random: Any, image: Any) -> dict[str, Program]:
    """The table of functions by name."""
    table: dict[str, Program] = {}
    A = "a, b"
    vmap, grad = jax.vmap, jax.grad

    def p(name, fun, *specs, constraints=()):
        assert name not in table
        table[name] = Program(name, fun, specs, constraints)

    def K():
        return random.key(3)

    p("mean", lambda x: jnp.mean(x), A)
    p("mean0", lambda x: jnp.mean(x, 0), A)
    p("var", lambda x: jnp.var(x, 0), A)
    p("std", lambda x: jnp.std(x), A)
    p("sum", lambda x: jnp.sum(x, 1, keepdims=True), A)
    p("max", lambda x: jnp.max(x, 0), A)
    p("argmax", lambda x: jnp.argmax(x, 0), A)
    p("argmaxflat", lambda x: jnp.argmax(x), A)
    p("prod", lambda x: jnp.prod(x), A)
    p("any", lambda x: jnp.any(x > 0), A)
    p("reshape -1", lambda x: jnp.reshape(x, -1), A)
    p("reshape m", lambda x: x.reshape(x.shape[1], -1), A)
    p("reshape 2", lambda x: x.reshape(2, -1), "2*a, b")
    p("reshape bad", lambda x: x.reshape(2, -1), A)
    p("reshape tuple", lambda x: x.reshape((x.shape[0] * x.shape[1],)), A)
    p("reshape newaxis", lambda x: x.reshape(-1, 1), A)
    p("reshape 3", lambda x: x.reshape(-1, x.shape[1], 1), A)
    p("ravel", lambda x: x.ravel(), A)
    p("T", lambda x: x.T, A)
    p("swapaxes", lambda x: jnp.swapaxes(x, 0, 1), A)
    p("moveaxis", lambda x: jnp.moveaxis(x, 0, 1), A)
    p("squeeze", lambda x: jnp.squeeze(x), "a,1")
    p("expand", lambda x: jnp.expand_dims(x, 1), A)
    p("arange", lambda x: jnp.arange(x.shape[0]), A)
    p("arange2", lambda x: jnp.arange(1, x.shape[0]), A)
    p("arange3", lambda x: jnp.arange(0, x.shape[0], 2), A)
    p("arangef", lambda x: jnp.arange(x.shape[0], dtype=np.float32), A)
    p("arange neg", lambda x: jnp.arange(x.shape[0], 0, -1), A)
    p("zeros", lambda x: jnp.zeros(x.shape), A)
    p("ones", lambda x: jnp.ones((x.shape[0], 2)), A)
    p("zeros int", lambda x: jnp.zeros(x.shape[0]), A)
    p("full", lambda x: jnp.full(x.shape, 3.0), A)
    p("full dim", lambda x: jnp.full(x.shape, x.shape[0]), A)
    p("zeros_like", lambda x: jnp.zeros_like(x), A)
    p("ones_like", lambda x: jnp.ones_like(x, dtype=int), A)
    p("empty", lambda x: jnp.empty(x.shape), A)
    p("eye", lambda x: jnp.eye(x.shape[0]), A)
    p("eye2", lambda x: jnp.eye(x.shape[0], x.shape[1], 1), A)
    p("identity", lambda x: jnp.identity(x.shape[0]), A)
    p("linspace", lambda x: jnp.linspace(0, 1, x.shape[0]), A)
    p("tri", lambda x: jnp.tri(x.shape[0]), A)
    p("concat", lambda x: jnp.concatenate([x, x]), A)
    p("stack", lambda x: jnp.stack([x, x], 1), A)
    p("hstack", lambda x: jnp.hstack([x, x]), A)
    p("vstack", lambda x: jnp.vstack([x, x]), A)
    p("split", lambda x: jnp.split(x, 2), "2*a,b")
    p("split bad", lambda x: jnp.split(x, 2), A)
    p("array_split", lambda x: jnp.array_split(x, 2), "2*a,b")
    p("split at", lambda x: jnp.split(x, [1], 1), A)
    p("tile", lambda x: jnp.tile(x, (2, 1)), A)
    p("repeat", lambda x: jnp.repeat(x, 2, axis=0), A)
    p("repeat flat", lambda x: jnp.repeat(x, 3), A)
    p("roll", lambda x: jnp.roll(x, 1, 0), A)
    p("flip", lambda x: jnp.flip(x, 0), A)
    p("broadcast_to", lambda x: jnp.broadcast_to(x, (3,) + x.shape), A)
    p("append", lambda x: jnp.append(x, x, axis=0), A)
    p("take", lambda x: jnp.take(x, np.array([0, 1]), axis=0), A)
    p("take_along", lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), A)
    p("idx0", lambda x: x[0], A)
    p("idx-1", lambda x: x[-1], A)
    p("slice1", lambda x: x[1:], A)
    p("slice-1", lambda x: x[:-1], A)
    p("slice:2", lambda x: x[:2], A)
    p("slice:2c", lambda x: x[:2], A, constraints=("a>=4",))
    p("slice -2:", lambda x: x[-2:], A, constraints=("a>=4",))
    p("slice -2 nc", lambda x: x[-2:], A)
    p("slice step", lambda x: x[::2], A)
    p("slice rev", lambda x: x[::-1], A)
    p("slice step dim", lambda x: x[:: x.shape[1]], A)
    p("slice -step dim", lambda x: x[:: -x.shape[1], ::-2], A)
    p("slice bounds step dim", lambda x: x[1 : x.shape[0] : x.shape[1], 0], A)
    p("slice start dim", lambda x: x[x.shape[1] : -1 : x.shape[1]], A)
    p("at step dim", lambda x: x.at[:: -x.shape[1]].mul(2.0), A)
    p("grad step dim", lambda x: grad(lambda x: (x[:: -x.shape[1]] ** 2).sum())(x), A)
    p("slice dim", lambda x: x[: x.shape[0] // 2], A)
    p("slice 1:-1", lambda x: x[1:-1], A, constraints=("a>=2",))
    p("idx none", lambda x: x[:, None], A)
    p("idx ell", lambda x: x[..., 0], A)
    p("idx arr", lambda x: x[np.array([0, 1])], A)
    p("idx dyn", lambda x: x[jnp.argmax(x[:, 0])], A)
    p("idx tup", lambda x: x[jnp.arange(x.shape[0]), 0], A)
    p("idx 1", lambda x: x[1], A)
    p("idx mask where", lambda x: jnp.where(x > 0, x, 0), A)
    p("idx mix", lambda x: x[0, 1:], A)
    p("idx dim-1", lambda x: x[x.shape[0] - 1], A)
    p("idx bool", lambda x: x[x > 0], A)
    p("slice 2:4", lambda x: x[2:4], A)
    p("slice big", lambda x: x[3:], A)
    p("at set", lambda x: x.at[0].set(1.0), A)
    p("at add", lambda x: x.at[1:].add(1.0), A)
    p("at idx", lambda x: x.at[jnp.arange(x.shape[0]), 0].mul(2.0), A)
    p("at -1", lambda x: x.at[-1].set(0.0), A)
    p("matmul", lambda x, y: x @ y, A, "b, c")
    p("matmul batch", lambda x, y: x @ y, "n, a, b", "n, b, c")
    p("matmul bc", lambda x, y: x @ y, "n, a, b", "b, c")
    p("matmul bad", lambda x, y: x @ y, A, "c, a")
    p("dot", lambda x, y: jnp.dot(x, y), A, "b")
    p("einsum", lambda x, y: jnp.einsum("ab,bc->ac", x, y), A, "b, c")
    p("einsum2", lambda x: jnp.einsum("ab,ab->a", x, x), A)
    p("einsum3", lambda x: jnp.einsum("...ab->...ba", x), "n, a, b")
    p("einsum trace", lambda x: jnp.einsum("aa->a", x), "a, a")
    p("tensordot", lambda x, y: jnp.tensordot(x, y, 1), A, "b, c")
    p("outer", lambda x: jnp.outer(x, x), "a")
    p("inner", lambda x: jnp.inner(x, x), A)
    p("vdot", lambda x: jnp.vdot(x, x), A)
    p("trace", lambda x: jnp.trace(x), "a, a")
    p("kron", lambda x: jnp.kron(x, x), "a")
    p("cross", lambda x: jnp.cross(x, x), "a, 3")
    p("pad", lambda x: jnp.pad(x, 1), A)
    p("pad2", lambda x: jnp.pad(x, ((0, x.shape[1]), (1, 2))), A)
    p("pad edge", lambda x: jnp.pad(x, 1, mode="edge"), A)
    p("pad reflect", lambda x: jnp.pad(x, 1, mode="reflect"), A)
    p("where", lambda x: jnp.where(x > 0, x, x.shape[0]), A)
    p("where1", lambda x: jnp.where(x > 0), A)
    p("cumsum", lambda x: jnp.cumsum(x, 0), A)
    p("cumsum flat", lambda x: jnp.cumsum(x), A)
    p("sort", lambda x: jnp.sort(x), A)
    p("argsort", lambda x: jnp.argsort(x), A)
    p("diff", lambda x: jnp.diff(x, axis=0), A)
    p("median", lambda x: jnp.median(x), A)
    p("clip", lambda x: jnp.clip(x, 0, 1), A)
    p("tril", lambda x: jnp.tril(x), A)
    p("triu", lambda x: jnp.triu(x, 1), A)
    p("diag", lambda x: jnp.diag(x), "a")
    p("diag2", lambda x: jnp.diag(x), "a, a")
    p("diagonal", lambda x: jnp.diagonal(x), "a, a")
    p("meshgrid", lambda x: jnp.meshgrid(jnp.arange(x.shape[0]), jnp.arange(x.shape[1])), A)
    p("searchsorted", lambda x: jnp.searchsorted(x, 0.5), "a")
    p("histogram?", lambda x: jnp.bincount(jnp.clip(x.astype(int), 0), length=5), "a")
    p("interp", lambda x: jnp.interp(x, x, x), "a")
    p("cov", lambda x: jnp.cov(x), A)
    p("average", lambda x: jnp.average(x, 0), A)
    p("ptp", lambda x: jnp.ptp(x), A)
    p("nonzero size", lambda x: jnp.nonzero(x, size=3), "a")
    p("unique", lambda x: jnp.unique(x), "a")
    p("percentile", lambda x: jnp.percentile(x, 50), A)
    p(
        "logsumexp",
        lambda x: jnp.log(jnp.sum(jnp.exp(x - jnp.max(x, axis=1, keepdims=True)), axis=1)),
        A,
    )
    p("convolve", lambda x: jnp.convolve(x, np.ones(2, np.float32)), "a")
    p("convolve same", lambda x: jnp.convolve(x, np.ones(2, np.float32), mode="same"), "a")
    p("allclose", lambda x: jnp.allclose(x, x), A)
    p("isnan", lambda x: jnp.isnan(x).sum(), A)
    p("nansum", lambda x: jnp.nanmean(x), A)
    p("count_nonzero", lambda x: jnp.count_nonzero(x), A)
    p("array_equal", lambda x, y: jnp.array_equal(x, y), A, A)
    p("array_equal2", lambda x, y: jnp.array_equal(x, y), A, "b, a")
    p("atleast2d", lambda x: jnp.atleast_2d(x), "a")
    p("vander", lambda x: jnp.vander(x, 3), "a")
    p("indices", lambda x: jnp.indices(x.shape), A)
    p("fft", lambda x: jnp.fft.fft(x), A)
    p("rfft", lambda x: jnp.fft.rfft(x), A)
    p("fft n", lambda x: jnp.fft.fft(x, axis=1), "a, 8")
    p("linalg.norm", lambda x: jnp.linalg.norm(x), A)
    p("inv", lambda x: jnp.linalg.inv(x), "a, a")
    p("solve", lambda x, y: jnp.linalg.solve(x, y), "a, a", "a, b")
    p("det", lambda x: jnp.linalg.det(x), "a, a")
    p("cholesky", lambda x: jnp.linalg.cholesky(x), "a, a")
    p("qr", lambda x: jnp.linalg.qr(x), A, constraints=("a>=b",))
    p("qr nc", lambda x: jnp.linalg.qr(x), A)
    p("svd", lambda x: jnp.linalg.svd(x, full_matrices=False), A)
    p(
        "svdvals",
        lambda x: (
            jnp.linalg.svdvals(x)
            if hasattr(jnp.linalg, "svdvals")
            else jnp.linalg.svd(x, compute_uv=False)
        ),
        A,
    )
    p("eigh", lambda x: jnp.linalg.eigh(x), "a, a")
    p("pinv", lambda x: jnp.linalg.pinv(x), A)
    p("matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), "a, a")
    p("lstsq", lambda x, y: jnp.linalg.lstsq(x, y)[0], A, "a")
    p("dim*x", lambda x: x * x.shape[0], A)
    p("x/dim", lambda x: x / x.shape[0], A)
    p("dim/2", lambda x: x.shape[0] / 2, A)
    p("jnp.array(dim)", lambda x: jnp.array(x.shape[0]), A)
    p("array(shape)", lambda x: jnp.array(x.shape), A)
    p("asarray(dim,f)", lambda x: jnp.asarray(x.shape[0], np.float32), A)
    p("float32(dim)", lambda x: jnp.float32(x.shape[0]), A)
    p("sqrt(dim)", lambda x: jnp.sqrt(x.shape[0]), A)
    p("maximum(dim,3)", lambda x: jnp.maximum(x.shape[0], 3), A)
    p("dim+arr", lambda x: x.shape[0] + jnp.arange(3), A)
    p("np+dim", lambda x: np.arange(3) + x.shape[0], A)
    p("np32*dim", lambda x: np.int32(2) * x.shape[0], A)
    p("f32*dim", lambda x: np.float32(2) * x.shape[0], A)
    p("dim**.5", lambda x: x.shape[0] ** 0.5, A)
    p("dim**-1", lambda x: x.shape[0] ** (-1), A)
    p("2**dim", lambda x: 2 ** x.shape[0], A)
    p("jnp.size", lambda x: jnp.size(x), A)
    p("x.size", lambda x: x.size * 1.0, A)
    p("shape eq", lambda x: x if x.shape == (x.shape[0], x.shape[1]) else 0, A)
    p("len", lambda x: len(x), A)
    p("cond", lambda x: lax.cond(x.shape[0] > 3, lambda: 1.0, lambda: 2.0), A)
    p("cmp err", lambda x: x if x.shape[0] > 3 else x + 1, A)
    p("cmp ok", lambda x: x if x.shape[0] > 0 else x + 1, A)
    p("jnp.prod shape", lambda x: jnp.prod(jnp.array(x.shape)), A)
    p("np.prod shape", lambda x: jnp.zeros(np.prod(x.shape)), A)
    p("in tuple", lambda x: x if 1 in x.shape else x + 1, A)
    p("dim==dim", lambda x, y: x if x.shape[0] == y.shape[0] else x * 2, A, "b")
    p("iter", lambda x: list(x), A)
    p("range", lambda x: sum(x[i] for i in range(x.shape[0])), A)
    p("scan", lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(x.shape[1]), x), A)
    p(
        "fori",
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, s: s + x[i], jnp.zeros(x.shape[1])),
        A,
    )
    p("vmap", lambda x: vmap(lambda r: jnp.mean(r))(x), A)
    p("vmap out", lambda x: vmap(lambda r: r * 2, out_axes=1)(x), A)
    p("vmap bad", lambda x, y: vmap(lambda r, s: r + s)(x, y), "a,b", "b,a")
    p("grad", lambda x: grad(lambda y: jnp.mean(y**2))(x), A)
    p("grad idx", lambda x: grad(lambda y: (y[1:] ** 2).sum())(x), A)
    p("add bad", lambda x, y: x + y, A, "b,a")
    p("add bc", lambda x, y: x + y, A, "b")
    p("add bc1", lambda x, y: x + y, A, "1, b")
    p("add 2", lambda x, y: x + y, A, "a, 2")
    p("jit", lambda x: jax.jit(lambda y: y / y.shape[0])(x), A)
    p("ckpt", lambda x: grad(jax.checkpoint(lambda y: jnp.sin(y).sum() * y.shape[0]))(x), A)
    p(
        "attention",
        lambda q, k: jnp.einsum(
            "bqk,bkd->bqd",
            (
                lambda s: (
                    jnp.exp(s - s.max(-1, keepdims=True))
                    / jnp.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)
                )
            )(jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(q.shape[-1])),
            k,
        ),
        "n, s, d",
        "n, t, d",
    )
    p(
        "layernorm",
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-05),
        "n, s, d",
    )
    p(
        "heads",
        lambda x: x.reshape(x.shape[0], x.shape[1], 4, -1).transpose(0, 2, 1, 3),
        "n, s, 4*d",
    )
    p("heads bad", lambda x: x.reshape(x.shape[0], x.shape[1], 4, -1), "n, s, d")
    p(
        "mask",
        lambda x: jnp.where(jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)), 0.0, -1000000000.0),
        A,
    )
    p(
        "onehot",
        lambda x: (jnp.arange(x.shape[1]) == jnp.argmax(x, 1)[:, None]).astype(np.float32),
        A,
    )
    for n, f in {
        "normal": lambda s: random.normal(K(), s),
        "uniform": lambda s: random.uniform(K(), s),
        "randint": lambda s: random.randint(K(), s, 0, 9),
        "bernoulli": lambda s: random.bernoulli(K(), 0.5, s),
        "bits": lambda s: random.bits(K(), s),
        "exponential": lambda s: random.exponential(K(), s),
        "gumbel": lambda s: random.gumbel(K(), s),
        "laplace": lambda s: random.laplace(K(), s),
        "truncated": lambda s: random.truncated_normal(K(), -1.0, 1.0, s),
        "gamma": lambda s: random.gamma(K(), 1.5, s),
        "beta": lambda s: random.beta(K(), 1.5, 2.0, s),
        "bits8": lambda s: random.bits(K(), s, "uint8"),
    }.items():
        p(n, lambda x, f=f: f(x.shape), A)
    p("permutation", lambda x: random.permutation(K(), x), A)
    p("perm n", lambda x: random.permutation(K(), x.shape[0]), A)
    p("choice", lambda x: random.choice(K(), x.shape[0], (3,)), A)
    p("categorical", lambda x: random.categorical(K(), x), A)
    p("split keys", lambda x: random.key_data(random.split(K(), x.shape[0])), A)
    p("shuffle vmap", lambda x: vmap(lambda r: r + random.normal(K(), r.shape))(x), A)
    p("dropout", lambda x: jnp.where(random.bernoulli(K(), 0.5, x.shape), x / 0.5, 0), A)
    p("rbg", lambda x: random.normal(random.key(0, impl="rbg"), x.shape), A)
    p("fold_in", lambda x: random.normal(random.fold_in(K(), x.shape[0]), (2,)), A)
    p("legacy", lambda x: random.normal(random.PRNGKey(0), x.shape), A)
    p("gather grad", lambda x: grad(lambda y: (y[np.array([0, 0])] ** 2).sum())(x), A)
    p("grad prod", lambda x: grad(lambda y: jnp.prod(y))(x), A)
    p("grad prod0", lambda x: grad(lambda y: jnp.prod(y, 0).sum())(x), A)
    p("grad max", lambda x: grad(lambda y: jnp.max(y, 0).sum())(x), A)
    p("grad cumprod", lambda x: grad(lambda y: jnp.cumprod(y, 0).sum())(x), A)
    p("grad sort", lambda x: grad(lambda y: jnp.sort(y, 0)[0].sum())(x), A)
    p("grad var", lambda x: grad(lambda y: jnp.var(y))(x), A)
    p("grad lse", lambda x: grad(lambda y: jnp.log(jnp.exp(y).sum()))(x), A)
    p("grad norm", lambda x: grad(lambda y: jnp.linalg.norm(y))(x), A)
    p("jacfwd", lambda x: jax.jacfwd(lambda y: jnp.sin(y))(x), "a")
    p("jacrev", lambda x: jax.jacrev(lambda y: jnp.sin(y))(x), "a")
    p("hessian", lambda x: jax.hessian(lambda y: (y**3).sum())(x), "a")
    p(
        "grad inv",
        lambda x: grad(lambda y: jnp.linalg.inv(y + 5 * jnp.eye(y.shape[0])).sum())(x),
        "a, a",
    )
    p(
        "grad solve",
        lambda x, y: grad(lambda z: jnp.linalg.solve(z + 5 * jnp.eye(z.shape[0]), y).sum())(x),
        "a, a",
        "a, b",
    )
    p(
        "grad chol",
        lambda x: grad(lambda z: jnp.linalg.cholesky(z @ z.T + 5 * jnp.eye(z.shape[0])).sum())(x),
        "a, a",
    )
    p("grad eigh", lambda x: grad(lambda z: jnp.linalg.eigh(z + z.T)[0][0])(x), "a, a")
    p("grad svd", lambda x: grad(lambda z: jnp.linalg.svd(z, compute_uv=False).sum())(x), A)
    p(
        "grad qr",
        lambda x: grad(lambda z: jnp.abs(jnp.linalg.qr(z)[1]).sum())(x),
        A,
        constraints=("a>=b",),
    )
    p("slogdet", lambda x: jnp.linalg.slogdet(x), "a, a")
    p("eigvals", lambda x: jnp.abs(jnp.linalg.eigvals(x)).sum(), "a, a")
    p("matrix_rank", lambda x: jnp.linalg.matrix_rank(x), A)
    p("multi_dot", lambda x: jnp.linalg.multi_dot([x, x.T, x]), A)
    p(
        "scan grad",
        lambda x: grad(lambda y: lax.scan(lambda c, r: (c * r.sum(), c), 1.0, y)[0])(x),
        A,
    )
    p(
        "while",
        lambda x: lax.while_loop(
            lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 0.5 + x.shape[0]), (0, x)
        )[1],
        A,
    )
    p(
        "switch",
        lambda x: lax.switch(x.shape[0] % 3, [lambda y: y, lambda y: y + 1, lambda y: y + 2], x),
        A,
    )
    p("map", lambda x: lax.map(lambda r: r.sum(), x), A)
    p("assoc scan", lambda x: lax.associative_scan(jnp.add, x), A)
    p("top_k", lambda x: lax.top_k(x, 2), A, constraints=("b>=2",))
    p("approx_max_k", lambda x: lax.approx_max_k(x, x.shape[1] - 1), A, constraints=("b>=2",))
    p("approx_min_k", lambda x: lax.approx_min_k(x, 2, 0), A, constraints=("a>=2",))
    for method in ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "area"):
        _resizing(p, jax, image, method)
    p(
        "avg pool",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        "n, 2*h, 2*w, d",
    )
    p(
        "conv",
        lambda x: lax.conv_general_dilated(
            x,
            np.ones((3, 3, 1, 2), np.float32),
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        "n, h, w, 1",
    )
    p(
        "conv grads",
        lambda x: grad(
            lambda k: (
                lax.conv_general_dilated(
                    x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
                ** 2
            ).sum()
        )(jnp.ones((3, 3, 1, 2))),
        "n, h, w, 1",
    )
    p(
        "conv transpose",
        lambda x: lax.conv_transpose(x, np.ones((3, 3, 1, 2), np.float32), (2, 2), "SAME"),
        "n, h, w, 1",
    )
    p(
        "conv channels",
        lambda x: lax.conv_general_dilated(
            x,
            jnp.ones((3, 3, x.shape[-1], 2)),
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        "n, h, w, d",
        constraints=("h>=3", "w>=3"),
    )
    p("linearize", lambda x: jax.linearize(lambda y: jnp.sin(y) * y.shape[0], x)[1](x), A)
    p("vjp", lambda x: jax.vjp(lambda y: jnp.sin(y) @ y.T, x)[1](jnp.ones((x.shape[0],) * 2)), A)
    p("jvp", lambda x: jax.jvp(lambda y: y.mean(), (x,), (x,)), A)
    p(
        "remat scan",
        lambda x: grad(
            lambda y: lax.scan(jax.checkpoint(lambda c, r: (jnp.sin(c) + r.sum(), None)), 0.0, y)[0]
        )(x),
        A,
    )
    p("vmap in1", lambda x: vmap(lambda c: jnp.cumsum(c), in_axes=1, out_axes=1)(x), A)
    p("vmap scan", lambda x: vmap(lambda r: lax.scan(lambda c, e: (c + e, c), 0.0, r)[1])(x), A)
    p(
        "vmap while",
        lambda x: vmap(
            lambda r: lax.while_loop(
                lambda c: c[0] < r.sum(), lambda c: (c[0] + 1.0, c[1]), (0.0, r)
            )[1]
        )(x),
        A,
    )
    p(
        "vmap cond",
        lambda x: vmap(lambda r: lax.cond(r.sum() > 0, lambda y: y, lambda y: -y, r))(x),
        A,
    )
    p(
        "vmap dyn",
        lambda x: vmap(lambda r, i: lax.dynamic_slice(r, (i,), (1,)))(x, jnp.arange(x.shape[0])),
        A,
    )
    p("vmap upd", lambda x: vmap(lambda r, i: r.at[i].set(0.0))(x, jnp.zeros(x.shape[0], int)), A)
    p("vmap sort", lambda x: vmap(jnp.sort)(x), A)
    p("vmap matmul", lambda x: vmap(lambda r: r @ x.T)(x), A)
    p("vmap solve", lambda x: vmap(lambda r: jnp.linalg.solve(jnp.eye(r.shape[0]) * 2, r))(x), A)
    p("nested vmap", lambda x: vmap(vmap(lambda e: e * 2))(x), A)
    p("outer vmap", lambda x: vmap(lambda r: vmap(lambda s: r @ s)(x))(x), A)
    return table
