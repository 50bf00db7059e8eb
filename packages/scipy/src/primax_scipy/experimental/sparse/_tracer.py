"""Tracer of sparse arrays: evaluation on sparse arrays while Python runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primax_core.extend import Jaxpr, Primitive, stage
from primax_core.extend.traces import Trace, Tracer, current_trace, set_trace
from primax_core.tree_util import tree_flatten, tree_unflatten

from ._interpreter import applied, evaluate, is_sparse, type_of


class SparseTracer(Tracer):
    """A sparse array as an argument of a function transformed by
    ``sparsify(f, use_tracer=True)``.

    Args:
      trace: the trace.
      spvalue: the sparse array.
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: Trace, *, spvalue: Any):
        super().__init__(trace, type_of(spvalue))
        self.spvalue: Any = spvalue


class SparseTrace(Trace):
    """Trace that applies the sparse rules of operations at once."""

    __slots__ = ()

    def _values(self, args: Sequence[Any]) -> list[Any]:
        return [x.spvalue if isinstance(x, SparseTracer) and x._trace is self else x for x in args]

    def _wrapped(self, value: Any) -> Any:
        return SparseTracer(self, spvalue=value) if is_sparse(value) else value

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation."""
        with set_trace(self.parent):
            outs = [self._wrapped(x) for x in applied(prim, self._values(args), params)]
        return outs if prim.multiple_results else outs[0]

    def call(self, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None) -> list[Any]:
        """Evaluate a jaxpr."""
        with set_trace(self.parent):
            return [self._wrapped(x) for x in evaluate(jaxpr, self._values(args))]

    def call_custom(self, custom: Any, args: Sequence[Any]) -> list[Any]:
        """Evaluate a call of a function with custom derivatives."""
        values = self._values(args)
        with set_trace(self.parent):
            if not any(map(is_sparse, values)):
                return list(custom.call(values))
            jaxpr = stage(lambda *xs: custom.call(xs), [type_of(x) for x in values], custom.name)
            return [self._wrapped(x) for x in evaluate(jaxpr, values)]


def run_on_tracers(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The results of a function of sparse arrays, which it receives as tracers."""
    trace = SparseTrace(current_trace())
    leaves, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
    with set_trace(trace):
        args, kwargs = tree_unflatten(tree, [trace._wrapped(x) for x in leaves])
        outs, out_tree = tree_flatten(f(*args, **kwargs))
    return tree_unflatten(out_tree, trace._values(outs))
