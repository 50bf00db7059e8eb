"""Cache keys of jaxprs, to find executables without lowering.

The key covers everything that the module depends on: the equations with their types, parameters and
constants, the options read by tracing and lowering, and the sources of the rules. If a dependency
cannot be covered there is no key, and the jaxpr is lowered to find its module: a rule or an object
of another package that is not trusted, a function that a rule reads, an effect.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from .._base.config import state
from .._base.digest import digest
from .._base.identity import is_own
from .._ir import rules as rule_kinds
from .._ir.avals import ShapedArray, unplaced
from .._ir.dtypes import ExtendedDType
from .._ir.effects import NamedAxisEffect
from .._ir.jaxpr import Eqn, Jaxpr, Literal
from .._ir.primitive import Primitive, known_primitives
from .._runtime.jaxlib_versions import build
from .._transform.expansion import expanded
from .liveness import large_consts, live_eqns, stored_value
from .source_fingerprint import is_trusted_module, stamp


class Unkeyable(Exception):
    """The module may depend on something that a key cannot cover."""


def key_of(
    jaxpr: Jaxpr, name: str, platform: str, donated: Sequence[int], keep_unused: bool,
    shardings: tuple | None = None,
) -> bytes | None:  # fmt: skip
    """The cache key of a lowering of a jaxpr; ``None`` if it has none.

    Args:
      shardings: text that describes the shardings of its arguments, results and constants.
    """
    sources = stamp()
    if sources is None:
        return None
    try:
        writer = _Writer(large_consts(jaxpr), platform)
        replaced = _rules_of_packages(writer, platform)
        options = writer.value(state.trace_key.values)
        contents = writer.jaxpr(jaxpr)
    except Exception:  # Unkeyable, or an unusual object; lowering reports errors of the jaxpr
        return None
    parts = (
        sources, build(), replaced, options, name, platform, tuple(donated), keep_unused, contents,
        shardings,
    )  # fmt: skip
    return digest(repr(parts).encode())


# Rules

_own_rules: set[Any] = set()
"""Rules of the core whose closures were checked."""


def _rule_kinds(platform: str) -> tuple:
    special = (rule_kinds.lower.on(platform),)
    if platform in ("cuda", "rocm"):
        special += (rule_kinds.lower.on("gpu"),)
    return (*special, rule_kinds.lower, rule_kinds.abstract, rule_kinds.effects)


def _rules_of_packages(writer: _Writer, platform: str) -> list[Any]:
    """Identifications of the rules of trusted packages.

    All of them, because lowering may use primitives that the jaxpr does not contain.

    Raises:
      Unkeyable: a primitive of the core or of a trusted package has a rule from elsewhere.
    """
    relevant_kinds = _rule_kinds(platform)
    others = []
    for prim in list(known_primitives()):
        rules = prim.rules
        for kind in relevant_kinds:
            rule = rules.get(kind)
            if rule is not None and rule not in _own_rules:
                if is_trusted_module(prim.home) and not _is_own_rule(rule):
                    # It may call the rules that it replaced.
                    others.append(((prim.home, prim.name, kind.name), prim.all_rules(kind)))
    others.sort(key=lambda other: other[0])
    return [(*names, [writer.function(r) for r in rules]) for names, rules in others]


def _is_own_rule(rule: Any, above: tuple = ()) -> bool:
    """Return True if a function and the functions in its closure are from this package."""
    if type(rule) is not FunctionType:
        return type(rule) is rule_kinds.Unsupported
    # A wrapper may carry another function's ``__module__``, never its globals.
    if not is_own(rule.__globals__.get("__name__")):
        return False
    if rule.__closure__ or rule.__defaults__:
        captured = [*map(_content, rule.__closure__ or ()), *(rule.__defaults__ or ())]
        above = (*above, rule)
        for f in captured:
            if type(f) is FunctionType and f not in _own_rules and f not in above:
                if not _is_own_rule(f, above):
                    return False
    _own_rules.add(rule)
    return True


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _parameters_read(rule: FunctionType) -> frozenset[str] | None:
    """The parameters that a rule reads: all (``None``), unless the rest is named ``**_``."""
    code = rule.__code__
    if not code.co_flags & 0x08:  # without keyword arguments
        return None
    positional = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[positional + bool(code.co_flags & 0x04)]
    if rest != "_":
        return None
    return frozenset(code.co_varnames[:positional])


# Jaxprs

_NONE: Final[frozenset[str]] = frozenset()
_MEMBERS: Final = (bool, int, str, bytes, type(None))


class _Writer:
    """Writes jaxprs as nested tuples whose text is unambiguous.

    Shared objects are numbered at their first occurrence, because lowering shares their results.
    """

    def __init__(self, hoisted: dict[int, Any], platform: str):
        self.hoisted = hoisted
        self.kinds = _rule_kinds(platform)[:-2]
        self.numbers: dict[int, int] = {}
        self.avals: dict[Any, int] = {}
        self.operations: dict[Primitive, tuple] = {}
        self.functions: dict[int, int] = {}

    def jaxpr(self, jaxpr: Jaxpr) -> Any:
        number = self.numbers.get(id(jaxpr))
        if number is not None:
            return number
        self.numbers[id(jaxpr)] = len(self.numbers)
        names: dict[Any, int] = {}
        consts = [
            (self._define(names, v), self.constant(c))
            for v, c in zip(jaxpr.constvars, jaxpr.consts)
        ]
        arguments = [self._define(names, v) for v in jaxpr.invars]
        eqns = []
        for eqn in live_eqns(jaxpr):
            if any(type(e) is not NamedAxisEffect for e in eqn.effects):  # those name axes only
                raise Unkeyable("effects")
            operation, read = self.operation(eqn)
            params = eqn.params if read is not _NONE else None
            if params:
                value = self.value
                params = [(k, value(v)) for k, v in params.items() if read is None or k in read]
            operands = [self.literal(v) if type(v) is Literal else names[v] for v in eqn.invars]
            results = [self._define(names, v) for v in eqn.outvars]
            scopes = tuple([s for s in eqn.ctx if s[-2:] != "()"])  # without transformations
            eqns.append((operation, operands, results, params, scopes))
        results_out = [self.literal(v) if type(v) is Literal else names[v] for v in jaxpr.outvars]
        return (jaxpr.debug_info.name, consts, arguments, eqns, results_out)

    def _define(self, names: dict, var) -> Any:
        names[var] = len(names)
        return self.aval(var.aval)

    def operation(self, eqn: Eqn) -> tuple:
        """Identification of a primitive and its rule, and the parameters that the rule reads."""
        prim = eqn.primitive
        if prim not in self.operations and rule_kinds.expand in prim.rules:
            if all(prim.rules.get(k) is None for k in self.kinds):
                # It lowers to its expansion, from any package.
                expansion = expanded(prim, [v.aval for v in eqn.invars], eqn.params)
                return ("expanded", self.jaxpr(expansion)), _NONE
        return self.rule_of(prim)

    def rule_of(self, prim: Primitive) -> tuple:
        """Identification of a primitive by its rule, and the parameters that the rule reads."""
        known = self.operations.get(prim)
        if known is None:
            rule = next((r for k in self.kinds if (r := prim.rules.get(k)) is not None), None)
            if not is_trusted_module(prim.home):
                raise Unkeyable(prim.name)
            number = len(self.operations)
            if rule in _own_rules:
                written: Any = (rule.__module__, rule.__code__.co_firstlineno)
                read = _parameters_read(rule)
            else:
                written, read = self.function(rule), None
            self.operations[prim] = number, read
            return (number, prim.name, prim.home, written), read
        return known

    def function(self, function: Any) -> Any:
        """Identification of a rule of a trusted package, or of a function that it captured."""
        number = self.functions.get(id(function))
        if number is not None:
            return number
        self.functions[id(function)] = len(self.functions)
        if type(function) is partial:
            parts = (function.func, function.args, function.keywords)
            return ("partial", [self.captured(part) for part in parts])
        if type(function) is not FunctionType:
            raise Unkeyable(function)
        module = function.__globals__.get("__name__")
        if not is_trusted_module(module):
            raise Unkeyable(function)
        code = function.__code__
        captured = [
            *map(_content, function.__closure__ or ()),
            *(function.__defaults__ or ()),
            *(function.__kwdefaults__ or {}).items(),
        ]
        place = (module, code.co_qualname, code.co_firstlineno)
        return ("function", *place, [self.captured(value) for value in captured])

    def captured(self, value: Any) -> Any:
        """The contents of a cell of a closure, or of an argument of a partial function."""
        kind = type(value)
        if kind is FunctionType or kind is partial:
            return self.function(value)
        if kind is tuple or kind is list:
            return (kind.__name__, [self.captured(v) for v in value])
        if kind is dict:
            return ("dict", [(self.value(k), self.captured(v)) for k, v in value.items()])
        if kind is Primitive:
            return ("primitive", value.name, value.home)
        if kind is ModuleType:
            return ("module", value.__name__)
        if kind is BuiltinFunctionType:
            return ("builtin", value.__module__, value.__qualname__)
        if kind in (set, frozenset):
            return (kind.__name__, sorted((self.captured(v) for v in value), key=repr))
        if isinstance(value, type) and "<locals>" not in value.__qualname__:
            if is_trusted_module(value.__module__):
                return ("type", value.__module__, value.__qualname__)
        return self.value(value)

    def aval(self, aval: Any) -> Any:
        number = self.avals.get(aval)
        if number is not None:
            return number
        if type(aval) is not ShapedArray:
            raise Unkeyable(aval)
        number = self.avals[aval] = len(self.avals)
        described = (number, aval.shape, self.dtype(aval.dtype), aval.weak_type)
        if aval.placement is unplaced:
            return described
        return (*described, aval.placement.text(aval.shape))

    def dtype(self, dtype: Any) -> Any:
        if isinstance(dtype, ExtendedDType):
            stored = dtype.physical_aval(ShapedArray((), dtype))
            return ("extended", dtype.name, stored.shape, self.dtype(stored.dtype))
        if not isinstance(dtype, np.dtype):
            raise Unkeyable(dtype)
        return (dtype.name, dtype.str, dtype.type.__module__)

    def literal(self, literal: Literal) -> Any:
        return ("literal", self.aval(literal.aval), self.value(literal.scalar))

    def constant(self, const: Any) -> Any:
        number = self.numbers.get(id(const))
        if number is not None:
            return number
        self.numbers[id(const)] = len(self.numbers)
        if id(const) in self.hoisted:
            return ("argument", self.aval(const.aval))
        if type(const) is Literal:
            return self.literal(const)
        if hasattr(const, "_spec") or isinstance(const, np.ndarray):
            return ("array", self.array(stored_value(const)))
        return self.value(const)

    def array(self, array: np.ndarray) -> Any:
        splat = array.size > 1 and not any(array.strides)
        content = array.tobytes() if array.size < 64 else _digest(array)
        return (self.dtype(array.dtype), array.shape, splat, content)

    def value(self, value: Any) -> Any:
        """The contents of a parameter."""
        kind = type(value)
        if kind in _MEMBERS:
            return value
        write = _WRITERS.get(kind)
        if write is not None:
            return write(self, value)
        if kind is Primitive:
            return ("primitive", self.rule_of(value)[0])
        if isinstance(value, np.dtype):
            return ("dtype", self.dtype(value))
        if isinstance(value, np.generic):
            return ("scalar", self.dtype(value.dtype), value.tobytes())
        if isinstance(value, type) and value.__module__ in ("builtins", "numpy", "ml_dtypes"):
            return ("type", value.__module__, value.__qualname__)
        if not is_trusted_module(kind.__module__):
            raise Unkeyable(value)
        if isinstance(value, enum.Enum):
            return ("enum", kind.__module__, kind.__qualname__, value.name)
        if isinstance(value, tuple):
            return (kind.__module__, kind.__qualname__, [self.value(v) for v in value])
        contents = getattr(value, "_key_on_disk", None)
        if contents is None:
            raise Unkeyable(value)
        return (kind.__module__, kind.__qualname__, self.value(contents()))

    def sequence(self, values: Any) -> Any:
        return (type(values).__name__, [self.value(v) for v in values])

    def mapping(self, values: dict) -> Any:
        return ("dict", [(self.value(k), self.value(v)) for k, v in values.items()])

    def number(self, value: Any) -> Any:
        return (type(value).__name__, np.asarray(value).tobytes())


def _digest(array: np.ndarray) -> bytes:
    return digest(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


_WRITERS: Final[dict[type, Callable[[_Writer, Any], Any]]] = {
    float: _Writer.number,
    complex: _Writer.number,
    tuple: _Writer.sequence,
    list: _Writer.sequence,
    dict: _Writer.mapping,
    frozenset: lambda self, values: ("frozenset", sorted(map(self.value, values), key=repr)),
    np.ndarray: lambda self, value: ("numpy", self.array(value)),
    Jaxpr: lambda self, value: ("jaxpr", self.jaxpr(value)),
    ShapedArray: lambda self, value: ("aval", self.aval(value)),
}
