"""``Exported``: a function as portable StableHLO, and calls of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from primax_core import custom_vjp, tree_util, typeof
from primax_core.extend import ShapedArray, dtypes
from primax_core.extend.dimensions import is_static, is_symbolic_dim
from primax_core.extend.placements import is_placed, unplaced
from primax_core.extend.portable_modules import PortableProgram, call_exported_p, text_of
from primax_core.extend.runtime import api_boundary, state, structure_differences
from primax_core.extend.traces import Tracer

from .checks import DisabledSafetyCheck

_flatten, _unflatten = tree_util.tree_flatten, tree_util.tree_unflatten


@dataclass(frozen=True, repr=False)
class Exported:
    """A function lowered to portable StableHLO, the result of `export` and `deserialize`.

    Attributes:
      fun_name: the function's name.
      in_tree, in_avals: structure of ``(args, kwargs)``, and avals of the leaves.
      out_tree, out_avals: structure of the result, and avals of its leaves.
      in_shardings_hlo, out_shardings_hlo: ``None`` for each argument and result: shardings are
        in the module, and `in_shardings_jax` and `out_shardings_jax` give them.
      nr_devices: the number of devices of the function.
      platforms: the platforms on which it can be called.
      ordered_effects, unordered_effects: its side effects.
      disabled_safety_checks: its disabled checks.
      mlir_module_serialized: the module, a portable artifact of StableHLO.
      calling_convention_version: number of the calling convention of ``main``.
      module_kept_var_idx: the arguments of ``main``: those that the function reads.
      uses_global_constants: ``main`` has a platform index, or sizes are symbolic.

    >>> import numpy as np
    >>> import primax_core as pc
    >>> from primax_interpreters import export
    >>> exported = export.export(pc.jit(pc.lax.sin))(np.ones(3, np.float32))
    >>> exported.in_avals, exported.platforms
    ((ShapedArray(float32[3]),), ('cpu',))
    >>> exported.call(np.zeros(3, np.float32)).tolist()
    [0.0, 0.0, 0.0]
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[Any, ...]
    out_tree: Any
    out_avals: tuple[Any, ...]
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None = field(compare=False)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self) -> str:
        """The module as text."""
        return text_of(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """Shardings of the arguments on a mesh; ``None`` if not specified.

        Raises:
          ValueError: if the mesh has other axes than the one of the export.
          TypeError: if it is no mesh.
        """
        return _over(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """Shardings of the results on a mesh; ``None`` if not specified.

        Raises:
          ValueError: if the mesh has other axes than the one of the export.
          TypeError: if it is no mesh.
        """
        return _over(self._out_named_shardings, mesh)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for `deserialize`.

        Args:
          vjp_order: the number of reverse derivatives to include.

        Raises:
          ImportError: without the package flatbuffers.
          ValueError, TypeError: for trees that cannot be serialized; register their classes with
            `register_pytree_node_serialization`.
        """
        from . import envelope  # which reads and writes this class

        return bytearray(envelope.pack(self, vjp_order))

    def has_vjp(self) -> bool:
        """Return True if the function can be differentiated."""
        return self._get_vjp is not None

    @api_boundary
    def vjp(self) -> Exported:
        """The exported reverse derivative.

        Its arguments are the flat arguments and the cotangents of the flat results; its results are
        the cotangents of the flat arguments.

        Raises:
          ValueError: if the function was serialized without a derivative.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for {self.fun_name!r}: it was serialized without one. Use "
                "exported.serialize(vjp_order=1), or more for higher derivatives."
            )
        return self._derivative

    @cached_property
    def _derivative(self) -> Exported:
        assert self._get_vjp is not None
        return self._get_vjp(self)

    @cached_property
    def _program(self) -> PortableProgram:
        return PortableProgram(
            self.fun_name, self.mlir_module_serialized, tuple(self.platforms), self.in_avals,
            self.out_avals, self.module_kept_var_idx, self.nr_devices,
            DisabledSafetyCheck.platform() in self.disabled_safety_checks,
            tuple([s and s.memory_kind for s in self._out_named_shardings]),
        )  # fmt: skip

    # Calls

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with arguments of the exported structure and types.

        Calls can be jitted, exported again and, with `vjp`, differentiated in reverse.

        Raises:
          ValueError: for other arguments, with the mismatch, and on other platforms.
          NotImplementedError: under ``vmap``.
          TypeError: under ``jvp``.
        """
        leaves, tree = _flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(self._structure_problem(tree))
        out_avals = self._results_for([typeof(x) for x in leaves])
        outs = self._call_flat(leaves, out_avals)
        return _unflatten(self.out_tree, outs)

    def _call_flat(self, leaves: list[Any], out_avals: tuple[Any, ...]) -> list[Any]:
        if state.trace is None and not any(isinstance(x, Tracer) for x in leaves):
            return self._bind(out_avals, leaves)
        return list(self._differentiable(out_avals)(*leaves))

    def _bind(self, out_avals: tuple[Any, ...], leaves: Sequence[Any]) -> list[Any]:
        return call_exported_p.bind(*leaves, exported=self._program, out_avals=out_avals)

    def _differentiable(self, out_avals: tuple[Any, ...]) -> Callable[..., Any]:
        """The call with its derivative, which is created on demand."""
        cached = self._program.cache.get(out_avals)
        if cached is not None:
            return cached

        def flat(*leaves: Any) -> Any:
            return self._bind(out_avals, leaves)

        def forward(*leaves: Any) -> Any:
            # Through `call` again: an outer derivative differentiates this.
            return call(*leaves), leaves

        def backward(leaves: Any, cts: Any) -> Any:
            dense = [_as_zeros(ct, a) for ct, a in zip(cts, out_avals)]
            return tuple(self.vjp().call(*leaves, *dense))

        flat.__name__ = self.fun_name
        call = custom_vjp(flat)
        call.defvjp(forward, backward)
        self._program.cache[out_avals] = call
        return call

    def _results_for(self, avals: Sequence[Any]) -> tuple[Any, ...]:
        """Avals of the results for arguments of these avals, which are checked."""
        for i, (got, aval) in enumerate(zip(avals, self.in_avals)):
            if got.dtype != aval.dtype:
                raise ValueError(
                    f"Dtype mismatch for {self._argument(i)}: expected "
                    f"{dtypes.full_name(aval.dtype)} and called with {dtypes.full_name(got.dtype)}"
                )
            if got.ndim != aval.ndim:
                raise ValueError(
                    f"Rank mismatch for {self._argument(i)}: expected {aval.shape} and called "
                    f"with {got.shape}"
                )
        return self._fit(avals)

    def _fit(self, avals: Sequence[Any]) -> tuple[Any, ...]:
        for i, (got, aval) in enumerate(zip(avals, self.in_avals)):
            for axis, (n, expected) in enumerate(zip(got.shape, aval.shape)):
                if not is_symbolic_dim(expected) and (is_symbolic_dim(n) or n != expected):
                    raise ValueError(
                        f"Shape mismatch for {self._argument(i)}.shape[{axis}] (expected same "
                        f"constant): expected {aval.shape} and called with {got.shape}"
                    )
        results = tuple(self.out_avals)
        if self._program.polymorphic:
            variables = self._program.dimension_values([a.shape for a in avals], self._argument)
            results = tuple([_with_sizes(a, variables) for a in results])
        return self._placed(avals, results)

    def _placed(self, avals: Sequence[Any], results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Avals of the results over the mesh in the types of the arguments."""
        if not any(map(is_placed, (*avals, *results))):
            return results
        meshes = [a.placement.sharding.mesh for a in avals if is_placed(a)]
        placed = []
        for aval, described in zip(results, self._out_named_shardings):
            placement = unplaced
            if meshes and described is not None and described.fits(meshes[0]):
                placement = described.over(meshes[0])._placement(aval.ndim)
            placed.append(aval.update(placement=placement))
        return tuple(placed)

    def _argument(self, i: int) -> str:
        """Name of an argument in messages: ``args[0]['w']``."""
        args, kwargs = _unflatten(self.in_tree, list(range(self.in_tree.num_leaves)))
        for name, tree in (("args", args), ("kwargs", kwargs)):
            for path, number in tree_util.tree_leaves_with_path(tree):
                if number == i:
                    return name + tree_util.keystr(path)
        return f"argument {i}"

    def _structure_problem(self, tree: Any) -> str:
        lines = []
        for path, called, exported, why in structure_differences(tree, self.in_tree):
            where = path.replace("[0]", "args", 1) if path.startswith("[0]") else path
            where = path.replace("[1]", "kwargs", 1) if path.startswith("[1]") else where
            lines.append(
                f"   - {where} is {called} in the invocation and {exported} when exported, so {why}"
            )
        return (
            "The invocation args and kwargs must have the same pytree structure as when the "
            f"function '{self.fun_name}' was exported, but they have the following structural "
            "differences:\n" + "\n".join(lines)
        )


def _over(shardings: Sequence[Any], mesh: Any) -> tuple[Any, ...]:
    return tuple([
        None if s is None or not s.axes and None in s.entries else s.over(mesh) for s in shardings
    ])  # fmt: skip


def _as_zeros(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent; ``float0`` zeros for a result without tangents."""
    expected = aval.tangent_aval()
    if typeof(ct).dtype != expected.dtype:
        return np.zeros(aval.shape, expected.dtype)
    return ct


def _with_sizes(aval: ShapedArray, variables: dict[str, int]) -> ShapedArray:
    """An aval with its symbolic dimensions evaluated."""
    if is_static(aval.shape):
        return aval
    sizes = [d.evaluate(variables) if is_symbolic_dim(d) else d for d in aval.shape]
    return aval.update(shape=tuple(sizes))
