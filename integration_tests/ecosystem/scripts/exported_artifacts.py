"""Exported functions both ways: one process writes what the other implementation calls.

The script runs a child process with the other implementation of jax. Each side exports functions
(one with a symbolic batch size and its derivative, and one training step), and calls those of the
other side. The formats of ``serialize`` differ, so the attributes of ``Exported`` are exchanged;
the module among them is StableHLO in its portable format.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export

ROLE = "EXPORTED_ARTIFACTS_FOLDER"


def init(key):
    first, second = jax.random.split(key)
    return {
        "w": jax.random.normal(first, (4, 8)) / 2,
        "v": jax.random.normal(second, (8, 3)) / 3,
        "b": jnp.zeros(3),
    }


def model(params, x):
    return jax.nn.softmax(jnp.tanh(x @ params["w"]) @ params["v"] + params["b"])


def step(params, x, labels):
    def loss(p):
        return -jnp.mean(jnp.sum(jnp.log(model(p, x)) * labels, axis=-1))

    value, gradient = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)


def arguments():
    params = init(jax.random.key(0))
    x = jnp.sin(jnp.arange(20.0)).reshape(5, 4)
    return params, x, jax.nn.one_hot(jnp.arange(5) % 3, 3)


def packed(exported):
    """The attributes of an exported function, as values that any process reads."""
    plain = ("fun_name", "nr_devices", "platforms", "mlir_module_serialized")
    more = ("calling_convention_version", "module_kept_var_idx", "uses_global_constants")
    types = {
        name: [(",".join(map(str, t.shape)), t.dtype.name) for t in getattr(exported, name)]
        for name in ("in_avals", "out_avals")
    }
    return {name: getattr(exported, name) for name in (*plain, *more)} | types


def unpacked(values, arguments, results, vjp=None):
    """The exported function; ``arguments`` and ``results`` have the structure of its pytrees."""
    scope = export.SymbolicScope()

    def avals(types):
        shapes = [export.symbolic_shape(shape, scope=scope) for shape, _ in types]
        return tuple(jax.core.ShapedArray(s, jnp.dtype(d)) for s, (_, d) in zip(shapes, types))

    values = values | {"in_avals": avals(values["in_avals"])}
    values["out_avals"] = avals(values["out_avals"])
    inputs, outputs = (None,) * len(values["in_avals"]), (None,) * len(values["out_avals"])
    return export.Exported(
        in_tree=jax.tree.structure((arguments, {})),
        out_tree=jax.tree.structure(results),
        _in_named_shardings=inputs,
        _out_named_shardings=outputs,
        in_shardings_hlo=inputs,
        out_shardings_hlo=outputs,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=(),
        _get_vjp=vjp,
        **values,
    )


def write(folder):
    params, x, labels = arguments()
    (batch,) = export.symbolic_shape("batch")
    symbolic = jax.ShapeDtypeStruct((batch, 4), x.dtype)
    functions = {"model": export.export(jax.jit(model))(params, symbolic)}
    functions["derivative"] = functions["model"].vjp()
    functions["step"] = export.export(jax.jit(step))(params, x, labels)
    for name, exported in functions.items():
        (folder / name).write_bytes(pickle.dumps(packed(exported)))


def functions_in(folder):
    params, x, labels = arguments()
    values = {path.name: pickle.loads(path.read_bytes()) for path in folder.iterdir()}
    flat = jax.tree.leaves((params, x))
    derivative = unpacked(values["derivative"], (*flat, x), tuple(flat))
    return {
        "model": unpacked(values["model"], (params, x), x, lambda _: derivative),
        "step": unpacked(values["step"], (params, x, labels), (x, params)),
    }


def read(folder):
    params, x, labels = arguments()
    functions = functions_in(folder)
    results = {"probabilities": functions["model"].call(params, x).tolist()}
    results["another batch"] = functions["model"].call(params, x[:2]).tolist()
    pulled = jax.grad(lambda p: functions["model"].call(p, x)[:, 0].sum())(params)
    results["gradient"] = {name: value.ravel().tolist() for name, value in pulled.items()}
    losses = []
    for _ in range(5):
        loss, params = jax.jit(functions["step"].call)(params, x, labels)
        losses.append(float(loss))
    results["losses"] = losses
    results["own"] = float(step(*arguments())[0])
    return results


def other_side(folder):
    """Run this script with the other implementation; return the JSON of its last line."""
    here = sys.modules["jax"].__file__.replace(os.sep, "/").endswith("/primax/__init__.py")
    options = [] if here else ["-m", "primax.as_jax"]
    environment = {k: v for k, v in os.environ.items() if k != "PRIMAX_AS_JAX"}
    done = subprocess.run(
        [sys.executable, *options, __file__],
        env={**environment, ROLE: str(folder)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


if ROLE in os.environ:
    shared = Path(os.environ[ROLE])
    answer = read(shared / "parent")
    write(shared / "child")
    print(json.dumps(answer))
else:
    with tempfile.TemporaryDirectory() as scratch:
        for side in ("parent", "child"):
            (Path(scratch) / side).mkdir()
        write(Path(scratch) / "parent")
        ours_elsewhere = other_side(Path(scratch))
        theirs_here = read(Path(scratch) / "child")
    print(json.dumps({"written here": ours_elsewhere, "read here": theirs_here}))
