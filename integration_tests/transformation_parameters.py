"""Calls of the transformations with each of their optional parameters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from lax_parameters import Calls

import primax
from primax import lax

F32 = np.float32
V = np.arange(3, dtype=F32)
M = np.arange(6, dtype=F32).reshape(2, 3)
DEVICE = primax.devices()[0]
ON_DEVICE = primax.sharding.SingleDeviceSharding(DEVICE)


def _product(x: Any, y: Any = 3.0) -> Any:
    return x * y


def _pair(x: Any, y: Any = 3.0) -> Any:
    return x * y, x


def _of_grad(name: str) -> Any:
    def call(**k: Any) -> Any:
        argnums = k.get("argnums", 0)
        x = 2 if k.get("allow_int") else np.complex64(2j) if k.get("holomorphic") else 2.0
        fun = _pair if k.get("has_aux") else _product
        out = getattr(primax, name)(fun, **k)(x, 5.0)
        return out, argnums

    return call


_SCALAR: Final = {"argnums": 1, "has_aux": True, "holomorphic": True, "allow_int": True}
_NO_INT: Final = {"argnums": 1, "has_aux": True, "holomorphic": True}


def _jitted(**k: Any) -> Any:
    """Attributes of a jitted function that depend on its options."""
    jitted = primax.jit(lambda x, y: x * 2.0, **k)
    y = 3 if "static_argnums" in k or "static_argnames" in k else V
    x = primax.device_put(V)
    traced = jitted.trace(x, y)
    lowered = traced.lower()
    nested = primax.make_jaxpr(lambda: jitted(V, y))()
    compiled = lowered.compile()
    return lowered.as_text(), str(nested), compiled.input_shardings, jitted(x, y), x.is_deleted()


def _checkpointed(**k: Any) -> Any:
    def f(x: Any, n: Any = 2) -> Any:
        return lax.sin(lax.sin(x)) * (n if isinstance(n, int) else 1)

    with_n = {"n": 2} if "static_argnames" in k else {}
    args = (2.0,) if with_n else (2.0, 2)
    g = primax.checkpoint(f, **k)
    gradient = primax.grad(lambda x: g(x, *args[1:], **with_n))
    return str(primax.make_jaxpr(gradient)(2.0)), str(primax.jit(gradient).lower(2.0).as_text())


def _vmapped(**k: Any) -> Any:
    def f(x: Any) -> Any:
        if "axis_name" in k:
            return lax.psum(x, "i")
        return x * 2.0

    if k.get("sum_match"):
        k["out_axes"] = None
    return primax.vmap(f, **k)(M)


def _jaxpr(**k: Any) -> Any:
    def f(x: Any) -> Any:
        return lax.psum(x, "i") if "axis_env" in k else x * 2

    return str(primax.make_jaxpr(f, **k)(2))


def _custom(name: str) -> Any:
    def call(**k: Any) -> Any:
        custom = getattr(primax, name)(_product, **k)
        rule_args: list[Any] = []

        def jvp(*args: Any) -> Any:
            rule_args.append(len(args))
            primals, tangents = args[-2:]
            return primals[0] * 5.0, tangents[0] * 5.0

        def bwd(*args: Any) -> Any:
            rule_args.append(len(args))
            return (args[-1],) if k else (args[-1], None)

        if name == "custom_jvp":
            custom.defjvp(jvp)
        else:
            custom.defvjp(lambda *args: (args[0] * 5.0, None), bwd)
        return primax.grad(custom)(2.0, 5.0), rule_args

    return call


def _custom_gradient(**k: Any) -> Any:
    def f(x: Any) -> Any:
        if k.get("remat"):
            return x * 2.0, lambda x: (x * 2.0, lambda ct: ct * 7.0)
        return x * 2.0, lambda ct: ct * 3.0

    return primax.grad(primax.custom_gradient(**k)(f) if "fun" not in k else k["fun"])(2.0)


def _put(**k: Any) -> Any:
    x = primax.device_put(V)
    y = primax.device_put(x, **k)
    return y.committed, x.is_deleted(), y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def _called_back(**k: Any) -> Any:
    def f(x: Any) -> Any:
        return primax.pure_callback(np.sin, primax.ShapeDtypeStruct((), F32), x, **k)

    return primax.vmap(f)(V) if k else primax.jit(f)(F32(1))


TRANSFORMATIONS: Final[dict[str, Calls]] = {
    "grad": Calls(_of_grad("grad"), reduce_axes=("i",), **_SCALAR),
    "value_and_grad": Calls(_of_grad("value_and_grad"), reduce_axes=("i",), **_SCALAR),
    "jacfwd": Calls(_of_grad("jacfwd"), **_NO_INT),
    "jacrev": Calls(_of_grad("jacrev"), **_SCALAR),
    "hessian": Calls(_of_grad("hessian"), **_NO_INT),
    "vjp": Calls(
        lambda **k: (
            len(out := primax.vjp(_pair if k else _product, 2.0, 3.0, **k)),
            out[1]((1.0, 1.0) if k and "has_aux" not in k else 1.0),
        ),
        has_aux=True, reduce_axes=("i",), saveable_args=False, in_nzs=(True, False),
    ),
    "jvp": Calls(
        lambda **k: primax.jvp(_pair, (2.0, 3.0), (1.0, 1.0), **k), has_aux=True
    ),
    "linearize": Calls(
        lambda **k: primax.linearize(_pair, 2.0, 3.0, **k)[1](1.0, 1.0),
        has_aux=True, in_nzs=(True, False),
    ),
    "linear_transpose": Calls(
        lambda **k: primax.linear_transpose(lambda x: x * 2.0, 1.0, **k)(1.0), reduce_axes=("i",)
    ),
    "fwd_and_bwd": Calls(
        lambda **k: (
            len((pair := primax.fwd_and_bwd(_pair, 0, **k))[0](2.0)), hasattr(pair[0], "lower")
        ),
        has_aux=True, jitted=False,
    ),
    "vmap": Calls(
        _vmapped, in_axes=1, out_axes=1, axis_name="i", axis_size=5, spmd_axis_name="i",
        sum_match=True,
    ),
    "jit": Calls(
        _jitted, fun=lambda x, y: x, in_shardings=ON_DEVICE, out_shardings="x", static_argnums=1,
        static_argnames="y", donate_argnums=0, donate_argnames="x", keep_unused=True,
        device=DEVICE, backend="nonexistent", inline=True,
        compiler_options={"optimization_level": "unknown"},
    ),
    "checkpoint": Calls(
        _checkpointed, prevent_cse=False, static_argnums=1, static_argnames="n",
        policy=primax.checkpoint_policies.everything_saveable,
    ),
    "make_jaxpr": Calls(_jaxpr, static_argnums=0, axis_env=[("i", 2)], return_shape=True),
    "custom_jvp": Calls(_custom("custom_jvp"), nondiff_argnums=1, nondiff_argnames="y"),
    "custom_vjp": Calls(_custom("custom_vjp"), nondiff_argnums=1, nondiff_argnames="y"),
    "custom_gradient": Calls(
        _custom_gradient, fun=lambda x: x * x, with_logs=True, remat=True, with_accums=True
    ),
    "device_put": Calls(_put, device=DEVICE, src=ON_DEVICE, donate=True, may_alias=False),
    "named_call": Calls(
        lambda **k: primax.make_jaxpr(primax.named_call(lax.sin, **k))(1.0).eqns[0].ctx,
        name="other",
    ),
    "pure_callback": Calls(_called_back, sharding=ON_DEVICE, vmap_method="sequential"),
    "new_ref": Calls(
        lambda **k: primax.typeof(primax.new_ref(V, **k)), memory_space="device", kind="other",
        pin=True,
    ),
}  # fmt: skip
