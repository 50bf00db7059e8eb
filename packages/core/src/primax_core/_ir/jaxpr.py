"""Jaxprs: typed, closed programs of equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .atoms import (
    Atom as Atom,
    DropVar as DropVar,
    JaxprType,
    Literal as Literal,
    Var as Var,
    jaxprs_in as jaxprs_in,
)
from .avals import ShapedArray
from .effects import no_effects
from .primitive import Primitive
from .printer import eqn_to_text, jaxpr_to_text


class SourceInfo(tuple[Any, ...]):
    """A source location, as ``_base.source`` captures it, or an empty tuple.

    Attributes:
      ctx: the named scopes and transformations around the operation.
    """

    ctx: tuple[str, ...]


class Eqn:
    """An equation: one application of a primitive.

    ``primitive`` is applied to ``invars`` (variables and literals) with ``params``, and its
    results are bound to ``outvars``. ``effects`` are its effects, ``source`` is the location in
    the user's code, ``ctx`` the named scopes and options.

    >>> from primax_core import lax, make_jaxpr
    >>> (eqn,) = make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(lax.iota("float32", 3)).eqns
    >>> eqn.primitive, eqn.params["axes"], [v.aval for v in eqn.invars]
    (reduce_sum, (0,), [ShapedArray(float32[3])])
    """

    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source", "ctx")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        effects: frozenset[Any] = no_effects,
        source_info: Any = None,
        ctx: tuple[str, ...] = (),
    ):
        self.primitive: Primitive = primitive
        self.invars: Sequence[Atom] = invars
        self.outvars: Sequence[Var] = outvars
        self.params: dict[str, Any] = params
        self.effects: frozenset[Any] = effects
        self.source: Any = source_info  # a location as ``_base.source`` captures it
        self.ctx: tuple[str, ...] = ctx  # named scopes and transformations, see ``name_stack``

    @property
    def source_info(self) -> SourceInfo:
        """The source location, and the named scopes; false without a location."""
        info = SourceInfo(self.source or ())
        info.ctx = self.ctx
        return info

    def replace(self, **changes: Any) -> Eqn:
        """A copy with some fields changed."""
        fields = {n: getattr(self, n) for n in Eqn.__slots__}
        fields["source_info"] = fields.pop("source")
        fields.update(changes)
        return Eqn(**fields)

    def __repr__(self) -> str:
        return eqn_to_text(self)


class DebugInfo(NamedTuple):
    """Origin of a jaxpr, for error messages and names."""

    traced_for: str = "jit"
    name: str = "<unknown>"
    filename: str | None = None
    line: int | None = None
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_src_info(self) -> str:
        """``f at file.py:12``."""
        return f"{self.name} at {self.filename}:{self.line}" if self.filename else self.name


no_debug_info = DebugInfo()


class Jaxpr(JaxprType):
    """A typed, closed program: ``{ lambda constvars ; invars. let eqns in (outvars,) }``.

    ``consts`` are the values of ``constvars``. ``in_avals`` and ``out_avals`` are the types of
    arguments and results, ``effects`` the effects. Jaxprs are immutable, and compared and hashed
    by identity; their derived jaxprs are stored in ``cache``. ``replace`` returns a changed copy.

    >>> from primax_core import lax, make_jaxpr
    >>> jaxpr = make_jaxpr(lambda x: lax.sin(x) * 2.0)(1.0)
    >>> print(jaxpr)
    { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    >>> [eqn.primitive.name for eqn in jaxpr.eqns], jaxpr.out_avals
    (['sin', 'mul'], [ShapedArray(float32[], weak_type=True)])
    """

    __slots__ = (
        "constvars",
        "consts",
        "invars",
        "outvars",
        "eqns",
        "effects",
        "debug_info",
        "cache",
        "__weakref__",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        consts: Sequence[Any],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: frozenset[Any] | None = None,
        debug_info: DebugInfo = no_debug_info,
    ):
        self.constvars: list[Var] = list(constvars)
        self.consts: list[Any] = list(consts)
        self.invars: list[Var] = list(invars)
        self.outvars: list[Atom] = list(outvars)
        self.eqns: list[Eqn] = list(eqns)
        self.effects: frozenset[Any] = (
            joined_effects(eqns, [*invars, *constvars]) if effects is None else effects
        )
        self.debug_info: DebugInfo = debug_info
        self.cache: dict[Any, Any] = {}

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Avals of the arguments, without constants."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Avals of the results."""
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields changed and an empty cache."""
        fields = {n: getattr(self, n) for n in Jaxpr.__slots__[:7]}
        if "eqns" in changes and "effects" not in changes:
            fields["effects"] = None
        elif self.effects and ("invars" in changes or "constvars" in changes):
            fields["effects"] = None  # effects on references contain positions
        fields.update(changes)
        return Jaxpr(**fields)

    def pretty_print(self, **options: Any) -> str:
        """The jaxpr as text; see :func:`primax_core._ir.printer.jaxpr_to_text`."""
        return jaxpr_to_text(self, **options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The jaxpr in a notebook, with colours."""
        from .jaxpr_html import jaxpr_html

        return jaxpr_html(str(self))


def joined_effects(eqns: Sequence[Eqn], binders: Sequence[Var] = ()) -> frozenset[Any]:
    """Union of the effects of equations, as effects of a jaxpr.

    ``binders`` are the arguments of the jaxpr, followed by its constants.
    """
    union = no_effects
    positions: dict[Any, int] | None = None
    for eqn in eqns:
        if eqn.effects:
            effects = eqn.effects
            if any(e.input_index is not None for e in effects):
                if positions is None:
                    positions = {v: i for i, v in enumerate(binders)}
                effects = {e.seen_from(eqn.invars, positions) for e in effects}
            union = union | effects
    return union


def is_scalar_literal(val) -> bool:
    """Return True if a constant becomes a literal: Python scalars and 0-d NumPy values."""
    return isinstance(val, (bool, int, float, complex, np.generic)) or (
        type(val) is np.ndarray and val.ndim == 0
    )
