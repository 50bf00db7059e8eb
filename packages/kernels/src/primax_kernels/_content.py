"""Keys of values by content: equal keys mean equal jaxprs, functions or specifications."""

from __future__ import annotations

import dis
import enum
import functools
import types
from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from primax_core.extend import Eqn, Jaxpr, Literal, ShapedArray
from primax_core.extend.runtime import bounded_cache

# Jaxprs


class _Same:
    """A key that is equal for one object only, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def jaxpr_key(jaxpr: Jaxpr) -> Hashable:
    """The operations of a jaxpr, their types, parameters and constants; names do not count."""
    numbers: dict[Any, int] = {}

    def binder(v: Any) -> Hashable:
        numbers[v] = len(numbers)
        return v.aval

    def atom(v: Any) -> Hashable:
        if type(v) is Literal:
            return v.aval, value_key(v.scalar)
        return numbers[v]

    def equation(eqn: Eqn) -> Hashable:
        operands = tuple(map(atom, eqn.invars))
        params = tuple((name, value_key(eqn.params[name])) for name in sorted(eqn.params))
        return eqn.primitive, operands, params, tuple(map(binder, eqn.outvars))

    binders = tuple(map(binder, (*jaxpr.constvars, *jaxpr.invars)))
    return (
        binders, tuple(map(value_key, jaxpr.consts)), tuple(map(equation, jaxpr.eqns)),
        tuple(map(atom, jaxpr.outvars)),
    )  # fmt: skip


def value_key(x: Any) -> Hashable:
    """A parameter or constant: equal for equal contents, or for one object if it has no hash."""
    if isinstance(x, Jaxpr):
        return jaxpr_key(x)
    if isinstance(x, (tuple, list)):
        return type(x), tuple(map(value_key, x))
    if isinstance(x, dict):
        return dict, tuple((k, value_key(v)) for k, v in x.items())
    if isinstance(x, (float, complex, np.generic, np.ndarray)):
        # 0.0 and -0.0 are equal, and NaN is not: the bits tell.
        array = np.asarray(x)
        return type(x), array.dtype, array.shape, array.tobytes()
    try:
        hash(x)
    except TypeError:
        return _Same(x)
    return type(x), x


# Functions and specifications


class NoKey(Exception):
    """A value is mutable, or refers to one that is."""


_BY_VALUE: Final = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), ShapedArray})
_BY_IDENTITY: Final = types.ModuleType, type, types.BuiltinFunctionType, np.ufunc, enum.Enum
_names: Final = bounded_cache(4096)
"""For each code object, by its id: itself, and the global names that it and nested code use."""


def content_key(x: Any, referents: list[Any], top: bool = True) -> Hashable:
    """A key of what users pass to `pallas_call`, and of what their functions refer to.

    Functions have equal keys if they have the same code, and equal default arguments, variables of
    enclosing functions and global variables. Global functions, classes and modules count by
    identity, as for a function that is compiled.

    Args:
      referents: receives the objects whose identity is part of the key, to be kept alive with it.
      top: whether functions count by what they refer to, also if they are global.

    Raises:
      NoKey: if equal keys would not mean equal behaviour, such as for lists and arrays.
    """
    kind = type(x)
    if kind in _BY_VALUE:
        return kind, x
    if kind is types.ModuleType or kind is type:
        referents.append(x)
        return id(x)
    if kind is types.FunctionType:
        if top:
            return _function_key(x, referents)
        referents.append(x)
        return id(x)
    if kind is tuple:
        return kind, *[content_key(entry, referents, top) for entry in x]
    if kind is float or isinstance(x, (complex, np.generic)):
        return value_key(x)
    if isinstance(x, np.dtype):
        return x
    if isinstance(x, _BY_IDENTITY) or (callable(x) and not top):
        referents.append(x)
        return id(x)
    if kind is functools.partial:
        keywords = tuple(x.keywords.items())
        return kind, content_key((x.func, x.args, keywords), referents, top)
    if is_dataclass(x) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        referents.append(kind)
        values = tuple(getattr(x, f.name) for f in fields(x))
        return id(kind), *[sequence_key(v, referents) for v in values]
    raise NoKey(x)


def sequence_key(x: Any, referents: list[Any]) -> Hashable:
    """`content_key` of a value whose lists count by their present contents."""
    if type(x) is list:
        return list, *[sequence_key(entry, referents) for entry in x]
    return content_key(x, referents)


def _function_key(fun: types.FunctionType, referents: list[Any]) -> Hashable:
    code = fun.__code__
    referents.append(code)
    parts: list[Hashable] = [id(code), fun.__name__]
    if fun.__defaults__ or fun.__kwdefaults__:
        keywords = tuple((fun.__kwdefaults__ or {}).items())
        parts.append(content_key((fun.__defaults__, keywords), referents))
    if fun.__closure__:
        for cell in fun.__closure__:
            try:
                value = cell.cell_contents
            except ValueError:
                raise NoKey(fun) from None  # a variable without a value
            if value is fun:
                raise NoKey(fun)  # it calls itself
            parts.append(content_key(value, referents))
    variables = fun.__globals__
    for name in _global_names(code):
        if name in variables:
            parts.append(content_key(variables[name], referents, top=False))
    return tuple(parts)


def _global_names(code: types.CodeType) -> Sequence[str]:
    """The names that code, and code nested in it, looks up in its module."""
    known = _names.get(id(code))
    if known is None:
        names: dict[str, None] = {}
        pending = [code]
        while pending:
            one = pending.pop()
            for instruction in dis.get_instructions(one):
                if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    names[instruction.argval] = None
            pending += [c for c in one.co_consts if isinstance(c, types.CodeType)]
        known = _names[id(code)] = code, tuple(names)
    return known[1]
