"""Programs over 8 CPU devices: calls, transfers, parts, collectives, data-parallel training.

Calls and transfers are CPU time of the calling thread, collectives and steps CPU time of the whole
process, which other load on the machine changes less than the time by the clock.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .case import Cases, Namespace

DEVICES = 8
CASES = Cases()
Call = Callable[[], Any]
Clock = Callable[[], int]


def lower_decile(ns: Namespace, call: Call, clock: Clock, number: int) -> float:
    """Seconds of ``call``: a tenth of the calls takes less.

    Each result is waited for, which counts for the CPU time of the process only.
    """
    on_thread = clock is time.thread_time_ns
    wait = ns.jax.block_until_ready
    for _ in range(3):
        wait(call())
    gc.collect()
    gc.disable()
    try:
        times = []
        for _ in range(number):
            start = clock()
            out = call()
            if on_thread:
                times.append(clock() - start)
                wait(out)
            else:
                wait(out)
                times.append(clock() - start)
        return sorted(times)[number // 10] / 1e9
    finally:
        gc.enable()


def on_thread(
    name: str, budget: float | None = None, number: int = 600
) -> Callable[[Callable[[Namespace], Call]], None]:
    """Register a function that prepares a call, measured in CPU time of the calling thread."""

    def register(prepare: Callable[[Namespace], Call]) -> None:
        @CASES.measured("8 devices, calling thread", name, "µs", budget)
        def _(ns: Namespace) -> float:
            return lower_decile(ns, prepare(ns), time.thread_time_ns, number)

    return register


def by_process(
    name: str, budget: float | None = None, number: int = 200
) -> Callable[[Callable[[Namespace], Call]], None]:
    """Register a function that prepares a call, measured in CPU time of all threads."""

    def register(prepare: Callable[[Namespace], Call]) -> None:
        @CASES.measured("8 devices, all threads", name, "µs", budget)
        def _(ns: Namespace) -> float:
            return lower_decile(ns, prepare(ns), time.process_time_ns, number)

    return register


def sharding(ns: Namespace, *spec: Any, devices: int = DEVICES) -> Any:
    """A sharding along a mesh of one axis ``x``."""
    where = ns.jax.sharding
    mesh = where.Mesh(np.array(ns.jax.devices()[:devices]), ("x",))
    return where.NamedSharding(mesh, where.PartitionSpec(*spec))


def array(ns: Namespace, rows: int = 64, columns: int = 16) -> Any:
    """An array whose rows are divided over the devices."""
    values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    return ns.jax.device_put(values, sharding(ns, "x"))


# Calls


@on_thread("jitted call, 1 array", 1.1)
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x: x + 1)
    return lambda: f(x)


def _tree(ns: Namespace, size: int) -> Call:
    tree = {f"w{i}": array(ns) for i in range(size)}
    f = ns.jax.jit(lambda tree: {k: v + 1 for k, v in tree.items()})
    return lambda: f(tree)


@on_thread("jitted call, tree of 10", 1.0)
def _(ns: Namespace) -> Call:
    return _tree(ns, 10)


@on_thread("jitted call, tree of 100", 1.0, number=100)
def _(ns: Namespace) -> Call:
    return _tree(ns, 100)


@on_thread("jitted call, 1 array and a Python number", 0.6)
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x, n: x * n)
    return lambda: f(x, 2.0)


@on_thread("device_put of NumPy values", 0.7)
def _(ns: Namespace) -> Call:
    values, where = np.ones((64, 16), np.float32), sharding(ns, "x")
    return lambda: ns.jax.device_put(values, where)


@on_thread("device_put of an array that is in place", 0.4)
def _(ns: Namespace) -> Call:
    x = array(ns)
    return lambda: ns.jax.device_put(x, x.sharding)


def _region(ns: Namespace) -> tuple[Callable[[Any], Any], Any]:
    where = sharding(ns, "x")

    def four_operations(x: Any) -> Any:
        total = ns.lax.psum(x * 2, "x")
        return ns.jnp.sin(total) + x

    f = ns.jax.shard_map(
        four_operations, mesh=where.mesh, in_specs=where.spec, out_specs=where.spec
    )
    return f, array(ns)


@CASES.measured("8 devices, calling thread", "eager shard_map, 4 operations, first", "ms", 0.5)
def _(ns: Namespace) -> float:
    f, x = _region(ns)
    start = time.thread_time()
    ns.jax.block_until_ready(f(x))
    return time.thread_time() - start


@CASES.measured("8 devices, calling thread", "eager shard_map, 4 operations", "ms", 0.005)
def _(ns: Namespace) -> float:
    f, x = _region(ns)
    return lower_decile(ns, lambda: f(x), time.thread_time_ns, 10)


# Parts and values


@on_thread("a jitted call and the 8 parts of its result", 1.0)
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x: x + 1)
    return lambda: [s.data for s in f(x).addressable_shards]


@on_thread("the same, and NumPy values of the parts")
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x: x + 1)
    return lambda: [np.asarray(s.data) for s in f(x).addressable_shards]


@on_thread("the same, and an operation on each part")
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x: x + 1)
    return lambda: [s.data * 2 for s in f(x).addressable_shards]


@on_thread("a jitted call and the NumPy values of its result", 1.0)
def _(ns: Namespace) -> Call:
    x, f = array(ns), ns.jax.jit(lambda x: x + 1)
    return lambda: np.asarray(f(x))


# Collectives


def _collective(ns: Namespace, body: Callable[[Any], Any], out: Any, columns: int = 512) -> Call:
    where = sharding(ns, "x")
    f = ns.jax.jit(
        ns.jax.shard_map(
            body,
            mesh=where.mesh,
            in_specs=where.spec,
            out_specs=ns.jax.sharding.PartitionSpec(*out),
        )
    )
    x = array(ns, 512, columns)
    return lambda: f(x)


@by_process("psum of 1 MiB", 1.0)
def _(ns: Namespace) -> Call:
    return _collective(ns, lambda x: ns.lax.psum(x, "x"), (None,))


@by_process("all_gather of 1 MiB", 1.0)
def _(ns: Namespace) -> Call:
    return _collective(ns, lambda x: ns.lax.all_gather(x, "x", tiled=True), ("x",))


@by_process("ppermute of 1 MiB", 1.0)
def _(ns: Namespace) -> Call:
    ring = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
    return _collective(ns, lambda x: ns.lax.ppermute(x, "x", ring), ("x",))


@by_process("matmul of 512x512, both operands divided", 1.0)
def _(ns: Namespace) -> Call:
    x = ns.jax.device_put(np.ones((512, 512), np.float32), sharding(ns, "x"))
    y = ns.jax.device_put(np.ones((512, 512), np.float32), sharding(ns, None, "x"))
    f = ns.jax.jit(lambda x, y: x @ y)
    return lambda: f(x, y)


# Training


def _training(ns: Namespace, devices: int) -> Call:
    """One step of gradient descent of a network, with the batch divided over the devices."""
    rng, sizes = np.random.default_rng(0), (64, 512, 512, 16)
    whole, rows = sharding(ns, devices=devices), sharding(ns, "x", devices=devices)
    weights = [rng.standard_normal((a, b)).astype(np.float32) / a**0.5 for a, b in pairwise(sizes)]
    params = ns.jax.device_put(weights, whole)
    x = ns.jax.device_put(rng.standard_normal((256, sizes[0])).astype(np.float32), rows)
    y = ns.jax.device_put(rng.standard_normal((256, sizes[-1])).astype(np.float32), rows)

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w in params[:-1]:
            x = ns.jnp.tanh(x @ w)
        return ((x @ params[-1] - y) ** 2).mean()

    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradient = ns.jax.value_and_grad(loss)(params, x, y)
        return [w - 0.01 * g for w, g in zip(params, gradient)], value

    jitted = ns.jax.jit(step, donate_argnums=0)

    def call() -> Any:
        nonlocal params
        params, value = jitted(params, x, y)
        return value

    return call


def _register_training(devices: int) -> None:
    name = f"training step of a network, data parallel, {devices} device{'s' * (devices > 1)}"

    @by_process(name, 1.0)
    def _(ns: Namespace) -> Call:
        return _training(ns, devices)


for _devices in (1, 2, 4, 8):
    _register_training(_devices)
