"""Errors of kernels and specifications: what happened, where, and how to mend it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernels_under_test import F32, add_blocks

import primax_kernels as pk
from primax_core import ShapeDtypeStruct, errors, jit, lax, make_jaxpr
from primax_kernels._mosaic import program as mosaic_program
from primax_kernels._triton import program as triton_program
from primax_kernels.tpu import (
    VMEM,
    CompilerParams,
    SemaphoreType,
    async_copy,
    emit_pipeline,
)
from primax_kernels.triton import load, store

X = np.arange(10, dtype=F32)
OUT = ShapeDtypeStruct((10,), F32)


def copy(x, o):
    o[...] = x[...]


def call(kernel=copy, out=OUT, **options):
    return pk.pallas_call(kernel, out, **options)(X)


def block(shape=(5,), index_map=lambda i: i):
    return pk.BlockSpec(shape, index_map)


OPTIONS = {
    "rank of a block": (
        {"grid": 2, "in_specs": [block((5, 1))], "out_specs": block()},
        "in_specs[0]: the block shape (5, 1) has 2 entries, the array of shape (10,) has 1 axes",
    ),
    "rank of an index map": (
        {"grid": 2, "in_specs": [block(index_map=lambda i: (i, 0))], "out_specs": block()},
        "returns 2 indices for an array with 1 axes",
    ),
    "arity of an index map": (
        {"grid": 2, "in_specs": [block(index_map=lambda i, j: i)], "out_specs": block()},
        "is called with 1 indices of the grid",
    ),
    "an index that is no integer": (
        {"grid": 2, "in_specs": [block(index_map=lambda i: 0.5)], "out_specs": block()},
        "returns 0.5, which is no integer scalar",
    ),
    "number of specifications": (
        {"grid": 2, "in_specs": [block(), block()], "out_specs": block()},
        "give a BlockSpec for each array",
    ),
    "an empty block": ({"in_specs": [block((0,))]}, "has 0 elements, at least 1 is needed"),
    "a block that is no number": ({"in_specs": [block(("a",))]}, "the block of axis 0 is 'a'"),
    "negative padding": (
        {"in_specs": [block((pk.Element(2, (-1, 0)),))]}, "the padding (-1, 0) of axis 0"
    ),
    "a negative grid": ({"grid": (2, -1)}, "the grid (2, -1) has a negative size"),
    "a huge grid": ({"grid": (2**16, 2**16)}, "at most 2147483647 are supported"),
    "a grid of floats": ({"grid": (1.5,)}, "sizes of a grid are integers, got 1.5"),
    "two grids": (
        {"grid": 2, "grid_spec": pk.GridSpec(grid=2)}, "takes either grid_spec or grid, in_specs"
    ),
    "a grid of 2**31 steps": ({"grid": 2**31}, "has 2147483648 steps: at most 2147483647"),
    "no function": ({"kernel": None}, "a kernel is a function of references, got None"),
    "an alias of another dtype": (
        {"input_output_aliases": {0: 0}, "out": ShapeDtypeStruct((10,), np.int32)},
        "operand 0 is float32[10] and result 0 is int32[10]",
    ),
    "two aliases of a result": (
        {"input_output_aliases": [(0, 0), (1, 0)]}, "there are 1 operands and 1 results"
    ),
    "scratch of negative size": (
        {"scratch_shapes": [ShapeDtypeStruct((-1,), F32)]}, "has a negative size: (-1,)"
    ),
    "an alias of another type": (
        {"input_output_aliases": {0: 0}, "out": ShapeDtypeStruct((9,), F32)},
        "they have the same shape and dtype",
    ),
    "an alias without operand": ({"input_output_aliases": {3: 0}}, "there are 1 operands"),
    "semantics": (
        {"grid": 2, "compiler_params": CompilerParams(dimension_semantics=("parallel",) * 2)},
        "has 2 entries for a grid with 1 dimensions",
    ),
    "unknown semantics": (
        {"grid": 2, "compiler_params": {"dimension_semantics": ("fast",)}}, "parallel or arbitrary"
    ),
    "interpret": ({"interpret": "slowly"}, "interpret is False, True, \"python\" or \"check\""),
    "scratch": ({"scratch_shapes": ["VMEM"]}, "VMEM((8, 128), float32)"),
    "a specification of another type": ({"in_specs": ["all"]}, "is a BlockSpec or None, got 'all'"),
    "a size that is no integer": (
        {"in_specs": [block((pk.Element(2.5),))]}, "the size of the block of axis 0 is an integer"
    ),
    "padding that is no pair": (
        {"in_specs": [block((pk.Element(2, 3),))]}, "the padding of axis 0 is a pair of integers"
    ),
    "interpret that cannot be hashed": ({"interpret": []}, "got []"),
    "aliases that are no pairs": (
        {"input_output_aliases": [0]}, "maps positions of operands to positions of results"
    ),
    "aliases by name": ({"input_output_aliases": {"x": 0}}, "such as {0: 0}, got {'x': 0}"),
    "parameters of another type": ({"compiler_params": 5}, "compiler_params is a tpu.Compiler"),
    "an unknown parameter": (
        {"compiler_params": {"num_wraps": 4}}, "compiler_params has ['num_wraps']"
    ),
    "semantics as one string": (
        {"grid": 2, "compiler_params": {"dimension_semantics": "parallel"}},
        "has an entry for each dimension of the grid, got 'parallel'",
    ),
    "cost": ({"cost_estimate": "high"}, "cost_estimate is a CostEstimate, got 'high'"),
    "name": ({"name": 7}, "the name of a kernel is a string, got 7"),
    "metadata": ({"metadata": 7}, "metadata is a mapping of strings, got 7"),
    "nested metadata": ({"metadata": {"a": {}}}, "metadata is a mapping of strings, got {'a': {}}"),
    "a grid of Booleans": ({"grid": (True,)}, "sizes of a grid are integers, got True"),
    "no results": ({"out": None}, "such as ShapeDtypeStruct; got None"),
    "scratch that the kernel does not take": (
        {"scratch_shapes": VMEM((2,), F32)},
        "is called with 1 operands, 1 results and 1 scratch memories: copy() takes 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(OPTIONS))
def test_options(what):
    options, message = OPTIONS[what]
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call(**options)


def test_a_kernel_that_returns_a_value_is_named_with_its_line():
    def kernel(x, o):
        return x[...]

    with pytest.raises(ValueError, match=r"test_kernel_errors.py:\d+ returns JitTracer"):
        call(kernel)


def test_arrays_from_outside():
    outside = lax.iota(F32, 10)

    def kernel(x, o):
        o[...] = x[...] + outside

    with pytest.raises(ValueError, match=r"uses arrays from outside \(.*\): pass them as operands"):
        call(kernel)
    moved = pk.BlockSpec((5,), lambda i: outside[0] if hasattr(outside, "x") else i)
    assert call(in_specs=[moved], grid=2, out_specs=block()).shape == (10,)


@pytest.mark.parametrize(
    "write, message",
    [
        (lambda x, o: o.__setitem__(..., 1.0), "Values are not broadcast"),
        (lambda x, o: o.__setitem__(..., x[0:3]), "Invalid shape"),
        (lambda x, o: o.__setitem__(..., x[...] > 0), "Invalid dtype"),
        (lambda x, o: o.__setitem__(11, x[0]), "Out of bound"),
    ],
    ids=["scalar", "shape", "dtype", "position"],
)
def test_writes(write, message):
    with pytest.raises((ValueError, IndexError, TypeError), match=message):
        call(write)


def calls_itself(x, o):
    o[...] = pk.pallas_call(calls_itself, OUT)(x[...])


@pytest.mark.parametrize("interpret", [False, True, "python", "check"])
def test_recursion(interpret):
    with pytest.raises(RecursionError, match="tracing calls_itself"):
        call(calls_itself, interpret=interpret)


def calls_copy(x, o):
    o[...] = lax.neg(pk.pallas_call(copy, OUT)(x[...]))


@pytest.mark.parametrize("interpret", [False, True, "python", "check"])
def test_a_kernel_inside_of_a_kernel(interpret):
    assert call(calls_copy, interpret=interpret).tolist() == (-X).tolist()


@pytest.mark.parametrize("interpret", [False, True, "python", "check"])
@pytest.mark.parametrize("grid", [0, (2, 0)], ids=str)
def test_grids_without_steps(grid, interpret):
    assert np.isnan(call(grid=grid, interpret=interpret)).all()
    aliased = pk.pallas_call(copy, OUT, grid=grid, input_output_aliases={0: 0}, interpret=interpret)
    assert aliased(X).tolist() == X.tolist()


def test_references_that_escape():
    refs = []
    call(lambda x, o: refs.append(o))
    with pytest.raises(errors.UnexpectedTracerError, match="return the value from the function"):
        refs[0][...]


def test_axes_of_the_grid():
    def kernel(x, o):
        o[...] = x[...] * pk.program_id(1)

    with pytest.raises(ValueError, match=r"program_id\(1\): the grid \(2,\) has 1 dimensions"):
        call(kernel, grid=2)


def test_index_map_errors_from_inside_keep_their_traceback():
    def index_map(i):
        return len(i)

    with pytest.raises(TypeError, match="len"):
        call(grid=2, in_specs=[block(index_map=index_map)], out_specs=block())


def test_python_stepping_needs_concrete_arrays():
    with pytest.raises(TypeError, match="not inside of jit, grad or vmap"):
        jit(lambda x: add_blocks(x, x, interpret="python"))(np.zeros(4, F32))


def test_operands():
    with pytest.raises(TypeError, match="out_shape is a pytree of objects with a shape"):
        call(out=(10,))
    with pytest.raises(TypeError):
        pk.pallas_call(copy, OUT)("text")


def test_specifications():
    with pytest.raises(TypeError, match="BlockSpec takes the block's shape first"):
        pk.BlockSpec(lambda i: i, (4,))
    with pytest.raises(TypeError, match="index_map is a function"):
        pk.BlockSpec((4,), 3)
    with pytest.raises(ValueError, match="buffer_count is at least 1"):
        pk.Buffered(0)
    with pytest.raises(ValueError, match="num_scalar_prefetch is not negative"):
        pk.PrefetchScalarGridSpec(-1)
    with pytest.raises(ValueError, match="num_scalar_prefetch is 2, but there are 1 operands"):
        call(grid_spec=pk.PrefetchScalarGridSpec(2))
    with pytest.raises(ValueError, match="negative size"):
        VMEM((-1,), F32)
    with pytest.raises(TypeError, match="tuple of integers"):
        VMEM((1.5,), F32)


def test_control():
    def returns(x, o):
        @pk.when(pk.program_id(0) == 0)
        def _first():
            return 1

    with pytest.raises(TypeError, match="a function under `when` writes into references"):
        call(returns, grid=1)
    with pytest.raises(ValueError, match="positive step"):
        pk.loop(0, 3, step=0)
    with pytest.raises(TypeError, match="without init_carry returns None"):
        pk.loop(0, 3)(lambda i: i)


def test_shape_of_a_block_that_is_a_number():
    with pytest.raises(TypeError, match=re.escape("such as (8, 128), got 4")):
        pk.BlockSpec(4, lambda i: i)


def test_number_of_prefetched_scalars_that_is_no_integer():
    with pytest.raises(TypeError, match="num_scalar_prefetch is an integer, got"):
        pk.PrefetchScalarGridSpec(1.5)


@pytest.mark.parametrize("value", [np.ones(10, F32), 1.5], ids=["array", "scalar"])
def test_store_converts_no_numbers_to_integers(value):
    def kernel(x, o):
        store(o, lax.convert_element_type(x[...], F32) if np.ndim(value) else value)

    with pytest.raises(ValueError, match="store writes float32 into a reference of int32"):
        call(kernel, ShapeDtypeStruct((10,), np.int32))


def test_index_maps_that_write_prefetched_scalars():
    def index_map(i, scalars):
        scalars[0] = i
        return i

    spec = pk.PrefetchScalarGridSpec(1, 2, [block(index_map=index_map)], block())
    with pytest.raises(ValueError, match=r"in_specs\[0\]: the index map .* writes a prefetched"):
        pk.pallas_call(lambda s, x, o: None, OUT, grid_spec=spec)(np.zeros(2, np.int32), X)


def test_random_keys_as_results():
    random = pytest.importorskip("primax_numpy.random", reason="needs primax-numpy")
    keys = random.split(random.key(0), 2)
    with pytest.raises(TypeError, match="kernels return no random keys"):
        pk.pallas_call(copy, ShapeDtypeStruct(keys.shape, keys.dtype))(keys)
    stepped = pk.pallas_call(copy, OUT, interpret="check")
    with pytest.raises(TypeError, match=r"pass random\.key_data"):
        stepped(keys)


def test_an_operand_that_is_no_array_names_the_kernel():
    with pytest.raises(TypeError, match=r"argument to copy at .*test_kernel_errors\.py:\d+"):
        pk.pallas_call(copy, OUT)("text")


@pytest.mark.parametrize("entry", [2, None, pk.Element(2)], ids=str)
@pytest.mark.parametrize("interpret", [False, "python", "check"])
def test_blocks_of_an_empty_array(entry, interpret):
    out = pk.pallas_call(
        lambda x, o: None, OUT, grid=2, in_specs=[block((entry,))], out_specs=block(),
        interpret=interpret,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"in_specs\[0\]: the array of shape \(0,\) has no block"):
        out(np.zeros(0, F32))


def test_scalars_of_an_enclosing_function():
    def scaled(x, scale):
        def kernel(x, o):
            o[...] = x[...] * scale

        return pk.pallas_call(kernel, OUT)(x)

    with pytest.raises(ValueError, match=r"uses arrays from outside \(float32\[\]\)"):
        jit(scaled)(X, F32(2))


def test_a_memory_that_there_is_not():
    with pytest.raises(TypeError, match="memory_space is a memory, such as "):
        pk.BlockSpec((5,), lambda i: i, memory_space="vram")


def test_masks_have_booleans():
    def kernel(x, o):
        o[...] = load(x, mask=x[...])

    with pytest.raises(TypeError, match="a mask has Booleans, got float32: compare, as in x > 0"):
        pk.pallas_call(kernel, OUT)(X)


@pytest.mark.parametrize("use", [pk.semaphore_signal, pk.semaphore_wait, pk.semaphore_read])
def test_arrays_of_semaphores(use):
    def kernel(x, o, semaphores):
        use(semaphores)

    call = pk.pallas_call(kernel, OUT, scratch_shapes=[SemaphoreType.REGULAR((2,))])
    with pytest.raises(ValueError, match=r"takes one semaphore, got an array of shape \(2,\)"):
        call(X)


@pytest.mark.parametrize("name", ["ядро", "2nd", 'x"); {', "", "two words"])
def test_names_in_texts_are_identifiers(name):
    kernel = make_jaxpr(pk.pallas_call(copy, OUT, name=name))(X).eqns[0].params["kernel"]
    for emit in (triton_program.emit, mosaic_program.emit):
        assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", emit(kernel).name)


def test_errors_of_specifications_have_the_line_of_the_kernel() -> None:
    with pytest.raises(ValueError, match="there are 1 operands") as caught:
        call(input_output_aliases={3: 0})
    (note,) = caught.value.__notes__
    assert re.fullmatch(r"In the call of the kernel copy at .*test_kernel_errors.py:\d+\.", note)


def test_arguments_that_are_no_references() -> None:
    def kernel(x, o, body):
        o[...] = x[...]
        body(x, o)

    def fails(text, body):
        with pytest.raises(TypeError, match=text):
            pk.pallas_call(lambda x, o: kernel(x, o, body), OUT)(X)

    part = pk.BlockSpec((5,), lambda i: i)
    pipeline = emit_pipeline(lambda a, b: None, grid=2, in_specs=[part], out_specs=[part])
    fails("a pipeline takes references of the kernel", lambda x, o: pipeline(x[...], o))
    fails("a copy is between references or views", lambda x, o: async_copy(x[...], o))
    fails("semaphore_signal takes a semaphore", lambda x, o: pk.semaphore_signal(None))
    fails("loop: upper is an integer scalar, got 'a'", lambda x, o: pk.loop(0, "a")(lambda i: None))
    fails("loop: lower is an integer scalar", lambda x, o: pk.loop(x[...], 3)(lambda i: None))
