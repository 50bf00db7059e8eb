"""Printer of jaxprs, in the documented syntax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.source import summarize
from . import dtypes
from .atoms import DropVar, JaxprType, Literal, Var, jaxprs_in
from .rules import memory_kinds

if TYPE_CHECKING:
    from .jaxpr import Eqn, Jaxpr

WIDTH = 80

# A default that equals every value: the parameter is never printed.
ALWAYS: Any = object()

# Parameters that are not printed while they have these values.
hidden_params: dict[str, dict[str, Any]] = {}


def hide_defaults(primitive: str, **defaults: Any) -> None:
    """Hide parameters of a primitive in printed jaxprs while they have their defaults.

    Args:
      primitive: the name of the primitive.
      defaults: the default of each parameter.

    Returns:
      ``None``. Only the text of jaxprs changes.

    Parameters that most operations have in common make jaxprs hard to read.

    >>> from primax_core import lax, make_jaxpr
    >>> from primax_core.extend import hide_defaults
    >>> hide_defaults("sin", accuracy=None)
    >>> make_jaxpr(lax.sin)(1.0).eqns[0]
    b:f32[] = sin a
    """
    hidden_params.setdefault(primitive, {}).update(defaults)


# Printers of equations whose text is not ``results = name[params] operands``.
_texts: dict[str, Callable[[Eqn, Callable[[Any], str], list[str]], str]] = {}


def print_as(primitive: str) -> Callable[[Any], Any]:
    """Decorator that registers the printer of a primitive's equations.

    Its arguments are the equation, a function from an operand to its text, and the texts of the
    results.
    """

    def register(fun: Any) -> Any:
        _texts[primitive] = fun
        return fun

    return register


class _Names:
    """Names of variables: a, b, ..., z, ba, bb, ... in order of appearance."""

    def __init__(self):
        self.names: dict[Var, str] = {}
        self.jaxprs: dict[Jaxpr, str] = {}
        self.taken: set[str] = set()

    def of(self, var) -> str:
        if isinstance(var, DropVar):
            return "_"
        name = self.names.get(var)
        if name is None:
            name = self.names[var] = _letters(len(self.names))
        return name

    def unique(self, base: str) -> str:
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}{n}"
        self.taken.add(name)
        return name


def _letters(n: int) -> str:
    text = chr(ord("a") + n % 26)
    while n >= 26:
        n //= 26
        text = chr(ord("a") + n % 26) + text
    return text


def jaxpr_to_text(jaxpr: Jaxpr, *, source_info: bool = False, name_stack: bool = False, **_) -> str:
    """The jaxpr as text.

    Args:
      source_info: append each equation's source line.
      name_stack: append each equation's named scopes.
    """
    printer = _Printer(source_info, name_stack)
    lets = printer.shared_jaxprs(jaxpr)
    body = "\n".join(printer.jaxpr(jaxpr))
    return "\n".join(lets + [body])


def eqn_to_text(eqn: Eqn) -> str:
    """One equation as text."""
    return "\n".join(_Printer(False, False).eqn(eqn))


class _Printer:
    def __init__(self, source_info: bool, name_stack: bool):
        self.names = _Names()
        self.source_info = source_info
        self.name_stack = name_stack

    def shared_jaxprs(self, jaxpr: Jaxpr) -> list[str]:
        """``let name = {...} in`` lines for sub-jaxprs that are used more than once."""
        counts: dict[Jaxpr, int] = {}
        order: list[tuple[Jaxpr, str]] = []

        def visit(j):
            for eqn in j.eqns:
                for sub in jaxprs_in(eqn.params):
                    seen = counts.get(sub, 0)
                    counts[sub] = seen + 1
                    if not seen:
                        visit(sub)
                        order.append((sub, eqn.params.get("name") or "jaxpr"))

        visit(jaxpr)
        lines: list[str] = []
        for sub, name in order:
            if counts[sub] > 1:
                body = self.jaxpr(sub)
                label = self.names.unique(str(name))
                self.names.jaxprs[sub] = label
                lines.append(f"let {label} = {body[0]}")
                lines.extend(body[1:])
                lines[-1] += " in"
        return lines

    def var(self, v, typed: bool = False) -> str:
        if isinstance(v, Literal):
            return f"{_literal(v.scalar)}:{v.aval.str_short()}"
        name = self.names.of(v)
        return f"{name}:{v.aval.str_short()}" if typed else name

    def jaxpr(self, jaxpr: Jaxpr) -> list[str]:
        consts = "".join(f" {self.var(v, True)}" for v in jaxpr.constvars)
        ins = "".join(f" {self.var(v, True)}" for v in jaxpr.invars)
        used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}
        used.update(v for v in jaxpr.outvars if isinstance(v, Var))
        eqns = [self.eqn(eqn, used) for eqn in jaxpr.eqns]
        outs = ", ".join(self.var(v) for v in jaxpr.outvars)
        outs = f"({outs},)" if len(jaxpr.outvars) == 1 else f"({outs})"
        head = f"{{ lambda{consts} ;{ins}. let"
        one = f"{head} {'; '.join(e[0] for e in eqns)} in {outs} }}"
        if all(len(e) == 1 for e in eqns) and len(one) <= WIDTH:
            return [one]
        lines = [head]
        for e in eqns:
            lines.extend("    " + line for line in e)
        lines.append(f"  in {outs} }}")
        return lines

    def eqn(self, eqn: Eqn, used: set | None = None) -> list[str]:
        operands = "".join(f" {self.var(v)}" for v in eqn.invars)
        scope = ""
        if self.name_stack and eqn.ctx:
            from .name_stack import joined

            scope = f"[{joined(eqn.ctx)}]"
        note = f" # {summarize(eqn.source)}" if self.source_info and eqn.source else ""
        outvars = [
            self.var(v, True) if used is None or v in used else f"_:{v.aval.str_short()}"
            for v in eqn.outvars
        ]
        if (rule := eqn.primitive.rules.get(memory_kinds)) is not None:
            kinds = rule(eqn)
            outvars = [
                text.replace("[", "<host>[", 1) if kind and "host" in kind else text
                for text, kind in zip(outvars, kinds)
            ]
        results = " ".join(outvars)
        written = _texts.get(eqn.primitive.name)
        if written is not None:
            return [written(eqn, self.var, outvars) + note]
        params = self.params(eqn)
        head = f"{results} = {eqn.primitive.name}{scope}" if results else eqn.primitive.name
        if not params:
            return [f"{head}{operands}{note}"]
        if all(len(v) == 1 for _, v in params):
            one = f"{head}[{' '.join(f'{k}={v[0]}' for k, v in params)}]{operands}{note}"
            if len(one) <= WIDTH:
                return [one]
        lines = [f"{head}["]
        for key, value in params:
            lines.append(f"  {key}={value[0]}")
            lines.extend("  " + line for line in value[1:])
        lines.append(f"]{operands}{note}")
        return lines

    def params(self, eqn: Eqn) -> list[tuple[str, list[str]]]:
        hidden = hidden_params.get(eqn.primitive.name, {})
        shown = []
        for key in sorted(eqn.params, key=lambda k: (k != "name", k)):
            value = eqn.params[key]
            if key in hidden and _same(hidden[key], value):
                continue
            shown.append((key, self.value(value)))
        return shown

    def value(self, value) -> list[str]:
        if isinstance(value, JaxprType):
            label = self.names.jaxprs.get(value)
            return [label] if label else self.jaxpr(value)
        if type(value) is tuple and value and all(isinstance(v, JaxprType) for v in value):
            lines = ["("]
            for v in value:
                lines.extend("  " + line for line in self.value(v))
            return [*lines, ")"]
        if isinstance(value, np.dtype):
            return [value.name]
        if callable(value) and hasattr(value, "__name__"):
            return [value.__name__]
        if type(value) is frozenset and value:  # in the same order in every process
            return [f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"]
        if type(value).__module__ == "enum" or hasattr(type(value), "__members__"):
            return [str(value)]
        return str(value).split("\n")


def _same(default, value) -> bool:
    return (
        default is value or default is ALWAYS or (type(default) is type(value) and default == value)
    )


def _literal(val) -> str:
    if isinstance(val, (np.generic, np.ndarray)):
        kind = dtypes.kind_of(val.dtype)
        val = float(val) if kind == "f" else int(val) if kind in "iu" else val.item()
    return str(val)
