"""Operands that are no operands: objects that convert themselves, and values of other libraries."""

from __future__ import annotations

import re

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base.identity import PUBLIC_NAME
from primax_core._trace import foreign
from primax_core.extend import library_function, typeof
from primax_core.extend.elementwise import argument_type
from primax_core.extend.traces import register_value_type

V = np.arange(1, 4, dtype=np.float32)


class Box:
    """An object that converts itself."""

    def __init__(self, value=V):
        self.value = value

    def __jax_array__(self):
        return px.device_put(self.value)


BOX = Box()
ADVICE = "Box is not an array. It has a method __jax_array__, .* pass primax.numpy.asarray"
if PUBLIC_NAME != "primax":  # a copy, whose texts have its names
    ADVICE = "Box is not an array. It has a method __jax_array__"

CONTEXTS = {
    "eager": lambda f: f(V),
    "jit": lambda f: px.jit(f)(V),
    "grad": lambda f: px.grad(lambda x: lax.reduce_sum(px.tree.leaves(f(x))[0], (0,)))(V),
    "jvp": lambda f: px.jvp(f, (V,), (V,)),
    "vmap": lambda f: px.vmap(f)(np.stack([V, V])),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, np.stack([V, V])),
    "eval_shape": lambda f: px.eval_shape(f, V),
}
REFUSED = {
    "lax.mul": lambda x: lax.mul(x, BOX),
    "lax.sin": lambda x: lax.sin(BOX),
    "bind": lambda x: lax.mul_p.bind(x, BOX),
    "concatenate": lambda x: lax.concatenate([x, BOX], 0),
    "convert": lambda x: lax.convert_element_type(BOX, np.float16),
    "select": lambda x: lax.select(x > 0, x, BOX),
    "jit argument": lambda x: px.jit(lambda y: y)(BOX),
    "jit result": lambda x: px.jit(lambda y: BOX)(x),
    "jit in a dict": lambda x: px.jit(lambda y: y)({"a": BOX}),
    "grad argument": lambda x: px.grad(lambda y: y)(BOX),
    "vmap argument": lambda x: px.vmap(lambda y: y)(BOX),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), 0.0, BOX),
    "scan result": lambda x: lax.scan(lambda c, y: (c, BOX), 0.0, x),
    "cond": lambda x: lax.cond(True, lambda y: y, lambda y: y, BOX),
    "while": lambda x: lax.while_loop(lambda y: False, lambda y: y, BOX),
    "checkpoint": lambda x: px.checkpoint(lambda y: y)(BOX),
    "eval_shape": lambda x: px.eval_shape(lambda y: y, BOX),
    "vjp": lambda x: px.vjp(lambda y: y, BOX),
    "jvp": lambda x: px.jvp(lambda y: y, (BOX,), (x,)),
    "device_put": lambda x: px.device_put(BOX),
    "typeof": lambda x: px.typeof(BOX),
    "new_ref": lambda x: px.new_ref(BOX),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("operation", REFUSED)
def test_operations_refuse_objects_that_convert_themselves(context, operation):
    with pytest.raises(TypeError, match=ADVICE):
        CONTEXTS[context](REFUSED[operation])


@pytest.mark.parametrize("context", CONTEXTS)
def test_operators_convert(context):
    def operate(x):
        x = lax.mul(x, np.float32(1))
        return x * BOX + BOX * x - BOX / x

    CONTEXTS[context](operate)
    assert px.vmap(operate)(np.stack([V, V])).tolist() == [[1, 7, 17]] * 2
    assert (px.device_put(V) * BOX).tolist() == [1, 4, 9]
    assert (px.device_put(V) < BOX).tolist() == [False] * 3


def test_the_argument_is_named():
    with pytest.raises(TypeError, match=r"passed to the function at path params\['w'\]\. A value"):
        px.jit(lambda params: params)({"w": BOX})


def test_library_functions_convert():
    total = library_function(lambda *xs: lax.reduce_sum(lax.add(*xs), (0,)))
    assert total(BOX, V) == total(V, BOX) == total(BOX, BOX) == 12
    for context in CONTEXTS.values():
        context(lambda x: total(x, BOX) * x)
    assert px.grad(lambda x: total(x, Box(V)) ** 2)(V).tolist() == [24, 24, 24]

    closed_over = library_function(lambda x: lax.mul(x, BOX))
    with pytest.raises(TypeError, match=ADVICE):
        closed_over(V)


def test_library_functions_convert_nodes_of_pytrees():
    class Variable(Box):
        pass

    px.tree_util.register_pytree_node(
        Variable, lambda v: ((v.value,), None), lambda _, parts: Variable(*parts)
    )
    product = library_function(lambda x, y: lax.mul(x, y))
    assert product(V, Variable(V)).tolist() == [1, 4, 9]
    assert px.jit(lambda v: product(v, V))(Variable(V)).tolist() == [1, 4, 9]
    gradient = px.grad(lambda v: lax.reduce_sum(product(v, v), (0,)))(Variable(V))
    assert type(gradient) is Variable and gradient.value.tolist() == [2, 4, 6]


class Delegating(Box):
    """As variables of flax.nnx: the attributes of its array, ``aval`` among them."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(vars(self)["value"], name)


px.tree_util.register_pytree_node(
    Delegating, lambda v: ((v.value,), None), lambda _, parts: Delegating(*parts)
)
Delegating.__jax_array__ = lambda self: self.value


@pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
def test_objects_with_the_attributes_of_their_arrays(wrap):
    product = library_function(lambda x, y: lax.mul(lax.sin(x), y))
    # Without a method for an operator, `2 * x` raises an error that names the object.
    double = library_function(lambda x: 2 * x)
    weights = Delegating(px.device_put(V))
    out = wrap(lambda v: double(product(v, v)) + double(v) + weights)(weights)
    np.testing.assert_allclose(out, 2 * np.sin(V) * V + 3 * V, rtol=1e-6)
    gradient = wrap(px.grad(lambda v: lax.reduce_sum(product(v, v), (0,))))(weights)
    assert type(gradient) is Delegating
    np.testing.assert_allclose(gradient.value, np.sin(V) + V * np.cos(V), rtol=1e-5)
    with pytest.raises(TypeError, match=r"Delegating is not an array\. It has a method"):
        px.jit(lambda v: lax.sin(v))(weights)


def test_type_of_an_argument():
    assert argument_type(BOX) is argument_type(V) is typeof(V)
    assert argument_type(1.0) is typeof(1.0)
    with pytest.raises(TypeError, match="not a valid Primax type"):
        argument_type("a")


# Other libraries


class Tracer:
    """As tracers of other libraries."""

    __jax_array__ = None
    shape = ()
    dtype = np.dtype("float32")

    @property
    def aval(self):
        return "float32[]"

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("a tracer has no value")


class DynamicTracer(Tracer):
    pass


DynamicTracer.__module__ = "other_lib._src.interpreters"
NAMED = re.escape(
    f"a tracer of other_lib was passed to {PUBLIC_NAME} (its class is "
    "other_lib._src.interpreters.DynamicTracer)"
)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: lax.sin(t),
        lambda t: lax.add(V, t),
        lambda t: lax.sin_p.bind(t, accuracy=None),
        lambda t: px.device_put(V) + t,
        lambda t: t - px.device_put(V),
        lambda t: px.jit(lambda x: x)(t),
        lambda t: px.jit(lambda x: lax.mul(x, t))(V),
        lambda t: px.grad(lambda x: x)(t),
        lambda t: px.vmap(lambda x: x)(t),
        lambda t: px.device_put(t),
        lambda t: px.typeof(t),
        lambda t: px.jit(lambda x: t)(1.0),
    ],
)
def test_tracers_of_other_libraries_are_named(use):
    with pytest.raises(TypeError, match=f"(?i){NAMED}"):
        use(DynamicTracer())


class ArrayImpl:
    """As arrays of other libraries and copies."""

    aval = "float32[3]"
    shape = (3,)
    dtype = np.dtype("float32")
    weak_type = True

    def __array__(self, dtype=None, copy=None):
        return V


ArrayImpl.__module__ = "acme.lib.core._runtime.array"


def test_arrays_of_other_copies():
    other = ArrayImpl()
    assert typeof(other) is typeof(px.device_put(V)).update(weak_type=True)
    assert lax.mul(V, other).tolist() == [1, 4, 9]
    message = re.escape(
        f"unsupported operand type(s) for +: an array of {PUBLIC_NAME} and an array of "
        "acme.lib.core (its class is acme.lib.core._runtime.array.ArrayImpl)"
    )
    for add in (lambda: px.device_put(V) + other, lambda: other + px.device_put(V)):
        with pytest.raises(TypeError, match=message):
            add()
    assert (px.device_put(V) == other) is False


def test_values_that_are_nothing_else():
    assert foreign.aval_of_array("a") is None
    with pytest.raises(TypeError, match=r"Value 'a' with type <class 'str'> is not a valid Primax"):
        typeof("a")
    with pytest.raises(TypeError, match="unsupported operand"):
        px.device_put(V) + object()


def test_registered_conversions_are_called_with_values():
    class Samples:
        elements = V

    class More(Samples):
        pass

    register_value_type(Samples, lambda value: typeof(value.elements), lambda value: value.elements)
    value = Samples()
    np.testing.assert_array_equal(lax.add(value, V), V + V)
    np.testing.assert_array_equal(px.jit(lax.neg)(value), -V)
    np.testing.assert_array_equal(px.jit(lambda x: lax.mul(x, value))(V), V * V)
    np.testing.assert_array_equal(px.device_put(value), V)
    assert typeof(More()) == typeof(V)
