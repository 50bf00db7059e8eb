"""Errors of functions, and their messages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import primax_nn as nn
from primax_core import jit, vmap
from primax_core.extend import dtypes
from primax_nn import initializers
from primax_nn.example_libraries import optimizers, stax
from primax_numpy import random

X = np.ones((2, 3), np.float32)
Q = np.ones((1, 4, 2, 8), np.float32)
M = np.ones((1, 2, 4), np.float32)
S = np.ones((1, 2, 2), np.float32)
KEY = random.key(0)
FORMATS = [nn.get_scaled_dot_general_config("mxfp8")] * 3
MATRICES = (((1,), (1,)), ((), ()))


def att(**changes: Any) -> Any:
    return lambda: nn.dot_product_attention(**{"query": Q, "key": Q, "value": Q, **changes})


REFUSED = [
    (lambda: nn.relu([1.0]), TypeError, "relu requires ndarray or scalar arguments, got <class"),
    (lambda: nn.elu(X, "a"), TypeError, "elu requires .* at position 1"),
    (lambda: nn.sigmoid(np.int32(1)), TypeError, "sigmoid does not accept dtype int32.*astype"),
    (lambda: nn.silu(True), TypeError, "silu does not accept dtype bool"),
    (lambda: nn.log_sigmoid(np.bool_(1)), TypeError, "log_sigmoid does not accept dtype bool"),
    (lambda: nn.log1mexp(np.bool_(1)), TypeError, "log1mexp does not accept dtype bool"),
    (lambda: nn.softmax(X > 0), TypeError, "softmax does not accept dtype bool"),
    (lambda: nn.glu(np.ones((2, 2), int)), TypeError, "glu does not accept dtype int"),
    (lambda: nn.sparse_sigmoid(1j), ValueError, "[Cc]omplex"),
    (lambda: nn.gelu(None), TypeError, "gelu requires"),
    (lambda: nn.identity("a"), TypeError, "identity requires"),
    (lambda: nn.glu(X), ValueError, "size of axis 1 must be even.*got shape \\(2, 3\\)"),
    (lambda: nn.glu(X, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: nn.softmax(X, axis=2), ValueError, "axis 2 is out of bounds"),
    (lambda: nn.softmax(X, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
    (lambda: nn.softmax(X, axis=0.5), TypeError, "integer"),
    (lambda: nn.softmax(1.0), ValueError, "out of bounds"),
    (lambda: nn.softmax(X, where=X), ValueError, "where must be None or a boolean array"),
    (lambda: nn.log_softmax(X, where=X[:, :2] > 0), ValueError, "\\(2, 2\\), which does not broad"),
    (lambda: nn.logsumexp(X, where=X), ValueError, "logsumexp: where must be"),
    (lambda: nn.logsumexp(X, b=[1.0]), TypeError, "logsumexp requires"),
    (lambda: nn.logmeanexp(X, axis=7), ValueError, "axis 7"),
    (lambda: nn.standardize(X * 1j), ValueError, "standardize does not support complex"),
    (lambda: nn.standardize(X, algorithm="best"), ValueError, "must be 'fast' or 'stable', got"),
    (lambda: nn.standardize(X, axis=3), ValueError, "axis 3"),
    (lambda: nn.one_hot(np.arange(3), -1), TypeError, "num_classes must not be negative"),
    (lambda: nn.one_hot(np.arange(3), 2.5), TypeError, "integer"),
    (lambda: nn.one_hot(np.arange(3), 2, axis=4), ValueError, "axis 4"),
    (lambda: jit(lambda n: nn.one_hot(np.arange(3), n))(3), TypeError, "argument n"),
    (lambda: vmap(lambda x: nn.one_hot(x, 3, axis="i"), axis_name="i")(np.arange(2)), ValueError,
     "size of the mapped axis 'i', which is 2; got 3"),
    (att(query=Q[0]), ValueError, "got shapes \\(4, 2, 8\\), \\(1, 4, 2, 8\\)"),
    (att(query=Q[0, 0], key=Q[0, 0], value=Q[0, 0]), ValueError, "must all have the axes"),
    (att(value=Q[:, :3]), ValueError, "value shape should be that of key"),
    (att(query=np.concatenate([Q, Q])), ValueError, "query shape should be \\(1, 4, 2, 8\\)"),
    (att(query=Q[..., :4]), ValueError, "query shape should be"),
    (att(query=Q[:, :, [0, 1, 1]]), ValueError, "multiple of key/value heads, but got 3 vs 2"),
    (att(query=Q.astype(np.float16)), ValueError, "query dtype should be float32"),
    (att(query=Q.astype(int)), TypeError, "a float of 16 bits or more, got dtype int"),
    (att(key=[1.0, 2.0]), ValueError, "must all have the axes"),
    (att(bias=np.ones((1, 2, 4, 5))), ValueError, "bias of shape \\(1, 2, 4, 5\\) does not"),
    (att(mask=np.ones((1, 2, 4, 4))), ValueError, "mask dtype should be bool, but got float32"),
    (att(mask=np.ones((3, 2, 4, 4), bool)), ValueError, "mask of shape"),
    (att(query_seq_lengths=2), ValueError, "query_seq_lengths shape should be \\(1,\\)"),
    (att(key_value_seq_lengths=np.ones(1)), ValueError, "dtype should be int32"),
    (att(local_window_size=-1), ValueError, "nonnegative integer or a pair"),
    (att(local_window_size=(1, 2, 3)), ValueError, "nonnegative integer or a pair"),
    (att(scale="a"), ValueError, "scale must be a number"),
    (att(scale=np.ones(2)), ValueError, "scale must be a number"),
    (att(implementation="flash"), ValueError, "must be None, 'xla' or 'cudnn', got 'flash'"),
    (att(implementation="cudnn"), RuntimeError, "cuDNN .*implementation='xla'"),
    (lambda: nn.scaled_matmul(X, X, X, X), ValueError, "must have three axes"),
    (lambda: nn.scaled_matmul(M, M[..., :2], S, S), ValueError, "same batch and summed axes"),
    (lambda: nn.scaled_matmul(M, M, S, S[..., :1]), ValueError, "one element for each block"),
    (lambda: nn.scaled_matmul(M, M, S[:, :1], S), ValueError, "scales must have the batch and"),
    (lambda: nn.scaled_matmul(M, M, S, "a"), TypeError, "scaled_matmul requires"),
    (lambda: nn.get_scaled_dot_general_config("fp8"), ValueError, "one of mxfp8, mxfp4, nvfp4"),
    (lambda: nn.get_scaled_dot_general_config("mxfp4", 2.0), ValueError, "does not use a global"),
    (lambda: nn.get_scaled_dot_general_config("nvfp4", np.ones(2)), ValueError, "one number"),
    (lambda: nn.scaled_dot_general(X, X, MATRICES, configs=["mxfp8"] * 3), TypeError, "must come "),
    (lambda: nn.scaled_dot_general(X, X, MATRICES, configs=FORMATS[:1]), ValueError, "got 1 of th"),
    (lambda: nn.scaled_dot_general(X, X.T, MATRICES, configs=FORMATS), TypeError, "equal sizes"),
    (lambda: initializers.normal()(KEY, (2,), int), ValueError, "float or complex dtype, got int"),
    (lambda: initializers.truncated_normal()(KEY, (2,), "complex64"), ValueError, "float dtype"),
    (lambda: initializers.he_normal()(KEY, (2,)), ValueError, "1-dimensional weights tensor"),
    (lambda: initializers.he_normal(in_axis=5)(KEY, (2, 3)), ValueError, "axis 5"),
    (lambda: initializers.variance_scaling(1.0, "x", "normal")(KEY, (2, 3)), ValueError, "mode"),
    (lambda: initializers.variance_scaling(1.0, "fan_in", "x")(KEY, (2, 3)), ValueError, "distrib"),
    (lambda: initializers.variance_scaling(-1.0, "fan_in", "normal")(KEY, (2, 3)), ValueError,
     "scale must not be negative"),
    (lambda: initializers.orthogonal()(KEY, (3,)), ValueError, "at least a 2D shape"),
    (lambda: initializers.delta_orthogonal()(KEY, (3, 3)), ValueError, "3D, 4D or 5D shape"),
    (lambda: initializers.delta_orthogonal()(KEY, (3, 4, 2)), ValueError, "number of inputs"),
    (lambda: initializers.normal()(None, (2,)), TypeError, "key"),
    (lambda: initializers.constant(np.ones(3))(KEY, (2,)), ValueError, "broadcast"),
    (lambda: stax.Dropout(0.5)[1]((), X), ValueError, "Dropout .*rng=key"),
    (lambda: stax.Conv(2, (1, 1))[0](KEY, (2, 3)), ValueError, "needs an input shape of 4 axes"),
    (lambda: stax.MaxPool((1, 1))[0](KEY, (2, 3)), ValueError, "needs inputs of the same rank"),
    (lambda: optimizers.sgd("a"), TypeError, "step size must be a number or a function"),
    (lambda: optimizers.piecewise_constant([1], [2.0]), ValueError, "one value more"),
    (lambda: optimizers.piecewise_constant([[1]], [2.0]), ValueError, "must be sequences"),
    (lambda: optimizers.pack_optimizer_state([1.0]), TypeError, "must be JoinPoints"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[t[:30] for *_, t in REFUSED])
def test_errors(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_optimizers_reject_other_structures():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="did not match the parameter tree structure"):
        update(0, {"b": 1.0}, init({"a": 1.0}))

    @optimizers.optimizer
    def growing(step_size):
        return (lambda x: x), (lambda i, g, x: (x, x)), (lambda x: x)

    init, update, _ = growing(0.1)
    with pytest.raises(TypeError, match="structure that did not match"):
        update(0, 1.0, init(1.0))


def test_warnings():
    with pytest.warns(DeprecationWarning, match="indices should be integers, got dtype float32"):
        assert np.asarray(nn.one_hot(np.float32([1.0]), 2)).tolist() == [[0, 1]]
    with pytest.warns(DeprecationWarning, match="implementation is ignored"):
        nn.scaled_dot_general(X, X, MATRICES, implementation="cudnn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.one_hot(np.arange(2), 2)


NARROW = ("float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_stay_narrow(dtype: str) -> None:
    x = np.asarray([0.5, 1.0], getattr(dtypes, dtype, None) or _of(dtype))
    for name in ("relu", "silu", "gelu", "softmax", "elu", "softplus"):
        assert getattr(nn, name)(x).dtype.name == dtype


def _of(name: str) -> Any:
    import primax_numpy

    return np.dtype(getattr(primax_numpy, name))
