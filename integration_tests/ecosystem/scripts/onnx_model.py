"""ONNX in: a small interpreter of ONNX graphs runs a convolutional network, and trains it.

The graph is evaluated operator by operator under ``jit``; its results are compared with those of
onnx's reference evaluator, and the parameters that the file contains are trained further.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def network():
    """A model of two convolutions, pooling, and a layer with softmax."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.normal(0, 0.4, (4, 1, 3, 3)),
        "b1": rng.normal(0, 0.1, (4,)),
        "w2": rng.normal(0, 0.3, (6, 4, 3, 3)),
        "b2": rng.normal(0, 0.1, (6,)),
        "w3": rng.normal(0, 0.3, (24, 3)),
        "b3": rng.normal(0, 0.1, (3,)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Sigmoid", ["c2"], ["s2"]),
        helper.make_node("Mul", ["c2", "s2"], ["a2"]),
        helper.make_node("Flatten", ["a2"], ["f"], axis=1),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["logits"], alpha=0.5),
        helper.make_node("Softmax", ["logits"], ["y"], axis=-1),
    ]
    tensors = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", ["n", 1, 8, 8]), ("y", ["n", 3]))
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    return model


def conv(x, w, b, pads, strides=(1, 1)):
    n = len(pads) // 2
    out = lax.conv_general_dilated(x, w, strides, [*zip(pads[:n], pads[n:])])
    return out + b[None, :, None, None]


def max_pool(x, kernel_shape, strides):
    window, steps = (1, 1, *kernel_shape), (1, 1, *strides)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, "VALID")


OPERATORS = {
    "Conv": conv,
    "Relu": jax.nn.relu,
    "MaxPool": max_pool,
    "Sigmoid": jax.nn.sigmoid,
    "Mul": jnp.multiply,
    "Flatten": lambda x, axis: x.reshape(int(np.prod(x.shape[:axis])), -1),
    "Gemm": lambda a, b, c, alpha=1.0, beta=1.0: alpha * (a @ b) + beta * c,
    "Softmax": lambda x, axis: jax.nn.softmax(x, axis),
}


def interpret(graph, weights, x):
    """The output of a graph of one input and one output."""
    values = {**weights, graph.input[0].name: x}
    for node in graph.node:
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        operands = (values[name] for name in node.input)
        values[node.output[0]] = OPERATORS[node.op_type](*operands, **options)
    return values[graph.output[0].name]


model = onnx.load_from_string(network().SerializeToString())
weights = {t.name: jnp.asarray(numpy_helper.to_array(t)) for t in model.graph.initializer}
x = np.random.default_rng(1).normal(size=(5, 1, 8, 8)).astype(np.float32)
run = jax.jit(lambda weights, x: interpret(model.graph, weights, x))
ours = run(weights, x)
(reference,) = ReferenceEvaluator(model).run(None, {"x": x})
np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-6)

labels = jnp.arange(5) % 3


@jax.jit
def step(weights):
    def loss(weights):
        y = interpret(model.graph, weights, x)
        return -jnp.log(y[jnp.arange(5), labels]).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.5 * g, weights, gradient), value


losses = []
for _ in range(30):
    weights, value = step(weights)
    losses.append(float(value))
batched = jax.vmap(lambda image: run(weights, image[None])[0])(x)
results = {
    "probabilities": ours.tolist(),
    "losses": losses[::6],
    "after training": batched.argmax(axis=-1).tolist(),
}
print(json.dumps(results))
