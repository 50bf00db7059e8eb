"""Operations defined as classes: the reference's ``HiPrim``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import primax_core
from primax_core import extend
from primax_core.extend import (
    Effect,
    Primitive,
    Tracer,
    Zero,
    dtypes,
    instantiate,
    is_zero,
    typeof,
)
from primax_core.extend.placements import is_placed
from primax_core.extend.traces import StagingTrace
from primax_core.tree_util import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from primax_core.typing import ArrayLike, PyTree

from .accumulators import GradAccum, ValAccum
from .batching import AxisData, axis_of, batch_of
from .hitypes import (
    HiType,
    grouped,
    lo_types,
    lowered,
    lowered_tangent,
    raised,
    raised_tangent,
    tangent_type,
)
from .jaxprs import AbstractValue, mapped_aval, unmapped_aval

control_flow_allowed_effects: Final[frozenset[type[Effect]]] = frozenset({Effect})
"""Effect classes allowed in the bodies of loops and branches: all."""

call_hi_primitive_p: Final = Primitive("call_hi_primitive", multiple_results=True)
call_hi_primitive_with_rules_p: Final = Primitive(
    "call_hi_primitive_with_rules", multiple_results=True
)
"""An operation on arrays with a rule for each mode of differentiation."""
call_hi_tangent_p: Final = Primitive("call_hi_tangent", multiple_results=True)
"""Its tangent: the forward rule, with the reverse rule as transpose."""


class HiPrim:
    """Base class of operations on pytrees of arrays, and of values of a :class:`HiType`.

    A subclass sets ``in_avals`` (a tuple with a pytree of types for each argument), ``out_aval`` (a
    pytree of types) and ``params`` (a dict of hashable values, which become attributes) before it
    calls ``super().__init__()``, and defines :meth:`expand`. It may define rules: :meth:`jvp`,
    :meth:`vjp_fwd` with :meth:`vjp_bwd_retval` or :meth:`vjp_bwd`, :meth:`batch`,
    :meth:`transpose`. Missing rules follow from the expansion. If :meth:`jvp` is defined, reverse
    mode of operations on values of a :class:`HiType` uses it instead of :meth:`vjp_fwd`. Instances
    are callable: without tracers among the operands a call is :meth:`expand`. Instances of equal
    types and parameters are equal.
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
        self._high = any(isinstance(a, HiType) for a in (*self.in_avals_flat, *self.out_avals_flat))
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
            if isinstance(aval, HiType) or isinstance(got, HiType):
                matches = type(got) is type(aval) and _same_arrays(got, aval)
            else:
                matches = (got.shape, got.dtype) == (aval.shape, aval.dtype)
            if not matches:
                raise TypeError(f"{self} expects {aval}, got {got}")
        self.check(*tree_unflatten(self.in_tree, [typeof(x) for x in leaves]))
        trace = extend.current_trace()
        staged = isinstance(trace, StagingTrace)
        arrays = self._arrays(leaves) if self._high else leaves
        if not staged and not any(isinstance(a, Tracer) for a in arrays):
            # Also with effects on values of a HiType, and with branches on numbers.
            return self.expand(*args) if self._high else self._expanded_now(args)
        if (staged or self._high) and self._defines("staging"):
            return self.staging(trace, None, *args)
        if self._defines("vjp_fwd") and not self._defines("jvp"):
            if self._high:
                return self._with_reverse_rule_of_arrays(arrays)
            return self._with_reverse_rule(args)
        return self._bound(arrays)

    def _arrays(self, leaves: Sequence[Any]) -> list[Any]:
        """The arrays of which the operands consist."""
        return [a for x, t in zip(leaves, self.in_avals_flat) for a in lowered(t, x)]

    def _expanded_now(self, args: tuple[Any, ...]) -> Any:
        out = self.expand(*args)
        for x, aval in zip(_flat_result(self, out, "expand"), self.out_avals_flat):
            got = typeof(x)
            if (got.shape, got.dtype) != (aval.shape, aval.dtype):
                raise TypeError(f"expand of {self} gives {got}, but its out_aval is {aval}")
        return out

    def _bound(self, arrays: Sequence[Any]) -> Any:
        both = not self._high and self._defines("jvp") and self._defines("vjp_fwd")
        prim = call_hi_primitive_with_rules_p if both else call_hi_primitive_p
        outs = prim.bind(*arrays, op=self)
        return _value(self.out_avals_flat, self.out_tree, outs)

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

    def _with_reverse_rule_of_arrays(self, arrays: Sequence[Any]) -> Any:
        """The operation with its reverse rule, on the arrays of values of user-defined types."""

        @primax_core.custom_vjp
        def call(*arrays: Any) -> Any:
            return call_hi_primitive_p.bind(*arrays, op=self)

        def fwd(*arrays: Any) -> tuple[Any, Any]:
            for aval in self.in_avals_flat:
                _tangent_of(aval)  # raises an error for types without derivatives
            operands = _value(self.in_avals_flat, self.in_tree, arrays)
            out, residuals = self.vjp_fwd((True,) * len(self.in_avals_flat), *operands)
            return _flat_result(self, out, "vjp_fwd"), residuals

        def bwd(residuals: Any, cts: Any) -> tuple[Any, ...]:
            values = [raised_tangent(t, c) for t, c in grouped(self.out_avals_flat, cts)]
            back = self._cotangents(residuals, tree_unflatten(self.out_tree, values))
            leaves = tree_leaves(tuple(back))
            return tuple(
                a for t, c in zip(self.in_avals_flat, leaves) for a in lowered_tangent(t, c)
            )

        call.defvjp(fwd, bwd)
        return _value(self.out_avals_flat, self.out_tree, call(*arrays))

    def _cotangents(self, residuals: Any, ct: Any) -> Sequence[Any]:
        if self._defines("vjp_bwd"):
            accums = [ValAccum(_tangent_of(a)) for a in self.in_avals_flat]
            self.vjp_bwd(residuals, ct, *tree_unflatten(self.in_tree, accums))
            cotangents: Sequence[Any] = tree_unflatten(
                self.in_tree, [instantiate_zeros(a.freeze()) for a in accums]
            )
            return cotangents
        return [_without_zeros(c) for c in self.vjp_bwd_retval(residuals, ct)]

    # Methods that subclasses define

    def expand(self, *args: Any) -> Any:
        """Compute the result with other operations."""
        raise NotImplementedError(f"{type(self).__name__} must define expand")

    def check(self, *arg_tys: Any) -> None:
        """Raise an error if the types of the arguments (pytrees) are invalid."""

    def staging(self, trace: Any, source_info: Any, /, *args: Any) -> Any:
        """Apply the operation in a function that is traced, or to traced values of a
        :class:`HiType`."""
        return self._bound(self._arrays(tree_leaves(args)))

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
        """Return the result on batches and its mapped axis: pytrees like ``out_aval``.

        Operations on values of a :class:`HiType` are mapped by their expansion instead.
        """
        raise NotImplementedError(f"{type(self).__name__} must define batch")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Add cotangents to the accumulators, which replace the linear arguments."""
        raise NotImplementedError(f"{type(self).__name__} must define transpose")


def _types(tree: Any) -> tuple[list[Any], Any]:
    return tree_flatten(tree, is_leaf=lambda a: isinstance(a, AbstractValue))


def _without_zeros(tree: Any) -> Any:
    leaves, structure = tree_flatten(tree, is_leaf=is_zero)
    return tree_unflatten(structure, [instantiate_zeros(x) for x in leaves])


def _same_arrays(a: Any, b: Any) -> bool:
    types, others = lo_types(a), lo_types(b)
    return [(t.shape, t.dtype) for t in types] == [(t.shape, t.dtype) for t in others]


def _tangent_of(aval: Any) -> Any:
    return tangent_type(aval) if isinstance(aval, HiType) else aval.tangent_aval()


def _value(avals: Sequence[Any], tree: Any, arrays: Sequence[Any]) -> Any:
    """The tree of values that consist of the arrays; traced values if these are."""
    return tree_unflatten(tree, [raised(t, own) for t, own in grouped(avals, arrays)])


def _args_of(prim: HiPrim, arrays: Sequence[Any]) -> tuple[Any, ...]:
    args: tuple[Any, ...] = _value(prim.in_avals_flat, prim.in_tree, arrays)
    return args


def _tangents_of(prim: HiPrim, arrays: Sequence[Any]) -> tuple[Any, ...]:
    leaves = [raised_tangent(t, own) for t, own in grouped(prim.in_avals_flat, arrays)]
    tangents: tuple[Any, ...] = tree_unflatten(prim.in_tree, leaves)
    return tangents


def _flat_result(prim: HiPrim, out: Any, what: str) -> list[Any]:
    """The arrays of a result."""
    leaves, tree = tree_flatten(out, is_leaf=is_zero)
    if tree != prim.out_tree:
        raise TypeError(f"{what} of {prim} gives the structure {tree}, not {prim.out_tree}")
    if not prim._high:
        return leaves
    return [a for t, x in zip(prim.out_avals_flat, leaves) for a in lowered(t, x)]


def _expanded(prim: HiPrim, arrays: Sequence[Any]) -> list[Any]:
    """The arrays of the result of the expansion, which gets values of the user's classes."""
    values = [
        t.raise_val(*own) if isinstance(t, HiType) else own[0]
        for t, own in grouped(prim.in_avals_flat, arrays)
    ]
    out = prim.expand(*tree_unflatten(prim.in_tree, values))
    return _flat_result(prim, out, "expand")


@call_hi_primitive_with_rules_p.rule(extend.abstract)
@call_hi_primitive_p.rule(extend.abstract)
def _abstract(*avals: Any, op: HiPrim) -> Any:
    return [t for a in op.out_avals_flat for t in lo_types(a)]


@call_hi_primitive_with_rules_p.rule(extend.expand)
@call_hi_primitive_p.rule(extend.expand)
def _expand(*args: Any, op: HiPrim) -> Any:
    return _expanded(op, args)


@call_hi_primitive_with_rules_p.rule(extend.jvp)
@call_hi_primitive_p.rule(extend.jvp)
def _jvp(primals: Any, tangents: Any, *, op: HiPrim) -> Any:
    out, dots = op.jvp(_args_of(op, primals), _tangents_of(op, tangents))
    leaves, tree = tree_flatten(dots, is_leaf=is_zero)
    if tree != op.out_tree:
        raise TypeError(f"jvp of {op} gives the structure {tree}, not {op.out_tree}")
    flat_dots = [a for t, x in zip(op.out_avals_flat, leaves) for a in lowered_tangent(t, x)]
    return _flat_result(op, out, "jvp"), flat_dots


@call_hi_primitive_with_rules_p.rule(extend.batch)
@call_hi_primitive_p.rule(extend.batch)
def _batch(axis: Any, args: Any, dims: Any, *, op: HiPrim) -> Any:
    if op._high or not op._defines("batch"):
        outs, out_dims = extend.batch_of(
            lambda *arrays: _expanded(op, arrays), args, dims, axis
        )  # fmt: skip
        return outs, out_dims
    data = AxisData(axis.name, axis.size)
    out, out_dim = op.batch(data, _args_of(op, args), _args_of(op, dims))
    listed = tree_leaves(out_dim, is_leaf=lambda d: d is None)
    leaves = _flat_result(op, out, "batch")
    if len(listed) == 1:
        listed = listed * len(leaves)
    return leaves, listed


@call_hi_primitive_with_rules_p.rule(extend.transpose)
@call_hi_primitive_p.rule(extend.transpose)
def _transpose(cts: Any, *args: Any, op: HiPrim) -> Any:
    linear = [extend.is_linear(a) for a in args]
    if op._defines("transpose"):
        groups = list(grouped(op.in_avals_flat, args))
        accums = [
            ValAccum(_tangent_of(t) if isinstance(t, HiType) else own[0].aval)
            if any(map(extend.is_linear, own))
            else raised(t, own)
            for t, own in groups
        ]
        outs = [raised_tangent(t, c) for t, c in grouped(op.out_avals_flat, cts)]
        op.transpose(tree_unflatten(op.out_tree, outs), *tree_unflatten(op.in_tree, accums))
        cotangents = [
            c
            for a, (t, own) in zip(accums, groups)
            for c in (
                lowered_tangent(t, a.freeze()) if isinstance(a, ValAccum) else [None] * len(own)
            )
        ]
        return [None if c is None or is_zero(c) else c for c in cotangents]
    types = [a.aval if lin else typeof(a) for a, lin in zip(args, linear)]
    jaxpr = extend.stage(lambda *arrays: _expanded(op, arrays), types, repr(op))
    back = extend.backward_pass(jaxpr, linear, args, list(cts))
    return [c if lin and not is_zero(c) else None for c, lin in zip(back, linear)]


# Reverse mode of operations with rules for both modes


@call_hi_primitive_with_rules_p.rule(extend.linearize)
def _linearize(primals: Any, mask: Sequence[bool], *, op: HiPrim) -> Any:
    out, residuals = op.vjp_fwd(tuple(mask), *_args_of(op, primals))
    outs = _flat_result(op, out, "vjp_fwd")
    saved, tree = tree_flatten(residuals)
    out_mask = tuple(a.tangent_aval().dtype != dtypes.float0 for a in op.out_avals_flat)
    params = {"op": op, "mask": tuple(mask), "tree": tree, "out_mask": out_mask}
    avals = [typeof(x).tangent_aval() for x, m in zip(primals, mask) if m]
    linear = extend.stage(
        lambda *dots: call_hi_tangent_p.bind(*primals, *saved, *dots, **params), avals, repr(op)
    )
    return outs, linear, out_mask


@call_hi_tangent_p.rule(extend.abstract)
def _tangent_abstract(*avals: Any, op: HiPrim, out_mask: Sequence[bool], **_: Any) -> Any:
    return [a.tangent_aval() for a, m in zip(op.out_avals_flat, out_mask) if m]


@call_hi_tangent_p.rule(extend.effects)
def _tangent_effects(*avals: Any, **_: Any) -> frozenset[Effect]:
    return frozenset()  # without a run of the forward rule, which reverse mode does not need


@call_hi_tangent_p.rule(extend.expand)
def _tangent_expand(
    *args: Any, op: HiPrim, mask: Sequence[bool], out_mask: Sequence[bool], **_: Any
) -> Any:
    rest = iter(args[len(args) - sum(mask) :])
    zeros = [Zero(a.tangent_aval()) for a in op.in_avals_flat]
    dots = [next(rest) if m else instantiate_zeros(z) for z, m in zip(zeros, mask)]
    _, out_dots = _jvp(args[: len(mask)], dots, op=op)
    return [instantiate_zeros(t) for t, m in zip(out_dots, out_mask) if m]


@call_hi_tangent_p.rule(extend.transpose)
def _tangent_transpose(
    cts: Any, *args: Any, op: HiPrim, mask: Sequence[bool], tree: Any, out_mask: Sequence[bool]
) -> Any:
    rest = iter(cts)
    zeros = [Zero(a.tangent_aval()) for a in op.out_avals_flat]
    values = [instantiate_zeros(next(rest) if m else z) for z, m in zip(zeros, out_mask)]
    residuals = tree_unflatten(tree, args[len(mask) : len(args) - sum(mask)])
    back = op._cotangents(residuals, tree_unflatten(op.out_tree, values))
    leaves = tree_leaves(tuple(back))
    if len(leaves) != len(mask):
        n = len(leaves)
        raise TypeError(f"the backward rule of {op} gives {n} cotangents, not {len(mask)}")
    return [None] * (len(args) - sum(mask)) + [c for c, m in zip(leaves, mask) if m]


# Placements


def _place_by(expand: Callable[..., Any]) -> Callable[..., Any]:
    """The placements that an operation declares; without any, those of its expansion."""

    def place(
        abstract: Callable[..., list[Any]], in_avals: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Sequence[Any], None]:
        results = abstract(*in_avals)
        if any(map(is_placed, results)) or not any(map(is_placed, in_avals)):
            return results, None
        jaxpr = extend.stage(lambda *args: expand(*args, **params), in_avals, repr(params["op"]))
        return jaxpr.out_avals, None

    return place


call_hi_primitive_p.rule(extend.place)(_place_by(_expand))
call_hi_primitive_with_rules_p.rule(extend.place)(_place_by(_expand))
call_hi_tangent_p.rule(extend.place)(_place_by(_tangent_expand))


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
    return self._bound(self._arrays(tree_leaves(args))), args


def _fwd_by_lin(self: HiPrim, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
    return self.lin(nzs_in, *args)


def _tangent_types(self: HiPrim) -> tuple[Any, ...]:
    leaves = [instantiate_zeros(Zero(_tangent_of(a))) for a in self.in_avals_flat]
    types: tuple[Any, ...] = tree_unflatten(self.in_tree, leaves)
    return types


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
    """Replace a ``Zero`` by zeros of its type; return other tangents unchanged."""
    if is_zero(tangent) and isinstance(tangent.aval, HiType):
        return tangent.aval.vspace_zero()
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


class _AnyView(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance).__name__ == "RefView" and hasattr(instance, "root")

    def __call__(cls, ref: Any, transforms: Sequence[Any]) -> Any:
        for index in transforms:
            ref = ref.at[index]
        return ref


class TransformedRef(metaclass=_AnyView):
    """A view of a reference; ``TransformedRef(ref, indices)`` nests views."""
