"""References: mutable arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

from .._base import pytree, source
from .._base.config import state
from .._base.identity import ROOT
from .._ir.jaxpr import DebugInfo
from .._ir.primitive import Primitive
from .._ir.ref_types import AbstractRef
from .core import Mutable, RefTypeError, Trace, Tracer, bind_on, typeof
from .donation import on_donation
from .reference_ops import references
from .staging import JitTracer, tracer_classes
from .typing import ArrayLike


class RefOperations:
    """Methods of references of every trace."""

    __slots__ = ()

    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes of the array."""
        return self.aval.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the array's elements."""
        return self.aval.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes of the array."""
        return self.aval.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of the array's elements."""
        return self.aval.inner_aval.size

    def __getitem__(self, index: Any) -> Any:
        return references.ops.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        references.ops.set(self, index, value)

    def addupdate(self, value: Any, index: Any = ...) -> None:
        """Add ``value`` to the elements at ``index``."""
        references.ops.addupdate(self, index, value)

    @property
    def at(self) -> Any:
        """``ref.at[index]`` is a view: a reference to part of the array."""
        return references.ops.indexer(self)

    def __len__(self) -> int:
        return len(self.aval.inner_aval)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RefTypeError(
            f"got a Ref of type {self.aval}, but a Ref can't be passed where an array is expected. "
            "Did you forget to read its value with `ref[...]`?"
        )


class _RefType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, RefOperations)


class Ref(RefOperations, Mutable, metaclass=_RefType):
    """A reference to an array with mutable contents.

    Created by :func:`new_ref`, not by the constructor. ``ref[index]`` reads, ``ref[index] = value``
    writes, ``ref[index] += value`` does both; ``ref[...]`` is the whole array. Functions that take
    or close over a reference may change it, also under ``jit``, ``grad`` and ``vmap``. Inside a
    traced function references are tracers, which are instances of this class too.

    Args:
      aval: the type of the reference, an ``AbstractRef``.
      refs: the initial array.

    >>> from primax_core import new_ref
    >>> import numpy as np
    >>> ref = new_ref(np.zeros(3, np.float32))
    >>> ref[1] = 5.0
    >>> ref
    Ref([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("aval", "_value", "_shared", "_ended", "_lock", "__weakref__")

    def __init__(self, aval: AbstractRef, refs: Any):
        self.aval: AbstractRef = aval
        self._ended: str | None = None
        self._lock = threading.RLock()
        self._value: Any = refs
        # True if the array may be referenced elsewhere, so that it must not be overwritten.
        self._shared: bool = False
        self.share()

    def share(self) -> Any:
        """The array. From now on it counts as referenced elsewhere."""
        if not self._shared:
            on_donation(self._value, self)
            self._shared = True
        return self._value

    def copy_before_donation(self, array: Any) -> None:
        """Replace ``array`` by a copy if it is the array of this reference."""
        if self._value is array and self._ended is None:
            with self._lock:
                if self._value is array:
                    self._value, self._shared = references.ops.copy(array), False

    @property
    def sharding(self) -> Any:
        """The sharding of the array."""
        return self._value.sharding

    @property
    def committed(self) -> bool:
        """True if computations must run on the devices of the array."""
        return self._value.committed

    _committed = committed

    @property
    def format(self) -> Any:
        """The memory layout and sharding of the array."""
        return self._value.format

    def block_until_ready(self) -> Ref:
        """Wait until the array is computed; return the reference."""
        with self._lock:
            self._value.block_until_ready()
        return self

    def unsafe_buffer_pointer(self) -> int:
        """Address of the array's buffer; the next write may change it."""
        return self._value.unsafe_buffer_pointer()

    def __repr__(self) -> str:
        if self._ended is not None:
            return f"<Ref of type {self.aval}, ended by {self._ended}>"
        with self._lock:
            text = repr(self._value)
        return "Ref" + text.removeprefix("Array")

    def __copy__(self) -> Ref:
        with self._lock:
            self.share()
            return Ref(self.aval, self._value)

    def __deepcopy__(self, memo: Any) -> Ref:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return Ref, (self.aval, self._value)


class RefTracer(RefOperations, JitTracer):
    """A reference in a jaxpr under construction."""

    __slots__ = ("_ended",)

    def __init__(self, trace: Any, aval: AbstractRef, var: Any):
        super().__init__(trace, aval, var)  # type: ignore[arg-type]
        self._ended: str | None = None


tracer_classes[AbstractRef] = RefTracer


class RefCell(RefOperations, Tracer):
    """A reference created under a transformation, with a value of the transformation."""

    __slots__ = ("value", "_ended")

    def __init__(self, trace: Any, aval: AbstractRef, value: Any):
        self._trace = trace
        self.aval = aval  # type: ignore[assignment]
        self.value: Any = value
        self._ended: str | None = None

    def _split(self) -> NoReturn:
        raise RefTypeError(
            f"a Ref of type {self.aval} was met where an array is expected. A reference that a "
            "transformed function makes cannot be its result: return what it holds, `ref[...]`."
        )

    def __repr__(self) -> str:
        return f"{type(self._trace).__name__.removesuffix('Trace')}Tracer({self.aval})"


def check_not_ended(ref: Ref) -> None:
    """Raise an error if a reference has ended.

    Raises:
      ValueError: with the operation that ended it.
    """
    if ref._ended is not None:
        raise ValueError(
            f"a reference of type {ref.aval} was used after {ref._ended}, which ended it. Use the "
            "result of `freeze`, or create a new reference with `new_ref`."
        )


def any_ref(values: Sequence[Any]) -> bool:
    """Return True if a value is a reference."""
    return any(isinstance(v, RefOperations) for v in values)


# Reading and writing. The rules are in the public module of ``lax`` for references.

_HOME: Final = f"{ROOT}.lax.references"
new_ref_p: Final = Primitive("new_ref", home=_HOME)
get_p: Final = Primitive("get", home=_HOME)
swap_p: Final = Primitive("swap", home=_HOME)


def read_whole(trace: Trace | None, ref: Ref) -> Any:
    """The array of a reference, read under a trace."""
    return bind_on(trace, get_p, (ref,), {"index": None})[0]


def write_whole(trace: Trace | None, ref: Ref, value: ArrayLike) -> None:
    """Replace the array of a reference by another of the same type."""
    bind_on(trace, swap_p, (ref, value), {"index": None})


# Aliases


def check_aliases(
    leaves: Sequence[Any], consts: Sequence[Any], info: DebugInfo | Callable[[], DebugInfo]
) -> None:
    """Raise an error for a reference that a function receives in two ways.

    Args:
      leaves: the arguments.
      consts: the values that the function closes over.
      info: debug information of the function, with the names of its arguments.

    Raises:
      ValueError: with both ways.
    """
    if not state.mutable_array_checks or not any_ref(leaves):
        return
    info = info() if callable(info) else info
    seen: dict[int, int] = {}
    for i, x in enumerate(leaves):
        if isinstance(x, RefOperations):
            first = seen.setdefault(id(x), i)
            if first != i:
                raise ValueError(
                    "only one reference to a mutable array may be passed as an argument to a "
                    f"function, but when tracing {info.func_src_info} for {info.traced_for} the "
                    f"mutable array reference of type {x.aval} appeared at both "
                    f"{_argument(info, first)} and {_argument(info, i)}. Pass it once."
                )
    for c in consts:
        if isinstance(c, RefOperations) and id(c) in seen:
            raise ValueError(
                f"when tracing {info.func_src_info} for {info.traced_for}, a mutable array "
                f"reference of type {c.aval} was both closed over and passed as the argument "
                f"{_argument(info, seen[id(c)])}. Use the argument only."
            )


def _argument(info: DebugInfo, i: int) -> str:
    names = info.arg_names or ()
    return names[i] if i < len(names) else f"number {i}"


def refuse_returned(ref: Any, where: str, info: DebugInfo) -> NoReturn:
    """Raise an error about a reference among the results, with its origin.

    Raises:
      ValueError: always.
    """
    origin = ""
    if isinstance(ref, RefTracer) and ref._trace.live:
        trace: Any = ref._trace
        var = ref._var
        if var in trace.invars:
            name = _argument(info, trace.invars.index(var))
            origin = f"\n\nThe returned mutable array was passed in as the argument {name}."
        for eqn in trace.eqns:
            if var in eqn.outvars and eqn.source is not None:
                line = source.summarize(eqn.source)
                origin = f"\n\nThe returned mutable array was created on line {line}."
    if type(ref) is Ref:
        origin = (
            "\n\nThe returned mutable array was closed over by the function, rather than passed in "
            "as an argument or created inside it."
        )
    raise ValueError(
        f"function {info.func_src_info} traced for {info.traced_for} returned a mutable array "
        f"reference of type {ref.aval}{where}, but mutable array references cannot be returned. "
        f"Return what it holds, `ref[...]`.{origin}"
    )


def check_returned(outs: Sequence[Any], tree: Any, kind: str, fun: Any) -> None:
    """Raise an error for a reference among the results of a function with custom rules.

    Args:
      kind: ``"custom_vjp"`` or ``"custom_jvp"``.

    Raises:
      ValueError: for the first reference.
    """
    for i, out in enumerate(outs):
        if isinstance(typeof(out), AbstractRef):
            paths = pytree.tree_leaves_with_path(pytree.tree_unflatten(tree, range(len(outs))))
            path = pytree.keystr(paths[i][0])
            raise ValueError(
                f"{kind} function {source.summarize_function(fun)} returned a mutable array "
                f"reference of type {typeof(out)}{' at result' + path if path else ''}, but "
                "mutable array references cannot be returned. Return what it holds, `ref[...]`."
            )
