"""``triton_call``: functions of the package ``triton`` on arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from primax_core import tree_util
from primax_core.dtypes import canonicalize_dtype
from primax_core.extend import Primitive, ShapedArray, abstract, lower, lowering, native, typeof
from primax_core.extend.dimensions import is_static

from .._tuning.autotuned import Autotuned
from .._typing import Types
from .errors import TritonError
from .lowering import TARGET, current_target, launch_attributes
from .python_functions import Function, check_dtype, grid_of, package, scalar_of

triton_call_p: Final[Primitive] = Primitive("triton_call", multiple_results=True)

_DEFAULT_TARGET: Final = "sm_90"
_WARPS: Final = 4
_STAGES: Final = 3


@triton_call_p.rule(abstract)
def _abstract(*avals: Any, out_avals: Any, **_: Any) -> list[Any]:
    return list(out_avals)


@triton_call_p.rule(lower)
def _lower(ctx: Any, *_: Any, function: Function, **__: Any) -> Any:
    raise TritonError(
        f"triton_call of {function.name} runs on NVIDIA GPUs, and the program is compiled for "
        f"{ctx.platform}: pallas_call runs on both"
    )


@triton_call_p.rule(lower.on("cuda"))
def _lower_on_gpus(
    ctx: Any, *values: Any, function: Function, out_avals: Sequence[Any],
    grid: tuple[int, int, int], aliases: Sequence[tuple[int, int]], zeroed: Sequence[int],
) -> list[Any]:  # fmt: skip
    name, text = function.text(current_target() or _DEFAULT_TARGET)
    operands = list(values)
    for o in zeroed:
        zero = np.zeros((), out_avals[o].dtype)[()]
        operands.append(lowering.full(zero, out_avals[o].shape))
    return native.call(
        ctx, TARGET, operands, out_avals, needs=(), input_output_aliases=dict(aliases),
        attributes=launch_attributes(name, text, function.warps, function.stages, grid),
    )  # fmt: skip


def triton_call(
    fn: Any,
    *args: Any,
    out_shape: Types,
    grid: int | Sequence[int] | Callable[..., Any],
    num_warps: int | None = None,
    num_stages: int | None = None,
    outputs: Sequence[str] | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    zeroed_outputs: Sequence[int] = (),
    **parameters: Any,
) -> Any:
    """Run a function of the package ``triton`` (``@triton.jit``) on arrays, on an NVIDIA GPU.

    The package compiles the function to Triton's intermediate language, and XLA compiles that with
    the rest of the program. The package needs no GPU for this. There are no derivatives and no
    batches: use `custom_vjp` and `custom_vmap` around the call.

    Args:
      fn: the function, also in ``triton.autotune`` and ``triton.heuristics``. With
        ``triton.autotune`` the configuration is chosen as by `autotune`, whose name is the
        function's module and name; nothing is measured without `tune_kernels`.
      args: values of the parameters in their order, without results and those passed by name:
        arrays for pointers, numbers for scalars, which are constants of the compiled function.
      out_shape: pytree of shapes and dtypes of the results.
      grid: number of programs, a tuple of up to three, or a function of the parameters that
        returns it.
      num_warps: groups of 32 threads of a program, a power of two; by default 4.
      num_stages: iterations whose loads overlap; by default 3.
      outputs: names of the parameters that point to results; by default those without values,
        in their order.
      input_output_aliases: positions in ``args`` of arrays, and of the results that begin with
        their contents. If such results have no parameters, the operands' are updated in place.
      zeroed_outputs: results that begin with zeros, for atomic additions.
      parameters: values of parameters by name, such as ``BLOCK=128``.

    Returns:
      Arrays like ``out_shape``.

    Raises:
      ImportError: if the package is not installed.
      TypeError, ValueError: for values that do not fit the parameters of the function.
      TritonError: while lowering, if the function does not compile, or the platform is no GPU.

    ``triton_call(add_kernel, x, y, x.size, out_shape=x, grid=lambda p: (triton.cdiv(x.size,
    p["BLOCK"]),), BLOCK=1024)`` runs the kernel of Triton's first tutorial, whose parameters are
    ``(x_ptr, y_ptr, n, output_ptr, BLOCK: tl.constexpr)`` in this order.
    """
    layers = _layers(fn)
    options = {"num_warps": num_warps, "num_stages": num_stages}
    arrays = [x for x in args if _is_array(x)]
    # A choice of configurations outlives the arrays of its first call.
    args = tuple(typeof(x) if _is_array(x) else x for x in args)
    call = _Call(layers[-1], args, out_shape, grid, outputs, input_output_aliases, zeroed_outputs)
    chosen = {name: x for name, x in options.items() if x is not None}
    tuned = next((f for f in layers if hasattr(f, "configs")), None)

    def bind(*operands: Any, **config: Any) -> Any:
        values = {**parameters, **chosen, **config}
        return call.bind(operands, _with_heuristics(layers, call, values))

    if tuned is None:
        return bind(*arrays)
    text = call.text({**parameters, **chosen})
    return _autotuned(tuned, layers[-1], text, bind)(*arrays)


def _layers(fn: Any) -> list[Any]:
    """A function with what ``triton.autotune`` and ``triton.heuristics`` made of it, outside in."""
    jit_function = package().runtime.jit.JITFunction
    layers = [fn]
    while not isinstance(layers[-1], jit_function):
        inner = getattr(layers[-1], "fn", None)
        if inner is None or len(layers) > 16:
            raise TypeError(f"triton_call takes a function of @triton.jit, got {fn!r}")
        layers.append(inner)
    return layers


def _with_heuristics(layers: Sequence[Any], call: _Call, values: dict[str, Any]) -> dict[str, Any]:
    """Parameters with those that ``triton.heuristics`` computes."""
    for layer in layers:
        heuristics = getattr(layer, "values", None)
        if isinstance(heuristics, Mapping):
            for name, heuristic in heuristics.items():
                values[name] = heuristic({**call.by_name(values), **values})
    return values


_tuned: Final[weakref.WeakKeyDictionary[Any, dict[str, Autotuned]]] = weakref.WeakKeyDictionary()


def _autotuned(tuned: Any, fun: Any, text: str, bind: Callable[..., Any]) -> Autotuned:
    """The choice among the configurations of ``triton.autotune`` for one kind of call."""
    calls = _tuned.setdefault(tuned, {})
    if text not in calls:
        name = f"{fun.__module__}.{fun.__name__}"
        configs = [_config(c) for c in tuned.configs]
        calls[text] = Autotuned(
            bind, configs, lambda *_: text, None, name, None, None, source=fun.cache_key
        )
    return calls[text]


def _config(config: Any) -> dict[str, Any]:
    """A ``triton.Config`` as parameters."""
    values = dict(config.all_kwargs())
    if getattr(config, "pre_hook", None) is not None:
        raise ValueError("a triton.Config has a pre_hook, which cannot run in a compiled program")
    for name, default in (("num_ctas", 1), ("maxnreg", None), ("ir_override", None)):
        if values.pop(name, default) != default:
            raise ValueError(f"a triton.Config has {name}, for which XLA has no parameter")
    return {name: x for name, x in values.items() if x is not None}


class _Call:
    """The arguments of a call, apart from parameters that a configuration may choose."""

    def __init__(
        self, fun: Any, args: Sequence[Any], out_shape: Any, grid: Any,
        outputs: Sequence[str] | None, aliases: Mapping[int, int] | None, zeroed: Sequence[int],
    ):  # fmt: skip
        self.fun = fun
        self.args = args
        self.grid = grid
        self.outputs = None if outputs is None else tuple(outputs)
        self.out_tree = tree_util.tree_structure(out_shape)
        self.out_avals = tuple(map(out_aval, tree_util.tree_leaves(out_shape)))
        self.positions = [i for i, x in enumerate(args) if _is_array(x)]
        self.aliases = dict(aliases or {})
        self.zeroed = tuple(zeroed)
        self._check_results()

    def _check_results(self) -> None:
        n = len(self.out_avals)
        for i, o in self.aliases.items():
            if i not in self.positions or not 0 <= o < n:
                raise ValueError(
                    f"input_output_aliases has {i}: {o}, but the arrays are the arguments "
                    f"{self.positions}, and there are {n} results"
                )
            aval, out = self.args[i], self.out_avals[o]
            if (aval.shape, aval.dtype) != (out.shape, out.dtype):
                raise ValueError(
                    f"input_output_aliases has {i}: {o}, but argument {i} is {aval} and result {o} "
                    f"is {out}"
                )
        began = [*self.aliases.values(), *self.zeroed]
        if len(set(began)) < len(began) or not all(0 <= o < n for o in began):
            raise ValueError(
                f"input_output_aliases and zeroed_outputs name each of {n} results at most once, "
                f"got {self.aliases} and {self.zeroed}"
            )

    def names(self, values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The parameters that receive the arguments by position, and those without a value."""
        params = list(self.fun.arg_names)
        for name in values:
            if name not in params and name not in ("num_warps", "num_stages"):
                raise TypeError(
                    f"{self.fun.__name__} has no parameter {name}; it has {', '.join(params)}"
                )
        for name in self.outputs or ():
            if name not in params or name in values:
                raise ValueError(
                    f"outputs has {name!r}, which is no parameter without a value of "
                    f"{self.fun.__name__}; it has {', '.join(params)}"
                )
        free = [n for n in params if n not in values]
        if self.outputs is not None:
            free = [n for n in free if n not in self.outputs]
        taken, rest = free[: len(self.args)], free[len(self.args) :]
        if len(taken) < len(self.args):
            raise TypeError(
                f"{self.fun.__name__} takes {len(taken)} arguments by position "
                f"({', '.join(taken)}), got {len(self.args)}"
            )
        return taken, [n for n in rest if not _has_default(self.fun, n)]

    def results(self, rest: list[str]) -> list[str]:
        """The parameters that point to results."""
        constexprs = {p.name for p in self.fun.params if p.is_constexpr}
        lacking = [n for n in rest if n in constexprs or self.outputs is not None]
        if lacking:
            raise TypeError(f"{self.fun.__name__} lacks values for {', '.join(lacking)}")
        results = rest if self.outputs is None else list(self.outputs)
        in_place = len(self.out_avals) - len(self.aliases)
        if len(results) not in (len(self.out_avals), in_place):
            raise TypeError(
                f"{self.fun.__name__} has the parameters {', '.join(results) or 'none'} without "
                f"values, for results, and out_shape has {len(self.out_avals)} arrays: give values "
                "of the other parameters, or name those of results with outputs"
            )
        return results

    def by_name(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by position with the names of their parameters."""
        return dict(zip(self.names(values)[0], self.args))

    def text(self, values: Mapping[str, Any]) -> str:
        """Shapes, dtypes and values of the arguments."""
        parts = [str(x) if _is_array(x) else repr(x) for x in self.args]
        parts += [f"{name}={value!r}" for name, value in sorted(values.items())]
        return f"{', '.join(parts)} -> {', '.join(map(str, self.out_avals))}"

    def bind(self, arrays: Sequence[Any], values: dict[str, Any]) -> Any:
        """Apply the primitive."""
        values = dict(values)
        warps = _number(values.pop("num_warps", _WARPS), "num_warps")
        stages = _number(values.pop("num_stages", _STAGES), "num_stages")
        if warps & (warps - 1) or warps > 32 or stages > 16:
            raise ValueError(
                "num_warps is 1, 2, 4, 8, 16 or 32, and num_stages at most 16; got "
                f"{warps} and {stages}"
            )
        names, rest = self.names(values)
        results = self.results(rest)
        arguments = dict(zip(names, self.args))
        function = self._function(arguments, values, results, warps, stages)
        everything = {**arguments, **values, "num_warps": warps, "num_stages": stages}
        position = {i: n for n, i in enumerate(self.positions)}
        aliases = [(position[i], o) for i, o in self.aliases.items()]
        aliases += [(len(arrays) + n, o) for n, o in enumerate(self.zeroed)]
        outs = triton_call_p.bind(
            *arrays, function=function, out_avals=self.out_avals,
            grid=grid_of(self.grid, everything), aliases=tuple(aliases), zeroed=self.zeroed,
        )  # fmt: skip
        return tree_util.tree_unflatten(self.out_tree, outs)

    def _function(
        self, arguments: Mapping[str, Any], values: Mapping[str, Any], results: Sequence[str],
        warps: int, stages: int,
    ) -> Function:  # fmt: skip
        constexprs = {p.name for p in self.fun.params if p.is_constexpr}
        inputs, scalars, constants = [], [], []
        for name, x in {**arguments, **values}.items():
            is_array = name in arguments and _is_array(x)
            if is_array and name not in constexprs:
                inputs.append((name, _pointer(x.dtype, name)))
                continue
            scalar = None if name in constexprs else scalar_of(x)
            if is_array or (hasattr(x, "dtype") and scalar is None):
                raise TypeError(
                    f"{name} of {self.fun.__name__} is an array: parameters by name and constants "
                    "(tl.constexpr) are Python values; pass arrays by position"
                )
            if scalar is None:
                constants.append((name, x))
            else:
                scalars.append((name, *scalar))
        for param in self.fun.params:
            if param.name not in {**arguments, **values} and param.name not in results:
                constants.append((param.name, param.default))
        unused = [f"zeros{n}" for n in range(len(self.zeroed))]
        inputs += [(n, self.out_avals[o].dtype) for n, o in zip(unused, self.zeroed)]
        outputs = []
        left = list(results)
        own = len(results) == len(self.out_avals)
        for o, aval in enumerate(self.out_avals):
            if own or o not in self.aliases.values():
                outputs.append((left.pop(0), _pointer(aval.dtype, f"result {o}")))
            else:
                unused.append(f"updated{o}")
                outputs.append((f"updated{o}", aval.dtype))
        return Function(
            self.fun, self.fun.cache_key, tuple(inputs), tuple(outputs), frozenset(unused),
            tuple(scalars), tuple(constants), warps, stages,
        )  # fmt: skip


def _is_array(x: Any) -> bool:
    """Return True for arrays and traced values, not for Python and NumPy scalars."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic)


def _has_default(fun: Any, name: str) -> bool:
    return any(p.name == name and p.has_default for p in fun.params)


def _number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is a positive integer, got {value!r}")
    return value


def _pointer(dtype: Any, name: str) -> Any:
    check_dtype(dtype, name)
    return np.dtype(dtype)


def out_aval(x: Any) -> ShapedArray:
    """The type of a result.

    Raises:
      TypeError, ValueError: for other objects, and symbolic shapes.
    """
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"out_shape is a pytree of shapes with dtypes, got {x!r}")
    if not is_static(tuple(x.shape)):
        raise ValueError(f"out_shape has the symbolic shape {x.shape}: kernels take none")
    return ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype))
