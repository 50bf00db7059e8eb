"""Eager evaluation: operands, executables, and their caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base import caches
from .._base.config import options, state
from .._base.options import NONE
from .._ir import dtypes, rules as rule_kinds
from .._ir.effects import are_ordered, must_stay
from .._ir.jaxpr import Jaxpr, Literal
from .._ir.primitive import Primitive, RuleKind, install_eager
from .._ir.symbolic_dims import Dimension
from .._trace.core import (
    RefTypeError,
    Tracer,
    check_live,
    install_runner,
    set_trace,
    typeof,
)
from .._trace.donation import notify_donation
from .._trace.reference_ops import references
from .._trace.staging import eval_jaxpr, stage
from . import guards
from .array import ArrayImpl, Spec, default_sharding, move, put, spec_of
from .first_nan import first_location
from .in_flight import effectful
from .jaxlib_errors import JaxRuntimeError
from .launch import explain_failure, launch
from .sharding import Sharding
from .stepwise import calls_of_bodies, has_no_lowering, is_stepwise

impl: Final[RuleKind[Callable[..., Any]]] = RuleKind(
    "impl",
    "(*arrays, **params) -> array",
    doc="""The eager implementation in Python, instead of a compiled module.

    arrays: concrete arrays, one for each operand.
    Returns an array; a list if the primitive has ``multiple_results``.
    """,
)
"""Eager implementation in Python, for primitives that XLA does not compute, such as transfers to a
device. It takes concrete arrays and is optional."""


Watch = Callable[[Sequence[Any]], Callable[[Sequence[Any]], None]]

_watchers: Final[dict[str, Callable[[Jaxpr], Watch | None]]] = {}


def watch_programs(option: str, make: Callable[[Jaxpr], Watch | None]) -> None:
    """Register a watcher of arguments and results, active while an option is on.

    ``debug_nans`` is such a watcher.

    Args:
      option: name of an option of the scope ``"trace"`` or ``"dispatch"``.
      make: called with each jaxpr that is compiled while the option is on. It returns ``None`` or
        a function of the arguments, called before each run, that returns a function of the
        results. Either may raise an error.

    Returns:
      ``None``.

    Raises:
      ValueError: if there is no such option, or it is in no key, so that turning it on does not
        compile programs again.
      TypeError: if ``make`` is not callable.

    The executables of the fast path are watched too; without the option
    nothing is slower.

    >>> from primax_core.extend.runtime import watch_programs
    >>> def make(jaxpr):
    ...     return lambda args: lambda results: None
    >>> watch_programs("debug_nans", make)  # doctest: +SKIP
    """
    if not callable(make):
        raise TypeError(f"watch_programs takes a function of a jaxpr, got {make!r}")
    defined = options().get(option)
    if defined is None:
        raise ValueError(
            f"watch_programs: there is no option {option!r}; define it before with "
            "extend.runtime.define_option"
        )
    if defined.scope == NONE:
        raise ValueError(
            f"watch_programs: option {option} has the scope 'none', so turning it on does not "
            "compile programs again; define it with the scope 'trace' or 'dispatch'"
        )
    _watchers[option] = make


def watch_of(jaxpr: Jaxpr) -> Watch | None:
    """Return the watcher of a jaxpr under the current options, or ``None``."""
    for option, make in _watchers.items():
        if getattr(state, option):
            return make(jaxpr)
    return None


class Loaded:
    """Wrapper of jaxlib's loaded executable that supports weak references.

    An executable that was deserialized, ``from_bytes``, cannot be serialized again. ``callbacks``
    are the Python functions that it calls. ``digest`` is that of its module, if known.
    """

    __slots__ = ("raw", "from_bytes", "callbacks", "digest", "__weakref__")

    def __init__(self, raw, from_bytes: bool = False, callbacks: Sequence[Any] = ()):
        self.raw = raw
        self.from_bytes = from_bytes
        self.callbacks = callbacks
        self.digest = b""


wrap_execute: Callable[..., Callable[..., Any]] | None = None
"""Wraps the run of each new executable while several processes compute together: a function of
the run, the shardings and the specs of the arguments, the specs of the results, the name, and the
digest of the module."""


class Executable:
    """A loaded executable as a function of arrays.

    Attributes:
      kept_args: indices of the used arguments, or ``None`` for all of them.
      consts, const_specs: raw buffers that precede the arguments, and their specs.
      in_layouts: layouts of the arguments.
      moves: arguments to be transferred or converted to another layout before each call.
      donated: indices of donated arguments.
      checked: whether results are checked for NaNs or infinities.
      program: the compiled jaxpr, if ``checked``.
      watch: called with the arguments before each run; its return value is called with the results.
        See :func:`watch_programs`.
      plain: whether the operands of the executable are exactly the buffers of the arguments, so
        that callers may execute it directly.
    """

    __slots__ = (
        "loaded", "raw", "execute", "kept_args", "consts", "handlers", "out_specs", "in_shardings",
        "in_layouts", "moves", "donated", "name", "checked", "program", "watch", "plain",
        "const_specs",
    )  # fmt: skip

    def __init__(
        self, loaded: Loaded, in_specs: Sequence[Spec], in_shardings, out_specs: Sequence[Spec],
        kept_args, consts, donated=(), name="", program: Jaxpr | None = None,
        in_layouts: Sequence[Any] | None = None, const_specs: Sequence[Spec] = (),
    ):  # fmt: skip
        self.const_specs = const_specs
        self.loaded = loaded
        self.raw = loaded.raw
        self.execute = loaded.raw.execute_sharded
        if in_shardings and in_shardings[0].num_devices > 1:
            from .several_devices import execute_on  # loaded on first use

            self.execute = execute_on(loaded.raw, self.execute, loaded.callbacks)
        if program is not None and must_stay(program.effects):
            self.execute = effectful(self.execute, are_ordered(program.effects))
        if wrap_execute is not None:
            self.execute = wrap_execute(
                self.execute, in_shardings, in_specs, out_specs, name, loaded.digest
            )
        self.kept_args = kept_args
        self.consts = consts
        self.out_specs = out_specs
        self.handlers = [s.handler for s in out_specs]
        self.in_shardings = in_shardings
        self.in_layouts = [s.layout for s in in_specs] if in_layouts is None else in_layouts
        self.moves = [
            (i, s, layout)
            for i, (spec, s, layout) in enumerate(zip(in_specs, in_shardings, self.in_layouts))
            if spec.layout != layout or not _same_placement(spec, s)
        ]
        self.donated = donated
        self.name = name
        self.checked = state.debug_nans or state.debug_infs
        self.program = program if self.checked else None
        self.watch = None if program is None else watch_of(program)
        special = consts or self.moves or donated or self.checked or self.watch
        self.plain = kept_args is None and not special

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        """Run on arrays of the compiled types and placements."""
        done = None if self.watch is None else self.watch(args)
        if self.moves:
            args = list(args)
            for i, sharding, layout in self.moves:
                args[i] = relaid(_moved(args[i], sharding), layout)
        if self.kept_args is None:
            bufs = [a._buf for a in args]
        else:
            bufs = [args[i]._buf for i in self.kept_args]
        if self.consts:
            bufs = self.consts + bufs
        if self.donated:
            self._check_donations(args)
        outs = launch(self, bufs, args, self.name)
        if self.checked:
            check_values(outs, self.name, self.program, args)
        if done is not None:
            done(outs)
        return outs

    def _check_donations(self, args) -> None:
        seen = {}
        for i, a in enumerate(args):
            other = seen.setdefault(id(a._buf), i)
            if other != i and (i in self.donated or other in self.donated):
                raise JaxRuntimeError(
                    f"argument {min(i, other)} of {self.name} is donated, but the same buffer is "
                    f"also argument {max(i, other)}: donate neither, or pass a copy"
                )
            if a._buf.is_deleted():
                explain_failure(None, args, self.name)
        for i in self.donated:
            notify_donation(args[i])


def check_values(
    outs: Sequence[ArrayImpl], name: str, program: Jaxpr | None, args: Sequence[ArrayImpl]
) -> None:
    """Check results for NaNs and infinities, according to ``debug_nans`` and ``debug_infs``.

    Raises:
      FloatingPointError: if there are any; the message has the operation and its source line.
    """
    for what, is_bad, enabled in (
        ("nan", np.isnan, state.debug_nans), ("inf", np.isinf, state.debug_infs),
    ):  # fmt: skip
        if enabled and any(_has(is_bad, out) for out in outs):
            origin = None if program is None else first_location(program, args, what)
            raise FloatingPointError(f"invalid value ({what}) encountered in {origin or name}")


def _has(is_bad: Callable[[Any], Any], out: ArrayImpl) -> bool:
    return dtypes.issubdtype(out.dtype, np.inexact) and bool(is_bad(np.asarray(out)).any())


# Operands

_scalars: dict[tuple, ArrayImpl] = caches.bounded_cache()


def as_operand(x: Any) -> ArrayImpl:
    """Convert an operand to a concrete array.

    Args:
      x: an array, a NumPy array, a number or an object of a registered value type.

    Returns:
      An array on the default device; arrays are returned unchanged.

    Raises:
      TypeError: if ``x`` is none of these, or a tracer.

    Eager implementations of primitives use it. 64-bit values become 32-bit ones unless
    ``enable_x64`` is set.

    >>> import numpy as np
    >>> from primax_core.extend.runtime import as_operand
    >>> as_operand(np.arange(3)).dtype.name
    'int32'
    """
    if type(x) is ArrayImpl:
        return x
    if isinstance(x, Tracer):
        check_live(x)
        raise TypeError(f"expected a concrete value, got the tracer {x!r}. {x._origin()}")
    kind = type(x)
    if kind is Literal:
        return _scalar(x.scalar, x.aval, kind)
    if kind is float or kind is int or kind is bool:
        key = (kind, x or repr(x), state.key)
        array = _scalars.get(key)
        if array is None or array._buf.is_deleted():
            array = _scalar(x, typeof(x), kind)
            if x == x:
                _scalars[key] = array
        return array
    if isinstance(x, ArrayImpl):  # a part that was not read yet
        return x
    aval = typeof(x)
    if kind is complex or not aval.shape and isinstance(x, np.generic):
        return _scalar(x, aval, kind)
    if isinstance(x, Dimension):
        return x.as_value()  # raises: dimensions are values only under a trace
    return put(x, aval=aval)


class HostOperand:
    """A NumPy array that is transferred when the placement of the argument is known."""

    __slots__ = ("value", "aval", "_spec")

    LEAST: Final = 1 << 16
    """Bytes of the smallest array for which this is worth the effort."""

    def __init__(self, value: np.ndarray):
        self.value = value
        self.aval = typeof(value)
        self._spec = spec_of(self.aval, default_sharding(), False)

    def put(self, sharding: Sharding | None = None) -> ArrayImpl:
        """The array with a sharding; uncommitted on the default device without one."""
        return put(self.value, sharding, self.aval)


def placed(args: Sequence[Any], shardings: Sequence[Sharding]) -> list[ArrayImpl]:
    """The arguments of an executable with these shardings, with transferred NumPy arrays."""
    return [
        a.put(s if s.num_devices > 1 else None) if type(a) is HostOperand else a
        for a, s in zip(args, shardings)
    ]


def _scalar(x, aval, kind) -> ArrayImpl:
    # -0.0 equals 0.0 and True equals 1, so the repr of zeros and the type are part of the key.
    try:
        key = (kind, x, aval, state.key) if x else (kind, repr(x), aval, state.key)
        array = _scalars.get(key)
    except TypeError:
        return put(x, aval=aval)
    if array is None or array._buf.is_deleted():
        check_range(x, aval)
        with np.errstate(over="ignore"):
            array = put(np.asarray(x).astype(aval.dtype), aval=aval)
        if x == x and aval.dtype.kind != "c":
            _scalars[key] = array
    return array


def check_range(x, aval) -> None:
    """Raise OverflowError for a Python integer out of the dtype's range."""
    if type(x) is int and aval.dtype.kind in "iu":
        info = np.iinfo(aval.dtype)
        if not info.min <= x <= info.max:
            raise OverflowError(f"Python int {x} too large to convert to {aval.dtype.name}")


# Compilation

Compiler = Callable[[Jaxpr, Sequence[Spec]], Executable]


def _no_compiler(jaxpr, in_specs, **options):
    raise RuntimeError("no compiler is installed")


compile_jaxpr: Callable = _no_compiler


def install_compiler(fun: Callable) -> None:
    """Install the compiler; called once by the lowering layer."""
    global compile_jaxpr
    compile_jaxpr = fun


_copies: dict[tuple, Executable] = caches.bounded_cache()


def relaid(array: ArrayImpl, layout: Any) -> ArrayImpl:
    """Return the array in the given canonical layout; the same array if it already has it."""
    spec = array._spec
    if spec.layout == layout:
        return array
    exe = _copies.get((spec, layout))
    if exe is None:
        identity = stage(lambda x: [x], [spec.aval])
        exe = compile_jaxpr(identity, [spec], name="relayout", out_layouts=[layout])
        _copies[spec, layout] = exe
    (out,) = exe([array])
    return spec_of(spec.aval, spec.sharding, spec.committed, layout).wrap(out._buf)


# Evaluation


def check_may_run(name: str) -> None:
    """Raise RuntimeError if ``no_execution`` is set.

    It is called before the first run under the current options, which are part of the keys of all
    executables.
    """
    if state.no_execution:
        raise RuntimeError(
            f"Primax tried to execute function {name}, but the no_execution config option is set"
        )


def run_eagerly(jaxpr: Jaxpr, args: Sequence) -> list:
    """Run a jaxpr, compiled once for each placement of its arguments."""
    try:
        specs = [a._spec for a in args]
    except AttributeError:
        operands = _operands(args)
        if operands is None:
            return references.ops.run_eagerly(jaxpr, args)
        args, escaped = operands
        if escaped is not None:
            return escaped._trace.call(jaxpr, args)
        specs = [a._spec for a in args]
    key = (state.key, *specs)
    exe = jaxpr.cache.get(key)
    if exe is None:
        check_may_run(jaxpr.debug_info.name)
        exe = jaxpr.cache[key] = _executable_of(jaxpr, specs)
    return exe(args)


class Stepwise:
    """Callable that evaluates a jaxpr equation by equation, if XLA cannot compile some of them."""

    __slots__ = ("jaxpr",)

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        with set_trace(None):
            return [as_operand(x) for x in eval_jaxpr(self.jaxpr, args)]


class Runner:
    """Callable that evaluates one primitive by its ``impl`` rule."""

    __slots__ = ("rule", "params", "single")

    def __init__(self, prim: Primitive, params: dict):
        self.rule = prim.rules[impl]
        self.params = params
        self.single = not prim.multiple_results

    def __call__(self, args: Sequence[ArrayImpl]) -> list[ArrayImpl]:
        out = self.rule(*args, **self.params)
        return [out] if self.single else out


def _executable_of(jaxpr: Jaxpr, specs) -> Executable | Stepwise:
    eqns = jaxpr.eqns
    if any(impl in eqn.primitive.rules or has_no_lowering(eqn) for eqn in eqns):
        return Stepwise(jaxpr)
    if len(eqns) == 1 and not jaxpr.consts and not (state.debug_nans or state.debug_infs):
        # A jaxpr of one equation shares the executable of its primitive, unless the primitive
        # caches its executables on a sub-jaxpr.
        eqn = eqns[0]
        if (
            list(eqn.invars) == jaxpr.invars
            and list(eqn.outvars) == jaxpr.outvars
            and eqn.primitive.cache_on is None
        ):
            cache = eqn.primitive.executables
            key = (state.key, tuple(eqn.params.items()), *specs)
            exe = cache.get(key)
            if exe is None:
                exe = cache[key] = compile_jaxpr(jaxpr, specs, name=eqn.primitive.name)
            return exe
    return compile_jaxpr(jaxpr, specs, name=jaxpr.debug_info.name)


def _operands(args) -> tuple[list, Tracer | None] | None:
    """Return the concrete operands and ``None``, or the arguments and the innermost live tracer.

    The result is ``None`` if an argument is a reference.
    """
    operands = []
    for a in args:
        kind = type(a)
        if kind is ArrayImpl:
            operands.append(a)
        elif kind is Literal:
            operands.append(_scalar(a.scalar, a.aval, kind))
        elif isinstance(a, Tracer):
            check_live(a)
            tracers = [t for t in args if isinstance(t, Tracer)]
            return list(args), max(tracers, key=lambda t: _depth(t._trace))
        else:
            try:
                operands.append(as_operand(a))
            except RefTypeError:
                return None
    return operands, None


def _depth(trace) -> int:
    n = 0
    while trace is not None:
        trace, n = trace.parent, n + 1
    return n


def evaluate(prim: Primitive, args: Sequence, params: dict):
    """Evaluate a primitive eagerly."""
    rule = prim.rules.get(rule_kinds.trace_rule)
    if rule is not None:
        return rule(None, args, **params)
    try:
        specs = [a._spec for a in args]
    except AttributeError:
        operands = _operands(args)
        if operands is None:
            return references.ops.evaluate(prim, args, params)
        args, escaped = operands
        if escaped is not None:
            return escaped._trace.process(prim, tuple(args), params)
        specs = [a._spec for a in args]
    cache = prim.executables if prim.cache_on is None else prim.cache_on(params)
    try:
        key = (state.key, tuple(params.items()), *specs)
        exe = cache.get(key)
    except TypeError as e:
        raise TypeError(
            f"parameters of primitive {prim.name} must be hashable, got {params}"
        ) from e
    if exe is None:
        exe = cache[key] = _runner_of(prim, params, specs)
    out = exe(args)
    return out if prim.multiple_results else out[0]


def _runner_of(prim: Primitive, params: dict, specs) -> Executable | Runner | Stepwise:
    if impl in prim.rules:
        return Runner(prim, params)
    held = calls_of_bodies.get(prim)
    if held is not None and is_stepwise(params[held]):
        return Stepwise(params[held])
    check_may_run(prim.name)
    jaxpr = stage(lambda *a: _listed(prim, prim.bind(*a, **params)), [s.aval for s in specs])
    return compile_jaxpr(jaxpr, specs, name=prim.name)


def _listed(prim, out):
    return out if prim.multiple_results else [out]


def device_of(specs: Sequence[Spec], named: Any = None, name: str = "") -> Sharding:
    """Return the sharding of a computation with arguments of these specs.

    On several devices it is replicated.

    Args:
      named: a sharding over the devices that operations of the computation name, or ``None``.

    Raises:
      ValueError: if committed arguments are on different devices.
    """
    chosen, first = named, ""
    if named is not None:
        first = f"the devices of {name}, {listed_devices(named)}"
    elif state.default_placement is not None:
        chosen = _context_placement()
        first = f"the devices of the current mesh, {listed_devices(chosen)}"
    for i, s in enumerate(specs):
        if s.committed:
            if chosen is None:
                chosen, first = s.sharding, _placed(i, s)
            elif s.sharding._same_devices(chosen):
                chosen = s.sharding if chosen._is_abstract else chosen
            else:
                raise ValueError(
                    f"Received incompatible devices for one computation: got {first} and "
                    f"{_placed(i, s)}. Move one of them with device_put."
                )
    return default_sharding() if chosen is None else chosen._computing()._replicated()


def _context_placement() -> Sharding:
    placement = state.default_placement
    if not isinstance(placement, Sharding):
        raise ValueError(f"the option default_placement takes a sharding, got {placement!r}")
    return placement


def _same_placement(spec: Spec, sharding: Sharding) -> bool:
    own = spec.sharding
    return own is sharding or (
        own.num_devices > 1 and own.is_equivalent_to(sharding, spec.stored.ndim)
    )


_replicas: dict[tuple, tuple[ArrayImpl, ArrayImpl]] = caches.bounded_cache(1024)


def _moved(array: ArrayImpl, sharding: Sharding) -> ArrayImpl:
    """The argument with another placement; copies of a scalar are made once."""
    if array._spec.sharding is sharding:
        return array
    if array._spec.aval.shape or state.key not in guards.unguarded:
        return move(array, sharding, explicit=False)
    known = _replicas.get((id(array), sharding))
    if known is None or known[1]._buf.is_deleted():
        known = _replicas[id(array), sharding] = array, move(array, sharding, explicit=False)
    return known[1]


def listed_devices(sharding: Sharding) -> str:
    if sharding._is_abstract:
        return str(sharding)
    return ", ".join(map(str, sharding._devices))


def _placed(i: int, spec: Spec) -> str:
    where = listed_devices(spec.sharding)
    return f"argument {i} of type {spec.aval.strip_weak_type()} on {where}"


install_eager(evaluate)
install_runner(run_eagerly)
