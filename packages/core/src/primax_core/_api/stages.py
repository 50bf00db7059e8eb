"""Stages of ahead-of-time compilation: the results of ``jit(f).trace``, ``.lower``,
``.compile``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.config import state
from .._base.operand_trees import flatten_operands
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._ir.placement import is_placed
from .._lower.formats import Formats
from .._lower.lazy import _compile, locations, lowering
from .._lower.liveness import devices_of
from .._runtime.array import ArrayImpl, default_sharding, move, spec_of
from .._runtime.devices import client_of
from .._runtime.dispatch import as_operand, check_may_run, device_of
from .._runtime.jaxlib_errors import JaxRuntimeError
from .._runtime.layouts import Format, row_major
from .._trace.core import Tracer, typeof
from .._trace.reference_ops import references
from .formats import ArgumentSpec
from .shape_struct import ShapeDtypeStruct

_flatten, _unflatten = flatten_operands, pytree.tree_unflatten


class ArgInfo:
    """Information about one argument leaf."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: ShapedArray, donated: bool):
        self._aval = _aval
        self.donated: bool = donated

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self._aval.dtype

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is ArgInfo and self._aval is other._aval and self.donated == other.donated
        )

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


def out_struct(aval: ShapedArray) -> ShapeDtypeStruct:
    """The shape and dtype of a result, with the sharding of its type if it has one."""
    sharding = aval.placement.sharding if is_placed(aval) else None
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)


class Stage:
    """Base of the stages: the types of arguments and results."""

    in_tree: Any
    out_tree: Any
    in_avals: Any
    _avals: Sequence[ShapedArray]
    _out_avals: Sequence[ShapedArray]
    _donated: tuple[int, ...]

    @property
    def args_info(self) -> Any:
        """A tree of :class:`ArgInfo` like the arguments ``(args, kwargs)``."""
        infos = [ArgInfo(a, i in self._donated) for i, a in enumerate(self._avals)]
        return _unflatten(self.in_tree, infos)

    @property
    def out_info(self) -> Any:
        """A tree of ``ShapeDtypeStruct`` like the result."""
        return _unflatten(self.out_tree, [out_struct(a) for a in self._out_avals])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Flat positions of the donated arguments."""
        return self._donated


class Traced(Stage):
    """A traced function: its jaxpr; :meth:`lower` returns a :class:`Lowered`.

    ``jit(f).trace(*args)`` returns it. The attribute ``jaxpr`` is the jaxpr, ``in_avals`` and
    ``out_avals`` are the types of arguments and results in their trees, ``effects`` the effects,
    ``args_info`` and ``out_info`` descriptions for users.

    Stages compile ahead of time: arguments may be ``ShapeDtypeStruct``, and errors of tracing,
    lowering and compilation appear separately.

    >>> from primax_core import jit, lax
    >>> traced = jit(lax.sin).trace(1.0)
    >>> traced.jaxpr
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    >>> float(traced.lower().compile()(0.0))
    0.0
    """

    def __init__(
        self, traced: Any, in_tree: Any, avals: Sequence[ShapedArray], name: str,
        options: Callable[..., Any], donated: tuple[int, ...] = (),
        debug_info: DebugInfo | None = None, layouts: Sequence[Any] | None = None,
        shardings: Sequence[Any] | None = None,
    ):  # fmt: skip
        self._layouts = layouts
        self._shardings = shardings
        self.jaxpr: Jaxpr = traced.jaxpr
        self._consts = list(traced.consts)
        self.in_tree: Any = in_tree
        self.out_tree: Any = traced.out_tree
        self._avals = avals
        self._out_avals = traced.jaxpr.out_avals
        self.fun_name = name
        self._options = options
        self._donated = donated
        self.debug_info = debug_info

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their tree."""
        return _unflatten(self.in_tree, list(self._avals))

    @property
    def out_avals(self) -> Any:
        """Avals of the results, in their tree."""
        return _unflatten(self.out_tree, list(self._out_avals))

    @property
    def effects(self) -> frozenset[Any]:
        """Effects of the jaxpr."""
        return self.jaxpr.effects

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None, **_: Any) -> Lowered:
        """Lower the jaxpr to StableHLO.

        Args:
          lowering_platforms: the platforms to lower for; the first one is used. By default the
            platform of the arguments, or the default platform.
          _: options of other libraries, ignored.

        Returns:
          A :class:`Lowered`.

        Raises:
          MissingRule: if a primitive has no lowering rule for the platform.

        Nothing is compiled.

        >>> from primax_core import jit, lax
        >>> lowered = jit(lax.sin).trace(1.0).lower()
        >>> "stablehlo.sine" in lowered.as_text()
        True
        """
        specs = self._specs()
        name, donated, keep_unused, compiler_options, sharding, requested = self._options(specs)
        if any(isinstance(c, Tracer) for c in self._consts):
            raise ValueError(
                f"{name} closes over tracers of an enclosing transformation, so it cannot be "
                "lowered separately: pass those values as arguments"
            )
        jaxpr, plan = self.jaxpr, None
        if sharding is None:
            target = device_of(specs, devices_of(jaxpr), name)
            sharding = target if target.num_devices > 1 else None
        platform = _compile.platform_of((sharding or default_sharding())._devices[0])
        if lowering_platforms:
            platform = lowering_platforms[0]
        if jaxpr.effects and references.ops.loaded:
            plan = references.ops.plan(jaxpr, [*self._consts, *self._avals])
            n = len(self._consts)
            donated = (*plan.donated, *plan.positions([n + i for i in donated]))
            jaxpr = plan.jaxpr
        module = lowering.lower_module(
            jaxpr, name, platform, donated=donated, keep_unused=keep_unused,
            formats=self._formats(jaxpr, requested) if plan is None else None,
            shardings=None if sharding is None else self._executable_shardings(
                jaxpr, specs, sharding, requested
            ),
        )  # fmt: skip
        lowered = Lowered(self, module, compiler_options, sharding, keep_unused)
        if plan is not None:
            lowered._plan, lowered._donated = plan, donated
        return lowered

    def _specs(self) -> list[ArgumentSpec]:
        """Arguments of these types, committed if their sharding is known."""
        shardings = self._shardings or [None] * len(self._avals)
        default = default_sharding()
        return [
            ArgumentSpec(a, s or default, s is not None) for a, s in zip(self._avals, shardings)
        ]

    def _executable_shardings(self, jaxpr: Jaxpr, specs: list, sharding: Any, requested: Any):
        n = len(jaxpr.invars) - len(specs)  # references that the function closes over
        own = [ArgumentSpec(a, sharding, True) for a in jaxpr.in_avals[:n]]
        ins = outs = None
        if requested is not None:
            ins = [None] * len(own) + requested.in_shardings
            outs = requested.out_shardings
        return _compile.shardings_of(jaxpr, [*own, *specs], sharding, ins, outs)

    def _formats(self, jaxpr: Jaxpr, requested: Any) -> Any:
        own = [None] * len(self._consts) + list(self._layouts or [None] * len(self._avals))
        if requested is None or not requested.has_layouts:
            return Formats.of(jaxpr, (), own, None)
        ins = [w if g else x for w, g, x in zip(requested.in_layouts, requested.specified, own)]
        return Formats.of(jaxpr, (), ins, requested.out_layouts, requested.out_kinds)

    def __repr__(self) -> str:
        return f"Traced({self.fun_name})"


class Lowered(Stage):
    """A lowered function: its StableHLO; :meth:`compile` returns a :class:`Compiled`.

    ``jit(f).lower(*args)`` returns it. ``in_avals`` and ``out_info`` are the types of arguments
    and results.

    The module is that of one platform and of the shardings of the arguments. It can be read with
    :meth:`as_text`.

    >>> from primax_core import jit, lax
    >>> lowered = jit(lax.sin).lower(1.0)
    >>> lowered.out_info
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    >>> float(lowered.compile()(0.0))
    0.0
    """

    def __init__(
        self, traced: Traced, module: Any, compiler_options: Any, sharding: Any, keep_unused: bool
    ):
        self._traced = traced
        self._plan: Any = None  # the plan for reference arguments
        self._module = module
        self._compiler_options = compiler_options
        self._sharding = sharding
        self.in_tree: Any = traced.in_tree
        self.out_tree: Any = traced.out_tree
        self._avals, self._out_avals = traced._avals, traced._out_avals
        self._donated = traced._donated

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their tree."""
        return self._traced.in_avals

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
          dialect: ``"stablehlo"`` (default) or ``"hlo"``.
          debug_info: show source locations and the names of operations and arguments.

        Returns:
          A string.

        Raises:
          ValueError: for another dialect.

        The text is not stable: it changes with jaxlib. For a stable form see ``export``.

        >>> from primax_core import jit, lax
        >>> lowered = jit(lax.sin).lower(1.0)
        >>> "stablehlo.sine" in lowered.as_text(), "HloModule" in lowered.as_text("hlo")
        (True, True)
        """
        if dialect in (None, "stablehlo", "mhlo"):
            module = self.compiler_ir("stablehlo")
            return module.operation.get_asm(enable_debug_info=debug_info)
        if dialect == "hlo":
            module = _compile.hlo_computation(self._module).as_hlo_module()
            return locations.hlo_text(module, debug_info)
        raise ValueError(f"unknown dialect: {dialect}")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as an object of jaxlib.

        Args:
          dialect: ``"stablehlo"`` (default) or ``"hlo"``.

        Returns:
          An ``ir.Module`` of MLIR, or an ``XlaComputation``.

        Raises:
          ValueError: for another dialect.

        For tools that read or rewrite modules. A change of the module does not affect
        :meth:`compile`.

        >>> from primax_core import jit, lax
        >>> type(jit(lax.sin).lower(1.0).compiler_ir("stablehlo")).__name__
        'Module'
        """
        if dialect in (None, "stablehlo", "mhlo"):
            module = self._module.located()
            locations.name_results(module, self.out_tree, len(self._out_avals))
            return module
        if dialect == "hlo":
            return _compile.hlo_computation(self._module)
        raise ValueError(f"unknown dialect: {dialect}")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost estimate before optimization.

        Returns:
          A dict of numbers: ``flops``, ``transcendentals``, ``bytes accessed`` and others.

        Entries depend on the version of XLA. The estimate for the optimized executable is
        :meth:`Compiled.cost_analysis`.

        >>> from primax_core import jit, lax
        >>> jit(lax.sin).lower(1.0).cost_analysis()["transcendentals"]
        1.0
        """
        return _compile.hlo_cost(self._module, client_of())

    def compile(
        self, compiler_options: dict[str, Any] | None = None, *, devices: Any = None
    ) -> Compiled:
        """Compile the module for the types and the platform of the lowering.

        Args:
          compiler_options: XLA options for this executable, by name; they are added to those of
            ``jit``.
          devices: the absent devices of ``extend.native.compile_only``, for which an executable
            is compiled that cannot run here.

        Returns:
          A :class:`Compiled`.

        Raises:
          JaxRuntimeError: if XLA refuses the module or an option.

        The cache on disk is used, as by calls.

        >>> from primax_core import jit, lax
        >>> compiled = jit(lax.sin).lower(1.0).compile()
        >>> float(compiled(0.0))
        0.0
        """
        options = self._compiler_options
        if compiler_options:
            options = tuple(sorted({**dict(options), **compiler_options}.items()))
        if devices is not None:
            from .compile_only import compile_absent

            return compile_absent(self, devices, options)
        sharding = self._sharding or default_sharding()
        jaxpr = self._traced.jaxpr if self._plan is None else self._plan.jaxpr
        avals = self._avals if self._plan is None else jaxpr.in_avals
        shardings = self._module.shardings
        ins = [None] * len(avals) if shardings is None else shardings.ins
        specs = [spec_of(a, s or sharding, self._sharding is not None) for a, s in zip(avals, ins)]
        exe = _compile.load(
            self._module, jaxpr, specs, sharding, self._sharding is not None,
            self._donated, options,
        )  # fmt: skip
        return Compiled(self, exe)

    def __repr__(self) -> str:
        return f"Lowered({self._traced.fun_name})"


class Compiled(Stage):
    """A compiled function, callable with arguments of exactly the types it was compiled for.

    ``lowered.compile()`` returns it. Static arguments are left out of the call. Nothing is
    retraced: arguments of other shapes, dtypes or shardings raise an error.

    Raises:
      TypeError: raised by a call whose arguments have other types.
      ValueError: raised by a call whose arguments have another placement.

    It cannot be differentiated or mapped: transform the function, then compile.

    >>> from primax_core import jit
    >>> compiled = jit(lambda x, y: x + y).lower(1.0, 2.0).compile()
    >>> float(compiled(3.0, 4.0))
    7.0
    """

    def __init__(self, lowered: Lowered, exe: Any):
        self._lowered = lowered
        self._exe = exe
        self.in_tree: Any = lowered.in_tree
        self.out_tree: Any = lowered.out_tree
        self._avals, self._out_avals = lowered._avals, lowered._out_avals
        self._donated = lowered._donated

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their tree."""
        return self._lowered.in_avals

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = _flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called "
                f"with: compiled for {self.in_tree}, called with {tree}"
            )
        if state.trace is not None or any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(
                "Cannot apply Primax transformations to a function lowered and compiled for a "
                "particular signature. Detected tracers or an active transformation: call the "
                "jitted function itself."
            )
        self._check(leaves)
        self._check_layouts(leaves)
        check_may_run(f"jit({self._lowered._traced.fun_name})")
        plan = self._lowered._plan
        if plan is None:
            outs = self._exe(self._placed(leaves))
        else:
            traced = self._lowered._traced
            if traced.debug_info is not None:
                references.ops.check_aliases(leaves, traced._consts, traced.debug_info)
            operands = [*traced._consts, *leaves]
            outs = plan.execute(operands, lambda specs: self._exe)
        return _unflatten(self.out_tree, outs)

    call: Callable[..., Any] = __call__

    def _check(self, leaves) -> None:
        wrong = []
        for i, (x, aval) in enumerate(zip(leaves, self._avals)):
            got = typeof(x)
            same = got.shape == aval.shape and got.dtype == aval.dtype
            if not same or type(got) is not type(aval):
                wrong.append(
                    f"Argument {self._name(i)} compiled with {aval.strip_weak_type()} and called "
                    f"with {got.strip_weak_type()}"
                )
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                "The mismatches are:\n" + "\n".join(wrong)
            )

    def _placed(self, leaves: Sequence[Any]) -> list[ArrayImpl]:
        """The arguments as arrays with the shardings of the executable.

        Raises:
          ValueError: if a committed array has another sharding.
        """
        arrays = []
        for i, (x, sharding) in enumerate(zip(leaves, self._exe.in_shardings)):
            array = as_operand(x)
            own = array._spec.sharding
            if own is not sharding and not own.is_equivalent_to(sharding, array._spec.stored.ndim):
                if array._spec.committed:
                    raise ValueError(
                        "Compiled object called with input sharding(s) does not match the "
                        f"sharding(s) the computation was compiled with: argument {self._name(i)} "
                        f"of type {array.aval.str_short()} has {own}, compiled for {sharding}. "
                        "Move it with device_put."
                    )
                array = move(array, sharding, explicit=False)
            arrays.append(array)
        return arrays

    def _name(self, i: int) -> str:
        info = self._lowered._traced.debug_info
        names = (info.arg_names if info else None) or ()
        return f"'{names[i]}'" if i < len(names) else f"number {i}"

    def _check_layouts(self, leaves: Sequence[Any]) -> None:
        """Raise an error for committed arrays with other layouts than the compiled ones."""
        wrong = []
        for i, (x, layout) in enumerate(zip(leaves, self._exe.in_layouts)):
            if isinstance(x, ArrayImpl) and x._spec.committed and x._spec.layout != layout:
                ndim = x.aval.ndim
                wrong.append(
                    f"Argument {self._name(i)} with shape "
                    f"{x.aval.strip_weak_type()}:\n  Passed layout: "
                    f"{x._spec.layout or row_major(ndim)}\n  Required layout: "
                    f"{layout or row_major(ndim)}"
                )
        if wrong:
            raise ValueError(
                "Computation was compiled for input layouts that disagree with the layouts of "
                f"arguments passed to it. Here are the {len(wrong)} mismatches:\n"
                + "\n".join(wrong)
            )

    def as_text(self) -> str:
        """The optimized HLO of the executable.

        Returns:
          A string. It shows what XLA has fused, and what it has replaced by calls of libraries.

        The text is not stable: it changes with jaxlib.

        >>> from primax_core import jit, lax
        >>> jit(lax.sin).lower(1.0).compile().as_text().startswith("HloModule")
        True
        """
        return "\n\n".join(m.to_string() for m in self._exe.raw.hlo_modules())

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's cost estimate for the executable.

        Returns:
          A dict of numbers: ``flops``, ``transcendentals``, ``bytes accessed`` and others;
          ``None`` if it is not available on the platform.

        Entries depend on the version of XLA. Custom calls count nothing.

        >>> from primax_core import jit, lax
        >>> jit(lax.sin).lower(1.0).compile().cost_analysis()["transcendentals"]
        1.0
        """
        costs = _if_implemented(self._exe.raw.cost_analysis)
        return costs[0] if isinstance(costs, list) else costs

    def memory_analysis(self) -> Any:
        """Sizes of the memory that the executable needs.

        Returns:
          An object with the attributes ``argument_size_in_bytes``, ``output_size_in_bytes``,
          ``temp_size_in_bytes``, ``alias_size_in_bytes`` and ``generated_code_size_in_bytes``;
          ``None`` if it is not available on the platform.

        Use it to choose a batch size, or the policy of ``checkpoint``.

        >>> import numpy as np
        >>> from primax_core import jit, lax
        >>> x = np.zeros(1000, np.float32)
        >>> jit(lax.sin).lower(x).compile().memory_analysis().output_size_in_bytes
        4000
        """
        return _if_implemented(self._exe.raw.get_compiled_memory_stats)

    def runtime_executable(self) -> Any:
        """jaxlib's executable."""
        return self._exe.raw

    @property
    def input_shardings(self) -> Any:
        """Shardings of the arguments ``(args, kwargs)``."""
        return _unflatten(self.in_tree, list(self._exe.in_shardings))

    @property
    def output_shardings(self) -> Any:
        """Shardings of the results."""
        return _unflatten(self.out_tree, [s.sharding for s in self._exe.out_specs])

    @property
    def input_formats(self) -> Any:
        """Formats of the arguments ``(args, kwargs)``."""
        layouts = [
            Format(layout or row_major(a.ndim), s)
            for layout, s, a in zip(self._exe.in_layouts, self._exe.in_shardings, self._avals)
        ]
        return _unflatten(self.in_tree, layouts)

    @property
    def output_formats(self) -> Any:
        """Formats of the results."""
        return _unflatten(
            self.out_tree,
            [Format(s.layout or row_major(s.aval.ndim), s.sharding) for s in self._exe.out_specs],
        )

    def __repr__(self) -> str:
        return f"Compiled({self._lowered._traced.fun_name})"


def _if_implemented(ask: Callable[[], Any]) -> Any:
    """The result of a query of an executable; ``None`` if the plug-in does not implement it."""
    try:
        return ask()
    except JaxRuntimeError as e:
        if "UNIMPLEMENTED" in str(e):
            return None
        raise
