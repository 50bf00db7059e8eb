"""The interpreters' wheel on values of the other wheels."""

from __future__ import annotations

import numpy as np
import pytest

import primax_core
from primax_core import lax
from primax_interpreters import checkify, export
from primax_numpy import random
from primax_numpy.random import extend


@pytest.mark.parametrize("how", [lambda f: f, primax_core.jit, primax_core.vmap])
def test_keys_in_messages_of_checks(how):
    def f(key):
        checkify.check(random.bits(key) < 0, "not with {key}", key=key)
        return key

    keys = random.split(random.key(0), 2)
    error, _ = how(checkify.checkify(f))(keys if how is primax_core.vmap else keys[0])
    assert "not with Array((), dtype=key<fry>) overlaying:" in error.get()


def test_exported_functions_of_registered_keys():
    def split(key, shape):
        numbers = lax.reshape(lax.iota(np.uint32, 4 * int(np.prod(shape))), (*shape, 2, 2))
        return lax.add(lax.broadcast(key, shape), numbers)

    impl = extend.define_prng_impl(
        name="exported", tag="exp", key_shape=(2, 2), split=split,
        seed=lambda seed: lax.broadcast(lax.convert_element_type(seed, np.uint32), (2, 2)),
        fold_in=lambda key, data: lax.add(key, lax.broadcast(data, (2, 2))),
        random_bits=lambda key, width, shape: lax.broadcast(key[0, 0], shape),
    )  # fmt: skip
    extend.register_prng_impl(impl)
    key = random.key(3, impl="exported")
    function = primax_core.jit(lambda k: (random.bits(k, (2,)), random.split(k, 3)))
    exported = export.deserialize(bytearray(export.export(function)(key).serialize()))
    assert str(exported.in_avals[0]) == "key<exp>[]"
    bits, children = exported.call(key)
    assert bits.tolist() == [3, 3] and children.dtype == key.dtype and children.shape == (3,)
    np.testing.assert_array_equal(random.key_data(children), random.key_data(function(key)[1]))
