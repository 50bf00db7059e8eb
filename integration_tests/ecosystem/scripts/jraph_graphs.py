"""Jraph: batches of graphs, padding, a network on graphs and its gradient."""

import json

import jax
import jax.numpy as jnp
import jraph
import numpy as np


def graph(nodes, edges, seed):
    rng = np.random.default_rng(seed)
    return jraph.GraphsTuple(
        nodes=jnp.array(rng.normal(size=(nodes, 4)), jnp.float32),
        edges=jnp.array(rng.normal(size=(edges, 2)), jnp.float32),
        senders=jnp.array(rng.integers(0, nodes, edges)),
        receivers=jnp.array(rng.integers(0, nodes, edges)),
        n_node=jnp.array([nodes]),
        n_edge=jnp.array([edges]),
        globals=jnp.ones((1, 3)),
    )


batch = jraph.batch([graph(3, 5, 0), graph(4, 7, 1), graph(2, 2, 2)])
padded = jraph.pad_with_graphs(batch, n_node=16, n_edge=24, n_graph=5)
mask = jraph.get_graph_padding_mask(padded)
weights = {
    name: 0.3 * jax.random.normal(jax.random.key(i), (size, 4))
    for i, (name, size) in enumerate((("edge", 13), ("node", 15), ("global", 11)))
}


def network(weights, graphs):
    def apply(name):
        return lambda *inputs: jnp.tanh(jnp.concatenate(inputs, -1) @ weights[name])

    net = jraph.GraphNetwork(
        update_edge_fn=apply("edge"),
        update_node_fn=apply("node"),
        update_global_fn=apply("global"),
    )
    return net(graphs)


@jax.jit
def loss(weights):
    out = network(weights, padded)
    return jnp.sum(jnp.where(mask[:, None], out.globals, 0.0) ** 2)


value, grads = jax.value_and_grad(loss)(weights)
convolution = jraph.GraphConvolution(lambda x: x @ jnp.ones((4, 2)), add_self_edges=True)(batch)
attention = jraph.GAT(lambda x: x, lambda s, r, e: jnp.sum(s * r, -1, keepdims=True), lambda x: x)(
    batch._replace(edges=None)
)
parts = jraph.unbatch(jraph.unpad_with_graphs(padded))
print(
    json.dumps(
        {
            "loss": float(value),
            "grads": {k: float(jnp.linalg.norm(v)) for k, v in grads.items()},
            "convolution": convolution.nodes.sum(0).tolist(),
            "attention": attention.nodes.sum(0).tolist(),
            "softmax": jraph.segment_softmax(batch.edges[:, 0], batch.receivers, 9).tolist(),
            "parts": [len(parts), *(len(p.nodes) for p in parts)],
        }
    )
)
