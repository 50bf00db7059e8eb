"""Calls of cuSOLVER and its relatives in modules for CUDA, compared with those of the reference."""

import re

import jax
import numpy as np
import pytest
from jax.lax import linalg as theirs

import primax_core as px
from primax_core.lax import linalg as ours

F32, C64, F64, C128 = np.float32, np.complex64, np.float64, np.complex128
# Function, options, shapes of the operands, dtype
CALLS = {
    "cholesky": ("cholesky", {"symmetrize_input": False}, [(2, 5, 5)], C64),
    "lu of a stack": ("lu", {}, [(2, 5, 3)], C64),
    "lu": ("lu", {}, [(3, 5)], F64),
    "qr": ("qr", {"full_matrices": False}, [(2, 3, 5, 4)], F32),
    "qr with square q": ("qr", {"full_matrices": True}, [(5, 3)], C128),
    "qr with pivots": ("qr", {"full_matrices": False, "pivoting": True}, [(5, 3)], F32),
    "qr on the host": ("qr", {"pivoting": True, "use_magma": False}, [(5, 3)], F32),
    "ormqr": ("ormqr", {"transpose": True}, [(2, 5, 3), (2, 3), (2, 5, 4)], F32),
    "ormqr from the right": ("ormqr", {"left": False}, [(5, 3), (3,), (4, 5)], C64),
    "householder": ("householder_product", {}, [(2, 5, 3), (2, 3)], F32),
    "eigh": ("eigh", {"symmetrize_input": False, "lower": False}, [(2, 5, 5)], C64),
    "eigh of one": ("eigh", {"symmetrize_input": False}, [(1, 1)], F32),
    "eig": ("eig", {}, [(5, 5)], F32),
    "eigenvalues": (
        "eig", {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False},
        [(2, 5, 5)], C64,
    ),
    "svd of few columns": ("svd", {"full_matrices": False}, [(5, 3)], C64),
    "svd of few rows": ("svd", {"full_matrices": True}, [(3, 5)], F32),
    "svd with more columns": ("svd", {"full_matrices": False}, [(4, 33, 34)], F64),
    "svd with short and long sides": ("svd", {"full_matrices": False}, [(1024, 10)], F32),
    "svd of large matrices": ("svd", {"full_matrices": False}, [(1500, 1200)], F32),
    "svd with long square bases": ("svd", {"full_matrices": True}, [(2, 1500, 40)], F32),
    "singular values": ("svd", {"compute_uv": False}, [(7, 4)], F32),
    "singular values of large matrices": (
        "svd", {"compute_uv": False, "full_matrices": False}, [(2, 1500, 1200)], F32,
    ),
    "tridiagonal": ("tridiagonal", {}, [(2, 5, 5)], C64),
    "tridiagonal systems": ("tridiagonal_solve", {}, [(3, 5), (3, 5), (3, 5), (3, 5, 2)], F32),
    "a perturbed system": (
        "tridiagonal_solve", {"perturb_singular": True}, [(5,), (5,), (5,), (5, 2)], F64,
    ),
}  # fmt: skip
ALGORITHMS = [
    ("eigh", "implementation", "EighImplementation", ("QR", "JACOBI"), (5, 5)),
    ("eig", "implementation", "EigImplementation", ("MAGMA", "LAPACK"), (2, 5, 5)),
    ("svd", "algorithm", "SvdAlgorithm", ("DEFAULT", "QR", "JACOBI", "POLAR"), (40, 36)),
]
CALL = re.compile(r"custom_call @(\w+)\(.*?\) \{(.*)\} : (.*)$", re.MULTILINE)
FRONTEND = re.compile(r"mhlo\.frontend_attributes = \{.*?\}, ")
ATTRIBUTES = re.compile(r"(?:mhlo\.)?backend_config = (\{.*?\})")


def calls(text):
    """Names, attributes, layouts, aliases and types of the custom calls in a module."""
    found = []
    for name, attributes, types in CALL.findall(text):
        attributes = FRONTEND.sub("", attributes)
        own = ATTRIBUTES.findall(attributes)
        layouts = re.findall(r"dense<[^>]*> : tensor<\d+xindex>", attributes)
        aliases = re.findall(r"#stablehlo.output_operand_alias<.*?>", attributes)
        found.append((name, own, layouts, aliases, types))
    return found


def of_reference(fun, *args):
    return calls(jax.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text())


def of_primax(fun, *args):
    return calls(px.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text())


def same_calls(name, options, their_options, shapes, dtype):
    with jax.enable_x64(True), px.enable_x64(True):
        expected = of_reference(
            lambda *a: getattr(theirs, name)(*a, **their_options),
            *[jax.ShapeDtypeStruct(s, dtype) for s in shapes],
        )
        actual = of_primax(
            lambda *a: getattr(ours, name)(*a, **options),
            *[px.ShapeDtypeStruct(s, dtype) for s in shapes],
        )
    assert expected and actual == expected


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_solvers(call):
    name, options, shapes, dtype = CALLS[call]
    same_calls(name, options, options, shapes, dtype)


@pytest.mark.parametrize(
    "name, option, enumeration, member, shape",
    [(n, o, e, m, s) for n, o, e, members, s in ALGORITHMS for m in members],
)
def test_algorithms(name, option, enumeration, member, shape):
    mine, other = (getattr(side, enumeration)[member] for side in (ours, theirs))
    more = {"symmetrize_input": False} if name == "eigh" else {}
    more |= {"full_matrices": False} if name == "svd" else {}
    same_calls(name, {option: mine, **more}, {option: other, **more}, [shape], F32)


def test_wide_matrices_are_transposed_before_the_call():
    """The reference leaves that to the native function, with the same memory."""
    shape = (40, 1500)
    theirs_call = of_reference(
        lambda x: theirs.svd(x, full_matrices=False), jax.ShapeDtypeStruct(shape, F32)
    )
    ours_call = of_primax(
        lambda x: ours.svd(x, full_matrices=False), px.ShapeDtypeStruct(shape, F32)
    )
    assert "transposed = true" in theirs_call[0][1][-1]
    assert "transposed = false" in ours_call[0][1][-1]
    assert theirs_call[0][4].startswith("(tensor<40x1500xf32>) -> (tensor<40x1500xf32>")
    assert ours_call[0][4].startswith("(tensor<1500x40xf32>) -> (tensor<1500x40xf32>")
