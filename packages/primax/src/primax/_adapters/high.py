"""Operations defined as classes: the reference's ``HiPrim``, on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import primax_core
from primax_core import extend
from primax_core.extend import Effect, Primitive, Zero, instantiate, is_zero, typeof
from primax_core.tree_util import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from primax_core.typing import ArrayLike, PyTree

from .accumulators import GradAccum, ValAccum
from .batching import AxisData, axis_of, batch_of
from .jaxprs import AbstractValue, mapped_aval, unmapped_aval

control_flow_allowed_effects: Final[frozenset[type[Effect]]] = frozenset({Effect})
"""Effect classes allowed in the bodies of loops and branches: all."""

call_hi_primitive_p: Final = Primitive("call_hi_primitive", multiple_results=True)


class HiPrim:
    """Base class of operations on pytrees of arrays.

    A subclass sets ``in_avals`` (a tuple with a pytree of types for each argument), ``out_aval`` (a
    pytree of types) and ``params`` (a dict of hashable values, which become attributes) before it
    calls ``super().__init__()``, and defines :meth:`expand`. It may define rules: :meth:`jvp`,
    :meth:`vjp_fwd` with :meth:`vjp_bwd_retval` or :meth:`vjp_bwd`, :meth:`batch`,
    :meth:`transpose`. Missing rules follow from the expansion. If :meth:`jvp` is defined, reverse
    mode uses it instead of :meth:`vjp_fwd`. Instances are callable. Instances of equal types and
    parameters are equal.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__} must set self.{name} before super().__init__()"
                )
        self.in_avals_flat: list[Any]
        self.out_avals_flat: list[Any]
        self.in_tree: Any
        self.out_tree: Any
        self.in_avals_flat, self.in_tree = _types(self.in_avals)
        self.out_avals_flat, self.out_tree = _types(self.out_aval)
        for aval in (*self.in_avals_flat, *self.out_avals_flat):
            if isinstance(aval, HiType):
                raise aval._refusal()
        self.__dict__.update(self.params)

    def _key(self) -> tuple[Any, ...]:
        types = (tuple(self.in_avals_flat), self.in_tree, tuple(self.out_avals_flat), self.out_tree)
        return type(self), types, tuple(sorted(self.params.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiPrim) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in sorted(self.params.items()))
        return f"{type(self).__name__}({shown})"

    def __call__(self, *args: Any) -> Any:
        """Apply the operation.

        Raises:
          TypeError: if the structure or the types of the arguments differ from ``in_avals``.
        """
        leaves, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{self} expects arguments of structure {self.in_tree}, got {tree}")
        for x, aval in zip(leaves, self.in_avals_flat):
            got = typeof(x)
            if (got.shape, got.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"{self} expects {aval}, got {got}")
        self.check(*tree_unflatten(self.in_tree, [typeof(x) for x in leaves]))
        if self._defines("vjp_fwd") and not self._defines("jvp"):
            return self._with_reverse_rule(args)
        return self._bound(leaves)

    def _bound(self, leaves: Sequence[Any]) -> Any:
        return tree_unflatten(self.out_tree, call_hi_primitive_p.bind(*leaves, op=self))

    def _defines(self, rule: str) -> bool:
        return getattr(type(self), rule) is not getattr(HiPrim, rule)

    def _with_reverse_rule(self, args: tuple[Any, ...]) -> Any:
        @primax_core.custom_vjp
        def call(*operands: Any) -> Any:
            return self._bound(tree_leaves(operands))

        def fwd(*operands: Any) -> tuple[Any, Any]:
            return self.vjp_fwd((True,) * len(self.in_avals_flat), *operands)

        def bwd(residuals: Any, ct: Any) -> tuple[Any, ...]:
            return tuple(self._cotangents(residuals, ct))

        call.defvjp(fwd, bwd)
        return call(*args)

    def _cotangents(self, residuals: Any, ct: Any) -> Sequence[Any]:
        if self._defines("vjp_bwd"):
            accums = [ValAccum(a.tangent_aval()) for a in self.in_avals_flat]
            self.vjp_bwd(residuals, ct, *tree_unflatten(self.in_tree, accums))
            cotangents: Sequence[Any] = tree_unflatten(
                self.in_tree, [instantiate(a.freeze()) for a in accums]
            )
            return cotangents
        return [_without_zeros(c) for c in self.vjp_bwd_retval(residuals, ct)]

    # Methods that subclasses define

    def expand(self, *args: Any) -> Any:
        """Compute the result with other operations."""
        raise NotImplementedError(f"{type(self).__name__} must define expand")

    def check(self, *arg_tys: Any) -> None:
        """Raise an error if the types of the arguments (pytrees) are invalid."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the result and its tangent; tangents may be ``Zero``."""
        dots = [_without_zeros(t) for t in tangents]
        out, dot = primax_core.jvp(self.expand, tuple(primals), tuple(dots))
        return out, dot

    def lin(self, nzs_in: Sequence[bool], *primals: Any) -> tuple[Any, Any]:
        """Return the result and the residuals for :meth:`linearized`."""
        raise NotImplementedError(f"{type(self).__name__} must define lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result."""
        raise NotImplementedError(f"{type(self).__name__} must define linearized")

    def vjp_fwd(self, nzs_in: Sequence[bool], /, *args: Any) -> tuple[Any, Any]:
        """Return the result and the residuals for the backward rule.

        Args:
          nzs_in: which arguments are differentiated.
        """
        raise NotImplementedError(f"{type(self).__name__} must define vjp_fwd")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Sequence[Any]:
        """Return a cotangent for each argument; one may be ``Zero``."""
        raise NotImplementedError(
            f"{type(self).__name__} defines vjp_fwd, so it must define vjp_bwd_retval or vjp_bwd"
        )

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: GradAccum) -> None:
        """Add a cotangent to the accumulator of each argument."""
        raise NotImplementedError(f"{type(self).__name__} must define vjp_bwd")

    def batch(self, axis_data: AxisData, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        """Return the result on batches and its mapped axis: pytrees like ``out_aval``."""
        raise NotImplementedError(f"{type(self).__name__} must define batch")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Add cotangents to the accumulators, which replace the linear arguments."""
        raise NotImplementedError(f"{type(self).__name__} must define transpose")


def _types(tree: Any) -> tuple[list[Any], Any]:
    return tree_flatten(tree, is_leaf=lambda a: isinstance(a, AbstractValue))


def _without_zeros(tree: Any) -> Any:
    leaves, structure = tree_flatten(tree, is_leaf=is_zero)
    return tree_unflatten(structure, [instantiate(x) if is_zero(x) else x for x in leaves])


def _args_of(prim: HiPrim, leaves: Sequence[Any]) -> tuple[Any, ...]:
    args: tuple[Any, ...] = tree_unflatten(prim.in_tree, leaves)
    return args


def _flat_result(prim: HiPrim, out: Any, what: str) -> list[Any]:
    leaves, tree = tree_flatten(out, is_leaf=is_zero)
    if tree != prim.out_tree:
        raise TypeError(f"{what} of {prim} gives the structure {tree}, not {prim.out_tree}")
    return leaves


@call_hi_primitive_p.rule(extend.abstract)
def _abstract(*avals: Any, op: HiPrim) -> Any:
    return op.out_avals_flat


@call_hi_primitive_p.rule(extend.expand)
def _expand(*args: Any, op: HiPrim) -> Any:
    return _flat_result(op, op.expand(*_args_of(op, args)), "expand")


@call_hi_primitive_p.rule(extend.jvp)
def _jvp(primals: Any, tangents: Any, *, op: HiPrim) -> Any:
    out, dots = op.jvp(_args_of(op, primals), _args_of(op, tangents))
    return _flat_result(op, out, "jvp"), _flat_result(op, dots, "jvp")


@call_hi_primitive_p.rule(extend.batch)
def _batch(axis: Any, args: Any, dims: Any, *, op: HiPrim) -> Any:
    if not op._defines("batch"):
        outs, out_dims = extend.batch_of(
            lambda *leaves: _flat_result(op, op.expand(*_args_of(op, leaves)), "expand"),
            args, dims, axis,
        )  # fmt: skip
        return outs, out_dims
    data = AxisData(axis.name, axis.size)
    out, out_dim = op.batch(data, _args_of(op, args), _args_of(op, dims))
    listed = tree_leaves(out_dim, is_leaf=lambda d: d is None)
    leaves = _flat_result(op, out, "batch")
    if len(listed) == 1:
        listed = listed * len(leaves)
    return leaves, listed


@call_hi_primitive_p.rule(extend.transpose)
def _transpose(cts: Any, *args: Any, op: HiPrim) -> Any:
    accums = [ValAccum(a.aval) if extend.is_linear(a) else a for a in args]
    ct = tree_unflatten(op.out_tree, cts)
    if op._defines("transpose"):
        op.transpose(ct, *_args_of(op, accums))
        cotangents = [a.freeze() if isinstance(a, ValAccum) else None for a in accums]
        return [None if c is None or is_zero(c) else c for c in cotangents]
    linear = [isinstance(a, ValAccum) for a in accums]
    types = [a.aval if lin else typeof(a) for a, lin in zip(accums, linear)]

    def expanded(*leaves: Any) -> list[Any]:
        return _flat_result(op, op.expand(*_args_of(op, leaves)), "expand")

    jaxpr = extend.stage(expanded, types, repr(op))
    back = extend.backward_pass(jaxpr, linear, args, list(cts))
    return [c if lin and not is_zero(c) else None for c, lin in zip(back, linear)]


# Rules derived from other rules


class LinFromJVP(NamedTuple):
    """Helper for ``lin, linearized = linearize_from_jvp`` in a class that defines ``jvp``."""

    lin: Callable[..., Any]
    linearized: Callable[..., Any]


class VJPRules(NamedTuple):
    """Helper for ``vjp_fwd, vjp_bwd_retval = vjp_from_...`` in a class."""

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]


def jvp_from_lin(self: HiPrim, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """A ``jvp`` method derived from ``lin`` and ``linearized``."""
    leaves = tree_leaves(tuple(tangents), is_leaf=is_zero)
    out, residuals = self.lin(tuple(not is_zero(t) for t in leaves), *primals)
    return out, self.linearized(residuals, *tangents)


def _lin(self: HiPrim, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
    return self(*primals), primals


def _linearized(self: HiPrim, residuals: Any, *tangents: Any) -> Any:
    return self.jvp(residuals, tangents)[1]


def _fwd_by_jvp(self: HiPrim, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
    return self._bound(tree_leaves(args)), args


def _fwd_by_lin(self: HiPrim, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
    return self.lin(nzs_in, *args)


def _tangent_types(self: HiPrim) -> tuple[Any, ...]:
    return _args_of(self, [instantiate(Zero(a.tangent_aval())) for a in self.in_avals_flat])


def _back_by_jvp(self: HiPrim, res: Any, outgrad: Any, /) -> Any:
    def tangent(*dots: Any) -> Any:
        return self.jvp(res, dots)[1]

    return primax_core.linear_transpose(tangent, *_tangent_types(self))(outgrad)


def _back_by_lin(self: HiPrim, res: Any, outgrad: Any, /) -> Any:
    def tangent(*dots: Any) -> Any:
        return self.linearized(res, *dots)

    return primax_core.linear_transpose(tangent, *_tangent_types(self))(outgrad)


linearize_from_jvp: Final = LinFromJVP(_lin, _linearized)
vjp_from_jvp: Final = VJPRules(_fwd_by_jvp, _back_by_jvp)
vjp_from_lin: Final = VJPRules(_fwd_by_lin, _back_by_lin)


def instantiate_zeros(tangent: Zero | ArrayLike) -> Any:
    """Replace a ``Zero`` by an array of zeros; return other tangents unchanged."""
    return instantiate(tangent)


# Helpers of batching rules


def bdims_at_front(axis_data: AxisData, args: PyTree, dims: PyTree) -> Any:
    """Move mapped axes to the front; broadcast unmapped arguments."""
    leaves, tree = tree_flatten(args)
    listed = tree_leaves(dims, is_leaf=lambda d: d is None)
    return tree_unflatten(
        tree, [extend.move_axis(x, d, 0, axis_data.size) for x, d in zip(leaves, listed)]
    )


def unmap_avals(axis_data: AxisData, avals: PyTree, dims: PyTree) -> Any:
    """Add the mapped axes to the types of examples."""
    leaves, tree = _types(avals)
    listed = tree_leaves(dims, is_leaf=lambda d: d is None)
    return tree_unflatten(
        tree, [unmapped_aval(axis_data.size, d, a) for a, d in zip(leaves, listed)]
    )


def vmap_rule(
    axis_data: AxisData,
    f: Callable[..., Any],
    in_axes: PyTree,
    out_axes: PyTree,
    *,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """Run ``f`` on batches along ``axis_data``, for a batching rule.

    Args:
      in_axes, out_axes: as for ``vmap``. Arguments may be ``Zero`` and stay ``Zero``.
      sum_match: must be false.
    """
    if sum_match:
        raise NotImplementedError("vmap_rule: sum_match is not supported")
    axis = axis_of(axis_data)

    def mapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args, is_leaf=is_zero)
        axes = _broadcast_axes(in_axes, args)
        arrays = [(x, d) for x, d in zip(leaves, axes) if not is_zero(x)]
        out_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            rest = iter(values)
            operands = [
                Zero(mapped_aval(axis.size, d, x.aval)) if is_zero(x) else next(rest)
                for x, d in zip(leaves, axes)
            ]
            outs, structure = tree_flatten(f(*tree_unflatten(tree, operands)), is_leaf=is_zero)
            out_tree[:] = [structure, outs]
            return [o for o in outs if not is_zero(o)]

        batches, dims = batch_of(flat, axis_data, [d for _, d in arrays], [x for x, _ in arrays])
        structure, outs = out_tree
        out_dims = _broadcast_axes(out_axes, tree_unflatten(structure, [0] * len(outs)))
        mapped_results = iter(zip(batches, dims))
        results = []
        for o, w in zip(outs, out_dims):
            if is_zero(o):
                results.append(Zero(unmapped_aval(axis.size, w, o.aval)))
                continue
            x, d = next(mapped_results)
            if w is None and d is not None:
                raise ValueError("vmap_rule: a result is mapped but its out_axes is None")
            results.append(x if w is None else extend.move_axis(x, d, w, axis.size))
        return tree_unflatten(structure, results)

    return mapped


def _broadcast_axes(axes: Any, tree: Any) -> list[Any]:
    from ..api_util import flatten_axes

    return flatten_axes("axes", tree_structure(tree, is_leaf=is_zero), axes)


# User-defined types


class HiType(AbstractValue):
    """Base class of user-defined types whose values lower to arrays.

    A subclass defines ``lo_ty`` (types of the arrays), ``lower_val`` and ``raise_val``. ``typeof``
    returns such a type, but values of it cannot be operands of jaxprs.
    """

    def _refusal(self) -> NotImplementedError:
        cls = type(self).__name__
        return NotImplementedError(
            f"values of the type {cls} cannot be operands: jaxprs hold arrays only. Register the "
            "class of the values as a pytree (primax.tree_util.register_dataclass), and give its "
            "operations rules with custom_vjp or custom_jvp"
        )

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "ndim", "weak_type"):  # asked of the types of operands
            raise self._refusal()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that represent a value."""
        raise NotImplementedError(f"{type(self).__name__} must define lo_ty")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """Return the arrays that represent a value."""
        raise NotImplementedError(f"{type(self).__name__} must define lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Construct the value from its arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define raise_val")


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register a class for ``typeof``; ``typeof_fn`` returns the type of a value."""
    extend.register_value_type(val_cls, typeof_fn)


class HiPspec:
    """Base class for the partitioning of user-defined types over a mesh, which is not supported."""

    def to_lo(self) -> tuple[Any, ...]:
        """Return the partitioning of the arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define to_lo")


class MappingSpec:
    """Base class for the mapped axes of user-defined types under ``vmap``."""


class aval_method(NamedTuple):
    """Define a method ``fun(value, ...)`` of all values of a type; use it in the type's class."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """Define a property ``fget(value)`` of all values of a type; use it in the type's class."""

    fget: Callable[..., Any]


class _AnyView(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance).__name__ == "RefView" and hasattr(instance, "root")

    def __call__(cls, ref: Any, transforms: Sequence[Any]) -> Any:
        for index in transforms:
            ref = ref.at[index]
        return ref


class TransformedRef(metaclass=_AnyView):
    """A view of a reference; ``TransformedRef(ref, indices)`` nests views."""
