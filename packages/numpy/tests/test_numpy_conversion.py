"""Objects with a method ``__jax_array__`` as arguments of the functions of the NumPy layer."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core as px
import primax_numpy as pnp

V = np.arange(1, 4, dtype=np.float32)


class Box:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return px.device_put(self.value)


B, M = Box(V), Box(np.eye(3, dtype=np.float32))
CONTEXTS = {
    "eager": lambda f: f(V),
    "jit": lambda f: px.jit(f)(V),
    "grad": lambda f: px.jvp(f, (V,), (V,))[0],
    "vmap": lambda f: px.vmap(f)(np.stack([V, V]))[0],
    "scan": lambda f: px.lax.scan(lambda c, x: (c, f(x)), 0.0, np.stack([V, V]))[1][0],
}
CALLS = {
    "asarray": lambda x, b, m: pnp.asarray(b) * x,
    "array": lambda x, b, m: pnp.array([x, b]),
    "nested": lambda x, b, m: pnp.asarray([[b], [x]]),
    "matmul": lambda x, b, m: pnp.asarray(x) @ m,
    "reflected matmul": lambda x, b, m: m @ pnp.asarray(x),
    "dot": lambda x, b, m: pnp.dot(x, m),
    "einsum": lambda x, b, m: pnp.einsum("i,ij->j", x, m),
    "tensordot": lambda x, b, m: pnp.tensordot(m, x, 1),
    "concatenate": lambda x, b, m: pnp.concatenate([x, b]),
    "stack": lambda x, b, m: pnp.stack([x, b]),
    "reshape": lambda x, b, m: pnp.reshape(b, (3, 1)) * x,
    "transpose": lambda x, b, m: pnp.transpose(m) * x,
    "squeeze": lambda x, b, m: pnp.squeeze(m) * x,
    "expand_dims": lambda x, b, m: pnp.expand_dims(b, 1) * x,
    "flip": lambda x, b, m: pnp.flip(b) * x,
    "roll": lambda x, b, m: pnp.roll(b, 1) * x,
    "sum": lambda x, b, m: pnp.sum(b) * x,
    "std": lambda x, b, m: pnp.std(b) * x,
    "argmax": lambda x, b, m: pnp.argmax(b) * x,
    "where": lambda x, b, m: pnp.where(pnp.asarray(x) > 1, x, b),
    "sin": lambda x, b, m: pnp.sin(b) * x,
    "multiply": lambda x, b, m: pnp.multiply(x, b),
    "zeros_like": lambda x, b, m: pnp.zeros_like(b) + x,
    "filled by an object": lambda x, b, m: pnp.full_like(x, b) * x,
    "clip": lambda x, b, m: pnp.clip(b, 1.5, b) * x,
    "isposinf": lambda x, b, m: pnp.where(pnp.isposinf(b) | pnp.isneginf(b), 0, x),
    "lexsort": lambda x, b, m: pnp.lexsort(m) * x,
    "triu_indices_from": lambda x, b, m: pnp.triu_indices_from(m)[0][:3] * x,
    "divmod": lambda x, b, m: pnp.divmod(b, b)[0] * x,
    "full_like": lambda x, b, m: pnp.full_like(b, 2) * x,
    "astype": lambda x, b, m: pnp.astype(b, np.int32) * x,
    "shape": lambda x, b, m: pnp.ones(pnp.shape(m)) * x,
    "norm": lambda x, b, m: pnp.linalg.norm(b) * x,
    "fft": lambda x, b, m: pnp.abs(pnp.fft.fft(b)) * x,
    "at": lambda x, b, m: pnp.asarray(x).at[:].set(b),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("call", CALLS)
def test_objects_that_convert_themselves(context, call):
    out = CONTEXTS[context](lambda x: CALLS[call](x, B, M))
    expected = CALLS[call](V, px.device_put(V), px.device_put(M.value))
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_a_node_of_a_pytree():
    class Variable(Box):
        """As the variables of neural-network libraries."""

    px.tree_util.register_pytree_node(
        Variable, lambda v: ((v.value,), None), lambda _, parts: Variable(*parts)
    )
    Variable.__jax_array__ = lambda self: self.value
    weights = Variable(px.device_put(M.value))

    def loss(weights, x):
        return pnp.sum(pnp.dot(x @ weights, weights) + pnp.concatenate([weights, weights])[0])

    gradient = px.jit(px.grad(loss))(weights, px.device_put(V))
    assert type(gradient) is Variable and gradient.value.shape == (3, 3)
    plain = px.grad(lambda w, x: loss(w, x))(weights.value, px.device_put(V))
    np.testing.assert_allclose(gradient.value, plain, rtol=1e-6)


class Rows(Box):
    """An iterable object with the attributes of its array, as variables of neural networks."""

    def __iter__(self):
        return iter(self.value)

    def __len__(self):
        return len(self.value)

    def __getattr__(self, name):
        return getattr(self.__dict__["value"], name)


@pytest.mark.parametrize("name", ["stack", "concatenate", "vstack", "hstack", "dstack"])
@pytest.mark.parametrize("context", [lambda f: f, px.jit], ids=["eager", "jit"])
def test_one_object_is_a_sequence_of_rows(name, context):
    function = getattr(pnp, name)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    joined = context(lambda x: function(Rows(x)))(px.device_put(x))
    np.testing.assert_array_equal(joined, getattr(np, name)(list(x)))


class InReference:
    """An object with the attributes of a reference, whose array it is."""

    def __init__(self, ref):
        self.ref = ref

    def __getattr__(self, name):
        return getattr(self.ref, name)

    def __jax_array__(self):
        return self.ref[...]


def test_objects_with_attributes_of_a_reference():
    held = InReference(px.new_ref(np.ones((2, 3), np.float32)))
    x = np.full((1, 2), 2, np.float32)
    assert (pnp.asarray(x) @ held).tolist() == [[4, 4, 4]]
    assert px.jit(lambda x: x @ held)(x).tolist() == [[4, 4, 4]]
