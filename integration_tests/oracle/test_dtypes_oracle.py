"""The promotion lattice and the dtype classes compared with the real jax in this process."""

import itertools
import random
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

from primax_core import dtypes as public
from primax_core._base.config import enable_x64 as our_x64, numpy_dtype_promotion as our_mode
from primax_core._ir import dtypes

WEAK_SCALARS = (1, 1.0, 1j)


def outcome(fun, *args, **kwargs):
    """The result of a call, or the class of its exception."""
    try:
        return fun(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return type(error).__name__


def available(x64):
    """The dtypes that jax also has; 64-bit dtypes only if enabled."""
    known = [d for d in dtypes.all_dtypes if hasattr(jax.numpy, d.name)]
    return [d for d in known if x64 or d not in dtypes.wide_dtypes]


def operands(x64):
    strong = [jax.ShapeDtypeStruct((), d) for d in available(x64)]
    weak = [jax.numpy.asarray(x) for x in WEAK_SCALARS]
    return [*strong, *weak, *WEAK_SCALARS, True]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_result_type_of_all_pairs(x64, mode):
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode), our_x64(x64), our_mode(mode):
        cases = operands(x64)
        for a, b in itertools.product(cases, repeat=2):
            expected = outcome(jax.dtypes.result_type, a, b, return_weak_type_flag=True)
            got = outcome(public.result_type, a, b, return_weak_type_flag=True)
            assert got == expected, (a, b)


@pytest.mark.parametrize("x64", [False, True])
def test_result_type_of_triples(x64):
    choose = random.Random(0)
    with jax.enable_x64(x64), our_x64(x64):
        cases = operands(x64)
        for _ in range(3000):
            three = [choose.choice(cases) for _ in range(choose.choice([1, 3, 4]))]
            expected = outcome(jax.dtypes.result_type, *three, return_weak_type_flag=True)
            got = outcome(public.result_type, *three, return_weak_type_flag=True)
            assert got == expected, three


@pytest.mark.parametrize("x64", [False, True])
def test_result_type_of_dtype_like_objects(x64):
    likes = [
        int, float, complex, bool, None, np.int64, np.float32, np.uint64, "int8", "float64",
        "bfloat16", "bool", np.dtype("complex128"), np.int64(3), np.float64(2), np.zeros(2,
        np.int64), np.zeros(2, np.uint64), np.bool_(True), ml_dtypes.bfloat16(1), "int4",
    ]  # fmt: skip
    with jax.enable_x64(x64), our_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in itertools.product(likes, repeat=2):
            expected = outcome(jax.dtypes.result_type, a, b, return_weak_type_flag=True)
            got = outcome(public.result_type, a, b, return_weak_type_flag=True)
            assert got == expected, (a, b)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promote_types_of_all_pairs(x64, mode):
    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode), our_x64(x64), our_mode(mode):
        names = [*available(True), int, float, complex]
        for a, b in itertools.product(names, repeat=2):
            expected = outcome(jax.numpy.promote_types, a, b)
            got = outcome(dtypes.promote_types, a, b)
            assert got == expected, (a, b)


ABSTRACT = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
    np.floating, np.complexfloating, np.bool_, int, float, complex, bool,
)  # fmt: skip


def test_issubdtype():
    concrete = available(True)
    for a in (*concrete, *ABSTRACT):
        for b in (*concrete, *ABSTRACT, *[d.type for d in concrete], public.float0):
            assert dtypes.issubdtype(a, b) == jax.dtypes.issubdtype(a, b), (a, b)


def test_extended_classes():
    for a, b in itertools.product(
        ("extended", "prng_key", np.generic, np.number, "float32"), repeat=2
    ):
        ours = [getattr(public, str(x), x) if x != "float32" else x for x in (a, b)]
        theirs = [getattr(jax.dtypes, str(x), x) if x != "float32" else x for x in (a, b)]
        assert public.issubdtype(*ours) == jax.dtypes.issubdtype(*theirs), (a, b)


@pytest.mark.parametrize("x64", [False, True])
def test_canonical_dtypes_sizes_and_scalar_types(x64):
    with jax.enable_x64(x64), our_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for d in [*available(True), int, float, complex, bool]:
            for name in ("canonicalize_dtype", "scalar_type_of"):
                ours, theirs = getattr(public, name), getattr(jax.dtypes, name)
                assert outcome(ours, d) == outcome(theirs, d), (name, d)
        for d in available(True):
            assert public.itemsize_bits(d) == jax.dtypes.itemsize_bits(d)
            limits = public.finfo if dtypes.issubdtype(d, np.inexact) else public.iinfo
            reference = getattr(jax.dtypes, limits.__name__)
            if d != np.bool_:
                assert limits(d).max == reference(d).max


def test_short_names():
    for d in available(False):
        printed = str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((), d)))
        assert f"a:{dtypes.short_name(d)}[]" in printed
