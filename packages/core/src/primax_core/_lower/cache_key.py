"""Keys of programs, which lead to compiled modules without lowering.

A program's key says everything that its module follows from: the equations with their types,
parameters and constants, the options that tracing and lowering read, and the sources of the rules.
Where that cannot be said for certain there is no key, and the program is lowered to find its
module: a rule or an object of a stranger, a function that a rule reads, an effect.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from .._base.config import state
from .._base.digest import digest
from .._ir import rules as rule_kinds
from .._ir.avals import ShapedArray, unplaced
from .._ir.dtypes import ExtendedDType
from .._ir.jaxpr import Eqn, Jaxpr, Literal
from .._ir.primitive import Primitive, known_primitives
from .._runtime.jaxlib_versions import build
from .._transform.expansion import expanded
from .liveness import large_consts, live_eqns, stored_value
from .source_fingerprint import ROOT, stamp


class Unkeyable(Exception):
    """The module may follow from more than a key can say."""


def key_of(
    jaxpr: Jaxpr, name: str, platform: str, donated: Sequence[int], keep_unused: bool
) -> bytes | None:
    """The key of a program that is lowered in this way; ``None`` if it has none."""
    sources = stamp()
    if sources is None:
        return None
    try:
        if not _only_own_rules(platform):
            return None
        writer = _Writer(large_consts(jaxpr), platform)
        options = writer.value(state.trace_key.values)
        said = writer.jaxpr(jaxpr)
    except Exception:  # Unkeyable, or an odd object; what is wrong with a program lowering says
        return None
    parts = (sources, build(), options, name, platform, tuple(donated), keep_unused, said)
    return digest(repr(parts).encode())


# Rules

_trusted: set[Any] = set()


def _rule_kinds(platform: str) -> tuple:
    special = (rule_kinds.lower.on(platform),)
    if platform in ("cuda", "rocm"):
        special += (rule_kinds.lower.on("gpu"),)
    return (*special, rule_kinds.lower, rule_kinds.abstract, rule_kinds.effects)


def _is_own(module: Any) -> bool:
    return isinstance(module, str) and (module == ROOT or module.startswith(ROOT + "."))


def _only_own_rules(platform: str) -> bool:
    """Whether nobody replaced a rule of our primitives, which other rules may use."""
    wanted = _rule_kinds(platform)
    for prim in list(known_primitives()):
        rules = prim.rules
        for kind in wanted:
            rule = rules.get(kind)
            if rule is not None and rule not in _trusted:
                if _is_own(prim.home) and not _trust(rule):
                    return False
    return True


def _trust(rule: Any, above: tuple = ()) -> bool:
    """Whether a function, and the functions it was made with, were written here."""
    if type(rule) is not FunctionType:
        return type(rule) is rule_kinds.Unsupported
    # A wrapper may carry another function's ``__module__``, never its globals.
    if not _is_own(rule.__globals__.get("__name__")):
        return False
    if rule.__closure__ or rule.__defaults__:
        held = [*map(_content, rule.__closure__ or ()), *(rule.__defaults__ or ())]
        above = (*above, rule)
        for f in held:
            if type(f) is FunctionType and f not in _trusted and f not in above:
                if not _trust(f, above):
                    return False
    _trusted.add(rule)
    return True


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _parameters_read(rule: FunctionType) -> frozenset[str] | None:
    """The parameters that a rule reads: all (``None``), unless it names the others ``**_``."""
    code = rule.__code__
    if not code.co_flags & 0x08:  # it takes no others
        return None
    positional = code.co_argcount + code.co_kwonlyargcount
    rest = code.co_varnames[positional + bool(code.co_flags & 0x04)]
    if rest != "_":
        return None
    return frozenset(code.co_varnames[:positional])


# Programs

_NONE: Final[frozenset[str]] = frozenset()
_MEMBERS: Final = (bool, int, str, bytes, type(None))


class _Writer:
    """Writes programs as nested tuples whose text says everything.

    Objects that are shared are numbered where they are first met, since lowering shares what is
    made of them.
    """

    def __init__(self, hoisted: dict[int, Any], platform: str):
        self.hoisted = hoisted
        self.kinds = _rule_kinds(platform)[:-2]
        self.numbers: dict[int, int] = {}
        self.avals: dict[Any, int] = {}
        self.operations: dict[Primitive, tuple] = {}

    def jaxpr(self, jaxpr: Jaxpr) -> Any:
        number = self.numbers.get(id(jaxpr))
        if number is not None:
            return number
        self.numbers[id(jaxpr)] = len(self.numbers)
        names: dict[Any, int] = {}
        held = [
            (self._define(names, v), self.constant(c))
            for v, c in zip(jaxpr.constvars, jaxpr.consts)
        ]
        taken = [self._define(names, v) for v in jaxpr.invars]
        said = []
        for eqn in live_eqns(jaxpr):
            if eqn.effects:
                raise Unkeyable("effects")
            operation, read = self.operation(eqn)
            params = eqn.params if read is not _NONE else None
            if params:
                value = self.value
                params = [(k, value(v)) for k, v in params.items() if read is None or k in read]
            operands = [self.literal(v) if type(v) is Literal else names[v] for v in eqn.invars]
            results = [self._define(names, v) for v in eqn.outvars]
            said.append((operation, operands, results, params, eqn.ctx))
        given = [self.literal(v) if type(v) is Literal else names[v] for v in jaxpr.outvars]
        return (jaxpr.debug_info.name, held, taken, said, given)

    def _define(self, names: dict, var) -> Any:
        names[var] = len(names)
        return self.aval(var.aval)

    def operation(self, eqn: Eqn) -> tuple:
        """What identifies a primitive and its rule, and the parameters that the rule reads."""
        prim = eqn.primitive
        if prim not in self.operations and rule_kinds.expand in prim.rules:
            if all(prim.rules.get(k) is None for k in self.kinds):
                # It lowers to what it stands for, whoever says so.
                program = expanded(prim, [v.aval for v in eqn.invars], eqn.params)
                return ("expanded", self.jaxpr(program)), _NONE
        return self.rule_of(prim)

    def rule_of(self, prim: Primitive) -> tuple:
        """What identifies a primitive by its rule, and the parameters that the rule reads."""
        found = self.operations.get(prim)
        if found is None:
            rule = next((r for k in self.kinds if (r := prim.rules.get(k)) is not None), None)
            if rule not in _trusted or not _is_own(prim.home):
                raise Unkeyable(prim.name)
            number = len(self.operations)
            self.operations[prim] = number, _parameters_read(rule)
            said = (number, prim.name, prim.home, rule.__module__, rule.__code__.co_firstlineno)
            return said, self.operations[prim][1]
        return found

    def aval(self, aval: Any) -> Any:
        number = self.avals.get(aval)
        if number is not None:
            return number
        if type(aval) is not ShapedArray or aval.sharding is not unplaced:
            raise Unkeyable(aval)
        number = self.avals[aval] = len(self.avals)
        return (number, aval.shape, self.dtype(aval.dtype), aval.weak_type)

    def dtype(self, dtype: Any) -> Any:
        if isinstance(dtype, ExtendedDType):
            stored = dtype.physical_aval(ShapedArray((), dtype))
            return ("extended", dtype.name, stored.shape, self.dtype(stored.dtype))
        if not isinstance(dtype, np.dtype):
            raise Unkeyable(dtype)
        return (dtype.name, dtype.str, dtype.type.__module__)

    def literal(self, literal: Literal) -> Any:
        return ("literal", self.aval(literal.aval), self.value(literal.val))

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
        """A parameter."""
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
        if not _is_own(kind.__module__):
            raise Unkeyable(value)
        if isinstance(value, enum.Enum):
            return ("enum", kind.__module__, kind.__qualname__, value.name)
        if isinstance(value, tuple):
            return (kind.__module__, kind.__qualname__, [self.value(v) for v in value])
        raise Unkeyable(value)

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
    np.ndarray: lambda self, value: ("numpy", self.array(value)),
    Jaxpr: lambda self, value: ("jaxpr", self.jaxpr(value)),
    ShapedArray: lambda self, value: ("aval", self.aval(value)),
}
