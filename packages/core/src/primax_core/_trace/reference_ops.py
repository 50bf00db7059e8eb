"""Operations on references, for traces, transformations and compiled calls.

The implementation of references is loaded when the first one is created. Until then
:class:`NoReferences` is in use, so that code without references has no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

if TYPE_CHECKING:
    from .._ir.jaxpr import DebugInfo, Jaxpr
    from .._ir.primitive import Primitive
    from .core import Trace


class References(Protocol):
    """The interface of the reference implementation."""

    loaded: bool
    """True if references may exist."""

    # Arguments and results of traced functions

    def check_aliases(
        self,
        leaves: Sequence[Any],
        consts: Sequence[Any],
        info: DebugInfo | Callable[[], DebugInfo],
    ) -> None:
        """Raise an error for a reference that a function receives in two ways."""

    def refuse_returned(self, ref: Any, where: str, info: DebugInfo) -> None:
        """Raise an error for a reference among the results of a traced function."""

    def check_returned(self, outs: Sequence[Any], tree: Any, kind: str, fun: Any) -> None:
        """Raise an error for a reference among the results of a ``custom_vjp`` function."""

    # Contents

    def get(self, ref: Any, index: Any) -> Any:
        """``ref[index]``."""

    def set(self, ref: Any, index: Any, value: Any) -> None:
        """``ref[index] = value``."""

    def addupdate(self, ref: Any, index: Any, value: Any) -> None:
        """``ref[index] += value``."""

    def indexer(self, ref: Any) -> Any:
        """``ref.at``."""

    def read_whole(self, trace: Trace | None, ref: Any) -> Any:
        """The contents of a reference, read under a trace."""

    def write_whole(self, trace: Trace | None, ref: Any, value: Any) -> None:
        """Replace the contents of a reference under a trace."""

    def cell(self, trace: Trace, aval: Any, value: Any) -> Any:
        """A reference created under a transformation, with these contents."""

    def copy(self, array: Any) -> Any:
        """A copy of a concrete array."""

    # Transformations

    def process(
        self,
        trace: Trace,
        prim: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        every: bool = False,
    ) -> Any:
        """Apply an operation on references under a transformation, by its discharge rule.

        ``every``: also discharge references from outside the transformation.
        """

    def call(
        self, trace: Trace, jaxpr: Jaxpr, args: Sequence[Any], name: str | None = None
    ) -> list[Any]:
        """Evaluate a jaxpr on references under a transformation."""

    def has_cells(self, trace: Trace, args: Sequence[Any]) -> bool:
        """Return True if an operand is a reference created under this transformation."""

    def lend(
        self, trace: Trace, args: Sequence[Any], run: Callable[[Sequence[Any]], list[Any]]
    ) -> list[Any]:
        """Call a function with a custom rule on cells of this transformation."""

    def batch(
        self,
        prim: Primitive,
        axis: Any,
        args: Sequence[Any],
        dims: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[list[Any], list[Any]]:
        """Batch a loop or conditional with batched writes to references."""

    # Jaxprs

    def without_local_refs(self, jaxpr: Jaxpr) -> Jaxpr:
        """The jaxpr with its locally created references discharged."""

    def for_lowering(self, jaxpr: Jaxpr) -> Jaxpr:
        """The jaxpr without references, ready for compilation."""

    # Compiled calls

    def plan(self, jaxpr: Jaxpr, args: Sequence[Any]) -> Any:
        """Plan for a call of a jaxpr whose arguments include references or their types."""

    def run(
        self,
        jaxpr: Jaxpr,
        args: Sequence[Any],
        name: str | None = None,
        donated: Sequence[int] = (),
        compiler_options: tuple[Any, ...] = (),
    ) -> list[Any]:
        """Run a jaxpr whose arguments include references."""

    def run_eagerly(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Run a jaxpr of the library itself on references."""

    def evaluate(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate one operation on references eagerly."""


class NoReferences:
    """Implementation before any reference exists: checks pass, all other methods raise."""

    loaded: Final = False

    def check_aliases(self, leaves: Any, consts: Any, info: Any) -> None:
        """Do nothing."""

    def has_cells(self, trace: Any, args: Any) -> bool:
        """Return False."""
        return False

    def without_local_refs(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return the jaxpr unchanged."""
        return jaxpr

    def for_lowering(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return the jaxpr unchanged."""
        return jaxpr

    def _unreachable(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("an operation on references ran before any reference was made")

    refuse_returned = check_returned = _unreachable
    get = set = addupdate = indexer = read_whole = write_whole = _unreachable
    cell = copy = process = call = lend = batch = plan = run = run_eagerly = evaluate = _unreachable


class _Current:
    """The implementation in use, shared by all modules that import ``references``."""

    __slots__ = ("ops",)

    def __init__(self) -> None:
        self.ops: References = NoReferences()


references: Final = _Current()


def install_references(ops: References) -> None:
    """Replace :class:`NoReferences`; called once, when the implementation is loaded."""
    references.ops = ops
