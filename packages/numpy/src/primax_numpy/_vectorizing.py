"""Mapping of functions over elements, rows or indices of arrays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from primax_core import lax, vmap
from primax_core.extend import Array
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.typing import ArrayLike, DTypeLike, ShapeLike

from ._checks import check_arrays, dtype_argument, is_operand, one_axis, shape_argument
from ._creation import asarray
from ._functions import compiled

_Dims: TypeAlias = tuple[str, ...]

_NAME = r"\w+"
_DIMS = rf"\(\s*(?:{_NAME}\s*(?:,\s*{_NAME}\s*)*)?\)"
_LIST = rf"\s*{_DIMS}\s*(?:,\s*{_DIMS}\s*)*"
_SIGNATURE = re.compile(f"^({_LIST})->({_LIST})$")


def _parsed(signature: str) -> tuple[list[_Dims], list[_Dims]]:
    """The core dimensions of operands and results in a gufunc signature."""
    match = _SIGNATURE.match(signature)
    if match is None:
        raise ValueError(
            f"not a valid gufunc signature: {signature!r}; write it like '(m,n),(n)->(m)'"
        )
    inputs, outputs = (
        [tuple(re.findall(_NAME, dims)) for dims in re.findall(_DIMS, side)]
        for side in match.groups()
    )
    return inputs, outputs


def _check_excluded(excluded: Collection[Any]) -> frozenset[Any]:
    names = frozenset(excluded)
    if any(not isinstance(e, (int, str)) for e in names):
        raise TypeError(f"vectorize can only exclude integer or string arguments, but {excluded=}")
    if any(isinstance(e, int) and e < 0 for e in names):
        raise ValueError(f"{excluded=} contains negative numbers")
    return names


class _Sizes:
    """Sizes of named core dimensions, collected from operands."""

    def __init__(self, context: str):
        self.known: dict[str, int] = {}
        self.context = context

    def learn(self, dims: _Dims, shape: tuple[int, ...], what: str) -> None:
        """Check the last axes of a shape against known sizes, and record new names."""
        if len(shape) < len(dims):
            raise ValueError(
                f"{what} with shape {shape} does not have enough dimensions for all core "
                f"dimensions {dims} {self.context}"
            )
        for name, size in zip(dims, shape[len(shape) - len(dims) :]):
            expected = int(name) if name.isdigit() else self.known.setdefault(name, size)
            if expected != size:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {size} vs {expected} "
                    f"{self.context}"
                )

    def check_results(self, out: Any, outputs: list[_Dims]) -> Any:
        """Check the number of results and their core dimensions, and return the results."""
        if len(outputs) > 1 and not isinstance(out, tuple):
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {out} "
                f"{self.context}"
            )
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(outputs):
            raise TypeError(
                f"wrong number of output arguments: expected {len(outputs)}, got {len(outs)} "
                f"{self.context}"
            )
        for o, dims in zip(outs, outputs):
            shape = np.shape(o)
            if len(shape) != len(dims):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {dims} {self.context}"
                )
            self.learn(dims, shape, "output")
        return out


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of arrays that maps a function of scalars, or of small arrays, over the elements.

    It applies :func:`vmap` over the broadcast axes of the arguments, so ``pyfunc`` is traced once
    for all elements.

    Args:
      pyfunc: the function.
      excluded: positions and names of arguments that are passed unchanged. ``None`` always is.
      signature: the core dimensions of the arguments and results of ``pyfunc``, such as
        ``"(m,n),(n)->(m)"``; scalars by default. A number fixes a size.

    Raises:
      TypeError, ValueError: if the arguments of a call do not match the signature.

    >>> import primax_numpy as jnp
    >>> dot = vectorize(jnp.vdot, signature="(n),(n)->()")
    >>> dot(jnp.ones((4, 1, 3)), jnp.ones((2, 3))).shape
    (4, 2)
    """
    without = _check_excluded(excluded)
    parsed = None if signature is None else _parsed(signature)
    context = f"on vectorized function with {excluded=} and {signature=}"

    @functools.wraps(pyfunc, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        spots = [i for i, a in enumerate(args) if i not in without and a is not None]
        names = [n for n, v in kwargs.items() if n not in without and v is not None]
        arrays = [asarray(args[i]) for i in spots] + [asarray(kwargs[n]) for n in names]

        def of_arrays(*some: Any) -> Any:
            full = list(args)
            for i, x in zip(spots, some):
                full[i] = x
            return pyfunc(*full, **{**kwargs, **dict(zip(names, some[len(spots) :]))})

        if parsed is None:
            return _mapped(of_arrays, arrays, [()] * len(arrays))
        inputs, outputs = parsed
        if len(spots) != len(inputs):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(inputs)}, got {len(spots)} "
                f"{context}"
            )
        dims = [*inputs, *[()] * len(names)]
        sizes = _Sizes(context)
        for x, core in zip(arrays, dims):
            sizes.learn(core, x.shape, "input")
        return _mapped(lambda *xs: sizes.check_results(of_arrays(*xs), outputs), arrays, dims)

    return wrapped


def _mapped(fun: Callable[..., Any], arrays: list[Array], dims: Sequence[_Dims]) -> Any:
    """A function mapped over the broadcast leading axes of arrays."""
    leading = [x.shape[: x.ndim - len(core)] for x, core in zip(arrays, dims)]
    try:
        joint = broadcast_shapes(*leading)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={leading}") from None
    rank = len(joint)
    operands, axes = [], []  # for each operand: flags of the leading axes that it has
    for x, shape in zip(arrays, leading):
        full = (1,) * (rank - len(shape)) + shape
        has = [d == e and i >= rank - len(shape) for i, (d, e) in enumerate(zip(full, joint))]
        extra = [i for i, d in enumerate(shape) if not has[i + rank - len(shape)]]
        operands.append(lax.squeeze(x, extra) if extra else x)
        axes.append(has)
    for level in reversed(range(rank)):
        fun = vmap(fun, tuple(0 if has[level] else None for has in axes))
    return fun(*operands)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Any:
    """The results of a function of vectors, for every vector along an axis.

    Args:
      func1d: ``(row, *args, **kwargs) -> array``; it is mapped with :func:`vmap`. The axes of its
        result replace ``axis``.
      axis: the axis of the vectors.
      arr: an array with at least one axis.
      args, kwargs: further arguments of ``func1d``, which are not mapped.

    Returns:
      The stacked results.

    >>> import primax_numpy as jnp
    >>> apply_along_axis(jnp.sort, 1, np.array([[2, 1], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    check_arrays("apply_along_axis", arr)
    x = asarray(arr)
    if not x.ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension 0")
    place = one_axis(axis, x.ndim)

    def of_row(row: Any) -> Any:
        return func1d(row, *args, **kwargs)

    fun: Callable[..., Any] = of_row
    for _ in range(place + 1, x.ndim):
        fun = vmap(fun, -1, -1)
    for _ in range(place):
        fun = vmap(fun)
    return fun(x)


def apply_over_axes(
    func: Callable[..., Any], a: ArrayLike, axes: int | Sequence[int] | None
) -> Array:
    """A function ``(array, axis) -> array`` applied along one axis after the other.

    Axes that the function removes are restored with size 1.

    Args:
      func: a function, such as :func:`sum`.
      a: an array.
      axes: an axis or a sequence of axes.

    Returns:
      An array of the rank of ``a``.

    Raises:
      TypeError: if the function does not return an array.
      ValueError: if the function changes the number of axes by more than one.

    >>> import primax_numpy as jnp
    >>> apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1)).tolist()
    [[6.0]]
    """
    check_arrays("apply_over_axes", a)
    x = asarray(a)
    for axis in (axes,) if hasattr(axes, "__index__") else axes:
        place = one_axis(axis, x.ndim)
        out = func(x, place)
        if not is_operand(out):
            raise TypeError(
                f"apply_over_axes: the function must return an array, but it returned {type(out)}"
            )
        out = asarray(out)
        if out.ndim == x.ndim - 1:
            out = lax.expand_dims(out, (place,))
        if out.ndim != x.ndim:
            raise ValueError(
                "apply_over_axes: the function must keep the number of axes or remove one, but "
                f"it changed shape {x.shape} to {out.shape}"
            )
        x = out
    return x


def fromfunction(
    function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """The results of a function of indices, for all indices of a shape.

    Args:
      function: ``(*indices, **kwargs) -> array``; it is called with scalars under :func:`vmap`.
      shape: a size or a sequence of concrete sizes.
      dtype: dtype of the indices, by default the default float.
      kwargs: further arguments of ``function``.

    Returns:
      An array of shape ``shape``, followed by the axes of one result.

    >>> fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    sizes = shape_argument(shape)
    index_dtype = dtype_argument(dtype, "fromfunction")
    rank = len(sizes)

    def of_indices(*indices: Any) -> Any:
        return function(*indices, **kwargs)

    fun: Callable[..., Any] = of_indices
    for level in reversed(range(rank)):
        fun = vmap(fun, tuple(0 if i == level else None for i in range(rank)))
    return fun(*[lax.iota(index_dtype, n) for n in sizes])


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[Any],
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """A piecewise function: each element uses the function, or number, of its last true condition.

    The derivative is that of the selected function alone.

    Args:
      x: an array.
      condlist: conditions, arrays that broadcast to the shape of ``x``; or one such array.
      funclist: functions ``(element, *args, **kw) -> number``, and numbers, one for each condition;
        an additional one is the default for elements without a true condition, otherwise 0.

    Returns:
      An array of the shape and dtype of ``x``.

    >>> piecewise(np.arange(-2, 3), [np.arange(-2, 3) < 0], [lambda v: -v, 7]).tolist()
    [2, 1, 7, 7, 7]
    """
    check_arrays("piecewise", x)
    value = asarray(x)
    if isinstance(condlist, (list, tuple)):
        conditions = [asarray(c) for c in condlist]
    else:
        one = asarray(condlist)
        conditions = [one] if one.ndim <= value.ndim else [one[i] for i in range(one.shape[0])]
    if not conditions:
        raise ValueError("piecewise: at least one condition is needed")
    functions = list(funclist)
    n = len(conditions)
    if len(functions) not in (n, n + 1):
        raise ValueError(
            f"with {n} condition(s), either {n} or {n + 1} functions are expected; got "
            f"{len(functions)}"
        )
    if len(functions) == n:
        functions.append(0)
    typed_arguments = [(type(v), v) for v in (*args, *kw.values())]
    try:
        known = (tuple(functions), *typed_arguments, *kw)
        hash(known)
    except TypeError:  # not hashable: no cache key
        return _piecewise(value, conditions, functions, args, kw)
    return _compiled_piecewise(value, conditions, known=_Known(known, functions, args, kw))


class _Known:
    """Functions and their arguments as a static parameter, compared by a key."""

    def __init__(self, key: Any, functions: list[Any], args: tuple[Any, ...], kw: dict[str, Any]):
        types = tuple([type(f) for f in functions])
        self.key = (key, types)
        self.parts = (functions, args, kw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@compiled("known")
def _compiled_piecewise(value, conditions, *, known):
    return _piecewise(value, conditions, *known.parts)


def _piecewise(
    value: Any, conditions: list[Any], functions: list[Any], args: tuple[Any, ...],
    kw: dict[str, Any],
) -> Any:  # fmt: skip
    *functions, otherwise = functions
    dtype, shape = value.dtype, value.shape

    def branch(function: Any) -> Callable[[Any], Any]:
        def of_element(v: Any) -> Any:
            out = function(v, *args, **kw) if callable(function) else function
            return lax.convert_element_type(asarray(out), dtype)

        return of_element

    branches = [branch(f) for f in (otherwise, *functions)]
    index: Any = lax.full(shape, 0, np.int32)
    for i, condition in enumerate(conditions):
        full = broadcast_shapes(condition.shape, shape)
        if full != shape:
            raise ValueError(
                f"piecewise: condition {i} of shape {condition.shape} does not broadcast to the "
                f"shape {shape} of x"
            )
        holds = lax.broadcast_in_dim(
            condition, shape, tuple(range(len(shape) - condition.ndim, len(shape)))
        )
        holds = holds if holds.dtype == np.bool_ else holds != 0
        index = lax.select(holds, lax.full_like(index, i + 1), index)
    strong = lax.convert_element_type(value, dtype)
    return _mapped(lambda k, v: lax.switch(k, branches, v), [index, strong], [(), ()])
