"""Grain with prefetching: a training run is killed in the middle and resumed from its checkpoint.

Threads of Grain prepare batches, and two of them are on their way to the device (`device_put`)
while a step computes. The checkpoint has the state of the iterator after the last batch that was
trained on, not after the last one that was read.
The resumed run must see the batches that the killed one had not seen, and end with the parameters
of an uninterrupted run, bit for bit.
"""

import collections
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import grain
import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH, EVERY, KILLED_AT = 40, 8, 5, 23


def batches():
    """An iterator over shuffled, augmented batches, prefetched by threads."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(128, 6)).astype(np.float32)
    targets = np.tanh(inputs @ rng.normal(size=6).astype(np.float32))
    dataset = (
        grain.MapDataset.source(np.arange(128))
        .seed(3)
        .shuffle()
        .repeat(4)
        .map(lambda i: {"x": inputs[i], "y": targets[i]})
        .random_map(lambda item, rng: {**item, "x": item["x"] + rng.normal(0, 0.01, 6)})
        .batch(BATCH)
        .to_iter_dataset(grain.ReadOptions(num_threads=4, prefetch_buffer_size=16))
    )
    return iter(dataset)


def on_device(iterator, ahead=2):
    """Move batches to the device ahead of their use; yield each with the iterator's state."""
    waiting = collections.deque()
    for batch in iterator:
        batch["x"] = batch["x"].astype(np.float32)
        waiting.append((jax.device_put(batch), iterator.get_state()))
        if len(waiting) > ahead:
            yield waiting.popleft()
    yield from waiting


@jax.jit
def update(w, x, y):
    def loss(w):
        return jnp.mean(jnp.square(jnp.tanh(x @ w) - y))

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.2 * gradient, value


def train(checkpoint, kill_at=None):
    """Train from the checkpoint, or from the start; return what each step saw."""
    iterator, w, start, log = batches(), jnp.zeros(6), 0, []
    if checkpoint.exists():
        w, start, log, state = pickle.loads(checkpoint.read_bytes())
        w = jnp.asarray(w)
        iterator.set_state(state)
    prefetched = on_device(iterator)
    for step in range(start, STEPS):
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        batch, state = next(prefetched)
        x = batch["x"]
        w, value = update(w, x, batch["y"])
        log.append((hashlib.sha256(np.asarray(x).tobytes()).hexdigest()[:8], float(value)))
        if (step + 1) % EVERY == 0:
            saved = np.asarray(w), step + 1, log, state
            checkpoint.with_suffix(".new").write_bytes(pickle.dumps(saved))
            checkpoint.with_suffix(".new").replace(checkpoint)
    return np.asarray(w), log


if len(sys.argv) > 1:
    train(Path(sys.argv[1]), kill_at=KILLED_AT)
else:
    here = sys.modules["jax"].__file__.replace(os.sep, "/").endswith("/primax/__init__.py")
    options = ["-m", "primax.as_jax"] if here else []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "checkpoint"
        done = subprocess.run([sys.executable, *options, __file__, str(path)])
        resumed_at = pickle.loads(path.read_bytes())[1]
        resumed, seen = train(path)
        whole, expected = train(Path(scratch) / "other")
    results = {
        "killed": done.returncode == -signal.SIGKILL,
        "resumed at": resumed_at,
        "same batches": [name for name, _ in seen] == [name for name, _ in expected],
        "same parameters": resumed.tobytes() == whole.tobytes(),
        "different batches": len({name for name, _ in seen}),
        "losses": [value for _, value in seen[::8]],
    }
    print(json.dumps(results))
