"""Operations that are classes: the reference's ``HiPrim``, on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import primax_core
from primax_core import extend
from primax_core.extend import Effect, Primitive, Zero, instantiate, is_zero, typeof
from primax_core.tree_util import tree_flatten, tree_leaves, tree_structure, tree_unflatten

from .accumulators import GradAccum, ValAccum
from .batching import AxisData, axis_of, batch_of
from .programs import AbstractValue, mapped_aval, unmapped_aval

control_flow_allowed_effects: Final[frozenset[type[Effect]]] = frozenset({Effect})
"""Classes of effects that bodies of loops and branches may have: all."""

call_hi_primitive_p: Final = Primitive("call_hi_primitive", multiple_results=True)


class HiPrim:
    """An operation on pytrees of arrays.

    A subclass sets ``in_avals`` (a tuple with a tree of types for each argument), ``out_aval`` (a
    tree of types) and ``params`` (a dict of hashable values, which become attributes) before it
    calls ``super().__init__()``, and writes :meth:`expand`. It may write rules: :meth:`jvp`,
    :meth:`vjp_fwd` with :meth:`vjp_bwd_retval` or :meth:`vjp_bwd`, :meth:`batch`,
    :meth:`transpose`; without them those of the expansion hold, and :meth:`jvp` goes before
    :meth:`vjp_fwd` in reverse mode too. An instance is called as a function.
    Instances of equal types and parameters are equal.
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
          TypeError: if the arguments have another structure or other types than ``in_avals``.
        """
        leaves, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{self} takes arguments of the structure {self.in_tree}, got {tree}")
        for x, aval in zip(leaves, self.in_avals_flat):
            found = typeof(x)
            if (found.shape, found.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"{self} takes a {aval} where it got a {found}")
        self.check(*tree_unflatten(self.in_tree, [typeof(x) for x in leaves]))
        if self._writes("vjp_fwd") and not self._writes("jvp"):
            return self._with_reverse_rule(args)
        return self._bound(leaves)

    def _bound(self, leaves: Sequence[Any]) -> Any:
        return tree_unflatten(self.out_tree, call_hi_primitive_p.bind(*leaves, op=self))

    def _writes(self, rule: str) -> bool:
        return getattr(type(self), rule) is not getattr(HiPrim, rule)

    def _with_reverse_rule(self, args: tuple[Any, ...]) -> Any:
        @primax_core.custom_vjp
        def call(*given: Any) -> Any:
            return self._bound(tree_leaves(given))

        def fwd(*given: Any) -> tuple[Any, Any]:
            return self.vjp_fwd((True,) * len(self.in_avals_flat), *given)

        def bwd(residuals: Any, ct: Any) -> tuple[Any, ...]:
            return tuple(self._cotangents(residuals, ct))

        call.defvjp(fwd, bwd)
        return call(*args)

    def _cotangents(self, residuals: Any, ct: Any) -> Sequence[Any]:
        if self._writes("vjp_bwd"):
            accums = [ValAccum(a.tangent_aval()) for a in self.in_avals_flat]
            self.vjp_bwd(residuals, ct, *tree_unflatten(self.in_tree, accums))
            found: Sequence[Any] = tree_unflatten(
                self.in_tree, [instantiate(a.freeze()) for a in accums]
            )
            return found
        return [_without_zeros(c) for c in self.vjp_bwd_retval(residuals, ct)]

    # What subclasses write

    def expand(self, *args: Any) -> Any:
        """What the operation stands for."""
        raise NotImplementedError(f"{type(self).__name__} must define expand")

    def check(self, *arg_tys: Any) -> None:
        """Raise if the types of the arguments, trees of them, are not right."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The result and its tangent; tangents may be ``Zero``."""
        dots = [_without_zeros(t) for t in tangents]
        out, dot = primax_core.jvp(self.expand, tuple(primals), tuple(dots))
        return out, dot

    def lin(self, nzs_in: Sequence[bool], *primals: Any) -> tuple[Any, Any]:
        """The result, and what :meth:`linearized` needs of the arguments."""
        raise NotImplementedError(f"{type(self).__name__} must define lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the result."""
        raise NotImplementedError(f"{type(self).__name__} must define linearized")

    def vjp_fwd(self, nzs_in: Sequence[bool], /, *args: Any) -> tuple[Any, Any]:
        """The result, and what the backward rule needs of the arguments.

        Args:
          nzs_in: which arguments are differentiated.
        """
        raise NotImplementedError(f"{type(self).__name__} must define vjp_fwd")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Sequence[Any]:
        """A cotangent for each argument; one may be ``Zero``."""
        raise NotImplementedError(
            f"{type(self).__name__} defines vjp_fwd, so it must define vjp_bwd_retval or vjp_bwd"
        )

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: GradAccum) -> None:
        """Put a cotangent into each argument's accumulator."""
        raise NotImplementedError(f"{type(self).__name__} must define vjp_bwd")

    def batch(self, axis_data: AxisData, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        """The result on batches, and its mapped axis: trees like ``out_aval``."""
        raise NotImplementedError(f"{type(self).__name__} must define batch")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Put cotangents into the accumulators among the arguments, which it is linear in."""
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
    if not op._writes("batch"):
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
    if op._writes("transpose"):
        op.transpose(ct, *_args_of(op, accums))
        found = [a.freeze() if isinstance(a, ValAccum) else None for a in accums]
        return [None if c is None or is_zero(c) else c for c in found]
    linear = [isinstance(a, ValAccum) for a in accums]
    types = [a.aval if lin else typeof(a) for a, lin in zip(accums, linear)]

    def expanded(*leaves: Any) -> list[Any]:
        return _flat_result(op, op.expand(*_args_of(op, leaves)), "expand")

    program = extend.stage(expanded, types, repr(op))
    back = extend.backward_pass(program, linear, args, list(cts))
    return [c if lin and not is_zero(c) else None for c, lin in zip(back, linear)]


# Rules made from other rules


class LinFromJVP(NamedTuple):
    """Assign ``lin, linearized = linearize_from_jvp`` in a class that has ``jvp``."""

    lin: Callable[..., Any]
    linearized: Callable[..., Any]


class VJPRules(NamedTuple):
    """Assign ``vjp_fwd, vjp_bwd_retval = vjp_from_...`` in a class."""

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]


def jvp_from_lin(self: HiPrim, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """A ``jvp`` from ``lin`` and ``linearized``: assign it in a class that has these."""
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


def instantiate_zeros(tangent: Any) -> Any:
    """An array of zeros for a ``Zero``; other tangents as they are."""
    return instantiate(tangent)


# Helpers of batching rules


def bdims_at_front(axis_data: Any, args: Any, dims: Any) -> Any:
    """The arguments with mapped axes first; those that are not mapped are repeated."""
    leaves, tree = tree_flatten(args)
    listed = tree_leaves(dims, is_leaf=lambda d: d is None)
    return tree_unflatten(
        tree, [extend.move_axis(x, d, 0, axis_data.size) for x, d in zip(leaves, listed)]
    )


def unmap_avals(axis_data: Any, avals: Any, dims: Any) -> Any:
    """Types of batches, from those of examples."""
    leaves, tree = _types(avals)
    listed = tree_leaves(dims, is_leaf=lambda d: d is None)
    return tree_unflatten(
        tree, [unmapped_aval(axis_data.size, d, a) for a, d in zip(leaves, listed)]
    )


def vmap_rule(
    axis_data: Any, f: Callable[..., Any], in_axes: Any, out_axes: Any, *, sum_match: bool = False
) -> Callable[..., Any]:
    """``f`` on batches along ``axis_data``, as a batching rule needs it.

    Args:
      in_axes, out_axes: as for ``vmap``. Arguments may be ``Zero``, which stay zero.
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
            given = [
                Zero(mapped_aval(axis.size, d, x.aval)) if is_zero(x) else next(rest)
                for x, d in zip(leaves, axes)
            ]
            outs, structure = tree_flatten(f(*tree_unflatten(tree, given)), is_leaf=is_zero)
            out_tree[:] = [structure, outs]
            return [o for o in outs if not is_zero(o)]

        found, dims = batch_of(flat, axis_data, [d for _, d in arrays], [x for x, _ in arrays])
        structure, outs = out_tree
        wanted = _broadcast_axes(out_axes, tree_unflatten(structure, [0] * len(outs)))
        made = iter(zip(found, dims))
        results = []
        for o, w in zip(outs, wanted):
            if is_zero(o):
                results.append(Zero(unmapped_aval(axis.size, w, o.aval)))
                continue
            x, d = next(made)
            if w is None and d is not None:
                raise ValueError("vmap_rule: a result is mapped, but its out_axes is None")
            results.append(x if w is None else extend.move_axis(x, d, w, axis.size))
        return tree_unflatten(structure, results)

    return mapped


def _broadcast_axes(axes: Any, tree: Any) -> list[Any]:
    from ..api_util import flatten_axes

    return flatten_axes("axes", tree_structure(tree, is_leaf=is_zero), axes)


# Types of one's own


class HiType(AbstractValue):
    """Base of types of values of one's own, which lower to arrays.

    A subclass writes ``lo_ty`` (types of the arrays), ``lower_val`` and ``raise_val``. Such a type
    describes values to ``typeof``; values of it cannot be operands of programs here.
    """

    def lo_ty(self) -> list[Any]:
        """Types of the arrays that a value consists of."""
        raise NotImplementedError(f"{type(self).__name__} must define lo_ty")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """The arrays that a value consists of."""
        raise NotImplementedError(f"{type(self).__name__} must define lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that consists of some arrays."""
        raise NotImplementedError(f"{type(self).__name__} must define raise_val")


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Let ``typeof`` answer for values of a class; ``typeof_fn`` gives the type of one."""
    extend.register_value_type(val_cls, typeof_fn)


class HiPspec:
    """Base of how values of one's own are spread over a mesh, which this version has none of."""

    def to_lo(self) -> tuple[Any, ...]:
        """How the arrays are spread."""
        raise NotImplementedError(f"{type(self).__name__} must define to_lo")


class MappingSpec:
    """Base of how values of one's own are mapped by ``vmap``."""


class aval_method(NamedTuple):
    """In a type's class: a method of the values of the type, ``fun(value, ...)``."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """In a type's class: a property of the values of the type, ``fget(value)``."""

    fget: Callable[..., Any]


class _AnyView(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance).__name__ == "RefView" and hasattr(instance, "ref")

    def __call__(cls, ref: Any, transforms: Sequence[Any]) -> Any:
        for index in transforms:
            ref = ref.at[index]
        return ref


class TransformedRef(metaclass=_AnyView):
    """A part of a reference; ``TransformedRef(ref, indices)`` takes parts of parts."""
