"""``jit``: functions compiled once for each signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, overload

from .._base import caches, pytree, source
from .._base.config import state
from .._base.operand_trees import flatten_operands, numbered
from .._base.pytree import PyTree
from .._base.source import take_attributes
from .._base.tree_prefix import flatten_axes
from .._engine.call import Inline
from .._engine.jit_cache import Entry, JitCache, TracedCall
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._lower.lazy import compile_jaxpr
from .._lower.liveness import devices_of, unusable_donations
from .._runtime.array import ArrayImpl, Spec
from .._runtime.devices import Device, devices
from .._runtime.dispatch import Executable, device_of, listed_devices
from .._runtime.jaxlib_versions import collect_garbage
from .._runtime.launch import explain_failure, garbage_is_due
from .._runtime.sharding import Sharding, ShardingLike, SingleDeviceSharding
from .._trace.core import Tracer
from .arguments import as_tuple, check_callable, debug_info, name_of
from .formats import (
    RequestedFormats,
    layout_of,
    on_devices,
    over_devices,
    requested_formats,
    sharding_of,
    shardings_in,
)
from .shape_struct import ShapeDtypeStruct, type_like
from .stages import Lowered, Traced

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Unspecified:
    """Type of the default of arguments for which ``None`` is a value."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED: Any = Unspecified()

_INLINED = {Inline.TRACING: True, Inline.AUTO: False}

# Traced calls of a function live as long as the function, for all its jit wrappers.
_traced_calls = caches.OfFunctions()


class _Options:
    """The options of ``jit``."""

    __slots__ = (
        "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused",
        "inline", "compiler_options", "in_shardings", "out_shardings", "key",
    )  # fmt: skip


class _SignatureOfWrapped:
    """``__signature__`` of instances, for callers that do not follow ``__wrapped__``."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(instance.__wrapped__)


class JitFunction(Generic[_P, _R]):
    """A compiled function, the result of :func:`jit`."""

    __signature__: Any = _SignatureOfWrapped()

    def __init__(self, fun: Callable[_P, _R], options: _Options):
        take_attributes(self, fun)
        for name in [n for n in vars(self) if not n.startswith("__") and hasattr(type(self), n)]:
            del self.__dict__[name]  # an attribute of the function must not hide a method
        self._fun = fun
        self._options = options
        self._has_static = bool(options.static_argnums or options.static_argnames)
        try:
            traced = _traced_calls.of(fun).setdefault(options.key, caches.Bounded())
        except TypeError:  # unhashable options
            traced = caches.Bounded()
        self._jit_cache = _jit_cache(fun, options, traced)
        self._entries = self._jit_cache.entries
        self._trees = self._jit_cache.fast_entries
        self._keyed: dict[Any, Any] = caches.Bounded()
        self._nested = False  # an argument of a repeated call was a tree of arrays

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            if state.trace is None:
                # The fast path; `launch` is inlined, because one call less is 1 % of a jitted call.
                leaves, entry = args, None
                try:
                    if kwargs or self._has_static:
                        shape, values = len(args), args
                        if kwargs:
                            shape, values = (shape, *kwargs), (*args, *kwargs.values())
                        if (keyed := self._keyed.get(shape)) is not None:
                            key, leaves = keyed.key(state.key, values)
                            entry = self._trees.get(key)
                    elif len(args) == 1 and type(first := args[0]) is ArrayImpl:
                        entry = self._entries.get((state.key, first._spec))
                    elif self._nested:
                        leaves, tree = pytree.tree_flatten(args)
                        entry = self._trees.get((state.key, tree, *[a._spec for a in leaves]))
                    else:
                        entry = self._entries.get((state.key, *[a._spec for a in args]))
                except (AttributeError, ValueError, TypeError):
                    pass  # an argument is not an array; converted below, or an error is raised
                if entry is not None:
                    if not entry.plain:
                        outs = entry.exe(leaves)
                        return outs[0] if entry.single else entry.out_tree.unflatten(outs)
                    if garbage_is_due():
                        collect_garbage()
                    try:
                        outs = entry.execute([a._buf for a in leaves]).consume_with_handlers(
                            entry.handlers
                        )
                    except Exception as e:
                        explain_failure(e, leaves, f"jit({self._jit_cache.name})")
                        raise
                    return outs[0] if entry.single else entry.out_tree.unflatten(outs)
            return self._call(args, kwargs)
        except Exception as e:
            source.fold_traceback(e)
            raise

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if state.disable_jit:
            return self._fun(*args, **kwargs)
        fun, static_key, open_args, open_kwargs = self._bind_static(args, kwargs)
        leaves, in_tree = _flatten((open_args, open_kwargs))
        o = self._options
        if o.in_shardings is not None or o.out_shardings is not None:
            if state.trace is not None or any(isinstance(x, Tracer) for x in leaves):
                return self._call_constrained(fun, static_key, leaves, in_tree)
        if state.trace is None:
            try:
                specs = [x._spec for x in leaves]
                entry = self._entries[(state.key, static_key, in_tree, *specs)]
            except (KeyError, AttributeError):
                pass
            else:
                self._store_fast(entry, args, kwargs, specs)
                outs = entry.exe(leaves)
                return outs[0] if entry.single else entry.out_tree.unflatten(outs)
        if ShapeDtypeStruct in map(type, leaves):
            from .described_operands import with_values  # loaded on first use

            leaves = with_values(self._jit_cache, fun, static_key, leaves, in_tree)
        return self._jit_cache.call_flat(fun, static_key, leaves, in_tree)

    def _call_constrained(self, fun, static_key, leaves: list, in_tree) -> Any:
        """Call in a traced function, where requested shardings are constraints."""
        o = self._options
        args = in_tree.children()[0]
        requested = flatten_axes("jit in_shardings", args, o.in_shardings)
        leaves[: args.num_leaves] = _constrained(leaves[: args.num_leaves], requested)
        out = self._jit_cache.call_flat(fun, static_key, leaves, in_tree)
        outs, out_tree = _flatten(out)
        requested = flatten_axes("jit out_shardings", out_tree, o.out_shardings)
        return _unflatten(out_tree, _constrained(outs, requested))

    def _store_fast(self, entry: Entry, args: tuple, kwargs: dict[str, Any], specs: list) -> None:
        """Store the executable of a repeated call for the fast path."""
        if not (kwargs or self._has_static):
            arrays = all(isinstance(a, ArrayImpl) for a in args)
            self._nested = self._nested or not arrays
            if self._nested and not (arrays and len(args) == 1):
                self._trees[state.key, pytree.tree_flatten(args)[1], *specs] = entry
            else:
                self._entries[state.key, *specs] = entry
            return
        shape = (len(args), *kwargs) if kwargs else len(args)
        keyed = self._keyed.get(shape)
        if keyed is None:
            from .call_keys import CallKeys  # loaded on first use

            o = self._options
            keyed = CallKeys(o.static_argnums, o.static_argnames, len(args), kwargs)
            self._keyed[shape] = keyed
        values = (*args, *kwargs.values())
        if not all(isinstance(values[i], ArrayImpl) for i in keyed.others):
            keyed.key = keyed.flatten
        self._trees[keyed.key(state.key, values)[0]] = entry

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__} of {self._fun!r}>"

    def _bind_static(self, args: tuple, kwargs: dict):
        """The function with bound static arguments, their key, and the other arguments."""
        o = self._options
        if not self._has_static:
            return self._fun, None, args, kwargs
        nums = {n if n >= 0 else n + len(args) for n in o.static_argnums}
        fixed = {i: a for i, a in enumerate(args) if i in nums}
        named = {k: v for k, v in kwargs.items() if k in o.static_argnames}
        key = (
            tuple((i, type(v), _hashed(v)) for i, v in fixed.items()),
            tuple((k, type(v), _hashed(v)) for k, v in sorted(named.items())),
        )
        fun, n = self._fun, len(args)

        def bound(*rest, **others):
            remaining = iter(rest)
            full = [fixed[i] if i in fixed else next(remaining) for i in range(n)]
            return fun(*full, **others, **named)

        bound.__wrapped__ = fun
        rest = tuple(a for i, a in enumerate(args) if i not in fixed)
        return bound, key, rest, {k: v for k, v in kwargs.items() if k not in named}

    # Ahead of time

    @source.api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The traced function for arguments of these types (arrays or ``ShapeDtypeStruct``)."""
        fun, static_key, args, kwargs = self._bind_static(args, kwargs)
        leaves, in_tree = _flatten((args, kwargs))
        cache = self._jit_cache
        avals = [cache.aval_of(x, i, in_tree, static_key, type_like) for i, x in enumerate(leaves)]
        traced = cache.trace(fun, static_key, in_tree, avals)
        return Traced(
            traced, in_tree, avals, cache.name,
            partial(_lowering_arguments, self._options, cache, traced, in_tree),
            donated=cache.donated(in_tree), debug_info=traced.jaxpr.debug_info,
            layouts=[layout_of(x) for x in leaves], shardings=[sharding_of(x) for x in leaves],
        )  # fmt: skip

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The lowered function, in StableHLO, for arguments of these types."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results, without computing."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Delete all jaxprs and executables of this function."""
        self._jit_cache.clear()

    def _cache_size(self) -> int:
        return len(self._jit_cache.traced)


def _constrained(leaves: Sequence[Any], requested: Sequence[Any]) -> list[Any]:
    from ..lax.constraints import with_sharding_constraint  # loaded on first use

    outs = []
    for x, r in zip(leaves, requested, strict=True):
        sharding = over_devices(r)
        outs.append(x if sharding is None else with_sharding_constraint(x, sharding))
    return outs


def _hashed(value: Any) -> Any:
    try:
        hash(value)
    except TypeError as e:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            f"hash an object of type {type(value)}, {value}. Pass a hashable value (a tuple "
            "instead of a list), or do not mark the argument as static.\nThe error was:\n"
            f"{type(e).__name__}: {e}"
        ) from e
    return value


def _explain_miss(cache: JitCache, key: tuple, avals: Sequence) -> None:
    if state.explain_cache_misses:
        from .retraces import explain_miss  # rarely needed

        explain_miss(cache, key, avals)


def _jit_cache(fun: Callable[..., Any], o: _Options, traced: dict) -> JitCache:
    """The jit cache of a function with the options of ``jit``."""
    name = name_of(fun)
    return JitCache(
        fun, name, inline=o.inline, cache=traced,
        options={"compiler_options": o.compiler_options} if o.compiler_options else {},
        compile=partial(_compile, name, o), compile_key=o.key, debug=partial(_debug_info, fun),
        donated=partial(_donated, o), on_miss=_explain_miss, overflow_error=_overflow_error,
    )  # fmt: skip


def _debug_info(fun: Callable[..., Any], in_tree, static_key) -> DebugInfo:
    if in_tree is None:
        return debug_info(fun, "jit", (), {})
    args, kwargs = numbered(in_tree)
    if static_key:
        # Placeholders at the positions of static arguments, so that names match positions.
        args = list(args)
        for i, *_ in static_key[0]:
            args.insert(i, None)
    return debug_info(fun, "jit", tuple(args), kwargs)


def _overflow_error(error: OverflowError, argument: str) -> OverflowError:
    return OverflowError(
        "An overflow was encountered while parsing an argument to a jitted computation, "
        f"whose argument path is {argument}: {error}. Pass a smaller value, a float or a NumPy "
        "array, or mark the argument as static."
    )


def _donated(o: _Options, in_tree) -> tuple[int, ...]:
    """Flat positions of the donated leaves."""
    if not o.donate_argnums and not o.donate_argnames:
        return ()
    args, kwargs = numbered(in_tree)
    n = len(args) + len(o.static_argnums)
    positions = [i for i in range(n) if i not in {s % n if n else s for s in o.static_argnums}]
    leaves = []
    donated = {d if d >= 0 else d + n for d in o.donate_argnums}
    for i, arg in zip(positions, args):
        if i in donated:
            leaves.extend(_flatten(arg)[0])
    for k, arg in kwargs.items():
        if k in o.donate_argnames:
            leaves.extend(_flatten(arg)[0])
    return tuple(sorted(leaves))


def _compile(name: str, o: _Options, jaxpr: Jaxpr, specs, in_tree, out_tree) -> Executable:
    formats: dict[str, Any] = {}
    o = options_on_devices(o, specs)
    requested = None if in_tree is None else formats_of(o, jaxpr, in_tree, out_tree)
    if requested is not None:
        requested.check_shardings(specs, jaxpr.debug_info.arg_names or ())
        formats["in_shardings"] = requested.in_shardings
        formats["out_shardings"] = requested.out_shardings
        if requested.has_layouts:
            formats["in_layouts"] = requested.for_arguments(specs)
            formats["out_layouts"] = requested.out_layouts
            formats["out_kinds"] = requested.out_kinds
    donated = _donated(o, in_tree) if in_tree is not None else ()
    _warn_unusable(jaxpr, donated)
    return compile_jaxpr(
        jaxpr, specs, name=name, donated=donated, keep_unused=o.keep_unused,
        compiler_options=o.compiler_options, sharding=placement(o, jaxpr, specs), **formats,
    )  # fmt: skip


def options_on_devices(o: _Options, specs: Sequence[Spec]) -> _Options:
    """The options, with shardings over the devices of the arguments or of the mesh in effect.

    Only shardings over abstract meshes change; most functions have none.
    """
    requested = (*shardings_in(o.in_shardings), *shardings_in(o.out_shardings))
    if not any(s._is_abstract for s in requested):
        return o
    o = copy(o)
    o.in_shardings = on_devices(o.in_shardings, specs)
    o.out_shardings = on_devices(o.out_shardings, specs)
    return o


def formats_of(o: _Options, jaxpr: Jaxpr, in_tree: Any, out_tree: Any) -> RequestedFormats | None:
    """The formats of ``in_shardings`` and ``out_shardings``."""
    return requested_formats(
        o.in_shardings, o.out_shardings, in_tree, out_tree, jaxpr.in_avals, jaxpr.out_avals
    )


def placement(o: _Options, jaxpr: Jaxpr, specs: Sequence[Spec]) -> Sharding | None:
    """A sharding over the devices that the options require, or ``None``.

    Raises:
      ValueError: if they require different devices, or others than operations name or committed
        arguments have.
    """
    chosen = None
    for s in (*shardings_in(o.in_shardings), *shardings_in(o.out_shardings)):
        if chosen is not None and not chosen._same_devices(s):
            raise ValueError(
                f"in_shardings and out_shardings name different devices: {chosen} and {s}"
            )
        if chosen is None or chosen._is_abstract:
            chosen = s._computing()._replicated()
    if chosen is not None and chosen.num_devices > 1:
        where = f"in_shardings and out_shardings of {jaxpr.debug_info.name}"
        named = devices_of(jaxpr)
        if named is not None and not named._same_devices(chosen):
            raise ValueError(
                f"Received incompatible devices for one computation: got {listed_devices(chosen)}, "
                f"named by {where}, and {listed_devices(named)}, named by an operation in it."
            )
        concrete = device_of(specs, chosen if named is None else named, where)
        chosen = concrete if chosen._is_abstract else chosen
    return chosen


def _warn_unusable(jaxpr: Jaxpr, donated: tuple[int, ...]) -> None:
    unusable = unusable_donations(jaxpr, donated) if donated else []
    if unusable:
        shown = ", ".join(str(jaxpr.invars[i].aval.strip_weak_type()) for i in unusable)
        source.warn(
            f"Some donated buffers were not usable: {shown}. A donated argument is reused for a "
            "result of the same shape and dtype, and no result was left for these."
        )


def _lowering_arguments(o: _Options, cache: JitCache, traced: TracedCall, in_tree, specs=()):
    o = options_on_devices(o, specs)
    requested = formats_of(o, traced.jaxpr, in_tree, traced.out_tree)
    donated = cache.donated(in_tree)
    chosen = placement(o, traced.jaxpr, specs)
    return cache.name, donated, o.keep_unused, o.compiler_options, chosen, requested


@overload
def jit(
    fun: Callable[_P, _R],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> JitFunction[_P, _R]: ...
@overload
def jit(
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool | Inline = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[_P, _R]], JitFunction[_P, _R]]: ...
def jit(
    fun: Any = UNSPECIFIED,
    /,
    *,
    in_shardings: ShardingLike | PyTree = UNSPECIFIED,
    out_shardings: ShardingLike | PyTree = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """A function that is traced and compiled once for each signature of its arguments.

    The function must be pure: it runs once for each new combination of shapes, dtypes, tree
    structures and static values, with tracers in place of arrays. Later calls launch the
    executable.

    Args:
      fun: the function. Its arguments and results are arrays, numbers and pytrees of them.
        Without it a decorator with the options is returned.
      in_shardings: shardings of the arguments, a prefix of the tuple of arguments; by default
        those of the arrays.
      out_shardings: shardings of the results, a prefix of the result; by default XLA chooses.
        Shardings over an abstract mesh are on the devices of the arguments that have a mesh of
        the same axes, or on those of the mesh in effect.
      static_argnums: positions of arguments that are hashable Python values. The function is
        retraced for each new value.
      static_argnames: names of such arguments. Positions and names are completed from each other.
      donate_argnums: positions of arguments whose buffers are donated; the call deletes these
        arrays.
      donate_argnames: names of such arguments.
      keep_unused: pass unused arguments to the executable.
      device: the device of the computation; prefer ``device_put`` of the arguments.
      backend: the platform of the computation; prefer ``device_put`` of the arguments.
      inline: inline the jaxpr into enclosing jitted functions instead of calling it; or an
        ``Inline`` value for the time of inlining.
      compiler_options: XLA options for this function, by name.

    Returns:
      A function with the signature of ``fun``. Its methods ``trace``, ``lower`` and
      ``eval_shape`` give the stages of compilation, see :mod:`primax_core.stages`;
      ``clear_cache`` deletes its executables.

    Raises:
      TypeError: if ``fun`` is not callable, or an argument or a result is not an array.
      ValueError: for unhashable static arguments, and for inconsistent options.
      TracerBoolConversionError: if the function branches on the value of an array. Use
        :func:`~primax_core.lax.cond`, or make the argument static.

    Derivatives and batches of the function are compiled too: ``grad(jit(f))`` launches one
    executable forward and one backward. Inside another traced function the call is one operation.

    >>> @jit
    ... def f(x, y):
    ...     return x * y + 1.0
    >>> float(f(2.0, 3.0))
    7.0
    >>> power = jit(lambda x, n: x**n, static_argnums=1)
    >>> float(power(2.0, 3))
    8.0
    """
    options = {k: v for k, v in locals().items() if k != "fun"}
    if fun is UNSPECIFIED:
        return lambda f: jit(f, **options)
    check_callable(fun)
    return JitFunction(fun, _make_options(fun, **options))


def _make_options(
    fun, *, in_shardings, out_shardings, static_argnums, static_argnames, donate_argnums,
    donate_argnames, keep_unused, device, backend, inline, compiler_options,
) -> _Options:  # fmt: skip
    o = _Options()
    snums = () if static_argnums is None else tuple(int(i) for i in as_tuple(static_argnums))
    dnums = () if donate_argnums is None else tuple(int(i) for i in as_tuple(donate_argnums))
    snames = _names(static_argnames)
    dnames = _names(donate_argnames)
    if snums or snames or dnums or dnames:
        # Positions and names that are both given are not completed.
        if not (static_argnums is not None and static_argnames is not None):
            snums, snames = _link(fun, snums, snames, "static")
        if not (donate_argnums is not None and donate_argnames is not None):
            dnums, dnames = _link(fun, dnums, dnames, "donate")
        both = set(snames) & set(dnames) or set(snums) & set(dnums)
        if both:
            raise ValueError(
                "static_argnames and donate_argnames cannot intersect: the arguments "
                f"{', '.join(map(str, sorted(both)))} are both static and donated"
            )
    if device is not None or backend is not None:
        source.warn(
            "the arguments device and backend of jit are deprecated: move the function's arguments "
            "with device_put, or pass in_shardings",
            DeprecationWarning,
        )
        if device is not None and backend is not None:
            raise ValueError("pass device or backend, not both")
        target = device if device is not None else devices(backend)[0]
        if isinstance(target, Device):
            target = SingleDeviceSharding(target)
        in_shardings = out_shardings = target
    o.static_argnums, o.static_argnames = snums, snames
    o.donate_argnums, o.donate_argnames = dnums, dnames
    o.keep_unused, o.inline = keep_unused, _INLINED.get(inline, inline)
    o.compiler_options = tuple(sorted((compiler_options or {}).items()))
    if in_shardings is not UNSPECIFIED:
        in_shardings = _as_shardings("in_shardings", in_shardings)
    if out_shardings is not UNSPECIFIED:
        out_shardings = _as_shardings("out_shardings", out_shardings)
    o.in_shardings = None if in_shardings is UNSPECIFIED else in_shardings
    o.out_shardings = None if out_shardings is UNSPECIFIED else out_shardings
    o.key = (
        snums, snames, dnums, dnames, keep_unused, o.inline, o.compiler_options,
        _tree_key(o.in_shardings), _tree_key(o.out_shardings),
    )  # fmt: skip
    return o


def _as_shardings(what: str, tree):
    def convert(s):
        if isinstance(s, (str, int, float)) or type(s) is object:
            raise TypeError(
                f"{what} of jit must be a tree of shardings, formats, devices or None, got {s!r}"
            )
        return SingleDeviceSharding(s) if isinstance(s, Device) else s

    return pytree.tree_map(convert, tree)


def _tree_key(tree):
    leaves, treedef = _flatten(tree)
    return (tuple(leaves), treedef)


def _names(argnames) -> tuple[str, ...]:
    if argnames is None:
        return ()
    if isinstance(argnames, str):
        return (argnames,)
    names = tuple(argnames)
    for n in names:
        if not isinstance(n, str):
            raise TypeError(f"argument names must be strings, got {n!r}")
    return names


def _link(fun, nums: tuple[int, ...], names: tuple[str, ...], what: str):
    """Complete positions by names and names by positions, with the function's signature."""
    import inspect

    try:
        parameters = inspect.signature(fun).parameters
    except (ValueError, TypeError):
        return nums, names
    kinds = inspect.Parameter
    positional = [
        p.name
        for p in parameters.values()
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    has_args = any(p.kind is kinds.VAR_POSITIONAL for p in parameters.values())
    has_kwargs = any(p.kind is kinds.VAR_KEYWORD for p in parameters.values())
    n = len(positional)
    for i in nums:
        if not has_args and not -n <= i < n:
            raise ValueError(
                f"Jitted function has {what}_argnums={nums}, but only accepts {n} positional "
                "arguments."
            )
    unknown = {name for name in names if name not in parameters}
    if unknown and not has_kwargs:
        raise ValueError(
            f"Jitted function has invalid argnames {unknown} in {what}_argnames. Function does "
            f"not take these args. Its parameters are {list(parameters)}."
        )
    by_position = {positional[i] for i in nums if -n <= i < n}
    by_position = {p for p in by_position if parameters[p].kind is not kinds.POSITIONAL_ONLY}
    by_name = {positional.index(name) for name in names if name in positional}
    all_nums = tuple(sorted({i if i >= 0 or has_args else i + n for i in nums} | by_name))
    return all_nums, tuple(sorted(set(names) | by_position))


def clear_caches() -> None:
    """Delete all traced jaxprs and all executables, of all functions and all threads.

    The next call of each function traces and compiles it again. Executables on disk remain, see
    :mod:`primax_core.cache`. Arrays are not affected.

    Returns:
      ``None``.

    Programs need it rarely: caches are bounded, and an entry is freed with its function. It helps
    in tests, and where a function was changed in place.

    >>> from primax_core import jit
    >>> traced = []
    >>> f = jit(lambda x: traced.append("f") or x + 1.0)
    >>> _ = f(1.0), f(2.0)
    >>> clear_caches()
    >>> _ = f(1.0)
    >>> traced
    ['f', 'f']
    """
    caches.clear_all()
