"""The jit cache: functions that are traced once for each signature.

``jit`` and all library functions use it.

A call takes one of three paths. With concrete arrays and no active trace: one dictionary lookup by
the specs of the arguments, and one executable. Under a trace: a lookup by their avals, and a call
of the cached jaxpr, or its inlining if the function is *inline*. Otherwise the function is traced.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._base import caches, errors, monitoring, pytree, source
from .._base.config import state
from .._base.operand_trees import flatten_operands, numbered
from .._base.single_flight import SingleFlight
from .._base.weak_sets import members
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._runtime import dispatch
from .._runtime.array import ArrayImpl
from .._runtime.dispatch import Executable, HostOperand, as_operand, placed
from .._runtime.launch import launch
from .._trace.axes import axis_env
from .._trace.core import RefTypeError, Tracer, typeof
from .._trace.foreign import InvalidOperand, converts_itself
from .._trace.reference_ops import references
from .._trace.staging import close_over, has_tracers, stage_with_aux, tracer_classes
from .call import jit_p

_flatten = flatten_operands
_unflatten = pytree.tree_unflatten


class TracedCall:
    """The jaxpr of a function for one signature."""

    __slots__ = ("jaxpr", "out_tree", "consts")

    def __init__(self, jaxpr: Jaxpr, out_tree, consts: Sequence):
        self.jaxpr = jaxpr
        self.out_tree = out_tree
        self.consts = consts  # tracers of enclosing traces, passed before the arguments


class Entry:
    """An executable, and the tree structure of its results."""

    __slots__ = ("exe", "execute", "handlers", "plain", "single", "out_tree")

    def __init__(self, exe: Executable, out_tree, single: bool):
        self.exe = exe
        self.execute = exe.execute
        self.handlers = exe.handlers
        self.plain = exe.plain
        self.single = single
        self.out_tree = out_tree


_LEAF = pytree.tree_structure(0)


_all: weakref.WeakSet[JitCache] = weakref.WeakSet()
_flights: Final = SingleFlight()


@caches.register
def _clear_all() -> None:
    for cache in members(_all):
        cache.clear()


class JitCache:
    """The jaxprs and executables of a function.

    Args:
      fun: takes and returns pytrees of arrays.
      name: the name of the jaxpr.
      inline: inline the jaxpr into enclosing jaxprs instead of calling it.
      options: parameters of the jit equation (compiler options).
      compile: ``(jaxpr, specs, in_tree, out_tree) -> Executable``; the trees are ``None`` if
        unknown.
      compile_key: hashable options of ``compile``; part of the key of an executable.
      cache: traced calls by signature, possibly shared by several ``JitCache`` of one function.
      debug: ``(in_tree, static_key) -> DebugInfo`` of the function.
      on_miss: ``(cache, key, avals)``, called before the function is traced.
      donated: ``in_tree -> flat positions`` of the donated arguments.
      overflow_error: ``(error, argument name) -> OverflowError`` for an integer argument that does
        not fit its dtype; by default the error is raised unchanged.
    """

    __slots__ = (
        "fun", "name", "inline", "options", "compile", "compile_key", "traced", "entries", "debug",
        "on_miss", "donations", "overflow_error", "fast_entries", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        fun: Callable,
        name: str,
        *,
        inline: bool = False,
        options: dict | None = None,
        compile: Callable[[Jaxpr, Sequence, Any, Any], Executable] | None = None,
        compile_key: Any = (),
        cache: dict | None = None,
        debug: Callable[..., DebugInfo] | None = None,
        on_miss: Callable[[JitCache, Any, Sequence], None] | None = None,
        donated: Callable[[Any], tuple[int, ...]] | None = None,
        overflow_error: Callable[[OverflowError, str], OverflowError] | None = None,
    ):
        self.fun = fun
        self.name = name
        self.inline = inline
        self.options = options or {}
        self.compile = compile
        self.compile_key = compile_key
        self.traced: dict[Any, TracedCall] = caches.Bounded() if cache is None else cache
        self.entries: dict[Any, Entry] = caches.Bounded()
        self.debug = debug
        self.on_miss = on_miss
        self.donations = donated
        self.overflow_error = overflow_error
        self.fast_entries: dict[Any, Entry] = caches.Bounded()
        _all.add(self)

    # Tracing

    def trace(self, fun: Callable, static_key: Any, in_tree, avals: Sequence) -> TracedCall:
        """The jaxpr for arguments of these avals; ``fun`` has the static arguments bound."""
        key = (state.trace_key, axis_env.key, static_key, in_tree, *avals)
        traced = self.traced.get(key)
        if traced is not None:
            return traced
        if self.on_miss is not None:
            self.on_miss(self, key, avals)
        traced = trace_function(fun, in_tree, avals, self._debug_info(in_tree, static_key))
        if not any(isinstance(c, Tracer) for c in traced.consts):
            self.traced[key] = traced
        return traced

    def _debug_info(self, in_tree, static_key) -> DebugInfo:
        if self.debug is not None:
            return self.debug(in_tree, static_key)
        return DebugInfo("jit", self.name)

    # Calling

    def call_flat(self, fun, static_key, leaves: Sequence, in_tree):
        """Call on flat arguments, eagerly or under the active trace."""
        if state.trace is None and not _any_tracer(leaves):
            return self.call_eager(fun, static_key, leaves, in_tree)
        avals = [self.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
        traced = self.trace(fun, static_key, in_tree, avals)
        if references.ops.loaded:
            self.check_aliases(traced, leaves)
        return _unflatten(traced.out_tree, self.call_traced(traced, leaves))

    def call_traced(self, traced: TracedCall, leaves: Sequence) -> list:
        """Call a jaxpr under the active trace."""
        args = [*traced.consts, *leaves] if traced.consts else leaves
        trace = state.trace
        if self.inline is True and trace is not None:
            return trace.call(traced.jaxpr, args, self.name)
        return jit_p.bind(
            *args, jaxpr=traced.jaxpr, name=self.name, inline=self.inline, **self.options
        )

    def call_eager(self, fun, static_key, leaves: Sequence, in_tree):
        """Call on concrete values."""
        arrays: Any = None
        try:
            arrays = [self.operand(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
        except RefTypeError:
            pass
        if arrays is None:
            return self.call_with_refs(fun, static_key, leaves, in_tree)
        key = (state.key, static_key, in_tree, *[a._spec for a in arrays])
        entry = self.entries.get(key)
        if entry is None:
            dispatch.check_may_run(f"jit({self.name})")
            traced = self.trace(fun, static_key, in_tree, [a.aval for a in arrays])
            if traced.consts:  # it closes over values of another trace, or over references
                arrays = [a.put() if type(a) is HostOperand else a for a in arrays]
                if not any(isinstance(c, Tracer) for c in traced.consts):
                    return self.run_with_refs(traced, arrays, in_tree)
                return _unflatten(traced.out_tree, self.call_traced(traced, arrays))
            entry = self.make_entry(traced, static_key, arrays, in_tree, key)
        if HostOperand in map(type, arrays):
            arrays = placed(arrays, entry.exe.in_shardings)
        outs = entry.exe(arrays)
        return outs[0] if entry.single else _unflatten(entry.out_tree, outs)

    def call_with_refs(self, fun, static_key, leaves: Sequence, in_tree):
        """Call on concrete values that include references."""
        avals = [self.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
        traced = self.trace(fun, static_key, in_tree, avals)
        return self.run_with_refs(traced, leaves, in_tree)

    def run_with_refs(self, traced: TracedCall, leaves: Sequence, in_tree):
        """Run a jaxpr on concrete values; it takes references or closes over some."""
        self.check_aliases(traced, leaves)
        n = len(traced.consts)
        outs = references.ops.run(
            traced.jaxpr, [*traced.consts, *leaves], self.name,
            [n + i for i in self.donated(in_tree)], self.options.get("compiler_options", ()),
        )  # fmt: skip
        return _unflatten(traced.out_tree, outs)

    def donated(self, in_tree) -> tuple[int, ...]:
        """Flat positions of the donated arguments."""
        return () if self.donations is None else self.donations(in_tree)

    def check_aliases(self, traced: TracedCall, leaves: Sequence) -> None:
        """Raise an error for a reference that the function receives twice."""
        references.ops.check_aliases(leaves, traced.consts, traced.jaxpr.debug_info)

    def make_entry(self, traced: TracedCall, static_key, arrays, in_tree, key) -> Entry:
        """Compile for a new signature; concurrent threads wait for one compilation."""
        return _flights.do(
            (id(self), key), lambda _: self.entries.get(key),
            lambda: self._new_entry(traced, static_key, arrays, in_tree, key),
        )  # fmt: skip

    def _new_entry(self, traced: TracedCall, static_key, arrays, in_tree, key) -> Entry:
        specs = [a._spec for a in arrays]
        exe = self.executable(traced.jaxpr, specs, in_tree, traced.out_tree)
        entry = Entry(exe, traced.out_tree, traced.out_tree == _LEAF)
        self.entries[key] = entry
        if static_key is None:
            simple = _positional_arrays(in_tree, len(arrays))
            if simple and entry.plain:
                self.entries[(state.key, *specs)] = entry
        return entry

    def executable(self, jaxpr: Jaxpr, specs, in_tree=None, out_tree=None) -> Executable:
        """The executable of a jaxpr, cached in the jaxpr."""
        donated = () if in_tree is None else self.donated(in_tree)
        key = ("exe", state.key, tuple(specs), donated, self.compile_key)
        exe = jaxpr.cache.get(key)
        if exe is None:
            exe = jaxpr.cache[key] = self.compile(jaxpr, specs, in_tree, out_tree)
        return exe

    def operand(self, x, i: int, in_tree=None, static_key=None):
        """A concrete array for an argument; large NumPy arrays stay on the host."""
        try:
            if type(x) is np.ndarray and x.nbytes >= HostOperand.LEAST:
                return HostOperand(x)
            return as_operand(x)
        except OverflowError as e:
            if self.overflow_error is None:
                raise
            raise self.overflow_error(e, self.argument_name(i, in_tree, static_key)) from None
        except TypeError as e:
            if isinstance(e, (errors.UnexpectedTracerError, RefTypeError)):
                raise
            raise self._bad_argument(x, i, in_tree, static_key, e) from e

    def aval_of(self, x, i: int, in_tree=None, static_key=None, type_of=typeof):
        """The aval of an argument."""
        try:
            return type_of(x)
        except TypeError as e:
            raise self._bad_argument(x, i, in_tree, static_key, e) from e

    def argument_name(self, i: int, in_tree, static_key) -> str:
        """Name of an argument in messages: ``params['w']``."""
        names = self._debug_info(in_tree, static_key).arg_names or ()
        return names[i] if i < len(names) else f"number {i}"

    def _bad_argument(self, x, i: int, in_tree, static_key, reason: TypeError) -> TypeError:
        kind, advice = (
            TypeError,
            ("Arguments must be arrays, numbers or pytrees of them; mark others as static."),
        )
        if isinstance(reason, InvalidOperand):
            kind, advice = type(reason), str(reason)
        return kind(
            f"Error interpreting argument to {source.summarize_function(self.fun)} as an abstract "
            f"array. The problematic value is of type {type(x)} and was passed to the function at "
            f"path {self.argument_name(i, in_tree, static_key)}. {advice[0].upper()}{advice[1:]}"
        )

    def clear(self) -> None:
        """Delete all jaxprs and executables."""
        self.traced.clear()
        self.entries.clear()
        self.fast_entries.clear()


def _any_tracer(leaves) -> bool:
    for x in leaves:
        if isinstance(x, Tracer):
            return True
    return False


def _positional_arrays(in_tree, n: int) -> bool:
    return in_tree == _flatten(((0,) * n, {}))[1] or in_tree == _flatten((0,) * n)[1]


def trace_function(fun: Callable, in_tree, avals: Sequence, info: DebugInfo) -> TracedCall:
    """Trace a function ``fun(*args, **kwargs)`` of pytrees; ``in_tree`` describes ``(args,
    kwargs)``.
    """
    if state.no_tracing:
        raise RuntimeError(
            f"re-tracing function {info.func_src_info} for `{info.traced_for}`, but 'no_tracing' "
            "is set"
        )

    def flat(*leaves):
        args, kwargs = _unflatten(in_tree, leaves)
        out = fun(*args, **kwargs)
        outs, tree = _flatten(out)
        check_outputs(outs, tree, info)
        return outs, tree

    with monitoring.timed(monitoring.TRACE, info.name):
        jaxpr, out_tree = stage_with_aux(flat, avals, info, parent=state.trace)
    consts: Sequence = ()
    if has_tracers(jaxpr.consts):
        jaxpr, consts = close_over(jaxpr)
    return TracedCall(jaxpr, out_tree, consts)


def check_outputs(outs: Sequence, tree, info: DebugInfo) -> None:
    """Raise an error for a result that is not an array."""
    for i, o in enumerate(outs):
        try:
            if type(typeof(o)) in tracer_classes:
                path = _output_path(tree, len(outs), i)
                where = f" at output tree path result{path}" if path else ""
                references.ops.refuse_returned(o, where, info)
        except TypeError as e:
            path = _output_path(tree, len(outs), i)
            where = f" at output component{path}" if path else ""
            advice = f": {e}" if isinstance(e, InvalidOperand) else ""
            raise TypeError(
                f"function {info.func_src_info} traced for {info.traced_for} returned a value of "
                f"type {type(o)}{where}, which is not a valid Primax type{advice}"
            ) from None


def _output_path(tree, n: int, i: int) -> str:
    paths = pytree.tree_leaves_with_path(numbered(tree))
    return pytree.keystr(paths[i][0])


def library_function(
    fun: Callable,
    *,
    static_argnames: Sequence[str] = (),
    name: str | None = None,
    check: Callable[..., None] | None = None,
) -> Callable:
    """A function of arrays: one compiled call in eager mode, inlined under a trace.

    Functions of a library are defined by it: eagerly they launch one executable, and in a user's
    jaxpr they leave their operations.

    Args:
      fun: takes arrays (pytrees of them) as positional arguments, and the parameters in
        ``static_argnames`` as keyword-only arguments.
      static_argnames: parameters with hashable values that are not arrays.
      name: the name in jaxprs and profiles; by default that of ``fun``.
      check: validates the arguments; called unless all are known to be arrays.

    Returns:
      A function of the same arguments.

    Raises:
      TypeError: raised by calls whose arguments are not arrays, or whose static arguments are not
        hashable.

    Arguments that convert themselves to arrays are converted, unlike operands of primitives.
    Derivatives and batches are those of the operations.

    >>> from primax_core import lax
    >>> from primax_core.extend import library_function
    >>> def power(x, *, n):
    ...     return lax.integer_pow(x, n)
    >>> float(library_function(power, static_argnames=("n",))(3.0, n=2))
    9.0
    """
    name = name or fun.__name__
    cache = JitCache(fun, name, inline=True, compile=compile_for(name))
    return make_callable(cache, fun, frozenset(static_argnames), check)


def compile_for(name: str):
    """The ``compile`` of a function without options."""
    return lambda jaxpr, specs, *_: dispatch.compile_jaxpr(jaxpr, specs, name=name)


# Types that the fast path converts to arrays.
_ON_HOST = frozenset((float, int, bool, complex, np.ndarray, np.float32, np.int32, np.bool_))


def _converted(x: Any) -> Any:
    """An argument of a library function, after the conversion of an object that converts itself."""
    if converts_itself(x):
        return x.__jax_array__()
    if type(x) in (list, tuple) and any(map(converts_itself, x)):
        return type(x)(map(_converted, x))
    return x


def make_callable(
    cache: JitCache, fun: Callable, static: frozenset, check: Callable[..., None] | None = None
) -> Callable:
    """The callable of a library function, with a fast path for concrete arrays."""
    fast_entries = cache.fast_entries

    def call(*args, **kwargs):
        key, arrays = None, args
        if state.trace is None:
            if len(args) == 1 and not kwargs and type(x := args[0]) is ArrayImpl:
                specs, key = [x._spec], (state.key, x._spec)
                entry = fast_entries.get(key)
                if entry is not None:
                    outs = launch(entry, [x._buf], args, cache.name)
                    return outs[0] if entry.single else _unflatten(entry.out_tree, outs)
            elif args and type(args[-1]) in _ON_HOST:
                arrays, specs = _as_arrays(args)
            else:
                try:
                    specs = [a._spec for a in args]
                except AttributeError:
                    arrays, specs = _as_arrays(args)
            if key is None and specs is not None:
                if kwargs:
                    values = tuple(kwargs.values())
                    key = (state.key, tuple(kwargs), values, tuple(map(type, values)), *specs)
                else:
                    key = (state.key, *specs)
                try:
                    entry = fast_entries.get(key)
                except TypeError:  # an array among the keyword arguments
                    entry = key = None
                if entry is not None:
                    outs = launch(entry, [a._buf for a in arrays], arrays, cache.name)
                    return outs[0] if entry.single else _unflatten(entry.out_tree, outs)
        try:
            if check is not None:
                check(*args)
            static_key, fixed, open_kwargs = _bind_static(fun, kwargs, static)
            leaves, in_tree = pytree.tree_flatten((args, open_kwargs))
            out = cache.call_flat(fixed, static_key, leaves, in_tree)
        except TypeError as e:  # also one of an operator, which an object need not have
            converted = [_converted(x) for x in args]
            if all(new is old for new, old in zip(converted, args)):
                source.fold_traceback(e)
                raise
            return call(*converted, **kwargs)
        except Exception as e:
            source.fold_traceback(e)
            raise
        if key is not None and len(leaves) == len(args):
            entry = cache.entries.get((state.key, static_key, in_tree, *specs))
            if entry is not None and entry.plain:
                fast_entries[key] = entry
        return out

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__
    call.__module__ = fun.__module__
    call.__wrapped__ = fun
    call.jit_cache = cache
    return call


def _as_arrays(args: tuple):
    """Arguments as arrays, and their specs; ``None`` if one cannot be converted."""
    try:
        arrays = [as_operand(a) if type(a) in _ON_HOST else a for a in args]
        return arrays, [a._spec for a in arrays]
    except (AttributeError, TypeError):
        return args, None


def _bind_static(fun: Callable, kwargs: dict, static: frozenset):
    """A key of the static keyword arguments, the function with them bound, and the others."""
    if not static or not kwargs:
        return None, fun, kwargs
    bound = {n: v for n, v in kwargs.items() if n in static}
    key = tuple([(n, type(v), v) for n, v in bound.items()])

    def fixed(*args, **others):
        return fun(*args, **others, **bound)

    return key, fixed, {n: v for n, v in kwargs.items() if n not in static}
