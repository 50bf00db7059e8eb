"""Training on eight CPU devices that is killed while it saves, and goes on from its checkpoint.

Four stores keep the state: a manager of orbax that saves in the background, arrays in tensorstore
(`array_serialization`), a file of safetensors and a file of NumPy. The resumed run must end with
the state of an uninterrupted one, bit for bit, and with its sharding.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental.array_serialization import serialization
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from safetensors.flax import load_file, save_file

jax.config.update("jax_num_cpu_devices", 8)

STEPS, EVERY, KILLED_AT = 24, 4, 15
MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
SHARDINGS = {
    "w": NamedSharding(MESH, P("data", "model")),
    "momentum": NamedSharding(MESH, P("data", "model")),
    "b": NamedSharding(MESH, P("model")),
}


def initial():
    """The state of the first step."""
    w = jnp.sin(jnp.arange(32.0 * 8)).reshape(32, 8)
    state = {"w": w, "momentum": jnp.zeros_like(w), "b": jnp.zeros(8)}
    return jax.device_put(state, SHARDINGS)


@jax.jit
def update(state, x, y):
    def loss(w, b):
        return jnp.mean(jnp.square(jnp.tanh(x @ w + b) - y))

    gradient_w, gradient_b = jax.grad(loss, (0, 1))(state["w"], state["b"])
    momentum = 0.9 * state["momentum"] + gradient_w
    w, b = state["w"] - 0.3 * momentum, state["b"] - 0.3 * gradient_b
    return {"w": w, "momentum": momentum, "b": b}


def batch(step):
    """The batch of a step, divided among the devices."""
    x, y = jax.random.normal(jax.random.key(step), (2, 16, 32))
    return jax.device_put((x, jnp.sign(y[:, :8])), NamedSharding(MESH, P("data")))


class Orbax:
    """Checkpoints of orbax, written by a thread while the training goes on."""

    def __init__(self, folder):
        self.manager = ocp.CheckpointManager(
            folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)
        )

    def save(self, step, state):
        self.manager.save(step, args=ocp.args.StandardSave(state))

    def load(self):
        step = self.manager.latest_step()
        if step is None:
            return 0, initial()
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, initial())
        return step, self.manager.restore(step, args=ocp.args.StandardRestore(abstract))

    def close(self):
        self.manager.close()


class Folders:
    """A folder for each saved step, which gets its name when it is complete."""

    def __init__(self, folder):
        self.folder = folder

    def save(self, step, state):
        incomplete = self.folder / f"{step}.incomplete"
        incomplete.mkdir(parents=True, exist_ok=True)
        self.write(incomplete, state)
        incomplete.rename(self.folder / str(step))

    def load(self):
        steps = [int(path.name) for path in self.folder.glob("*") if path.name.isdecimal()]
        if not steps:
            return 0, initial()
        return max(steps), self.read(self.folder / str(max(steps)))

    def close(self):
        pass


class Tensorstore(Folders):
    """Arrays in tensorstore: each device's part is written and read by itself."""

    def paths(self, folder):
        return [str(folder / name) for name in SHARDINGS]

    def write(self, folder, state):
        manager = serialization.GlobalAsyncCheckpointManager()
        arrays = [state[name] for name in SHARDINGS]
        saved = []
        manager.serialize_with_paths(
            arrays, self.paths(folder), on_commit_callback=lambda: saved.append(True)
        )
        manager.wait_until_finished()
        assert saved

    def read(self, folder):
        manager = serialization.GlobalAsyncCheckpointManager()
        arrays = manager.deserialize_with_paths([*SHARDINGS.values()], self.paths(folder))
        return dict(zip(SHARDINGS, arrays))


class Safetensors(Folders):
    """One file of safetensors."""

    def write(self, folder, state):
        save_file({**state}, folder / "state.safetensors")  # it converts the values of its argument

    def read(self, folder):
        return jax.device_put(load_file(folder / "state.safetensors"), SHARDINGS)


class Npz(Folders):
    """One file of NumPy."""

    def write(self, folder, state):
        jnp.savez(folder / "state.npz", **state)

    def read(self, folder):
        with jnp.load(folder / "state.npz") as file:
            return jax.device_put({name: file[name] for name in SHARDINGS}, SHARDINGS)


STORES = {store.__name__: store for store in (Orbax, Tensorstore, Safetensors, Npz)}


def train(store, killed_at=None):
    """Train from the last complete checkpoint; return the step of that, and the state."""
    start, state = store.load()
    for step in range(start, STEPS):
        state = update(state, *batch(step))
        if step == killed_at:
            state["w"].block_until_ready()
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGKILL)).start()
            store.save(step + 1, state)
            threading.Event().wait()
        if (step + 1) % EVERY == 0:
            store.save(step + 1, state)
    store.close()
    return start, state


def main():
    here = sys.modules["jax"].__file__.replace(os.sep, "/").endswith("/primax/__init__.py")
    options = ["-m", "primax.as_jax"] if here else []
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, store in STORES.items():
            folder = Path(scratch) / name
            command = [sys.executable, *options, __file__, name, str(folder)]
            done = subprocess.run(command, stderr=subprocess.DEVNULL)
            start, resumed = train(store(folder))
            _, whole = train(store(Path(scratch) / f"{name}, whole"))
            results[name] = {
                "killed": done.returncode == -signal.SIGKILL,
                "resumed from a checkpoint": start in (8, 12, 16),
                "same state": all(
                    np.asarray(resumed[leaf]).tobytes() == np.asarray(whole[leaf]).tobytes()
                    for leaf in SHARDINGS
                ),
                "same sharding": all(
                    resumed[leaf].sharding.is_equivalent_to(sharding, resumed[leaf].ndim)
                    for leaf, sharding in SHARDINGS.items()
                ),
                "norms": [float(jnp.linalg.norm(resumed[leaf])) for leaf in SHARDINGS],
            }
    print(json.dumps(results))


if len(sys.argv) > 1:
    train(STORES[sys.argv[1]](Path(sys.argv[2])), KILLED_AT)
else:
    main()
