"""``reshard``, ``auto_axes`` and ``explicit_axes``: changes of the explicit axes in types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Final, NamedTuple

from primax_core import device_put, jit
from primax_core.extend import Tracer, typeof
from primax_core.extend.placements import is_placed
from primax_core.extend.runtime import bounded_cache
from primax_core.extend.traces import current_trace
from primax_core.tree_util import tree_flatten, tree_map, tree_unflatten
from primax_core.typing import PyTree

from ._abstract_mesh import AbstractMesh
from ._current import (
    concrete_mesh,
    get_abstract_mesh,
    mesh_of_specs,
    set_mesh,
    use_abstract_mesh,
)
from ._mesh import Mesh
from ._mesh_axes import AxisType
from ._named import NamedSharding, Placement
from ._prefixes import broadcast_prefix
from ._reshard import mesh_cast_p, reshard_to
from ._spec import PartitionSpec

_compiled: Final = bounded_cache()


def reshard(xs: PyTree, out_shardings: PyTree) -> Any:
    """The same values, divided in another way along the explicit axes of a mesh.

    Args:
      xs: a pytree of arrays.
      out_shardings: for each array a :class:`NamedSharding`, or a :class:`PartitionSpec` for the
        mesh in effect; a pytree prefix of ``xs``. It can only name axes of the type ``Explicit``.

    The cotangent has the type of the operand. Under ``vmap`` the mapped axis stays divided as it
    is.

    Raises:
      TypeError: if an entry of ``out_shardings`` is something else.
      ValueError: if there is no mesh; if a spec names an axis that the mesh does not have, or one
        of another type; or if a size is not divisible.

    >>> import numpy as np
    >>> from primax_core import make_jaxpr
    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     make_jaxpr(reshard, 1)(np.ones((2, 4), np.float32), PartitionSpec("x")).out_avals
    [ShapedArray(float32[2@x,4])]
    """
    leaves, tree = tree_flatten(xs)
    shardings = broadcast_prefix(out_shardings, xs)
    return tree_unflatten(tree, [_resharded(x, s) for x, s in zip(leaves, shardings)])


def _resharded(x: Any, sharding: Any) -> Any:
    target = _sharding(sharding, "reshard")
    if not target.spec.is_constrained:
        raise ValueError(
            f"reshard got {target.spec}, which has unconstrained entries: an explicit sharding "
            "gives the mesh axes of each axis"
        )
    return reshard_to(x, target)


def _sharding(sharding: Any, what: str, mesh: Any = None) -> NamedSharding:
    if isinstance(sharding, PartitionSpec):
        chosen = mesh_of_specs() if mesh is None else mesh
        if chosen.empty:
            raise ValueError(
                f"{what} got {sharding}, but no mesh is set. Set one with `with set_mesh(mesh):`, "
                "or pass NamedSharding(mesh, spec)"
            )
        sharding = NamedSharding(chosen, sharding)
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"{what} takes NamedSharding or PartitionSpec, got {sharding!r} of type "
            f"{type(sharding).__name__}"
        )
    return sharding._for_result(what)


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: Hashable | Sequence[Hashable] | None = None,
    out_sharding: PyTree = None,
) -> Callable[..., Any]:
    """A function in which the compiler divides values along some axes of the mesh.

    In ``f`` the axes have the type ``Auto``: the types of values do not contain them. Outside of
    compiled functions ``f`` is evaluated on arrays, which have values and an attribute
    ``sharding``.

    Args:
      f: the function. Without it, the result is a decorator.
      axes: names of axes; by default all axes of the mesh that have the type ``Explicit``.
      out_sharding: the shardings of the results, a pytree prefix. It may also be passed as a
        keyword argument of each call.

    Raises:
      TypeError: on call, without ``out_sharding``.
      ValueError: on call, if there is no mesh, or it does not have the axes.

    >>> import numpy as np
    >>> from primax_core import make_jaxpr
    >>> double = auto_axes(lambda x: 2 * x, out_sharding=PartitionSpec("x"))
    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     make_jaxpr(double)(np.ones((2, 4), np.float32)).out_avals
    [ShapedArray(float32[2@x,4])]
    """
    if f is None:
        return lambda g: auto_axes(g, axes=axes, out_sharding=out_sharding)
    return _with_changed_axes(_TO_AUTO, f, axes, out_sharding)


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: Hashable | Sequence[Hashable] | None = None,
    in_sharding: PyTree = None,
) -> Callable[..., Any]:
    """A function in which the types of values contain some axes of the mesh.

    In ``f`` the axes have the type ``Explicit``. The types of its results outside do not contain
    them. Outside of compiled functions ``f`` is evaluated on arrays.

    Args:
      f: the function. Without it, the result is a decorator.
      axes: names of axes; by default all axes of the mesh that have the type ``Auto``.
      in_sharding: the shardings of the arguments, a pytree prefix of their tuple. It may also be
        passed as a keyword argument of each call, as ``None`` if there are no arguments.

    Raises:
      TypeError: on call, without ``in_sharding``.
      ValueError: on call, if there is no mesh, or it does not have the axes.

    >>> from primax_core import device_put, jit
    >>> import numpy as np
    >>> from primax_distributed import make_mesh, set_mesh
    >>> kind = explicit_axes(lambda x: print(typeof(x)), in_sharding=PartitionSpec("x"))
    >>> with set_mesh(make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))):
    ...     jit(kind)(np.ones((2, 4), np.float32))
    float32[2@x,4]
    """
    if f is None:
        return lambda g: explicit_axes(g, axes=axes, in_sharding=in_sharding)
    return _with_changed_axes(_TO_EXPLICIT, f, axes, in_sharding)


class _Change(NamedTuple):
    """The differences between `auto_axes` and `explicit_axes`."""

    name: str
    keyword: str
    old: AxisType
    new: AxisType
    run: Callable[..., Any]  # (f, outer mesh, inner mesh, shardings, args, kwargs) -> results
    run_eagerly: Callable[..., Any]  # the same; the outer mesh has devices


def _run_with_auto_axes(
    f: Callable[..., Any], outer: AbstractMesh, inner: AbstractMesh, shardings: Any, args: Any,
    kwargs: Any,
) -> Any:  # fmt: skip
    with use_abstract_mesh(inner):
        args, kwargs = tree_map(lambda x: _cast(x, inner), (args, kwargs))
        out = f(*args, **kwargs)
    return _all_resharded(out, shardings, "auto_axes", outer)


def _run_with_explicit_axes(
    f: Callable[..., Any], outer: AbstractMesh, inner: AbstractMesh, shardings: Any, args: Any,
    kwargs: Any,
) -> Any:  # fmt: skip
    with use_abstract_mesh(inner):
        args = _all_resharded(args, shardings, "explicit_axes", inner)
        out = f(*args, **kwargs)
    return tree_map(lambda x: _cast(x, outer), out)


def _auto_axes_eagerly(
    f: Callable[..., Any], mesh: Mesh, inner: AbstractMesh, shardings: Any, args: Any, kwargs: Any
) -> Any:
    with _mesh_with_types(mesh, inner) as inside:
        args, kwargs = tree_map(lambda x: _retyped(x, inside), (args, kwargs))
        out = f(*args, **kwargs)
    with set_mesh(mesh):
        return _all_resharded(out, shardings, "auto_axes", mesh.abstract_mesh)


def _explicit_axes_eagerly(
    f: Callable[..., Any], mesh: Mesh, inner: AbstractMesh, shardings: Any, args: Any, kwargs: Any
) -> Any:
    with _mesh_with_types(mesh, inner) as inside:
        args = tree_map(lambda x: _retyped(x, inside), args)
        out = f(*_all_resharded(args, shardings, "explicit_axes", inner), **kwargs)
    with set_mesh(mesh):
        return tree_map(lambda x: _retyped(x, mesh), out)


@contextmanager
def _mesh_with_types(mesh: Mesh, types: AbstractMesh) -> Iterator[Mesh]:
    inside = Mesh(mesh.devices, mesh.axis_names, types.axis_types)
    with set_mesh(inside):
        yield inside


def _concrete_mesh(outer: AbstractMesh, args: Any, kwargs: Any) -> Mesh | None:
    """The mesh in effect with its devices, or that of the arrays; ``None`` without devices."""
    leaves = tree_flatten((args, kwargs))[0]
    if any(isinstance(x, Tracer) for x in leaves):
        return None
    mesh = concrete_mesh()
    if not mesh.empty and mesh.abstract_mesh is outer:
        return mesh
    meshes = {getattr(getattr(x, "sharding", None), "mesh", None) for x in leaves} - {None}
    own = meshes.pop() if len(meshes) == 1 and get_abstract_mesh().empty else None
    return own if isinstance(own, Mesh) else None


def _retyped(x: Any, mesh: Mesh) -> Any:
    """An array with the axis types of a mesh of the same devices; it is not moved."""
    sharding = getattr(x, "sharding", None)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.axis_names != mesh.axis_names:
        return x
    return device_put(x, sharding.update(mesh=mesh))


_TO_AUTO: Final = _Change(
    "auto_axes", "out_sharding", AxisType.Explicit, AxisType.Auto, _run_with_auto_axes,
    _auto_axes_eagerly,
)  # fmt: skip
_TO_EXPLICIT: Final = _Change(
    "explicit_axes", "in_sharding", AxisType.Auto, AxisType.Explicit, _run_with_explicit_axes,
    _explicit_axes_eagerly,
)  # fmt: skip


def _with_changed_axes(
    change: _Change, f: Callable[..., Any], axes: Any, sharding: Any
) -> Callable[..., Any]:
    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if sharding is None and change.keyword not in kwargs:
            raise _missing(change.name)
        of_call = kwargs.pop(change.keyword, None)
        shardings = sharding if of_call is None else of_call
        outer = _mesh_of(change.name, args)
        inner = _with_types(outer, _names(outer, axes, change.old), change.new)
        run = partial(change.run, f, outer, inner, shardings)
        if current_trace() is not None:
            return run(args, kwargs)
        mesh = _concrete_mesh(outer, args, kwargs)
        if mesh is not None:
            return change.run_eagerly(f, mesh, inner, shardings, args, kwargs)
        return _compiled_once(run, (change.name, f, outer, inner, _key(shardings)))(args, kwargs)

    return wrapped


def _all_resharded(values: Any, shardings: Any, what: str, mesh: AbstractMesh) -> Any:
    leaves, tree = tree_flatten(values)
    if shardings is None:
        if leaves:
            raise _missing(what)
        return values
    targets = [_sharding(s, what, mesh) for s in broadcast_prefix(shardings, values)]
    return tree_unflatten(tree, [reshard_to(x, t) for x, t in zip(leaves, targets)])


def _missing(what: str) -> TypeError:
    keyword = next(c.keyword for c in (_TO_AUTO, _TO_EXPLICIT) if c.name == what)
    return TypeError(f"{what} needs the keyword argument {keyword}")


def _compiled_once(run: Callable[..., Any], key: Any) -> Callable[..., Any]:
    try:
        compiled = _compiled.get(key)
    except TypeError:  # the function is not hashable
        return jit(run)
    if compiled is None:
        compiled = _compiled[key] = jit(run)
    return compiled


def _key(shardings: Any) -> Any:
    leaves, tree = tree_flatten(shardings)
    return (*leaves, tree)


def _mesh_of(what: str, args: Any) -> AbstractMesh:
    """The mesh in effect, or that of the arguments."""
    mesh = get_abstract_mesh()
    if not mesh.empty:
        return mesh
    for x in tree_flatten(args)[0]:
        aval = typeof(x)
        if is_placed(aval):
            mesh = aval.placement.mesh
            assert isinstance(mesh, AbstractMesh)
            return mesh
        own = getattr(getattr(x, "sharding", None), "mesh", None)
        if isinstance(own, Mesh):
            return own.abstract_mesh
    raise ValueError(f"{what} needs a mesh: call the function in `with set_mesh(mesh):`")


def _names(mesh: AbstractMesh, axes: Any, kind: AxisType) -> tuple[Hashable, ...]:
    if axes is None:
        return mesh._of_type(kind)
    names = tuple(axes) if isinstance(axes, (tuple, list, set, frozenset)) else (axes,)
    for name in names:
        if name not in mesh._sizes:
            raise ValueError(f"the mesh {mesh} has no axis {name!r}")
    return names


def _with_types(mesh: AbstractMesh, names: Sequence[Hashable], kind: AxisType) -> AbstractMesh:
    for name in names:
        if mesh._name_to_type[name] is AxisType.Manual:
            raise ValueError(f"the mesh axis {name!r} is manual here: its type cannot be changed")
    types = [kind if n in names else t for n, t in zip(mesh.axis_names, mesh.axis_types)]
    return mesh.update(axis_types=tuple(types))


def _cast(x: Any, mesh: AbstractMesh) -> Any:
    """The value in a region with another mesh, without axes that are not explicit there."""
    aval = typeof(x)
    if not is_placed(aval):
        return x
    p = aval.placement
    explicit = {*mesh.explicit_axes}
    spec = [tuple([n for n in names if n in explicit]) for names in p.spec]
    target = Placement.of(mesh, spec)
    sharding = NamedSharding(mesh, PartitionSpec()) if not any(spec) else target.sharding
    return mesh_cast_p.bind(x, dst_sharding=sharding)
