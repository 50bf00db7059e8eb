"""``pallas_call``: a function on blocks as a function on arrays."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from primax_core import dtypes, jit, lax, tree_util
from primax_core.dtypes import canonicalize_dtype
from primax_core.extend import (
    AbstractRef,
    ShapedArray,
    Tracer,
    current_trace,
    summarize_function,
    typeof,
)
from primax_core.extend.dimensions import is_static
from primax_core.extend.runtime import state

from ._block_mapping import INDEX, INDEX_DTYPE, BlockMapping, mapping_of
from ._block_specs import (
    BlockSpec,
    CompilerParams,
    CostEstimate,
    GridSpec,
    NoBlockSpec,
    no_block_spec,
)
from ._checking import check_steps
from ._devices import mesh_axes, varying
from ._grid import UNKNOWN_SIZE
from ._interpret_mode import interpret_mode
from ._interpret_params import InterpretParams
from ._kernel import GridMapping, Kernel, trace
from ._known_calls import call_key, known_call, remember, without_values
from ._memory_spaces import scratch_type
from ._partitioning import division_of
from ._primitive import divided_pallas_call_p, pallas_call_p
from ._stepping import can_step, check_concrete, step_through
from ._symbolic_export import REWRITE, symbolic_sizes_are_allowed
from ._typing import Grid, Specs, Types


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Types,
    *,
    grid_spec: GridSpec | None = None,
    grid: Grid = (),
    in_specs: Specs = no_block_spec,
    out_specs: Specs = no_block_spec,
    scratch_shapes: Types = (),
    input_output_aliases: Mapping[int, int] | Sequence[tuple[int, int]] = (),
    debug: bool = False,
    interpret: bool | str | InterpretParams = False,
    name: str | None = None,
    compiler_params: CompilerParams | Mapping[str, Any] | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays from a kernel, a function of references to blocks of them.

    The kernel runs once for each step of the grid, in row-major order, on the blocks that the
    index maps of the specifications choose. It is compiled: steps that are independent are computed
    together, the others in a loop. The call can be differentiated, mapped, and compiled
    like any operation.

    Args:
      kernel: function of references to the blocks of the operands, of the results, and to scratch
        memory, in this order; it writes the results and returns ``None``. Prefetched scalars
        come first.
      out_shape: pytree of shapes and dtypes (``ShapeDtypeStruct``) of the results.
      grid_spec: grid, specifications and scratch memory in one object, instead of the next four.
      grid: number of steps along each dimension, or an integer. A number may be a traced integer
        scalar; the steps then run one after the other in a loop, which has no reverse mode.
      in_specs, out_specs: pytrees of `BlockSpec`, like the operands and ``out_shape``. By default
        blocks are whole arrays.
      scratch_shapes: pytree of types of scratch memory, such as ``VMEM((8, 128), float32)``.
      input_output_aliases: positions of operands and of the results that begin with their contents.
      debug: print the traced kernel.
      interpret: ``"python"`` runs the kernel step by step as a Python function on concrete arrays,
        with ``print``, ``pdb`` and ``if``. ``"check"`` evaluates it step by step and checks each
        access. ``True`` does so where the call has concrete arrays and no transformation is
        around it, and accepts results with elements that no step wrote; elsewhere it compiles, as
        ``False`` does. `tpu.InterpretParams` means ``"check"`` with ``detect_races``, and
        ``False`` without.
      name: name in jaxprs and profiles, by default the kernel's.
      compiler_params: parameters of backends; ``dimension_semantics`` is used on a CPU too.
      cost_estimate: a `CostEstimate`, for backends that schedule programs around kernels.
      metadata: a mapping of strings, for backends with profiles of kernels; unused on a CPU.

    Returns:
      A function of the operands, pytrees of arrays, that returns arrays like ``out_shape``.

    Raises:
      TypeError, ValueError: from the returned function, if specifications do not fit the operands
        or the grid, or the kernel returns a value or uses arrays from outside.
      KernelCheckError: from the returned function, for an access that ``"check"`` refuses.

    Computed positions outside of a block are clamped. Elements of partial blocks outside of the
    array and memory that was not written are NaN, or the least integer.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct
    >>> def double(x, out):
    ...     out[...] = 2 * x[...]
    >>> halves = BlockSpec((4,), lambda i: (i,))
    >>> call = pallas_call(
    ...     double, ShapeDtypeStruct((8,), np.float32), grid=2, in_specs=[halves], out_specs=halves
    ... )
    >>> call(np.arange(8, dtype=np.float32))
    Array([ 0.,  2.,  4.,  6.,  8., 10., 12., 14.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    elif grid != () or scratch_shapes != () or not _unset(in_specs) or not _unset(out_specs):
        raise ValueError(
            "pallas_call takes either grid_spec or grid, in_specs, out_specs and scratch_shapes, "
            "not both"
        )
    if isinstance(interpret, InterpretParams):
        interpret = "check" if interpret.detect_races else False
    if not isinstance(interpret, (bool, str)) or interpret not in (False, *_STEPPING):
        raise ValueError(f'interpret is False, True, "python" or "check", got {interpret!r}')
    if not isinstance(cost_estimate, (CostEstimate, NoneType)):
        raise TypeError(f"cost_estimate is a CostEstimate, got {cost_estimate!r}")
    if not callable(kernel):
        raise TypeError(f"a kernel is a function of references, got {kernel!r}")
    if not isinstance(name, (str, NoneType)):
        raise TypeError(f"the name of a kernel is a string, got {name!r}")
    if not isinstance(metadata, (Mapping, NoneType)) or not all(
        isinstance(x, str) for item in (metadata or {}).items() for x in item
    ):
        raise TypeError(f"metadata is a mapping of strings, got {metadata!r}")
    aliases = _alias_pairs(input_output_aliases)
    parts = kernel, name, grid_spec, out_shape, aliases, compiler_params
    referents: list[Any] = []
    key = None if debug or interpret is not False else call_key(parts, referents)
    call = None if key is None else known_call(key)
    if call is None:
        call = _KernelCall(*parts, interpret, debug)
        if key is not None:
            call.out_shape = without_values(out_shape)
            remember(key, call, referents)
    else:
        # Variables of the former kernel may have changed since: these have the values of the key.
        call.kernel, call.spec = kernel, grid_spec
    return call


class _KernelCall:
    """The function that `pallas_call` returns."""

    def __init__(
        self, kernel: Callable[..., None], name: str | None, spec: GridSpec, out_shape: Any,
        aliases: tuple[tuple[int, int], ...], compiler_params: Any, interpret: Any, debug: bool,
    ):  # fmt: skip
        self.kernel = kernel
        self.name = name
        self.spec = spec
        self.out_shape = out_shape
        self.aliases = aliases
        self.compiler_params = compiler_params
        self.debug = debug
        self._interpret = interpret
        self._steps: Any = _STEPPING.get(interpret)
        self._mappings: dict[Any, tuple[GridMapping, Callable[..., Any]]] = {}
        self._kernels: dict[Any, Kernel] = {}
        self._rule: Any = _UNDIVIDED
        # Calls on concrete arrays are found by their arguments, as those of a jitted function.
        self._compiled = jit(self._named_after_the_kernel())

    def __call__(self, *args: Any) -> Any:
        steps, needed = self._steps, self._interpret is not True
        if steps is None and interpret_mode.value is not None:
            steps = _check if interpret_mode.value.detect_races else None
            needed = False
        leaves, in_tree = (None, None) if steps is None else tree_util.tree_flatten(args)
        if leaves is None or (not needed and not can_step([*leaves, *self.spec.grid])):
            return self._compiled(*args) if current_trace() is None else self.bind(*args)
        mapping, fun = self._mapping(leaves, in_tree)
        check_concrete(mapping, leaves)
        results = steps(mapping, fun, leaves)
        return tree_util.tree_unflatten(tree_util.tree_structure(self.out_shape), results)

    def __repr__(self) -> str:
        return f"<kernel call of {summarize_function(self.kernel)}>"

    def partitioned(self, spec: str | None = None) -> Callable[..., Any]:
        """The same function, whose steps the devices of a program divide.

        In a function that is compiled for several devices, each device runs the steps of its parts
        of the arrays, without a ``shard_map`` around the call. Shardings are propagated through
        the call; arrays whose sharding does not fit are moved first. Inside of the kernel,
        indices and sizes of the grid are those of the whole grid. In programs on one device nothing
        changes, and derivatives are operations on arrays, which the compiler divides.

        Args:
          spec: a letter for each axis that devices may divide, and ``_`` for the others, for
            operands and results: ``"b _, _ -> b _"``. The blocks of an axis with a letter divide
            it, and move with one parallel dimension of the grid, which is that of all axes with
            the letter; each result has it. By default, all axes that may be divided.

        Returns:
          A function of the same arguments.

        Raises:
          TypeError, ValueError: from the returned function, if ``spec`` does not fit the kernel.

        >>> import numpy as np
        >>> from primax_core import ShapeDtypeStruct
        >>> from primax_kernels import BlockSpec, pallas_call
        >>> def double(x, out):
        ...     out[...] = 2 * x[...]
        >>> row = BlockSpec((1, 4), lambda i: (i, 0))
        >>> call = pallas_call(
        ...     double, ShapeDtypeStruct((8, 4), np.float32), grid=8, in_specs=[row], out_specs=row
        ... ).partitioned("b _ -> b _")
        >>> call(np.ones((8, 4), np.float32)).shape
        (8, 4)
        """
        call = copy.copy(self)
        call._rule = spec
        call._compiled = jit(call._named_after_the_kernel())
        return call

    def bind(self, *args: Any) -> Any:
        """Apply the primitive to the arguments."""
        leaves, in_tree = tree_util.tree_flatten(args)
        mapping, fun = self._mapping(leaves, in_tree)
        sizes = [lax.convert_element_type(self.spec.grid[d], INDEX_DTYPE) for d in mapping.dynamic]
        leaves = [*sizes, *leaves]
        key = mapping, state.trace_key, mesh_axes()
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = trace(fun, mapping)
            if self.debug:
                print(kernel.jaxpr)
        if kernel.depends_on_device:
            leaves = [varying(x) for x in leaves]
        if self._rule is _UNDIVIDED:
            results = pallas_call_p.bind(*leaves, kernel=kernel)
        else:
            division = division_of(kernel, self._rule)
            results = divided_pallas_call_p.bind(*leaves, kernel=kernel, division=division)
        if kernel.depends_on_device and not leaves:
            results = [varying(x) for x in results]
        return tree_util.tree_unflatten(tree_util.tree_structure(self.out_shape), results)

    def _named_after_the_kernel(self) -> Callable[..., Any]:
        """`bind` with the kernel's name and location in errors and profiles."""

        def call(*args: Any) -> Any:
            return self.bind(*args)

        return functools.wraps(self.kernel)(call)

    def _mapping(
        self, leaves: Sequence[Any], in_tree: Any
    ) -> tuple[GridMapping, Callable[..., Any]]:
        """The blocks of operands, and the kernel as a function of all references."""
        avals = tuple(_aval(x, i) for i, x in enumerate(leaves))
        key = avals, in_tree, state.trace_key
        if key not in self._mappings:
            try:
                mapping = _mapping(
                    self.kernel, self.name, self.spec, avals, in_tree, self.out_shape,
                    self.aliases, self.compiler_params,
                )  # fmt: skip
            except (TypeError, ValueError) as error:
                error.add_note(f"In the call of the kernel {summarize_function(self.kernel)}.")
                raise
            fun = _on_leaves(self.kernel, self.spec, in_tree, self.out_shape)
            self._mappings[key] = mapping, fun
        return self._mappings[key]


def traced_form(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The result of `pallas_call` as a function that can be traced, whatever ``interpret`` is."""
    return fun.bind if isinstance(fun, _KernelCall) else fun


def _check(mapping: GridMapping, fun: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    return check_steps(trace(fun, mapping), args)


def _check_accesses(
    mapping: GridMapping, fun: Callable[..., Any], args: Sequence[Any]
) -> list[Any]:  # fmt: skip
    return check_steps(trace(fun, mapping), args, complete=False)


_UNDIVIDED: Final[Any] = object()
"""The rule of calls that devices do not divide."""

_STEPPING: Final = {"python": step_through, "check": _check, True: _check_accesses}
"""Evaluation step by step, by the argument ``interpret``."""


def _unset(specs: Any) -> bool:
    return isinstance(specs, NoBlockSpec)


def _aval(x: Any, i: int) -> ShapedArray:
    aval = typeof(x)
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"operand {i} of a kernel is an array, got {aval}")
    if not is_static(aval.shape) and not symbolic_sizes_are_allowed():
        raise ValueError(f"operand {i} of a kernel has the shape {aval.shape}: {REWRITE}")
    return ShapedArray(aval.shape, aval.dtype)


def _out_avals(out_shape: Any) -> list[ShapedArray]:
    leaves = tree_util.tree_leaves(out_shape)
    for leaf in leaves if out_shape is not None else [None]:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(
                "out_shape is a pytree of objects with a shape and a dtype, such as "
                f"ShapeDtypeStruct; got {leaf!r}"
            )
        if dtypes.issubdtype(leaf.dtype, dtypes.extended):
            raise TypeError(
                f"out_shape has the dtype {leaf.dtype}: kernels return no random keys; return "
                "their data (random.key_data) and use random.wrap_key_data on the result"
            )
    return [ShapedArray(tuple(leaf.shape), canonicalize_dtype(leaf.dtype)) for leaf in leaves]


def _mapping(
    kernel: Callable[..., None], name: str | None, spec: GridSpec, avals: Sequence[ShapedArray],
    in_tree: Any, out_shape: Any, aliases: tuple[tuple[int, int], ...], compiler_params: Any,
) -> GridMapping:  # fmt: skip
    """Check the specifications."""
    n = spec.num_scalar_prefetch
    if n > len(avals):
        raise ValueError(f"num_scalar_prefetch is {n}, but there are {len(avals)} operands")
    dynamic = tuple(d for d, size in enumerate(spec.grid) if isinstance(size, Tracer))
    grid = tuple(UNKNOWN_SIZE if d in dynamic else size for d, size in enumerate(spec.grid))
    prefetched = (*[INDEX] * len(dynamic), *avals[:n])
    blocks = grid, [AbstractRef(a) for a in prefetched], dynamic
    operands = tree_util.tree_unflatten(in_tree, range(len(avals)))[n:]
    in_tree = tree_util.tree_structure(operands)
    inputs = _mappings(spec.in_specs, "in_specs", avals[n:], in_tree, *blocks)
    outs = _out_avals(out_shape)
    out_tree = tree_util.tree_structure(out_shape)
    outputs = _mappings(spec.out_specs, "out_specs", outs, out_tree, *blocks)
    scratch = [scratch_type(s) for s in _scratch_leaves(spec.scratch_shapes)]
    _check_aliases(aliases, avals, outs)
    return GridMapping(
        name or getattr(kernel, "__name__", "kernel"), summarize_function(kernel), grid, dynamic,
        prefetched, tuple(inputs), tuple(outputs), tuple(scratch),
        tuple((i + len(dynamic), o) for i, o in aliases),
        _semantics(compiler_params, len(grid)), compiler_params,
    )  # fmt: skip


def _mappings(
    specs: Any, name: str, avals: Sequence[ShapedArray], tree: Any, grid: tuple[int, ...],
    scalars: Sequence[Any], dynamic: Sequence[int],
) -> list[BlockMapping]:  # fmt: skip
    """The block mapping of each operand."""
    if _unset(specs):
        flat: list[Any] = [None] * len(avals)
        names = [f"{name}[{i}]" for i in range(len(avals))]
    else:
        flat, names = _flat_specs(specs, tree, name)
    return [
        mapping_of(spec, aval, grid, scalars, label, dynamic)
        for spec, aval, label in zip(flat, avals, names)
    ]


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, (BlockSpec, NoBlockSpec))


def _flat_specs(specs: Any, tree: Any, name: str) -> tuple[list[Any], list[str]]:
    """Specifications in the order of the leaves; one for a subtree counts for all its leaves."""
    if isinstance(specs, list):
        specs = tuple(specs)
    whole = tree_util.tree_unflatten(tree, range(tree.num_leaves))
    if isinstance(whole, list):
        whole = tuple(whole)
    try:
        flat = tree_util.tree_map(
            lambda spec, part: [spec] * len(tree_util.tree_leaves(part)),
            specs, whole, is_leaf=_is_spec,
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        expected = tree_util.tree_structure(whole)
        got = tree_util.tree_structure(specs, is_leaf=_is_spec)
        what = "the operands are" if name == "in_specs" else "out_shape is"
        raise ValueError(
            f"{name} is the pytree {got}, but {what} {expected}: give a BlockSpec for each array"
        ) from error
    leaves = tree_util.tree_leaves(flat, is_leaf=lambda x: x is None or _is_spec(x))
    paths = [tree_util.keystr(p) for p, _ in tree_util.tree_flatten_with_path(whole)[0]]
    return leaves, [name + path for path in paths]


def _scratch_leaves(scratch_shapes: Any) -> list[Any]:
    return tree_util.tree_leaves(
        scratch_shapes, is_leaf=lambda x: hasattr(x, "get_ref_aval") or hasattr(x, "shape")
    )


def _alias_pairs(aliases: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = dict(aliases).items()
        return tuple((operator.index(i), operator.index(o)) for i, o in pairs)
    except (TypeError, ValueError):
        raise TypeError(
            "input_output_aliases maps positions of operands to positions of results, such as "
            f"{{0: 0}}, got {aliases!r}"
        ) from None


def _check_aliases(
    aliases: Sequence[tuple[int, int]], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> None:
    taken: set[int] = set()
    for i, o in aliases:
        if not 0 <= i < len(avals) or not 0 <= o < len(outs):
            raise ValueError(
                f"input_output_aliases has {i}: {o}, but there are {len(avals)} operands and "
                f"{len(outs)} results"
            )
        if avals[i] != outs[o]:
            raise ValueError(
                f"input_output_aliases has {i}: {o}, but operand {i} is {avals[i]} and result {o} "
                f"is {outs[o]}; they have the same shape and dtype"
            )
        if o in taken:
            raise ValueError(f"input_output_aliases has two operands for result {o}")
        taken.add(o)


_PARAMETERS: Final = frozenset({"dimension_semantics", "num_warps", "num_stages"})
"""Parameters of the compilers that a mapping gives."""


def _semantics(compiler_params: Any, rank: int) -> tuple[str, ...] | None:
    """The declared semantics of the dimensions of the grid."""
    if isinstance(compiler_params, Mapping):
        unknown = set(compiler_params) - _PARAMETERS
        if unknown:
            raise ValueError(
                f"compiler_params has {sorted(map(str, unknown))}; a mapping has "
                f"{', '.join(sorted(_PARAMETERS))}; tpu.CompilerParams and triton.CompilerParams "
                "have more"
            )
        declared = compiler_params.get("dimension_semantics")
    elif (
        compiler_params is None
        or isinstance(compiler_params, CompilerParams)
        or any(hasattr(compiler_params, n) for n in _PARAMETERS)
    ):
        declared = getattr(compiler_params, "dimension_semantics", None)
    else:
        raise TypeError(
            "compiler_params is a tpu.CompilerParams, a triton.CompilerParams or a mapping, got "
            f"{compiler_params!r}"
        )
    if declared is None:
        return None
    if isinstance(declared, str):
        raise TypeError(
            f"dimension_semantics has an entry for each dimension of the grid, got {declared!r}"
        )
    semantics = tuple(str(getattr(s, "value", s)) for s in declared)
    if len(semantics) != rank:
        raise ValueError(
            f"dimension_semantics has {len(semantics)} entries for a grid with {rank} dimensions"
        )
    unknown = set(semantics) - {"parallel", "arbitrary", "core_parallel", "subcore_parallel"}
    if unknown:
        raise ValueError(f"dimension_semantics are parallel or arbitrary, got {unknown}")
    return tuple("arbitrary" if s == "arbitrary" else "parallel" for s in semantics)


def _on_leaves(
    kernel: Callable[..., None], spec: GridSpec, in_tree: Any, out_shape: Any
) -> Callable[..., None]:
    """The kernel as a function of all references in one sequence."""
    out_tree = tree_util.tree_structure(out_shape)
    _scratch, scratch_tree = tree_util.tree_flatten(
        spec.scratch_shapes, is_leaf=lambda x: hasattr(x, "get_ref_aval") or hasattr(x, "shape")
    )

    def on_leaves(*refs: Any) -> Any:
        n, m = in_tree.num_leaves, in_tree.num_leaves + out_tree.num_leaves
        ins = tree_util.tree_unflatten(in_tree, refs[:n])
        outs = tree_util.tree_unflatten(out_tree, refs[n:m])
        rest = tree_util.tree_unflatten(scratch_tree, refs[m:])
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        keywords: Mapping[str, Any] = {}
        if isinstance(rest, Mapping):
            keywords, rest = rest, ()
        elif not isinstance(rest, (tuple, list)):
            rest = () if rest is None else (rest,)
        try:
            return kernel(*ins, *outs, *rest, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside of the kernel
            raise TypeError(
                f"the kernel {summarize_function(kernel)} is called with {len(ins)} operands, "
                f"{len(outs)} results and {len(rest) + len(keywords)} scratch memories: {error}"
            ) from None

    return on_leaves
