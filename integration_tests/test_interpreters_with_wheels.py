"""The interpreters' wheel on values of the other wheels."""

from __future__ import annotations

import pytest

import primax_core
from primax_interpreters import checkify
from primax_numpy import random


@pytest.mark.parametrize("how", [lambda f: f, primax_core.jit, primax_core.vmap])
def test_keys_in_messages_of_checks(how):
    def f(key):
        checkify.check(random.bits(key) < 0, "not with {key}", key=key)
        return key

    keys = random.split(random.key(0), 2)
    error, _ = how(checkify.checkify(f))(keys if how is primax_core.vmap else keys[0])
    assert "not with Array((), dtype=key<fry>) overlaying:" in error.get()
