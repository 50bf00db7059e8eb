"""Python functions on the buffers of programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from primax_core import ShapeDtypeStruct as S, effects_barrier, grad, jit, jvp, lax, vmap
from primax_core.errors import JaxRuntimeError
from primax_ffi import buffer_callback as module
from primax_ffi.buffer_callback import Buffer, ExecutionContext, ExecutionStage, buffer_callback

F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.float32([1, 2, 3])


def double(context: Any, out: Any, x: Any) -> None:
    np.multiply(np.asarray(x), 2, out=np.asarray(out))


def test_eagerly_and_in_compiled_functions():
    call = buffer_callback(double, S((2, 3), F32))
    assert np.asarray(call(X)).tolist() == (2 * X).tolist()
    assert np.asarray(jit(lambda x: call(x * 2.0))(X)).tolist() == (4 * X).tolist()


def test_trees_and_the_context():
    seen = []

    def function(context, out, pair, *, scale):
        seen.append((type(context), context.stage, type(out["sum"])))
        a, b = map(np.asarray, pair)
        np.asarray(out["sum"])[...] = (a + b) * np.asarray(scale)
        np.asarray(out["n"][0])[...] = a.size

    types = {"sum": S((3,), F32), "n": [S((), np.int32)]}
    out = jit(buffer_callback(function, types))((ROW, ROW), scale=np.float32(3))
    assert np.asarray(out["sum"]).tolist() == [6, 12, 18] and int(out["n"][0]) == 3
    assert seen == [(ExecutionContext, ExecutionStage.EXECUTE, Buffer)]
    assert {"Buffer", "ExecutionContext", "ExecutionStage"} <= {*dir(module)}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing


def test_results_in_the_memory_of_operands():
    same = []

    def function(context, out, x):
        same.append(np.shares_memory(np.asarray(out), np.asarray(x)))
        np.asarray(out)[...] = np.asarray(x) + 1

    call = buffer_callback(function, S((3,), F32), input_output_aliases={0: 0})
    out = jit(lambda x: call(x * 2.0))(ROW)
    assert np.asarray(out).tolist() == [3, 5, 7] and same == [True]
    x = lax.add(ROW, np.float32(0))
    assert np.asarray(call(x)).tolist() == [2, 3, 4] and np.asarray(x).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"\{0: 1\}, but there is no result 1 among the 1"):
        buffer_callback(function, S((3,), F32), input_output_aliases={0: 1})(ROW)


def test_side_effects():
    seen = []

    def note(context, out, x):
        seen.append(float(np.asarray(x)))

    noted = buffer_callback(note, (), has_side_effect=True, command_buffer_compatible=True)
    dropped = buffer_callback(note, ())
    jit(lambda x: (noted(x), dropped(x), x)[2])(np.float32(4)).block_until_ready()
    effects_barrier()
    assert seen == [4]


@pytest.mark.parametrize(
    ("method", "shapes"),
    [("sequential", [(3,), (3,)]), ("sequential_unrolled", [(3,), (3,)]),
     ("expand_dims", [(2, 3)]), ("broadcast_all", [(2, 3)]), ("legacy_vectorized", [(2, 3)])],
)  # fmt: skip
def test_vmap(method, shapes):
    seen = []

    def function(context, out, x, y):
        seen.append(np.asarray(x).shape)
        np.asarray(out)[...] = np.asarray(x) * np.asarray(y)

    call = buffer_callback(function, S((3,), F32), vmap_method=method)
    out = vmap(call, (0, None))(X, ROW)
    assert np.asarray(out).tolist() == (X * ROW).tolist() and seen == shapes


def test_refusals():
    call = buffer_callback(double, S((3,), F32))
    with pytest.raises(
        NotImplementedError, match=r"vmap of .*double.*, whose call has no vmap_method"
    ):
        vmap(call)(X)
    for derive in (lambda: grad(lambda x: call(x).sum())(ROW), lambda: jvp(call, (ROW,), (ROW,))):
        with pytest.raises(ValueError, match="a derivative of the buffer callback double at "):
            derive()
    with pytest.raises(TypeError, match="expects a function, got 3"):
        buffer_callback(3, S((3,), F32))
    with pytest.raises(ValueError, match="is 'auto': it is one of"):
        buffer_callback(double, S((3,), F32), vmap_method="auto")
    with pytest.raises(ValueError, match="has 3 at position 0, which has no shape"):
        buffer_callback(double, 3)


def test_exceptions_keep_their_type():
    def fails(context, out, x):
        raise KeyError("no such column")

    with pytest.raises(JaxRuntimeError, match="no such column") as caught:
        buffer_callback(fails, S((3,), F32))(ROW).block_until_ready()
    assert isinstance(caught.value.__cause__, KeyError)

    def returns(context, out, x):
        return x

    def overwrites(context, out, x):
        np.asarray(x)[...] = 0

    for function, text in ((returns, "write into those of the results"), (overwrites, "read-only")):
        with pytest.raises(JaxRuntimeError, match=text):
            buffer_callback(function, S((3,), F32))(ROW).block_until_ready()
