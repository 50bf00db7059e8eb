"""Ahead of time: what ``jit(f).trace``, ``.lower`` and ``.compile`` return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import pytree
from .._base.config import state
from .._ir.avals import ShapedArray
from .._ir.jaxpr import DebugInfo, Jaxpr
from .._lower.lazy import _compile, lowering
from .._runtime.array import default_sharding, spec_of
from .._runtime.devices import client_of
from .._runtime.dispatch import as_operand, check_may_run
from .._trace.core import Tracer, typeof
from .shape_struct import ShapeDtypeStruct

_flatten, _unflatten = pytree.tree_flatten, pytree.tree_unflatten


class ArgInfo:
    """What is known of one argument leaf."""

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
    """The shape and dtype of a result."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


class Stage:
    """What the stages have in common: the types of arguments and results."""

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
        """Flat indices of the donated arguments."""
        return self._donated


class Traced(Stage):
    """A traced function: its jaxpr, and the way on to :class:`Lowered`."""

    def __init__(
        self, traced: Any, in_tree: Any, avals: Sequence[ShapedArray], name: str,
        options: Callable[..., Any], donated: tuple[int, ...] = (),
        debug_info: DebugInfo | None = None,
    ):  # fmt: skip
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
        """Types of the arguments, in their tree."""
        return _unflatten(self.in_tree, list(self._avals))

    @property
    def out_avals(self) -> Any:
        """Types of the results, in their tree."""
        return _unflatten(self.out_tree, list(self._out_avals))

    @property
    def effects(self) -> frozenset[Any]:
        """Effects of the program."""
        return self.jaxpr.effects

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None, **_: Any) -> Lowered:
        """The program as StableHLO, for the default platform or the first one named."""
        name, donated, keep_unused, compiler_options, sharding = self._options()
        if any(isinstance(c, Tracer) for c in self._consts):
            raise ValueError(
                f"{name} closes over tracers of an enclosing transformation, so it cannot be "
                "lowered alone: pass those values as arguments"
            )
        if lowering_platforms:
            platform = lowering_platforms[0]
        else:
            target = sharding or default_sharding()
            platform = _compile.platform_of(next(iter(target.device_set)))
        module = lowering.lower_module(
            self.jaxpr, name, platform, donated=donated, keep_unused=keep_unused
        )
        return Lowered(self, module, compiler_options, sharding, keep_unused)

    def __repr__(self) -> str:
        return f"Traced({self.fun_name})"


class Lowered(Stage):
    """A lowered function: its StableHLO, and the way on to :class:`Compiled`."""

    def __init__(
        self, traced: Traced, module: Any, compiler_options: Any, sharding: Any, keep_unused: bool
    ):
        self._traced = traced
        self._module = module
        self._compiler_options = compiler_options
        self._sharding = sharding
        self.in_tree: Any = traced.in_tree
        self.out_tree: Any = traced.out_tree
        self._avals, self._out_avals = traced._avals, traced._out_avals
        self._donated = traced._donated

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, in their tree."""
        return self._traced.in_avals

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text: ``stablehlo`` (default) or ``hlo``."""
        if dialect in (None, "stablehlo", "mhlo"):
            return self._module.module.operation.get_asm(enable_debug_info=debug_info)
        if dialect == "hlo":
            return self.compiler_ir("hlo").as_hlo_text()
        raise ValueError(f"unknown dialect: {dialect}")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as jaxlib's object."""
        if dialect in (None, "stablehlo", "mhlo"):
            return self._module.module
        if dialect == "hlo":
            return _compile.hlo_computation(self._module)
        raise ValueError(f"unknown dialect: {dialect}")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the cost before optimisation."""
        return _compile.hlo_cost(self._module, client_of())

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile for the types and the platform the function was lowered for."""
        options = self._compiler_options
        if compiler_options:
            options = tuple(sorted({**dict(options), **compiler_options}.items()))
        sharding = self._sharding or default_sharding()
        specs = [spec_of(a, sharding, self._sharding is not None) for a in self._avals]
        exe = _compile.load(
            self._module, self._traced.jaxpr, specs, sharding, self._sharding is not None,
            self._donated, options,
        )  # fmt: skip
        return Compiled(self, exe)

    def __repr__(self) -> str:
        return f"Lowered({self._traced.fun_name})"


class Compiled(Stage):
    """A compiled function; call it with arguments of exactly the types it was compiled for."""

    def __init__(self, lowered: Lowered, exe: Any):
        self._lowered = lowered
        self._exe = exe
        self.in_tree: Any = lowered.in_tree
        self.out_tree: Any = lowered.out_tree
        self._avals, self._out_avals = lowered._avals, lowered._out_avals
        self._donated = lowered._donated

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, in their tree."""
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
                "Cannot apply JAX transformations to a function lowered and compiled for a "
                "particular signature. Detected tracers or an active transformation: call the "
                "jitted function itself."
            )
        self._check(leaves)
        check_may_run(f"jit({self._lowered._traced.fun_name})")
        outs = self._exe([as_operand(x) for x in leaves])
        return _unflatten(self.out_tree, outs)

    call: Callable[..., Any] = __call__

    def _check(self, leaves) -> None:
        info = self._lowered._traced.debug_info
        names = (info.arg_names if info else None) or ()
        wrong = []
        for i, (x, aval) in enumerate(zip(leaves, self._avals)):
            got = typeof(x)
            if got.shape != aval.shape or got.dtype != aval.dtype:
                name = names[i] if i < len(names) else f"number {i}"
                wrong.append(
                    f"Argument '{name}' compiled with {aval.strip_weak_type()} and called with "
                    f"{got.strip_weak_type()}"
                )
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                "The mismatches are:\n" + "\n".join(wrong)
            )

    def as_text(self) -> str:
        """The optimised HLO."""
        return "\n\n".join(m.to_string() for m in self._exe.raw.hlo_modules())

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimate of the cost: flops, bytes and so on."""
        found = self._exe.raw.cost_analysis()
        return found[0] if isinstance(found, list) else found

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results, temporaries and code, or ``None`` where not known."""
        return self._exe.raw.get_compiled_memory_stats()

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

    def __repr__(self) -> str:
        return f"Compiled({self._lowered._traced.fun_name})"
