"""``custom_jvp``, ``custom_vjp`` and functions based on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

import numpy as np

from .._base import errors, pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands, operand_tree, same_structure
from .._base.pytree import PyTree
from .._base.source import api_boundary, take_attributes
from .._engine.custom_jvp import CustomJVP, SymbolicZero, custom_jvp_call_p
from .._engine.custom_vjp import CustomVJP, PerturbedValue, custom_vjp_call_p
from .._engine.remat_opt import optimized
from .._engine.results import as_result
from .._ir import dtypes
from .._ir.samples import Sample, bf16, c64, f32, samples
from .._trace.core import Tracer, typeof
from .._trace.reference_ops import references
from .._transform.zeros import Zero, add_tangents, zeros
from .arguments import (
    Closed,
    Flattened,
    as_tuple,
    check_callable,
    debug_info,
    describe,
    name_of,
    resolve_keywords,
)

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _CustomFunction(Generic[_P, _R]):
    """Base of ``custom_jvp`` and ``custom_vjp``."""

    _undefined: ClassVar[Mapping[str, Any]]  # attributes of the rules, before they are defined

    def __init__(
        self,
        fun: Callable[_P, _R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        check_callable(fun)
        take_attributes(self, fun)
        self.fun = fun
        nums = tuple(int(i) for i in as_tuple(nondiff_argnums))
        if nondiff_argnames:
            import inspect

            names = as_tuple(nondiff_argnames)
            parameters = list(inspect.signature(fun).parameters)
            nums += tuple(parameters.index(n) for n in names)
        self.nondiff_argnums = nums
        vars(self).update(self._undefined)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return _Bound(self, instance)

    def _flat_call(self, args: tuple, kwargs: dict) -> tuple[tuple, list, list, list, Flattened]:
        """The parts of a call.

        Returns:
          All arguments, the positions of the differentiable ones, the other arguments, the leaves
          of the differentiable ones, and the function of these leaves.
        """
        args = resolve_keywords(self.fun, args, kwargs)
        nums = [i % len(args) if args else i for i in self.nondiff_argnums]
        positions = [i for i in range(len(args)) if i not in nums]
        leaves, in_tree = _flatten(tuple([args[i] for i in positions]))
        fun = Closed(self.fun, args, positions, {}) if nums else self.fun
        return args, positions, [args[i] for i in nums], leaves, Flattened(fun, in_tree)


class _Bound:
    """A custom function bound as a method."""

    def __init__(self, function, instance):
        self._function = function
        self._instance = instance
        self.__wrapped__ = function
        self.__doc__ = function.__doc__

    def __call__(self, *args, **kwargs):
        return self._function(self._instance, *args, **kwargs)


class custom_jvp(_CustomFunction[_P, _R]):
    """A function with a custom forward-mode rule, which also defines reverse mode.

    Define the rule with :meth:`defjvp`, as ``rule(*nondiff, primals, tangents) -> (out,
    tangent)``, or one rule for each argument with :meth:`defjvps`. Reverse mode transposes the
    tangent of the rule, which therefore must be linear in the tangents. Without a derivative the
    function runs unchanged, also under ``jit`` and ``vmap``.

    Args:
      fun: the function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are not differentiated, such as functions. They
        precede ``primals`` in the call of the rule.
      nondiff_argnames: names of such arguments.

    Raises:
      AttributeError: if the function is called before a rule is defined.
      TypeError: if the rule does not return a pair of values of the same structure and types.

    The rule may itself be differentiated. It must not close over tracers that are differentiated.

    >>> @custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * t
    >>> from primax_core import grad, jvp
    >>> float(grad(f)(1.0)), [float(v) for v in jvp(f, (3.0,), (1.0,))]
    (10.0, [9.0, 10.0])
    """

    _undefined = {"jvp": None, "symbolic_zeros": False}

    jvp: Callable[..., Any] | None
    symbolic_zeros: bool

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule of the function and return it; usable as a decorator.

        Args:
          jvp: ``jvp(*nondiff, primals, tangents)`` returns ``(out, tangent)``. ``primals`` and
            ``tangents`` are tuples with one entry for each differentiable argument; the tangent
            has the structure and types of the result.
          symbolic_zeros: pass zero tangents as ``SymbolicZero`` instead of arrays of zeros.

        Returns:
          ``jvp``.

        The rule replaces a rule that was set before. For a rule of each argument see
        :meth:`defjvps`.

        >>> f = custom_jvp(lambda x, y: x * y)
        >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] - tangents[1]))
        >>> from primax_core import grad
        >>> [float(g) for g in grad(f, argnums=(0, 1))(2.0, 3.0)]
        [1.0, -1.0]
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument of the function.

        Args:
          jvps: for each argument ``rule(tangent, out, *primals)``, which returns its contribution
            to the tangent of the result; ``None`` is a zero derivative.

        Returns:
          ``None``.

        Raises:
          TypeError: if the function has ``nondiff_argnums``.

        The contributions are added.

        >>> f = custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda t, out, x, y: y * t, None)
        >>> from primax_core import grad
        >>> [float(g) for g in grad(f, argnums=(0, 1))(2.0, 3.0)]
        [3.0, 0.0]
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def rule(primals, tangents):
            out = self(*primals)
            total: Any = None
            for part, t in zip(jvps, tangents):
                if part is not None:
                    term = part(t, out, *primals)
                    total = term if total is None else pytree.tree_map(add_tangents, total, term)
            if total is None:
                total = pytree.tree_map(lambda o: as_result(zeros(typeof(o).tangent_aval())), out)
            return out, total

        self.defjvp(rule)

    @api_boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp."
            )
        _, _, fixed, leaves, flat = self._flat_call(args, kwargs)
        in_tree, jvp_rule = flat.in_tree, self.jvp

        def rule(primals, tangents):
            pair = jvp_rule(*fixed, _unflatten(in_tree, primals), _unflatten(in_tree, tangents))
            outs, dots, flat.out_tree = _checked_jvp_outputs(pair, jvp_rule, self.fun)
            return outs, dots

        rule.__name__ = name_of(jvp_rule)
        outs = CustomJVP(flat, rule, name_of(self.fun), self.symbolic_zeros).call(leaves)
        if references.ops.loaded and state.trace is not None:
            references.ops.check_returned(outs, flat.out_tree, "custom_jvp", self.fun)
        return _unflatten(flat.out_tree, [as_result(o) for o in outs])


def _checked_jvp_outputs(pair, rule: Callable, fun: Callable):
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"Custom JVP rule {describe(rule)} for function {name_of(fun)} must produce a pair "
            "(list or tuple of length two) representing primal and tangent outputs, but got "
            f"{pair}."
        )
    out, out_dot = pair
    outs, tree = _flatten(out)
    dots, dot_tree = _flatten(out_dot)
    if not same_structure(dot_tree, tree):
        raise TypeError(
            f"Custom JVP rule {describe(rule)} for function {name_of(fun)} must produce primal and "
            "tangent outputs with equal container (pytree) structures, but got "
            f"{tree} and {dot_tree} respectively."
        )
    tangents_out, wrong = [], []
    for o, t in zip(outs, dots):
        if type(t) is SymbolicZero or type(t) is Zero:
            tangents_out.append(t)
            continue
        expected = typeof(o).tangent_aval()
        is_float0 = isinstance(t, np.ndarray) and t.dtype == dtypes.float0
        got = None if is_float0 else typeof(t)
        if is_float0:
            tangents_out.append(Zero(expected))
            continue
        if expected.dtype == dtypes.float0:
            if dtypes.issubdtype(got.dtype, np.inexact):
                wrong.append((typeof(o), got))
            tangents_out.append(Zero(expected))
            continue
        if got.shape != expected.shape or (got.dtype != expected.dtype):
            wrong.append((typeof(o), got))
        tangents_out.append(t)
    if wrong:
        pairs = "; ".join(
            f"primal {a.strip_weak_type()} with tangent {b.strip_weak_type()}" for a, b in wrong
        )
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and "
            f"dtypes, but {describe(rule)} for function {name_of(fun)} gave {pairs}."
        )
    return outs, tangents_out, tree


class custom_vjp(_CustomFunction[_P, _R]):
    """A function with custom reverse-mode rules.

    Define the rules with :meth:`defvjp`: a forward pass that returns the value and residuals, and
    a backward pass from the cotangent of the value to those of the arguments. Without a
    derivative the function runs unchanged, also under ``jit`` and ``vmap``.

    Args:
      fun: the function of pytrees of arrays.
      nondiff_argnums: positions of arguments that are not differentiated, such as functions. They
        precede the residuals in the call of the backward pass.
      nondiff_argnames: names of such arguments.

    Raises:
      AttributeError: if the function is called before rules are defined.
      TypeError: if it is differentiated in forward mode, or a rule returns values of another
        structure or type.

    The backward pass may be differentiated in both modes. Rules must not close over tracers that
    are differentiated, see :func:`closure_convert`.

    >>> @custom_vjp
    ... def f(x):
    ...     return x * x
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (5.0 * ct,))
    >>> from primax_core import grad
    >>> float(f(3.0)), float(grad(f)(3.0))
    (9.0, 5.0)
    """

    _undefined = {
        "fwd": None,
        "bwd": None,
        "symbolic_zeros": False,
        "optimize_remat": False,
        "logs": False,
    }

    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    symbolic_zeros: bool
    optimize_remat: bool
    logs: bool

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the forward and the backward pass of the function.

        Args:
          fwd: takes the function's arguments and returns ``(out, residuals)``.
          bwd: ``bwd(*nondiff, residuals, cotangent)`` returns a tuple with a cotangent for each
            differentiable argument; ``None`` is zero.
          symbolic_zeros: pass objects with ``.value`` and ``.perturbed`` to ``fwd``, and zero
            cotangents as ``SymbolicZero`` to ``bwd``.
          optimize_remat: trace the forward rule as one operation, which is replaced by the
            function itself if rematerialization does not need its residuals.

        Returns:
          ``None``.

        Raises:
          NotImplementedError: if both options are set.

        >>> f = custom_vjp(lambda x, y: x * y)
        >>> f.defvjp(lambda x, y: (x * y, (x, y)), lambda res, ct: (res[1] * ct, None))
        >>> from primax_core import grad
        >>> [float(g) for g in grad(f, argnums=(0, 1))(2.0, 3.0)]
        [3.0, 0.0]
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                "remat optimization for custom_vjp does not support symbolic zeros: a forward rule "
                "that is traced once cannot depend on the differentiated arguments"
            )
        self.fwd, self.bwd, self.logs = fwd, bwd, False
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules, like :meth:`defvjp`, where the backward pass also returns logs.

        Args:
          fwd: takes the function's arguments and returns ``(out, residuals)``.
          bwd: returns ``(cotangents, logs)``; ``logs`` is a dict of pytrees of arrays, or
            ``None``. The method ``with_logs`` of a pullback returns them; otherwise they are
            discarded.
          symbolic_zeros: as for :meth:`defvjp`.
          optimize_remat: as for :meth:`defvjp`.

        Returns:
          ``None``.

        Raises:
          NotImplementedError: if both options are set.

        >>> @custom_vjp
        ... def f(x):
        ...     return x * x
        >>> f.defvjp_with_logs(lambda x: (x * x, x), lambda x, ct: ((2 * x * ct,), {"ct": ct}))
        >>> from primax_core import vjp
        >>> _, pullback = vjp(f, 3.0)
        >>> (ct,), logs = pullback.with_logs(1.0)
        >>> float(ct), float(logs["ct"])
        (6.0, 1.0)
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.logs = True

    @api_boundary
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp."
            )
        args, positions, fixed, leaves, flat = self._flat_call(args, kwargs)
        _check_nondiff(fixed)
        if references.ops.loaded:
            references.ops.check_aliases(
                leaves, (), lambda: debug_info(self.fun, "custom_vjp", args, {})
            )
        in_tree, fwd_fun, bwd_fun, has_logs = flat.in_tree, self.fwd, self.bwd, self.logs
        # Nondifferentiable arguments keep their positions in fwd, and come first in bwd.
        closed_fwd = Closed(fwd_fun, args, positions, {})
        leaves_avals = [typeof(x) for x in leaves]
        res_tree: Any = None

        def fwd(*flat_args):
            nonlocal res_tree
            outs, flat.out_tree, res, res_tree = _checked_fwd_outputs(
                closed_fwd(*_unflatten(in_tree, flat_args)), flat.out_tree, fwd_fun, self.fun
            )
            return outs, res

        def bwd(residuals, cts):
            res = _unflatten(res_tree, residuals)
            arg_cts = bwd_fun(*fixed, res, _unflatten(flat.out_tree, cts))
            if not has_logs:
                return _checked_bwd_outputs(arg_cts, in_tree, leaves_avals, bwd_fun, self.fun)
            from .._engine.backward_logs import LoggedCotangents, checked_logs

            arg_cts, logs = checked_logs(arg_cts, describe(bwd_fun))
            cts = _checked_bwd_outputs(arg_cts, in_tree, leaves_avals, bwd_fun, self.fun)
            return LoggedCotangents(cts, logs)

        if has_logs:
            bwd.logs = True  # type: ignore[attr-defined]
        fwd.__name__, bwd.__name__ = name_of(fwd_fun), name_of(bwd_fun)
        rule = fwd
        if self.optimize_remat:

            def rule(*flat_args):
                return optimized(flat, fwd, flat_args)

            rule.__name__ = fwd.__name__

        outs = CustomVJP(flat, rule, bwd, name_of(self.fun), self.symbolic_zeros).call(leaves)
        if references.ops.loaded:
            references.ops.check_returned(outs, flat.out_tree, "custom_vjp", self.fun)
        return _unflatten(flat.out_tree, [as_result(o) for o in outs])


def _check_nondiff(fixed: Sequence) -> None:
    for leaf in _flatten(fixed)[0]:
        if isinstance(leaf, Tracer):
            raise errors.UnexpectedTracerError(
                "Found a Primax Tracer object passed as an argument to a custom_vjp function in a "
                "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be "
                "passed there: pass it as a differentiable argument, and give a zero (None) "
                f"cotangent for it.\n{leaf._origin()}"
            )


def _checked_fwd_outputs(pair, expected, fwd: Callable, fun: Callable):
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"Custom VJP fwd rule {describe(fwd)} for function {name_of(fun)} must produce a pair "
            "(list or tuple of length two) where the first element represents the primal output "
            f"and the second element represents residuals, but got {pair}."
        )
    outs, tree = _flatten(pair[0])
    residuals, res_tree = _flatten(pair[1])
    if expected is not None and tree != expected:
        raise TypeError(
            f"Custom VJP fwd rule {describe(fwd)} for function {name_of(fun)} must produce a pair "
            "whose first element has the same container (pytree) structure as the function's "
            f"output: got {tree}, expected {expected}."
        )
    return [_value_of(o) for o in outs], tree, [_value_of(r) for r in residuals], res_tree


def _value_of(x):
    return x.value if type(x) is PerturbedValue else x


def _checked_bwd_outputs(cts, in_tree, avals: Sequence, bwd: Callable, fun: Callable) -> list:
    if isinstance(cts, list):
        cts = tuple(cts)
    n_args = len(in_tree.children())
    problem = (
        f"Custom VJP bwd rule {describe(bwd)} for function {name_of(fun)} must produce an output "
        "with the same container (pytree) structure as the args tuple of the primal function, and "
        f"in particular must produce a tuple of length {n_args} equal to the number of arguments "
        "to the primal function"
    )
    if not isinstance(cts, tuple) or len(cts) != n_args:
        raise TypeError(f"{problem}, but got {cts!r}.")
    dummy = object()
    marked = operand_tree(
        pytree.tree_map(lambda x: dummy if x is None else x, cts, is_leaf=lambda x: x is None)
    )
    full, tree = _flatten(marked)
    if not same_structure(tree, in_tree):
        leaves = full
        try:
            full = pytree.broadcast_prefix(
                marked,
                _unflatten(in_tree, list(range(in_tree.num_leaves))),
                is_leaf=lambda x: x is dummy,
            )
        except ValueError as e:
            raise TypeError(f"{problem}, but got {_flatten(cts)[1]}: {e}") from None
        if any(f is not dummy and _is_repeated(f, leaves, full) for f in full):
            raise TypeError(f"{problem}, but got {tree}.")
    results = []
    for ct, aval in zip(full, avals, strict=True):
        expected = aval.tangent_aval()
        if ct is dummy or type(ct) in (Zero, SymbolicZero):
            results.append(Zero(expected))
            continue
        if isinstance(ct, np.ndarray) and ct.dtype == dtypes.float0:
            results.append(Zero(expected))
            continue
        got = typeof(ct)
        if expected.dtype == dtypes.float0:
            results.append(Zero(expected))
            continue
        if got.shape != expected.shape and not state.disable_bwd_checks:
            raise ValueError(
                f"Custom VJP bwd rule {describe(bwd)} for function {name_of(fun)} must produce "
                "cotangents with the shapes of the arguments, but got "
                f"{got.strip_weak_type()} for an argument of type {expected.strip_weak_type()}."
            )
        results.append(ct)
    return results


def _is_repeated(x, leaves, full) -> bool:
    return sum(1 for f in full if f is x) > sum(1 for leaf in leaves if leaf is x)


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a pytree of values, as a rule returns it.

    Args:
      val: a pytree of arrays.
      symbolic_zeros: return ``SymbolicZero`` instead of arrays.

    Returns:
      A pytree of the structure of ``val``: zeros of the shapes and dtypes of tangents, ``float0``
      for integers.

    Raises:
      TypeError: if a leaf is not an array.

    Rules of ``custom_jvp`` use it for results without a derivative.

    >>> import numpy as np
    >>> from primax_core.custom_derivatives import zero_from_primal
    >>> zero = zero_from_primal({"a": np.ones(2, np.float32), "n": 3})
    >>> zero["a"].tolist(), zero["n"].dtype
    ([0.0, 0.0], dtype([('float0', 'V')]))
    """

    def zero(x: Any) -> Any:
        aval = typeof(x).tangent_aval()
        return SymbolicZero(aval) if symbolic_zeros else as_result(zeros(aval))

    return pytree.tree_map(zero, val)


def custom_vjp_primal_tree_values(tree: PyTree) -> Any:
    """The values of the arguments of a forward rule with ``symbolic_zeros``.

    Such a rule receives, for each leaf, an object with ``.value`` and with ``.perturbed``, which
    is False if the leaf is not differentiated.

    Args:
      tree: a pytree of these objects. Other leaves are returned unchanged.

    Returns:
      A pytree of the same structure with their values.

    >>> from primax_core import custom_vjp, grad
    >>> from primax_core.custom_derivatives import custom_vjp_primal_tree_values
    >>> f = custom_vjp(lambda x: x * x)
    >>> def fwd(x):
    ...     value = custom_vjp_primal_tree_values(x)
    ...     return value * value, value
    >>> f.defvjp(fwd, lambda x, ct: (2.0 * x * ct,), symbolic_zeros=True)
    >>> float(grad(f)(3.0))
    6.0
    """
    return pytree.tree_map(_value_of, tree, is_leaf=lambda x: type(x) is PerturbedValue)


@custom_jvp_call_p.rule(samples)
def _custom_jvp_call_samples():
    @custom_jvp
    def product(x, y):
        return x * y

    product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
    yield Sample(f32(3), f32(3)).set(call=product)
    yield Sample(c64(), c64()).set(call=product)
    yield Sample(bf16(0, 2), bf16(0, 2)).set(call=product)


@custom_vjp_call_p.rule(samples)
def _custom_vjp_call_samples():
    @custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, ct: (ct * saved[1], saved[0] * ct))
    forward = dict.fromkeys(
        ("jvp", "second order", "symbolic zeros"), "custom_vjp has no forward mode"
    )
    yield Sample(f32(3), f32(3)).set(call=product, without=forward)
    yield Sample(bf16(0, 2), bf16(0, 2)).set(call=product, without=forward)
