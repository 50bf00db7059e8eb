"""`custom_partitioning`: a function with its own division over devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from primax_core import tree_util
from primax_core.extend import Jaxpr, staged
from primax_core.extend.runtime import api_boundary_of, bounded_cache
from primax_core.extend.traces import Tracer

from ._custom_partitioning_p import Division, custom_partitioning_p
from ._sharding_rule import SdyShardingRule, parse_rule


class custom_partitioning:
    """A function that is divided over the devices of a mesh in the way that `def_partition` says.

    On one device, inside of `shard_map`, and to derive types, the function itself is used. In a
    program on several devices Shardy chooses how operands and results are divided; the function
    given to `def_partition` may change this and returns the computation on the parts of one device.

    The function has no derivative, as in the reference: wrap it in `custom_vjp`. `vmap` maps the
    computation on the parts, and may divide the mapped axis, too.

    Args:
      fun: a function of pytrees of arrays, with positional arguments.
      static_argnums: positions of arguments that are Python values; they must be hashable.

    Raises:
      TypeError: if `fun` is not callable.

    >>> import numpy as np
    >>> from primax_core import device_put, jit, lax
    >>> from primax_distributed import NamedSharding, P, make_mesh
    >>> @custom_partitioning
    ... def square(x):
    ...     return lax.square(x)
    >>> def partition(mesh, arg_shapes, result_shape):
    ...     sharding = arg_shapes[0].sharding
    ...     return mesh, lax.square, sharding, (sharding,)
    >>> _ = square.def_partition(partition, sharding_rule="i -> i")
    >>> float(square(np.float32([1, 2, 3]))[2])
    9.0
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_partitioning takes a function, got {fun!r}")
        functools.update_wrapper(self, fun, updated=())
        self.fun: Callable[..., Any] = fun
        self.partition: Callable[..., Any] | None = None
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.static_argnums: tuple[int, ...] = nums
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.decode_shardings: bool = True
        self.sharding_rule: SdyShardingRule | Callable[..., Any] | None = None
        self._functions: dict[Any, Any] = bounded_cache()
        self._call = api_boundary_of(fun, "{} with its own division over devices.")(self._applied)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Define how the function is divided.

        All callbacks get the static arguments first. Shapes are trees of `ShapeDtypeStruct` with a
        `sharding`, of the structure of the arguments (a tuple) or of the result.

        Args:
          partition: `(mesh, arg_shapes, result_shape) -> (mesh, lower_fn, result_shardings,
            arg_shardings)`. `lower_fn` is the computation on the parts; it may use collectives over
            the axes of the mesh. The shardings are trees of `NamedSharding`: the compiler divides
            the operands as `arg_shardings` says before, and the results further behind.
          infer_sharding_from_operands: `(mesh, arg_shapes, result_shape) -> result shardings`.
            Used without a `sharding_rule`.
          propagate_user_sharding: `(mesh, result_shape) -> result shardings`, from the shardings
            that the users of the results need. Used with neither of the two.
          decode_shardings: pass `NamedSharding` to the callbacks; otherwise the tilings of XLA,
            without names of axes.
          sharding_rule: a `SdyShardingRule`; a text such as `"i j, j k -> i k"`; or a function
            `(mesh, operand_types, result_types)` of MLIR's types that returns one of them.
          reduction_factors, need_replication_factors, permutation_factors, factor_sizes: of a rule
            that is a text, as for `SdyShardingRule`.

        Returns:
          `partition`.

        Raises:
          TypeError: if a callback is not callable, or the rule has the wrong type.
          ValueError: if the rule is invalid.
        """
        if not callable(partition):
            raise TypeError(f"def_partition takes a function as `partition`, got {partition!r}")
        for name, callback in (
            ("infer_sharding_from_operands", infer_sharding_from_operands),
            ("propagate_user_sharding", propagate_user_sharding),
        ):
            if callback is not None and not callable(callback):
                raise TypeError(f"def_partition takes a function as `{name}`, got {callback!r}")
        sets = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        for name, factors in sets.items():
            if isinstance(factors, str):
                raise TypeError(f"{name} takes a sequence of names, got {factors!r}")
        options = {**{k: tuple(v) for k, v in sets.items() if v}, **factor_sizes}
        rule = sharding_rule
        if isinstance(rule, SdyShardingRule) or rule is None or callable(rule):
            if options:
                raise ValueError(
                    f"def_partition got {', '.join(options)}, which belong to a sharding_rule that "
                    "is a text: pass them to SdyShardingRule"
                )
        else:
            rule = parse_rule(rule, **options)
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = bool(decode_shardings)
        self.sharding_rule = rule
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function."""
        return self._call(*args, **kwargs)

    def _applied(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise ValueError(
                f"custom_partitioning of {self._name} has no division: call its method "
                "def_partition first"
            )
        args = self._positional(args, kwargs)
        nums = [i % len(args) for i in self.static_argnums]
        static = tuple([args[i] for i in nums])
        dynamic = tuple([a for i, a in enumerate(args) if i not in nums])
        fun = self._function_of(static, len(args))
        leaves, in_tree = tree_util.tree_flatten(dynamic)
        traced = staged(fun, dynamic, "custom_partitioning")
        if any(isinstance(c, Tracer) for c in traced.consts):
            raise TypeError(
                f"custom_partitioning of {self._name} closes over a traced value: pass it as an "
                "argument, so that it can be divided"
            )
        results = custom_partitioning_p.bind(
            *leaves,
            call=_closed(traced.jaxpr, traced.consts),
            division=Division(
                self.partition,
                self.infer_sharding_from_operands,
                self.propagate_user_sharding,
                self.sharding_rule,
                self.decode_shardings,
                static,
                in_tree,
                traced.out_tree,
                self._name,
            ),
            levels=(),
        )
        return tree_util.tree_unflatten(traced.out_tree, results)

    @property
    def _name(self) -> str:
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position, with defaults."""
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"custom_partitioning of {self._name} takes positional arguments only, got the "
                f"keywords {', '.join(bound.kwargs)}"
            )
        for i in self.static_argnums:
            if not -len(bound.args) <= i < len(bound.args):
                raise ValueError(
                    f"static_argnums of custom_partitioning contains {i}, but {self._name} has "
                    f"{len(bound.args)} arguments"
                )
        return bound.args

    def _function_of(self, static: tuple[Any, ...], n: int) -> Callable[..., Any]:
        """The function of the arguments that are not static."""
        if not static:
            return self.fun
        try:
            known: Callable[..., Any] | None = self._functions.get((static, n))
        except TypeError:
            raise TypeError(
                f"the static arguments of custom_partitioning of {self._name} must be hashable, "
                f"got {static}"
            ) from None
        if known is not None:
            return known
        nums = [i % n for i in self.static_argnums]

        def fun(*dynamic: Any) -> Any:
            rest, values = iter(dynamic), dict(zip(nums, static))
            return self.fun(*[values[i] if i in values else next(rest) for i in range(n)])

        fun.__name__ = self._name
        self._functions[static, n] = fun
        return fun


def _closed(jaxpr: Jaxpr, consts: Sequence[Any]) -> Jaxpr:
    """The jaxpr with arrays that the function closes over as constants."""
    if not consts:
        return jaxpr
    n = len(consts)
    known: Jaxpr | None = jaxpr.cache.get("closed")
    if known is None:
        known = jaxpr.cache["closed"] = jaxpr.replace(
            constvars=[*jaxpr.constvars, *jaxpr.invars[:n]],
            consts=[*jaxpr.consts, *consts],
            invars=jaxpr.invars[n:],
        )
    return known
