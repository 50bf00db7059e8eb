"""``kernel``: a function that each core of a device runs on whole arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core import tree_util
from primax_core.extend import (
    AbstractRef,
    Jaxpr,
    ShapedArray,
    eval_jaxpr,
    stage,
    summarize_function,
    typeof,
)

from ._barriers import run_phases
from ._block_mapping import INDEX
from ._block_specs import BlockSpec, CompilerParams, CostEstimate
from ._call import pallas_call, traced_form
from ._control import run_scoped
from ._cores import NeedsPhases, TensorCoreMesh, on_core
from ._grid import program_id
from ._interpret_params import InterpretParams
from ._kernel import CapturedReferences
from ._memory_spaces import ANY
from ._typing import Types

_ABSENT: Final[Any] = object()


def kernel(
    body: Callable[..., None] = _ABSENT,
    out_type: Types = (),
    *,
    mesh: TensorCoreMesh,
    scratch_types: Types = (),
    compiler_params: CompilerParams | Mapping[str, Any] | None = None,
    interpret: bool | str | InterpretParams = False,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: Mapping[str, str] | None = None,
    out_shape: Types = None,
    scratch_shapes: Types = None,
) -> Any:
    """A function of arrays from a function of references, which each core of a device runs once.

    Operands and results are whole arrays outside of the cores' memories, which all cores see: each
    core reads and writes its part, at the position that ``lax.axis_index`` of the mesh's
    axis tells. The order in which cores run is not specified, except by `tpu.core_barrier`. The
    call can be differentiated, mapped, and compiled like any operation. On TPUs, cores are
    steps of a parallel dimension of the grid, or one core runs the parts of all
    if there is a barrier.

    Args:
      body: function of references to the operands, the results and to scratch memory of the
        core, in this order; it writes the results and returns ``None``. Left away: the result is a
        decorator.
      out_type: pytree of shapes and dtypes (``ShapeDtypeStruct``) of the results; ``out_shape`` is
        an earlier name of it.
      mesh: the cores, a `tpu.TensorCoreMesh`.
      scratch_types: pytree of types of each core's scratch memory, or a mapping from names
        of parameters to them; ``scratch_shapes`` is an earlier name of it.
      compiler_params, interpret, cost_estimate, debug, name, metadata: as of `pallas_call`.

    Returns:
      A function of the operands, pytrees of arrays and references, that returns arrays like
      ``out_type``. Operands that are references, and references that ``body`` captures, are changed
      in place.

    Raises:
      TypeError, ValueError: for other arguments; from the returned function, as of `pallas_call`.

    >>> import numpy as np
    >>> from primax_core import ShapeDtypeStruct, lax
    >>> from primax_kernels import ds
    >>> from primax_kernels.tpu import TensorCoreMesh
    >>> @kernel(
    ...     out_type=ShapeDtypeStruct((6,), np.float32),
    ...     mesh=TensorCoreMesh(axis_name="core", num_cores=2),
    ... )
    ... def scale(x, out):
    ...     core = lax.axis_index("core")
    ...     half = ds(3 * core, 3)
    ...     out[half] = x[half] * lax.convert_element_type(core + 2, np.float32)
    >>> scale(np.ones(6, np.float32))
    Array([2., 2., 2., 3., 3., 3.], dtype=float32)
    """
    if out_shape is not None:
        out_type = _other_name("out_type", out_type, "out_shape", out_shape)
    if scratch_shapes is not None:
        scratch_types = _other_name(
            "scratch_types", scratch_types, "scratch_shapes", scratch_shapes
        )
    options = {
        "mesh": mesh, "scratch_types": scratch_types, "compiler_params": compiler_params,
        "interpret": interpret, "cost_estimate": cost_estimate, "debug": debug, "name": name,
        "metadata": metadata,
    }  # fmt: skip
    if body is _ABSENT:
        return functools.partial(kernel, out_type=out_type, **options)
    bodies, meshes = _listed(body), _listed(mesh)
    if len(bodies) != 1 or len(meshes) != 1:
        raise ValueError(
            f"a kernel has one function and one mesh, got {len(bodies)} functions and "
            f"{len(meshes)} meshes: choose in the function, by lax.axis_index and pl.when"
        )
    if not callable(bodies[0]):
        raise TypeError(f"a kernel is a function of references, got {bodies[0]!r}")
    if not isinstance(meshes[0], TensorCoreMesh):
        raise TypeError(
            "the mesh of a kernel is a tpu.TensorCoreMesh(axis_name=..., num_cores=...), got "
            f"{meshes[0]!r}"
        )
    del options["mesh"], options["scratch_types"]
    options["compiler_params"] = _with_parallel_cores(compiler_params)
    options["name"] = name or getattr(bodies[0], "__name__", None)
    return _CoreKernel(bodies[0], out_type, meshes[0], scratch_types, options)


def _other_name(name: str, value: Any, other: str, other_value: Any) -> Any:
    if value != ():
        raise TypeError(f"kernel takes either {name} or its earlier name {other}, not both")
    return other_value


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _with_parallel_cores(compiler_params: Any) -> Any:
    """Parameters that declare the dimension of cores parallel."""
    cores = ("core_parallel",)
    if compiler_params is None:
        return {"dimension_semantics": cores}
    if isinstance(compiler_params, Mapping):
        return {"dimension_semantics": cores, **compiler_params}
    if is_dataclass(compiler_params) and not isinstance(compiler_params, type):
        names = {f.name for f in fields(compiler_params)}
        if "dimension_semantics" in names and compiler_params.dimension_semantics is None:
            return replace(compiler_params, dimension_semantics=cores)
    return compiler_params


class _CoreKernel:
    """The function that `kernel` returns."""

    def __init__(
        self, body: Callable[..., None], out_type: Any, mesh: TensorCoreMesh, scratch_types: Any,
        options: dict[str, Any],
    ):  # fmt: skip
        self.body = body
        self.out_type = out_type
        self.mesh = mesh
        self.scratch_types = scratch_types
        self.options = options
        self.in_phases = False
        self._calls: dict[Any, Callable[..., Any]] = {}
        functools.update_wrapper(self, body)

    def __repr__(self) -> str:
        return f"<kernel {summarize_function(self.body)} on {self.mesh}>"

    def __call__(self, *args: Any) -> Any:
        return self._apply(args, lambda call: call)

    def bind(self, *args: Any) -> Any:
        """Apply the primitive to the arguments."""
        return self._apply(args, traced_form)

    def _apply(self, args: Sequence[Any], form: Callable[[Any], Any]) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        n, captured = len(leaves), False
        references = tuple(i for i, x in enumerate(leaves) if isinstance(typeof(x), AbstractRef))
        arrays = [x[...] if i in references else x for i, x in enumerate(leaves)]
        while True:
            call = self._call(tree, n, references, [typeof(x) for x in arrays])
            try:
                results, contents = form(call)(*arrays)
            except NeedsPhases:
                if self.options["interpret"] == "python":
                    raise ValueError(
                        f"the kernel {summarize_function(self.body)} has a core_barrier, at which "
                        'a Python function cannot change to another core: use interpret="check"'
                    ) from None
                self.in_phases = True
                continue
            except CapturedReferences as error:
                if captured:  # by a function inside of the kernel
                    raise
                captured = True
                leaves = [*leaves, *error.references]
                references = (*references, *range(n, len(leaves)))
                arrays = [*arrays, *(x[...] for x in error.references)]
                continue
            for i, x in zip(references, contents):
                leaves[i][...] = x
            return results

    def _call(
        self, tree: Any, n: int, references: tuple[int, ...], avals: Sequence[Any]
    ) -> Any:  # fmt: skip
        """The `pallas_call` for arguments of a structure, some of which are references.

        Args:
          n: number of arguments; the operands after them are references that the function captures.
        """
        types = [ShapedArray(avals[i].shape, avals[i].dtype) for i in references]
        key = tree, n, references, tuple(types), self.in_phases
        if key not in self._calls:
            whole = BlockSpec(memory_space=ANY)
            phases = self.in_phases
            options = dict(self.options)
            if phases:
                options["compiler_params"] = _without_grid(options["compiler_params"])
            form = _Form(
                self.body, self.mesh, self.scratch_types, tree, n, references, len(avals)
            )  # fmt: skip
            n_results = tree_util.tree_structure(self.out_type).num_leaves
            self._calls[key] = pallas_call(
                form.in_phases() if phases else form.one_core(),
                (self.out_type, types),
                grid=() if phases else self.mesh.num_cores,
                in_specs=whole,
                out_specs=whole,
                input_output_aliases={i: n_results + k for k, i in enumerate(references)},
                **options,
            )
        return self._calls[key]


def _without_grid(compiler_params: Any) -> Any:
    """The parameters for a grid without dimensions."""
    if isinstance(compiler_params, Mapping):
        return {**compiler_params, "dimension_semantics": ()}
    if is_dataclass(compiler_params) and hasattr(compiler_params, "dimension_semantics"):
        return replace(compiler_params, dimension_semantics=())  # type: ignore[type-var]
    return compiler_params


class _Form(NamedTuple):
    """The function of a kernel, and the structure of its operands.

    Attributes:
      scratch_types: the types of each core's scratch memory.
      tree: the structure of the arguments.
      n_arguments: the number of arguments.
      references: the operands that are references, each of which is also a result.
      n: the number of operands: arguments, and references that the function captures.
    """

    body: Callable[..., None]
    mesh: TensorCoreMesh
    scratch_types: Any
    tree: Any
    n_arguments: int
    references: tuple[int, ...]
    n: int

    def one_core(self) -> Callable[..., None]:
        """The function that runs the core of the grid's index."""

        @functools.wraps(self.body)
        def run(*refs: Any) -> None:
            if self.n == self.n_arguments:
                with on_core(self.mesh, program_id(0)):
                    self.run(refs)
                return
            leaves = tree_util.tree_leaves(refs)
            eval_jaxpr(self.of_core(refs, False), [program_id(0), *leaves])

        return run

    def in_phases(self) -> Callable[..., None]:
        """The function that runs all cores, from barrier to barrier."""

        @functools.wraps(self.body)
        def run(*refs: Any) -> None:
            leaves = tree_util.tree_leaves(refs)
            cores = range(self.mesh.num_cores)
            run_phases(self.of_core(refs, True), [[np.int32(c), *leaves] for c in cores])

        return run

    def of_core(self, refs: Sequence[Any], in_phases: bool) -> Jaxpr:
        """The jaxpr of one core, from its index and references.

        Captured references are those of the operands after the arguments.
        """
        leaves, structure = tree_util.tree_flatten(refs)

        def body(index: Any, *xs: Any) -> list[Any]:
            with on_core(self.mesh, index, in_phases):
                self.run(tree_util.tree_unflatten(structure, xs))
            return []

        name = getattr(self.body, "__name__", "kernel")
        jaxpr = stage(body, [INDEX, *map(typeof, leaves)], name)
        if self.n == self.n_arguments:
            return jaxpr
        _, contents = refs[self.n :]
        own = iter(contents[len(contents) - (self.n - self.n_arguments) :])
        consts = [next(own) if isinstance(v.aval, AbstractRef) else c
                  for v, c in zip(jaxpr.constvars, jaxpr.consts)]  # fmt: skip
        return Jaxpr(jaxpr.constvars, consts, jaxpr.invars, jaxpr.outvars, jaxpr.eqns)

    def run(self, refs: Sequence[Any]) -> None:
        """Call the function with its operands, results, and new scratch memory."""
        operands = list(refs[: self.n])
        # As the results of pallas_call: those of the kernel, and the contents of references.
        outs, contents = refs[self.n :]
        for i, ref in zip(self.references, contents):
            operands[i] = ref
        args = tree_util.tree_unflatten(self.tree, operands[: self.n_arguments])
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)

        def with_scratch(scratch: Any) -> None:
            keywords: Mapping[str, Any] = {}
            rest: Any = scratch
            if isinstance(scratch, Mapping):
                keywords, rest = scratch, ()
            elif not isinstance(scratch, (tuple, list)):
                rest = () if scratch is None else (scratch,)
            self.call(args, outs, rest, keywords)

        run_scoped(with_scratch, self.scratch_types)

    def call(
        self, args: Sequence[Any], outs: Sequence[Any], rest: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Call the function.

        Raises:
          TypeError: if it takes another number of arguments.
          ValueError: if it returns a value.
        """
        where = summarize_function(self.body)
        try:
            result = self.body(*args, *outs, *rest, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside of the kernel
            raise TypeError(
                f"the kernel {where} is called with {len(args)} operands, {len(outs)} results and "
                f"{len(rest) + len(keywords)} scratch memories: {error}"
            ) from None
        if result is not None:
            raise ValueError(
                f"the kernel {where} returns {type(result).__name__}: a kernel writes its results "
                "into references and returns None"
            )
