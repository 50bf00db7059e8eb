"""Functions as portable modules, called with other arguments than those of the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primax_core import jit, tree_util
from primax_core._ir.avals import ShapedArray
from primax_core._ir.symbolic_dims import is_symbolic_dim
from primax_core._trace.core import typeof
from primax_core.extend.portable_modules import PortableProgram, call_exported_p, lower_portable


def portable(fun: Callable[..., Any], *specs: Any) -> Callable[..., Any]:
    """``fun``, lowered for arguments of these shapes and types, which may be symbolic."""
    traced = jit(fun).trace(*specs)
    lowered = lower_portable(traced, ("cpu",))
    out_avals = traced.jaxpr.out_avals
    program = PortableProgram(
        lowered.name, lowered.to_bytes(), ("cpu",), tuple(traced.jaxpr.in_avals), tuple(out_avals),
        lowered.kept_args,
    )  # fmt: skip

    def call(*args: Any) -> Any:
        shapes = [typeof(x).shape for x in args]
        values = program.dimension_values(shapes, lambda i: f"args[{i}]")

        def size(d: Any) -> int:
            return d.evaluate(values) if is_symbolic_dim(d) else d

        sized = tuple([ShapedArray(tuple(map(size, a.shape)), a.dtype) for a in out_avals])
        outs = call_exported_p.bind(*args, exported=program, out_avals=sized)
        return tree_util.tree_unflatten(traced.out_tree, outs)

    return call
