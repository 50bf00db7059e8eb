"""Modules of ``primax.experimental`` that need several wheels."""

from __future__ import annotations

import numpy as np
import pytest

import primax
from primax import random


class TestStatefulRng:
    def test_draws_use_numbered_keys(self) -> None:
        from primax.experimental.random import stateful_rng

        rng, key = stateful_rng(3), random.key(3)
        keys = [random.fold_in(key, i) for i in range(4)]
        assert bool(rng.key() == keys[0])
        assert float(rng.uniform(1, 3)) == float(random.uniform(keys[1], minval=1, maxval=3))
        assert np.array_equal(rng.normal(size=(2,)), random.normal(keys[2], (2,)))
        assert np.array_equal(rng.integers(10, size=3), random.randint(keys[3], (3,), 0, 10))
        assert rng.random((2,)).shape == (2,) and rng.key(2).shape == (2,)

    def test_argument_of_a_compiled_function(self) -> None:
        from primax.experimental.random import stateful_rng

        rng, other = stateful_rng(0), stateful_rng(0)
        draw = primax.jit(lambda r: r.uniform())
        first = [float(draw(rng)) for _ in range(2)]
        assert first == [float(other.uniform()) for _ in range(2)] and first[0] != first[1]

    def test_children(self) -> None:
        from primax.experimental.random import stateful_rng

        expected = [float(c.uniform()) for c in stateful_rng(0).spawn(3)]
        split = stateful_rng(0).split(3)
        assert primax.vmap(lambda c: c.uniform())(split).tolist() == expected
        with pytest.raises(ValueError, match="map over it with vmap"):
            split.key()


def test_folder_of_the_cache(tmp_path) -> None:
    from primax.experimental.compilation_cache import compilation_cache

    before = primax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        assert primax.config.jax_compilation_cache_dir == str(tmp_path)
        compilation_cache.reset_cache()
    finally:
        primax.config.update("jax_compilation_cache_dir", before)


def test_metadata_are_ignored_with_a_warning() -> None:
    from primax.experimental import xla_metadata

    with pytest.warns(UserWarning, match="the metadata a are ignored"):
        with xla_metadata.set_xla_metadata(a="b"):
            pass
    with pytest.warns(UserWarning, match="the metadata a are ignored"):
        assert xla_metadata.set_xla_metadata(3.0, a="b") == 3.0
    with pytest.warns(UserWarning, match="the metadata a are ignored"):
        assert xla_metadata.xla_metadata_call(abs, a="b") is abs


def test_export_of_a_function_of_the_numpy_layer() -> None:
    import primax.numpy as jnp
    from primax import export

    x = np.ones((2, 3), np.float32)
    exported = export.export(jnp.cos)(x)
    assert exported.fun_name == "cos"
    assert np.array_equal(export.deserialize(exported.serialize()).call(x), jnp.cos(x))
