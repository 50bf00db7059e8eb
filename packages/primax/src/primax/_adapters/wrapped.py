"""Functions wrapped in transformations, and stores for auxiliary outputs.

A transformation is written once and applied to functions of flat arguments. A :class:`WrappedFun`
is a stack of transformations, which run from the outermost to the innermost. A transformation is
either a generator that yields the arguments for the inner function and receives its results, or
(for names ending in ``2``) a function that calls the inner function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, Final

_Fun = Callable[..., Any]


class StoreException(Exception):
    """Raised when an empty store is read or a full store is filled."""


_EMPTY: Final = object()


class Store:
    """Container for one value that is set once."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = _EMPTY

    def store(self, val: Any) -> None:
        """Set the value.

        Raises:
          StoreException: if a value is set already.
        """
        if self._value is not _EMPTY:
            raise StoreException("Store occupied")
        self._value = val

    def reset(self) -> None:
        """Remove the value, so that the function can run again."""
        self._value = _EMPTY

    @property
    def val(self) -> Any:
        """The value.

        Raises:
          StoreException: if no value is set.
        """
        if self._value is _EMPTY:
            raise StoreException("Store empty")
        return self._value

    def __bool__(self) -> bool:
        return self._value is not _EMPTY


class EqualStore(Store):
    """Store that accepts an equal value again."""

    __slots__ = ()

    def store(self, val: Any) -> None:
        """Set the value.

        Raises:
          StoreException: if a different value is set already.
        """
        if self._value is not _EMPTY and self._value != val:
            raise StoreException(f"Store occupied by {self._value}, which differs from {val}")
        self._value = val


class WrappedFun:
    """A function and the transformations applied to it.

    Attributes:
      f: the innermost function.
      f_transformed: the function with all transformations applied.
      transforms: ``(transformation, static arguments)``, outermost first.
      stores: for each transformation its store, or ``None``.
      params: keyword arguments of the function, as sorted pairs.
      in_type: types of the arguments, if known.
      debug_info: debug info of the function.
    """

    __slots__ = (
        "f", "f_transformed", "transforms", "stores", "params", "in_type", "debug_info",
        "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        f: _Fun,
        f_transformed: _Fun,
        transforms: tuple[tuple[_Fun, tuple[Any, ...]], ...],
        stores: tuple[Store | None, ...],
        params: tuple[tuple[str, Any], ...],
        in_type: Any,
        debug_info: Any,
    ) -> None:
        self.f: _Fun = f
        self.f_transformed: _Fun = f_transformed
        self.transforms: tuple[tuple[_Fun, tuple[Any, ...]], ...] = transforms
        self.stores: tuple[Store | None, ...] = stores
        self.params: tuple[tuple[str, Any], ...] = params
        self.in_type: Any = in_type
        self.debug_info: Any = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self, gen: _Fun, gen_static_args: tuple[Any, ...], out_store: Store | None
    ) -> WrappedFun:
        """Add an outermost transformation."""
        before = () if out_store is None else (out_store,)
        return WrappedFun(
            self.f,
            partial(gen, self.f_transformed, *before, *gen_static_args),
            ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with all transformations."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: Sequence[Store | None]) -> None:
        """Fill this function's stores from other stores, as a call would."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def replace_debug_info(self, debug_info: Any) -> WrappedFun:
        """Return the same function with other debug info."""
        fields = {n: getattr(self, n) for n in WrappedFun.__slots__[:6]}
        return WrappedFun(**fields, debug_info=debug_info)

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.in_type, self.debug_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.f, self.transforms, self.params, self.in_type))

    def __repr__(self) -> str:
        def named(f: Any) -> str:
            return getattr(f, "__name__", repr(f))

        around = "".join(f"{named(gen)}(" for gen, _ in self.transforms)
        return f"WrappedFun({around}{named(self.f)}{')' * len(self.transforms)})"


def wrap_init(
    f: _Fun, params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """Wrap a function without transformations.

    Args:
      params: keyword arguments of every call.
      debug_info: the result of ``api_util.debug_info``; computed on demand by default.
    """
    params = params or {}
    called = partial(f, **params) if params else f
    return WrappedFun(f, called, (), (), tuple(sorted(params.items())), None, debug_info)


def transformation2(gen: _Fun, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Apply the transformation ``gen(inside, *static, *args, **kwargs) -> results`` to ``fun``.

    As a decorator of ``gen`` it returns ``(fun, *static) -> WrappedFun``.
    """
    return fun.wrap(gen, gen_static_args, None)


def transformation_with_aux2(
    gen: _Fun,
    fun: WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As :func:`transformation2`, with ``gen(inside, store, *static, *args, **kwargs)``.

    Args:
      use_eq_store: the store accepts an equal value again, so the function may run twice.
      unk_names: the transformation changes the arguments, so their names are unknown afterwards.

    Returns:
      The function, and a thunk that returns the value that ``gen`` stored.
    """
    store = EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _run_generator(gen: _Fun, inside: _Fun, static: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
    running = gen(*static, *args, **kwargs)
    inner_args, keywords = next(running)
    try:
        results = inside(*inner_args, **keywords)
    except BaseException as error:
        # The generator's context managers see the error; it propagates from there.
        running.throw(error)
        raise
    out = running.send(results)
    running.close()
    return out


class _Generator:
    """Adapter from a generator transformation to one that calls the inner function."""

    __slots__ = ("gen", "__weakref__")

    def __init__(self, gen: _Fun) -> None:
        self.gen = gen

    @property
    def __name__(self) -> str:
        return getattr(self.gen, "__name__", "transformation")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.gen == self.gen

    def __hash__(self) -> int:
        return hash((type(self), self.gen))


class _Plain(_Generator):
    __slots__ = ()

    def __call__(self, inside: _Fun, *static_and_args: Any, **kwargs: Any) -> Any:
        return _run_generator(self.gen, inside, (), static_and_args, kwargs)


class _WithAux(_Generator):
    __slots__ = ()

    def __call__(self, inside: _Fun, store: Store, *static_and_args: Any, **kwargs: Any) -> Any:
        out, aux = _run_generator(self.gen, inside, (), static_and_args, kwargs)
        store.store(aux)
        return out


def transformation(gen: _Fun, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Apply a transformation that is written as a generator to ``fun``.

    ``gen(*static, *args, **kwargs)`` first yields ``(args, kwargs)`` for the inner function,
    receives its results, and yields the final results. As a decorator of ``gen`` it returns ``(fun,
    *static) -> WrappedFun``.
    """
    return fun.wrap(_Plain(gen), gen_static_args, None)


def transformation_with_aux(
    gen: _Fun, fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As :func:`transformation`; the generator's second yield is ``(results, aux)``.

    Returns:
      The function, and a thunk that returns ``aux`` once the function has run.
    """
    store = Store()
    return fun.wrap(_WithAux(gen), gen_static_args, store), lambda: store.val


class Transformation:
    """Class that makes the four functions above usable as decorators too."""

    __slots__ = ("_apply", "__dict__", "__weakref__")

    def __init__(self, apply: _Fun) -> None:
        self._apply = apply
        update_wrapper(self, apply)

    def __call__(self, gen: _Fun, *fun_and_static: Any, **options: Any) -> Any:
        if fun_and_static:
            return self._apply(gen, *fun_and_static, **options)
        decorated = partial(self._apply, gen, **options)
        return update_wrapper(decorated, gen)


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the store of the function that has run: ``(True, first)`` or ``(False, second)``.

    Raises:
      StoreException: if neither or both have run.
    """
    filled = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            filled.append((is_first, aux()))
        except StoreException:
            pass
    if len(filled) != 1:
        raise StoreException("both stores occupied" if filled else "neither store occupied")
    return filled[0]


def cache(call: _Fun, *, explain: Callable[..., Any] | None = None) -> _Fun:
    """Cache the results of ``call(fun, *args)`` for a wrapped function and hashable arguments.

    A cache hit fills the function's stores as a call would. An entry is removed with its function
    or by ``clear_caches``. The configuration is part of the cache key.

    Args:
      explain: called with ``(fun, is_new, answers, args, result)`` on a cache miss.
    """
    from primax_core.extend import state

    answers: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def cached(fun: WrappedFun, *args: Any) -> Any:
        entries = answers.get(fun.f)
        is_new = entries is None
        if entries is None:
            entries = answers.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, fun.in_type, state.key, args)
        if key in entries:
            out, stores = entries[key]
            fun.populate_stores(stores)
            return out
        out = call(fun, *args)
        if explain is not None:
            explain(fun, is_new, entries, args, out)
        entries[key] = out, fun.stores
        return out

    def cache_clear() -> None:
        answers.clear()

    cached.cache_clear = cache_clear  # type: ignore[attr-defined]
    cached.clear_cache = cache_clear  # type: ignore[attr-defined]
    return update_wrapper(cached, call)
