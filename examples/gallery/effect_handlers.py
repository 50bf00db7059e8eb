"""Effect handlers

A small library in which a model asks for its parameters by name. An interpreter finds the requests
in the traced model, and a *handler* answers them: by drawing, by reading a dictionary, or by
freezing some. This is the idea of Haiku's `transform`, in 60 lines of the extension API.

Method: Plotkin and Pretnar, *Handlers of algebraic effects* (2009).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import random
from primax_core.extend import (
    NamedEffect,
    Primitive,
    ShapedArray,
    abstract,
    effects,
    expanded,
    interpret,
    jaxprs_in,
    stage,
    typeof,
    walk,
)

QUICK = "--quick" in sys.argv
STEPS = 800 if QUICK else 6000

# %% [markdown]
# ## A request
#
# `request_p` has no operands. Its `abstract` rule gives the type of the result, and the effect
# keeps dead-code elimination from removing it. There is no rule that computes a value: without a
# handler the request is an error.

# %%
request_p = Primitive("request")


class RequestEffect(NamedEffect):
    name = "Request"


@request_p.rule(abstract)
def _abstract(*, name, shape):
    return ShapedArray(shape, np.dtype("float32"))


@request_p.rule(effects)
def _effects(*avals, name, shape):
    return frozenset({RequestEffect()})


def parameter(name, *shape):
    return request_p.bind(name=name, shape=shape)


# %% [markdown]
# ## The interpreter
#
# `stage` traces the model, `interpret` evaluates the jaxpr. A call such as that of a compiled
# function is entered if there is a request inside.


# %%
def contains_request(eqn):
    return any(e.primitive is request_p for j in jaxprs_in(eqn.params) for e in walk(j))


def handle(model, answer):
    """The model, whose request for a parameter becomes ``answer(name, shape)``."""

    def handled(*args):
        def step(eqn, values):
            prim = eqn.primitive
            if prim is request_p:
                return [answer(**eqn.params)]
            if contains_request(eqn):
                inner = expanded(prim, [typeof(v) for v in values], eqn.params)
                return interpret(inner, values, step, constant=None)
            out = prim.bind(*values, **eqn.params)
            return out if prim.multiple_results else [out]

        jaxpr = stage(lambda *xs: [model(*xs)], [typeof(x) for x in args], "model")
        return interpret(jaxpr, args, step, constant=None)[0]

    return handled


# %% [markdown]
# ## Handlers
#
# Each is a few lines, because a handler is only a function that answers.


# %%
def initial(model, key, *args):
    """Parameters of a model, drawn with a deviation that fits the number of inputs."""
    params = {}

    def draw(name, shape):
        deviation = shape[0] ** -0.5 if len(shape) > 1 else 0.0
        sub = random.fold_in(key, len(params))
        params[name] = deviation * random.normal(sub, shape)
        return params[name]

    handle(model, draw)(*args)
    return params


def apply(model, params, *args):
    return handle(model, lambda name, shape: params[name])(*args)


def frozen(model, values):
    """The model with some parameters fixed; it asks for the others only."""
    return lambda *args: handle(
        model,
        lambda name, shape: values[name] if name in values else parameter(name, *shape),
    )(*args)


# %% [markdown]
# ## A model
#
# Layers may be under `jit`, too: the interpreter enters the call.


# %%
def dense(name, x, width):
    return x @ parameter(f"{name}/w", x.shape[-1], width) + parameter(f"{name}/b", width)


def model(x):
    x = jnp.sin(dense("first", x, 32))
    x = primax.jit(lambda x: jnp.tanh(dense("second", x, 32)))(x)
    return dense("last", x, 1)


x = jnp.linspace(-3, 3, 100)[:, None]
y = jnp.sin(3 * x) * jnp.exp(-0.3 * x**2)
params = initial(model, random.key(0), x)
print("requests:", *params)
print(primax.make_jaxpr(model)(x[:2]).eqns[0])

# %% [markdown]
# ## Training
#
# `apply` consists of ordinary operations, so `grad` and `jit` work on it.


# %%
def loss(params):
    return jnp.mean((apply(model, params, x) - y) ** 2)


@primax.jit
def fit(params):
    def step(i, carry):
        params, velocity = carry
        velocity = primax.tree.map(lambda v, g: 0.9 * v + g, velocity, primax.grad(loss)(params))
        return primax.tree.map(lambda p, v: p - 0.03 * v, params, velocity), velocity

    velocity = primax.tree.map(jnp.zeros_like, params)
    return primax.lax.fori_loop(0, STEPS, step, (params, velocity))[0]


fitted = fit(params)
first, last = float(loss(params)), float(loss(fitted))
print(f"loss from {first:.3f} to {last:.5f}")
rest = frozen(model, {k: v for k, v in fitted.items() if k.startswith("first")})
remaining = initial(rest, random.key(1), x)
print("requests with a frozen first layer:", *remaining)
assert last < 0.02 * first and set(remaining) < set(params) and len(remaining) == 4

# %%
plt.figure(figsize=(7, 3.6), layout="constrained")
plt.plot(x, y, "k--", label="data")
plt.plot(x, apply(model, params, x), ":", label="drawn parameters")
plt.plot(x, apply(model, fitted, x), label="fitted parameters")
plt.legend()
plt.show()
