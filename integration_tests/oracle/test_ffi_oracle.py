"""Native functions beside the reference: the same handlers, called by both libraries."""

from __future__ import annotations

import jax
import jax.ffi
import numpy as np
import pytest
from ffi_library import library

import primax
import primax.ffi

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.float32([1, 2, 3])
LIBRARIES = (primax, jax)


def registered(lib, name):
    """The name of a handler; each library has one, because both register in one table of XLA."""
    own = f"{lib.__name__}_{name}"
    try:
        lib.ffi.register_ffi_target(own, lib.ffi.pycapsule(getattr(library(), name)))
    except Exception as error:
        if "already" not in str(error):
            raise
    return own


def scale(lib, x, **options):
    call = lib.ffi.ffi_call(
        registered(lib, "acme_scale"), lib.ShapeDtypeStruct(x.shape, x.dtype), **options
    )
    return call(x, by=np.float32(3), fail="")


def memory(lib, x, shape, **options):
    name = registered(lib, "acme_memory")
    return lib.ffi.ffi_call(name, lib.ShapeDtypeStruct(shape, x.dtype), **options)(x)


def pair(lib, x, y, **options):
    name = registered(lib, "acme_sum_and_product")
    types = [lib.ShapeDtypeStruct(x.shape, x.dtype)] * 2
    return lib.ffi.ffi_call(name, types, **options)(x, y)


CALLS = {
    "plain": lambda lib: scale(lib, X),
    "jit": lambda lib: lib.jit(lambda x: scale(lib, x))(X),
    "input layout": lambda lib: memory(lib, X, (6,), input_layouts=[(1, 0)]),
    "output layout": lambda lib: memory(lib, X, (3, 2), output_layouts=(1, 0)),
    "cycle": lambda lib: memory(
        lib, np.arange(24, dtype=np.float32).reshape(2, 3, 4), (24,), input_layouts=[(1, 2, 0)]
    ),
    **{
        f"vmap {method}": lambda lib, method=method: lib.vmap(
            lambda x, y: pair(lib, x, y, vmap_method=method), (0, None)
        )(X, ROW)
        for method in (
            "sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
            "legacy_vectorized",
        )
    },
    "vmap of columns": lambda lib: lib.vmap(
        lambda x: scale(lib, x, vmap_method="broadcast_all"), 1, 1
    )(X),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    ours, theirs = (lib.tree.map(np.asarray, CALLS[name](lib)) for lib in LIBRARIES)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()


def attributes_in_text(lib, **attributes):
    call = lib.ffi.ffi_call(registered(lib, "acme_scale"), lib.ShapeDtypeStruct((3,), "float32"))
    text = lib.jit(lambda x: call(x, **attributes)).lower(ROW).as_text()
    return text.split("backend_config = {")[1].split("}, operand_layouts")[0]


@pytest.mark.parametrize(
    "attributes",
    [{"a": 1}, {"a": True}, {"a": 1.5}, {"a": np.float32(2)}, {"a": np.int8(-3)}, {"a": "text"},
     {"b": 1, "a": np.uint32(7)}, {"a": {"b": 1, "c": "x"}}],
    ids=str,
)  # fmt: skip
def test_attributes_in_the_lowered_text(attributes):
    ours, theirs = (attributes_in_text(lib, **attributes) for lib in LIBRARIES)
    assert ours == theirs


ERRORS = {
    "no method": lambda lib: lib.vmap(lambda x: scale(lib, x))(X),
    "grad": lambda lib: lib.grad(lambda x: scale(lib, x).sum())(ROW),
    "jvp": lambda lib: lib.jvp(lambda x: scale(lib, x), (ROW,), (ROW,)),
    "method": lambda lib: scale(lib, X, vmap_method="auto"),
    "layouts": lambda lib: scale(lib, X, input_layouts=[]),
    "alias": lambda lib: scale(lib, X, input_output_aliases={0: 1}),
    "aliased type": lambda lib: memory(lib, X, (6,), input_output_aliases={0: 0}),
    "text": lambda lib: scale(lib, X, legacy_backend_config="x"),
    "version": lambda lib: scale(lib, X, custom_call_api_version=2),
    "result": lambda lib: lib.ffi.ffi_call("f", None),
}


@pytest.mark.parametrize("name", ERRORS)
def test_kinds_of_errors(name):
    kinds = []
    for lib in LIBRARIES:
        with pytest.raises(Exception) as caught:
            ERRORS[name](lib)
        kinds.append(type(caught.value))
    assert issubclass(*kinds), kinds


def test_public_names():
    names = {n for n in dir(jax.ffi) if not n.startswith("_")}
    assert names <= {*dir(primax.ffi)}
