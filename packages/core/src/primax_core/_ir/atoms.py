"""Variables and literals: the operands and results of equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .avals import ShapedArray
from .dtypes import canonicalize_dtype

if TYPE_CHECKING:
    from .jaxpr import Jaxpr


class Var:
    """A variable; compared by identity."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """An unused output."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar constant, printed inline at its use; ``scalar`` is its value as a NumPy scalar."""

    __slots__ = ("scalar", "aval")

    def __init__(self, val: Any, aval: ShapedArray):
        self.scalar: Any = val
        self.aval: ShapedArray = aval

    @property
    def val(self) -> Any:
        """The value as user code sees it: a Python number of the same aval if there is one."""
        value, aval = self.scalar, self.aval
        if aval.dtype.kind == "b":
            return bool(value)
        if aval.weak_type:
            number = value.item() if hasattr(value, "item") else value
            if canonicalize_dtype(type(number)) == aval.dtype:
                return number
        return value

    def __repr__(self) -> str:
        return f"Literal({self.scalar})"


Atom = Var | Literal


class JaxprType:
    """Base class of ``Jaxpr``, so that the printer can recognize jaxprs among parameters."""

    __slots__ = ()


def jaxprs_in(params: dict[str, Any]) -> list[Jaxpr]:
    """The jaxprs among an equation's parameters, including those in tuples.

    Args:
      params: the parameters of an equation.

    Returns:
      A list, in the order of the parameters; empty for equations without sub-jaxprs.

    Only the jaxprs of the equation itself: :func:`walk` visits all levels.

    >>> from primax_core import jit, lax, make_jaxpr
    >>> from primax_core.extend import jaxprs_in
    >>> (eqn,) = make_jaxpr(jit(lambda x: lax.sin(x)))(1.0).eqns
    >>> [jaxpr.eqns[0].primitive.name for jaxpr in jaxprs_in(eqn.params)]
    ['sin']
    """
    jaxprs: list[Any] = []
    for value in params.values():
        if isinstance(value, JaxprType):
            jaxprs.append(value)
        elif type(value) is tuple:
            jaxprs.extend(v for v in value if isinstance(v, JaxprType))
    return jaxprs
