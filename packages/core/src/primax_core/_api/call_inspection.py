"""The jaxpr, the executable and the earlier signatures of one call of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._ir.jaxpr import Eqn, Jaxpr, jaxprs_in
from .._ir.rules import devices as devices_rule
from .._lower import compile as _compile
from .._lower.liveness import devices_of
from .._runtime.array import ArrayImpl, default_sharding, spec_of
from .._runtime.devices import platform_of
from .._runtime.dispatch import device_of
from .._trace.axes import axis_env
from .jit import JitFunction, formats_of, jit, options_on_devices, placement
from .retraces import Change, changes

_flatten = flatten_operands


class Signature(NamedTuple):
    """One of the signatures that a function was traced for.

    Attributes:
      arguments: names and types of the arguments.
      changes: differences from the closest earlier signature.
      current: whether it is the one of this call.
    """

    arguments: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]
    current: bool


class PartitionMesh(NamedTuple):
    """The partitions of an executable along the axes of a mesh.

    Attributes:
      names: the names of the axes.
      partitions: the number of the partition at each position of the mesh.
    """

    names: tuple[Any, ...]
    partitions: np.ndarray


class CompiledCall:
    """A function traced and compiled for some arguments, and not run.

    Attributes:
      name: name of the function.
      jaxpr: the jaxpr that was compiled.
      platform: platform that it was compiled for.
      signatures: all signatures that the function was traced for so far, in order.
      executable: jaxlib's executable.
      num_partitions: number of devices that it runs on.
      meshes: the meshes of its arguments, results and operations.
    """

    __slots__ = (
        "_compile_again", "executable", "jaxpr", "meshes", "name", "num_partitions", "platform",
        "signatures",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        jaxpr: Jaxpr,
        platform: str,
        signatures: tuple[Signature, ...],
        executable: Any,
        compile_again: Callable[[Callable[[Eqn], str]], Any],
        num_partitions: int = 1,
        meshes: tuple[PartitionMesh, ...] = (),
    ):
        self.name: str = name
        self.jaxpr: Jaxpr = jaxpr
        self.platform: str = platform
        self.signatures: tuple[Signature, ...] = signatures
        self.executable: Any = executable
        self.num_partitions: int = num_partitions
        self.meshes: tuple[PartitionMesh, ...] = meshes
        self._compile_again = compile_again

    def compile_marked(self, mark: Callable[[Eqn], str]) -> Any:
        """jaxlib's executable of the same jaxpr, compiled again.

        Args:
          mark: the text that is appended to the names of an equation's operations in the module.
        """
        return self._compile_again(mark)


def compile_call(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> CompiledCall:
    """Trace and compile a function as a call would, without running it.

    Args:
      fun: a function; a jitted one keeps its options and adds to its signatures.
      args: positional arguments; arrays may be ``ShapeDtypeStruct``.
      kwargs: keyword arguments, likewise.

    Returns:
      A ``CompiledCall`` with the jaxpr, the signatures seen so far and the executable.

    Raises:
      TypeError: as the call would.

    Tools that explain calls use it.

    >>> from primax_core import lax
    >>> call = compile_call(lax.sin, (1.0,), {})
    >>> [e.primitive.name for e in call.jaxpr.eqns], call.signatures[-1].arguments
    (['sin'], (('x', 'f32[]'),))
    """
    jitted = fun if isinstance(fun, JitFunction) else jit(fun)
    cache = jitted._jit_cache
    bound, static_key, dynamic, named = jitted._bind_static(args, kwargs)
    leaves, in_tree = _flatten((dynamic, named))
    avals = [cache.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
    key = (state.trace_key, axis_env.key, static_key, in_tree, *avals)
    specs = [
        x._spec if isinstance(x, ArrayImpl) else spec_of(a, default_sharding(), False)
        for x, a in zip(leaves, avals)
    ]
    known = list(cache.traced)
    traced = cache.trace(bound, static_key, in_tree, avals)
    jaxpr, options = traced.jaxpr, options_on_devices(jitted._options, specs)
    exe = cache.executable(jaxpr, specs, in_tree, traced.out_tree)
    sharding = placement(options, jaxpr, specs) or device_of(specs, devices_of(jaxpr), cache.name)
    platform = platform_of(sharding._devices[0])
    requested = formats_of(options, jaxpr, in_tree, traced.out_tree)
    ins, outs = (None, None)
    if requested is not None:
        ins, outs = requested.in_shardings, requested.out_shardings
    shardings = _compile.shardings_of(jaxpr, specs, sharding, ins, outs)

    def compile_again(mark: Callable[[Eqn], str]) -> Any:
        lowered = _compile.lower_module(
            jaxpr,
            cache.name,
            platform,
            donated=cache.donated(in_tree),
            keep_unused=options.keep_unused,
            sharding=sharding,
            mark=mark,
            shardings=shardings,
        )
        devices = sharding._devices
        return _compile.compile_module(lowered, devices, options.compiler_options).raw

    signatures = _signatures(cache, key, known)
    meshes: tuple[PartitionMesh, ...] = ()
    if sharding.num_devices > 1:
        named = [sharding, *(s.sharding for s in specs), *(ins or ()), *(outs or ())]
        meshes = _meshes([*named, *_named_by_operations(jaxpr)], sharding._devices)
    return CompiledCall(
        cache.name, jaxpr, platform, signatures, exe.raw, compile_again, sharding.num_devices,
        meshes,
    )  # fmt: skip


def _meshes(shardings: Sequence[Any], devices: tuple[Any, ...]) -> tuple[PartitionMesh, ...]:
    """The different meshes of some shardings, over the devices of an executable."""
    partition_of = {d: i for i, d in enumerate(devices)}
    meshes: dict[Any, PartitionMesh] = {}
    for sharding in shardings:
        axes = None if sharding is None or sharding._is_abstract else sharding._mesh_axes()
        if axes is None:
            continue
        names, of_mesh = axes
        if partition_of.keys() == {*of_mesh.flat}:
            numbers = np.reshape([partition_of[d] for d in of_mesh.flat], of_mesh.shape)
            key = (names, of_mesh.shape, tuple(numbers.flat))
            meshes.setdefault(key, PartitionMesh(names, numbers))
    return tuple(meshes.values())


def _named_by_operations(jaxpr: Jaxpr) -> Iterator[Any]:
    """The shardings over the devices that operations of a jaxpr and its sub-jaxprs name."""
    for eqn in jaxpr.eqns:
        rule = eqn.primitive.rules.get(devices_rule)
        named = None if rule is None else rule(eqn)
        if named is not None:
            yield named
        for inner in jaxprs_in(eqn.params):
            yield from _named_by_operations(inner)


def _signatures(cache: Any, key: tuple, known: list[tuple]) -> tuple[Signature, ...]:
    order = known if key in known else [*known, key]
    signatures = []
    for i, k in enumerate(order):
        names = [cache.argument_name(j, k[3], k[2]) for j in range(len(k) - 4)]
        types = tuple((n, a.str_short()) for n, a in zip(names, k[4:]))
        signatures.append(Signature(types, tuple(changes(cache, k, order[:i])), k == key))
    return tuple(signatures)
