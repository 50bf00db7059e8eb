"""``jit``: functions compiled once for each signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from typing import Any

from .._base import caches, pytree, source
from .._base.config import state
from .._engine.call import Inline
from .._engine.jit_cache import Staged, Traced
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._lower.compile import compile_jaxpr
from .._lower.liveness import unusable_donations
from .._runtime.array import ArrayImpl
from .._runtime.devices import Device, devices
from .._runtime.dispatch import Executable
from .._runtime.jaxlib_versions import collect_garbage
from .._runtime.launch import explain_failure, garbage_is_due
from .._runtime.sharding import SingleDeviceSharding
from .arguments import as_tuple, check_callable, debug_info, name_of
from .formats import Wanted, layout_of, shardings_in, wanted_formats
from .stages import Lowered, Traced as TracedStage

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


class Unspecified:
    """Marks an argument that was not given, where ``None`` means something."""

    def __repr__(self):
        return "UnspecifiedValue"


UNSPECIFIED: Any = Unspecified()

_INLINED = {Inline.TRACING: True, Inline.AUTO: False}

# Programs of a function live as long as the function, whichever jit made them.
_programs = caches.OfFunctions()


class _Options:
    """What ``jit`` was told besides the function; hashable."""

    __slots__ = (
        "static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused",
        "inline", "compiler_options", "in_shardings", "out_shardings", "key",
    )  # fmt: skip


class _SignatureOfWrapped:
    """``__signature__`` of instances, for those who ask without following ``__wrapped__``."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(instance.__wrapped__)


class JitFunction:
    """A compiled function, as :func:`jit` returns it."""

    __signature__: Any = _SignatureOfWrapped()

    def __init__(self, fun: Callable[..., Any], options: _Options):
        self._fun = fun
        self._options = options
        self._has_static = bool(options.static_argnums or options.static_argnames)
        try:
            cache = _programs.of(fun).setdefault(options.key, caches.Bounded())
        except TypeError:  # options that cannot be hashed
            cache = caches.Bounded()
        self._staged = _JitStaged(fun, options, cache)
        self._entries = self._staged.entries
        self._trees = self._staged.fast_entries
        update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if state.trace is None and not kwargs and args:
                # The fast path, for one array, arrays, or a tree of arrays; `launch` is written
                # out, since a call less is 1 % of a jitted call.
                first, leaves, entry = args[0], args, None
                try:
                    if type(first) is not ArrayImpl:
                        leaves, tree = _flatten(args)
                        entry = self._trees.get((state.key, tree, *[a._spec for a in leaves]))
                    elif len(args) == 1:
                        entry = self._entries.get((state.key, first._spec))
                    else:
                        entry = self._entries.get((state.key, *[a._spec for a in args]))
                except (AttributeError, ValueError):
                    pass  # an argument is not an array; it is converted or refused below
                if entry is not None:
                    if garbage_is_due():
                        collect_garbage()
                    try:
                        outs = entry.execute([a._buf for a in leaves]).consume_with_handlers(
                            entry.handlers
                        )
                    except Exception as e:
                        explain_failure(e, leaves, f"jit({self._staged.name})")
                        raise
                    return outs[0] if entry.single else entry.out_tree.unflatten(outs)
            if state.disable_jit:
                return self._fun(*args, **kwargs)
            if self._has_static or kwargs:
                fun, static_key, args, kwargs = self._bind_static(args, kwargs)
            else:
                fun, static_key = self._fun, None
            leaves, in_tree = _flatten((args, kwargs))
            if state.trace is None:
                try:
                    specs = [x._spec for x in leaves]
                    entry = self._entries[(state.key, static_key, in_tree, *specs)]
                except (KeyError, AttributeError):
                    pass
                else:
                    if entry.plain and static_key is None and not kwargs:
                        self._trees[state.key, _flatten(args)[1], *specs] = entry
                    outs = entry.exe(leaves)
                    return outs[0] if entry.single else entry.out_tree.unflatten(outs)
            return self._staged.call_flat(fun, static_key, leaves, in_tree)
        except Exception as e:
            source.fold_traceback(e)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__} of {self._fun!r}>"

    def _bind_static(self, args: tuple, kwargs: dict):
        """The function with its static arguments bound, their key, and the other arguments."""
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
            given = iter(rest)
            full = [fixed[i] if i in fixed else next(given) for i in range(n)]
            return fun(*full, **others, **named)

        bound.__wrapped__ = fun
        rest = tuple(a for i, a in enumerate(args) if i not in fixed)
        return bound, key, rest, {k: v for k, v in kwargs.items() if k not in named}

    # Ahead of time

    @source.api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> TracedStage:
        """The program for arguments of these types (arrays or ``ShapeDtypeStruct``)."""
        fun, static_key, args, kwargs = self._bind_static(args, kwargs)
        leaves, in_tree = _flatten((args, kwargs))
        staged = self._staged
        avals = [staged.aval_of(x, i, in_tree, static_key) for i, x in enumerate(leaves)]
        traced = staged.trace(fun, static_key, in_tree, avals)
        return TracedStage(
            traced, in_tree, avals, staged.name, partial(_lower_traced, staged, traced, in_tree),
            donated=staged.donated(in_tree), debug_info=traced.jaxpr.debug_info,
            layouts=[layout_of(x) for x in leaves],
        )  # fmt: skip

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program as StableHLO for arguments of these types."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the results, without computing."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget all programs and executables of this function."""
        self._staged.clear()

    def _cache_size(self) -> int:
        return len(self._staged.traced)


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


def _explain_miss(staged: Staged, key: tuple, avals: Sequence) -> None:
    if state.explain_cache_misses:
        from .retraces import explain_miss  # only for those who ask

        explain_miss(staged, key, avals)


class _JitStaged(Staged):
    """A staged function with jit's options."""

    __slots__ = ("jit_options",)

    def __init__(self, fun, options: _Options, cache: dict):
        self.jit_options = options
        super().__init__(
            fun,
            name_of(fun),
            inline=options.inline,
            options={"compiler_options": options.compiler_options}
            if options.compiler_options
            else {},
            cache=cache,
            on_miss=_explain_miss,
        )

    def _debug_info(self, in_tree, static_key) -> DebugInfo:
        if in_tree is None:
            return debug_info(self.fun, "jit", (), {})
        args, kwargs = _unflatten(in_tree, [0] * in_tree.num_leaves)
        if static_key:
            # Put placeholders where the static arguments stand, so that names match positions.
            args = list(args)
            for i, *_ in static_key[0]:
                args.insert(i, None)
        return debug_info(self.fun, "jit", tuple(args), kwargs)

    def operand(self, x, i: int, in_tree=None, static_key=None):
        """A concrete array for an argument."""
        try:
            return super().operand(x, i, in_tree, static_key)
        except OverflowError as e:
            raise OverflowError(
                "An overflow was encountered while parsing an argument to a jitted computation, "
                f"whose argument path is {self.argument_name(i, in_tree, static_key)}: {e}. Pass a "
                "smaller value, a float or a NumPy array, or mark the argument as static."
            ) from None

    def donated(self, in_tree) -> tuple[int, ...]:
        """Flat indices of the donated leaves."""
        o = self.jit_options
        if not o.donate_argnums and not o.donate_argnames:
            return ()
        args, kwargs = _unflatten(in_tree, list(range(in_tree.num_leaves)))
        n = len(args) + len(o.static_argnums)
        positions = [i for i in range(n) if i not in {s % n if n else s for s in o.static_argnums}]
        found = []
        wanted = {d if d >= 0 else d + n for d in o.donate_argnums}
        for i, arg in zip(positions, args):
            if i in wanted:
                found.extend(_flatten(arg)[0])
        for k, arg in kwargs.items():
            if k in o.donate_argnames:
                found.extend(_flatten(arg)[0])
        return tuple(sorted(found))

    def executable(self, jaxpr: Jaxpr, specs, in_tree=None, out_tree=None) -> Executable:
        o = self.jit_options
        formats: dict[str, Any] = {}
        wanted = None if in_tree is None else self.wanted(jaxpr, in_tree, out_tree)
        if wanted is not None:
            formats = {
                "in_layouts": wanted.for_arguments(specs), "out_layouts": wanted.out_layouts,
                "out_kinds": wanted.out_kinds,
            }  # fmt: skip
        donated = self.donated(in_tree) if in_tree is not None else ()
        key = ("exe", state.key, tuple(specs), donated, o.key)
        exe = jaxpr.cache.get(key)
        if exe is None:
            _warn_unusable(jaxpr, donated)
            sharding = placement(o)
            exe = compile_jaxpr(
                jaxpr, specs, name=self.name, donated=donated, keep_unused=o.keep_unused,
                compiler_options=o.compiler_options, sharding=sharding, **formats,
            )  # fmt: skip
            jaxpr.cache[key] = exe
        return exe

    def wanted(self, jaxpr: Jaxpr, in_tree: Any, out_tree: Any) -> Wanted | None:
        """The formats that the user gave."""
        o = self.jit_options
        return wanted_formats(
            o.in_shardings, o.out_shardings, in_tree, out_tree, jaxpr.in_avals, jaxpr.out_avals
        )


def placement(o: _Options):
    """The one sharding that a computation was told to use, if any."""
    chosen = None
    for s in (*shardings_in(o.in_shardings), *shardings_in(o.out_shardings)):
        if isinstance(s, SingleDeviceSharding):
            if chosen is not None and chosen._devices != s._devices:
                raise ValueError(
                    f"in_shardings and out_shardings name different devices: {chosen} and {s}"
                )
            chosen = s._computing()
    return chosen


def _warn_unusable(jaxpr: Jaxpr, donated: tuple[int, ...]) -> None:
    unusable = unusable_donations(jaxpr, donated) if donated else []
    if unusable:
        shown = ", ".join(str(jaxpr.invars[i].aval.strip_weak_type()) for i in unusable)
        source.warn(
            f"Some donated buffers were not usable: {shown}. A donated argument is reused for a "
            "result of the same shape and dtype, and no result was left for these."
        )


def _lower_traced(staged: _JitStaged, traced: Traced, in_tree, platforms=None):
    o = staged.jit_options
    wanted = staged.wanted(traced.jaxpr, in_tree, traced.out_tree)
    donated = staged.donated(in_tree)
    return staged.name, donated, o.keep_unused, o.compiler_options, placement(o), wanted


def jit(
    fun: Any = UNSPECIFIED,
    /,
    *,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
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
    structures and static values, with tracers in place of arrays.

    Args:
      static_argnums, static_argnames: arguments that are hashable Python values; each new value is
        compiled anew.
      donate_argnums, donate_argnames: arguments whose buffers results may take over; they are
        deleted by the call.
      keep_unused: give unused arguments to the executable too.
      device, backend: where to run; prefer ``device_put`` of the arguments.
      inline: splice the program into enclosing jitted functions instead of calling it; or an
        ``Inline`` that says when that is done.
      compiler_options: XLA options for this function.
      in_shardings, out_shardings: how arguments and results lie on devices.

    Without a function, a decorator with these options is returned.

    Raises:
      TypeError: if an argument or a result is not an array, or ``fun`` is not callable.
      ValueError: for static arguments that cannot be hashed, and for options that do not fit.

    >>> @jit
    ... def f(x, y):
    ...     return x * y + 1.0
    >>> float(f(2.0, 3.0))
    7.0
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
        snums, snames = _link(fun, snums, snames, "static")
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
            "with device_put, or give in_shardings",
            DeprecationWarning,
        )
        if device is not None and backend is not None:
            raise ValueError("give device or backend, not both")
        target = device if device is not None else devices(backend)[0]
        if isinstance(target, Device):
            target = SingleDeviceSharding(target)
        in_shardings = out_shardings = target
    o.static_argnums, o.static_argnames = snums, snames
    o.donate_argnums, o.donate_argnames = dnums, dnames
    o.keep_unused, o.inline = keep_unused, _INLINED.get(inline, inline)
    o.compiler_options = tuple(sorted((compiler_options or {}).items()))
    o.in_shardings = None if in_shardings is UNSPECIFIED else _as_shardings(in_shardings)
    o.out_shardings = None if out_shardings is UNSPECIFIED else _as_shardings(out_shardings)
    o.key = (
        snums, snames, dnums, dnames, keep_unused, o.inline, o.compiler_options,
        _tree_key(o.in_shardings), _tree_key(o.out_shardings),
    )  # fmt: skip
    return o


def _as_shardings(tree):
    return pytree.tree_map(lambda s: SingleDeviceSharding(s) if isinstance(s, Device) else s, tree)


def _tree_key(tree):
    leaves, treedef = _flatten(tree)
    return (tuple(leaves), treedef)


def _names(given) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    names = tuple(given)
    for n in names:
        if not isinstance(n, str):
            raise TypeError(f"argument names must be strings, got {n!r}")
    return names


def _link(fun, nums: tuple[int, ...], names: tuple[str, ...], what: str):
    """Complete positions by names and names by positions, through the function's signature."""
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
    """Forget all traced and compiled programs."""
    caches.clear_all()
