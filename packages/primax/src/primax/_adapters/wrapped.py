"""Functions with transformations to run around them, and stores for what those learn.

A transformation is written once and wrapped around functions of flat arguments; several of them
stack up in a :class:`WrappedFun`, which runs them from the outermost inwards. It is written either
as a generator, which yields the arguments for the function inside and receives its results, or (the
kinds ending in ``2``) as a function that calls the one inside.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, Final

_Fun = Callable[..., Any]


class StoreException(Exception):
    """A store was read before it was filled, or filled twice."""


_EMPTY: Final = object()


class Store:
    """Holds one value, which is put in once."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = _EMPTY

    def store(self, val: Any) -> None:
        """Put the value in.

        Raises:
          StoreException: if there is one.
        """
        if self._value is not _EMPTY:
            raise StoreException("Store occupied")
        self._value = val

    def reset(self) -> None:
        """Take the value out, so that the function may run again."""
        self._value = _EMPTY

    @property
    def val(self) -> Any:
        """The value.

        Raises:
          StoreException: if there is none yet.
        """
        if self._value is _EMPTY:
            raise StoreException("Store empty")
        return self._value

    def __bool__(self) -> bool:
        return self._value is not _EMPTY


class EqualStore(Store):
    """Holds one value; equal ones may be put in again."""

    __slots__ = ()

    def store(self, val: Any) -> None:
        """Put the value in.

        Raises:
          StoreException: if there is one that is not equal.
        """
        if self._value is not _EMPTY and self._value != val:
            raise StoreException(f"Store occupied by {self._value}, which differs from {val}")
        self._value = val


class WrappedFun:
    """A function and the transformations around it.

    Attributes:
      f: the function in the middle.
      f_transformed: the same with all transformations.
      transforms: ``(transformation, its static arguments)``, the outermost first.
      stores: for each transformation its store, or ``None``.
      params: keyword arguments of the function, as sorted pairs.
      in_type: types of the arguments, where they are known.
      debug_info: where the function comes from.
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
        """The same with one more transformation outside."""
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
        """Fill this function's stores with what others hold, as a call would."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def replace_debug_info(self, debug_info: Any) -> WrappedFun:
        """The same function, said to come from elsewhere."""
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
    """A function without transformations around it.

    Args:
      params: keyword arguments that every call gets.
      debug_info: where it comes from, as ``api_util.debug_info`` tells; found out when it is
        needed if it is left out.
    """
    params = params or {}
    called = partial(f, **params) if params else f
    return WrappedFun(f, called, (), (), tuple(sorted(params.items())), None, debug_info)


def transformation2(gen: _Fun, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """``fun`` inside a transformation ``gen(inside, *static, *args, **kwargs) -> results``.

    As a decorator of ``gen`` it gives ``(fun, *static) -> WrappedFun``.
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
      use_eq_store: the store takes an equal value again, so that the function may run twice.
      unk_names: the transformation changes the arguments, so that their names are no longer known.

    Returns:
      The function and a thunk that gives what ``gen`` put into the store.
    """
    store = EqualStore() if use_eq_store else Store()
    return fun.wrap(gen, gen_static_args, store), lambda: store.val


def _run_generator(gen: _Fun, inside: _Fun, static: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
    running = gen(*static, *args, **kwargs)
    given, keywords = next(running)
    try:
        found = inside(*given, **keywords)
    except BaseException as error:
        running.throw(error)  # its context managers see the error, and it leaves from there
        raise
    out = running.send(found)
    running.close()
    return out


class _Generator:
    """A transformation written as a generator, in the form of one that calls the function."""

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
    """``fun`` inside a transformation that is written as a generator.

    ``gen(*static, *args, **kwargs)`` first yields ``(args, kwargs)`` for the function inside, is
    sent its results, and yields those of the whole. As a decorator of ``gen`` it gives
    ``(fun, *static) -> WrappedFun``.
    """
    return fun.wrap(_Plain(gen), gen_static_args, None)


def transformation_with_aux(
    gen: _Fun, fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As :func:`transformation`; the generator's second yield is ``(results, aux)``.

    Returns:
      The function and a thunk that gives ``aux`` once the function has run.
    """
    store = Store()
    return fun.wrap(_WithAux(gen), gen_static_args, store), lambda: store.val


class Transformation:
    """Lets one of the four functions above serve as a decorator too."""

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
    """Which of two functions has run, and what it left: ``(True, first)`` or ``(False, second)``.

    Raises:
      StoreException: if neither or both have.
    """
    found = []
    for is_first, aux in ((True, aux1), (False, aux2)):
        try:
            found.append((is_first, aux()))
        except StoreException:
            pass
    if len(found) != 1:
        raise StoreException("both stores occupied" if found else "neither store occupied")
    return found[0]


def cache(call: _Fun, *, explain: Callable[..., Any] | None = None) -> _Fun:
    """Remember what ``call(fun, *args)`` gave for a wrapped function and hashable arguments.

    A remembered answer fills the function's stores as a call would. Answers are forgotten with the
    function that they were made for, with ``clear_caches``, and found again only under the same
    configuration.

    Args:
      explain: called with ``(fun, is_new, answers, args, result)`` when an answer was not known.
    """
    from primax_core.extend import state

    answers: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def remembered(fun: WrappedFun, *args: Any) -> Any:
        found = answers.get(fun.f)
        is_new = found is None
        if found is None:
            found = answers.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, fun.in_type, state.key, args)
        if key in found:
            out, stores = found[key]
            fun.populate_stores(stores)
            return out
        out = call(fun, *args)
        if explain is not None:
            explain(fun, is_new, found, args, out)
        found[key] = out, fun.stores
        return out

    def cache_clear() -> None:
        answers.clear()

    remembered.cache_clear = cache_clear  # type: ignore[attr-defined]
    remembered.clear_cache = cache_clear  # type: ignore[attr-defined]
    return update_wrapper(remembered, call)
