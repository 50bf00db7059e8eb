"""Datasets: formats of arrays, mapped columns, and a model that is trained from batches."""

import json
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import datasets
import jax
import jax.numpy as jnp
import numpy as np

datasets.disable_progress_bars()
rng = np.random.default_rng(0)
inputs = rng.normal(size=(240, 5)).astype(np.float32)
table = datasets.Dataset.from_dict(
    {
        "x": inputs,
        "y": (inputs @ np.arange(5) > 0).astype(np.int32),
        "image": rng.integers(0, 255, (240, 4, 4)).astype(np.uint8),
        "name": [f"row {i}" for i in range(240)],
    }
)
table = table.with_format("jax", columns=["x", "y", "image"])
results = {"types": {k: [str(v.dtype), list(v.shape)] for k, v in table[:3].items()}}
assert all(isinstance(v, jax.Array) for v in table[0].values())

# The columns of a mapped batch are arrays, and so is what the function returns.
scale = jax.jit(lambda x: (x - x.mean(0)) / x.std(0))
scaled = table.map(lambda batch: {"x": scale(batch["x"])}, batched=True, batch_size=240)
results["scaled"] = [float(scaled[:]["x"].mean()), float(scaled[:]["x"].std())]
chosen = scaled.filter(lambda row: bool(row["y"] == 1))
results["chosen"] = [len(chosen), float(chosen[:]["x"].sum())]


@jax.jit
def update(w, x, y):
    def loss(w):
        return jnp.mean(jnp.logaddexp(0, -(2 * y - 1) * (x @ w)))

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.5 * gradient, value


w = jnp.zeros(5)
for epoch in range(3):
    for batch in scaled.shuffle(seed=epoch).iter(batch_size=48):
        w, value = update(w, batch["x"], batch["y"])
results["loss"] = float(value)
results["weights"] = w.tolist()

# Streams, and columns whose rows have different lengths.
stream = scaled.with_format(None).to_iterable_dataset(num_shards=4).with_format("jax")
results["stream"] = float(sum(row["x"].sum() for row in stream.take(30)))
ragged = datasets.Dataset.from_dict({"v": [[1.0], [2.0, 3.0]]}).with_format("jax")
results["ragged"] = [row["v"].tolist() for row in ragged]
device = str(jax.devices()[0])
on_device = table.with_format("jax", device=device)
results["device"] = str(next(iter(on_device[0]["x"].devices())))
print(json.dumps(results))
