"""``Exported``: a function as portable StableHLO, and calls of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.config import state
from ..._base.source import api_boundary
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.symbolic_dims import is_static, is_symbolic_dim
from ..._lower.exported import PortableProgram
from ..._lower.lazy import portable
from ..._trace.core import Tracer, typeof
from ...lax.control.bodies import structure_differences
from ...lax.exported_call import call_exported_p
from ..custom_derivatives import custom_vjp
from .checks import DisabledSafetyCheck

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


@dataclass(frozen=True, repr=False)
class Exported:
    """A function that was lowered to portable StableHLO, as `export` and `deserialize` return it.

    Attributes:
      fun_name: the function's name.
      in_tree, in_avals: structure of ``(args, kwargs)``, and types of the leaves.
      out_tree, out_avals: structure of the result, and types of its leaves.
      in_shardings_hlo, out_shardings_hlo: shardings of arguments and results, ``None`` where the
        function was given none.
      nr_devices: how many devices the function is for.
      platforms: the platforms it can be called on.
      ordered_effects, unordered_effects: what it does besides computing its results.
      disabled_safety_checks: checks that are not made of it.
      mlir_module_serialized: the module, a portable artifact of StableHLO.
      calling_convention_version: number of the convention that ``main`` follows.
      module_kept_var_idx: which of the arguments ``main`` takes: those that the function reads.
      uses_global_constants: whether ``main`` takes the platform's index or sizes are symbolic.

    >>> import numpy as np
    >>> import primax_core as pc
    >>> exported = pc.export.export(pc.jit(pc.lax.sin))(np.ones(3, np.float32))
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
        return portable.as_text(self.mlir_module_serialized)

    def in_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """Shardings of the arguments on a mesh, ``None`` where the function was given none."""
        return self._in_named_shardings

    def out_shardings_jax(self, mesh: Any) -> Sequence[Any]:
        """Shardings of the results on a mesh, ``None`` where the function was given none."""
        return self._out_named_shardings

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for `deserialize`.

        Args:
          vjp_order: how many reverse derivatives go with it.

        Raises:
          ImportError: without the package flatbuffers.
          ValueError, TypeError: for trees that cannot be written; classes are registered with
            `register_pytree_node_serialization`.
        """
        from . import envelope

        return bytearray(envelope.pack(self, vjp_order))

    def has_vjp(self) -> bool:
        """Whether the function can be differentiated."""
        return self._get_vjp is not None

    @api_boundary
    def vjp(self) -> Exported:
        """The reverse derivative, exported: of the flat arguments and the cotangents of the flat
        results, the cotangents of the flat arguments.

        Raises:
          ValueError: if the function was serialized without.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for {self.fun_name!r}: it was serialized without. Use "
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
        )  # fmt: skip

    # Calls

    @api_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with arguments of the structure and types it was exported for.

        Calls can be jitted, exported again and, with `vjp`, differentiated in reverse.

        Raises:
          ValueError: for other arguments, saying which, and on other platforms.
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
        """The call with its derivative, which is found when it is wanted."""
        made = self._program.cache.get(out_avals)
        if made is not None:
            return made

        def flat(*leaves: Any) -> Any:
            return self._bind(out_avals, leaves)

        def forward(*leaves: Any) -> Any:
            # Through `call` again: an outer derivative differentiates this.
            return call(*leaves), leaves

        def backward(leaves: Any, cts: Any) -> Any:
            given = [_as_zeros(ct, a) for ct, a in zip(cts, out_avals)]
            return tuple(self.vjp().call(*leaves, *given))

        flat.__name__ = self.fun_name
        call = custom_vjp(flat)
        call.defvjp(forward, backward)
        self._program.cache[out_avals] = call
        return call

    def _results_for(self, avals: Sequence[Any]) -> tuple[Any, ...]:
        """Types of the results for arguments of these types, which are checked."""
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
            for axis, (n, wanted) in enumerate(zip(got.shape, aval.shape)):
                if not is_symbolic_dim(wanted) and (is_symbolic_dim(n) or n != wanted):
                    raise ValueError(
                        f"Shape mismatch for {self._argument(i)}.shape[{axis}] (expected same "
                        f"constant): expected {aval.shape} and called with {got.shape}"
                    )
        if not self._program.polymorphic:
            return tuple(self.out_avals)
        variables = self._plan.values([a.shape for a in avals])
        return tuple([_with_sizes(a, variables) for a in self.out_avals])

    @cached_property
    def _plan(self) -> Any:
        """How the dimension variables follow from the shapes of arguments."""
        from ..._ir.dimensions.solving import plan_of

        names = [self._argument(i) for i in range(len(self.in_avals))]
        return plan_of([a.shape for a in self.in_avals], names)

    def _argument(self, i: int) -> str:
        """How messages call an argument: ``args[0]['w']``."""
        args, kwargs = _unflatten(self.in_tree, list(range(self.in_tree.num_leaves)))
        for name, tree in (("args", args), ("kwargs", kwargs)):
            for path, number in pytree.tree_leaves_with_path(tree):
                if number == i:
                    return name + pytree.keystr(path)
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


def _as_zeros(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent; of results without one, ``float0``."""
    wanted = aval.tangent_aval()
    if typeof(ct).dtype != wanted.dtype:
        return np.zeros(aval.shape, wanted.dtype)
    return ct


def _with_sizes(aval: ShapedArray, variables: dict[str, int]) -> ShapedArray:
    """A type whose symbolic dimensions have the sizes that follow from their variables'."""
    if is_static(aval.shape):
        return aval
    sizes = [d.evaluate(variables) if is_symbolic_dim(d) else d for d in aval.shape]
    return aval.update(shape=tuple(sizes))
