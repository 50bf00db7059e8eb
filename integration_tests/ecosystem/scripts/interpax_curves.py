"""interpax: interpolation in one to three dimensions, with derivatives and Fourier series."""

import json

import interpax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(0.0, 2.0 * jnp.pi, 12)
at = jnp.array([0.1, 1.7, 4.4])
results = {}
for method in (
    "nearest",
    "linear",
    "cubic",
    "cubic2",
    "catmull-rom",
    "cardinal",
    "monotonic",
    "akima",
):
    values = [interpax.interp1d(at, x, jnp.sin(x), method=method, derivative=d) for d in (0, 1)]
    results[method] = [v.tolist() for v in values]
grid = jnp.sin(x)[:, None] * jnp.cos(x)[None, :]
results["2d"] = interpax.interp2d(at, at[::-1], x, x, grid, method="cubic").tolist()
cube = grid[:, :, None] * x
results["3d"] = interpax.interp3d(at, at, at, x, x, x, cube, method="linear").tolist()
results["fft"] = interpax.fft_interp1d(jnp.cos(x[:-1]), 16).tolist()
spline = interpax.CubicSpline(x, jnp.sin(x))
pchip = interpax.PchipInterpolator(x, jnp.sin(x))
results["splines"] = [spline(at).tolist(), pchip(at).tolist(), spline(at, 1).tolist()]
results["gradient"] = jax.grad(lambda f: interpax.interp1d(at, x, f, method="cubic2").sum())(
    jnp.sin(x)
).tolist()
print(json.dumps(results))
