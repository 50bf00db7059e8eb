"""Modules of ``primax.experimental`` that need several wheels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import primax
from primax import random
from primax.experimental.xla_metadata import (
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)


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

    def test_examples_of_vmap_do_not_share_a_generator(self) -> None:
        from primax.experimental.random import stateful_rng

        rng, xs = stateful_rng(0), np.zeros(3, np.float32)
        shared = lambda x: x + rng.uniform()
        for f in (shared, primax.jit(shared), lambda x: primax.lax.map(lambda _: shared(x), xs)):
            with pytest.raises(ValueError, match=r"gives each example of vmap the same numbers"):
                primax.vmap(f)(xs)
        apart = primax.vmap(lambda x, r: x + r.uniform())(xs, rng.split(3))
        inside = primax.vmap(lambda x: x + stateful_rng(0).uniform())(xs)
        assert len(set(apart.tolist())) == 3 and len(set(inside.tolist())) == 1


def test_folder_of_the_cache(tmp_path) -> None:
    from primax.experimental.compilation_cache import compilation_cache

    before = primax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(tmp_path)
        assert primax.config.jax_compilation_cache_dir == str(tmp_path)
        compilation_cache.reset_cache()
    finally:
        primax.config.update("jax_compilation_cache_dir", before)


class TestXlaMetadata:
    """Metadata are frontend attributes of the lowered operations."""

    @staticmethod
    def lines(f: Any, *args: Any) -> list[str]:
        """The operations of the lowered module with metadata: name and attributes."""
        text = primax.jit(f).lower(*args).as_text()
        pattern = r"= (?:stablehlo\.)?(\w+) .*mhlo.frontend_attributes = \{(.*?)\}"
        return [" ".join(m) for m in re.findall(pattern, text)]

    def test_of_operations_in_a_context(self) -> None:
        def f(x: Any) -> Any:
            with set_xla_metadata(a="b", n=3, z=True):
                x = primax.lax.sin(x) * 2
                with set_xla_metadata(a=None, n="c", z=None):
                    x = primax.lax.tan(x)
            return primax.lax.cos(x)

        both = 'a = "b", n = "3", z = "true"'
        assert self.lines(f, 1.0) == [f"sine {both}", f"multiply {both}", 'tan n = "c"']

    def test_of_a_decorated_function_and_of_compiled_functions_in_it(self) -> None:
        inner = primax.jit(primax.lax.sin)

        @set_xla_metadata(a="b")
        def f(x: Any) -> Any:
            return inner(x)

        def twice(x: Any) -> Any:
            return inner(f(x))

        text = primax.jit(twice).lower(1.0).as_text()
        assert text.count("stablehlo.sine") == 2
        assert len(re.findall(r'stablehlo.sine .*a = "b"', text)) == 1

    def test_of_a_function_that_is_compiled_in_the_context(self) -> None:
        f = primax.jit(lambda x: primax.lax.sin(x))
        with set_xla_metadata(a="b"):
            assert 'a = "b"' in f.lower(1.0).as_text()
        assert "frontend" not in f.lower(1.0).as_text()

    def test_of_a_decorated_compiled_function(self) -> None:
        @set_xla_metadata(a="b")
        @primax.jit
        def f(x: Any) -> Any:
            return primax.lax.sin(x)

        assert f(0.0) == 0.0
        for lowered in (f.lower(1.0), f.trace(1.0).lower()):
            assert re.search(r'stablehlo.sine .*a = "b"', lowered.as_text())
        assert f.eval_shape(1.0).shape == ()

    @pytest.mark.parametrize(
        ("ad_metadata", "found"),
        [("same", ["x", "x"]), ("drop", ["x", None]), ({"tag": "y"}, ["x", "y"])],
    )
    def test_of_the_linear_part_of_a_derivative(self, ad_metadata: Any, found: Any) -> None:
        scale = np.float32(3)
        f = xla_metadata_call2(
            lambda x, y: {"z": primax.lax.sin(x) * scale * y}, {"tag": "x"}, ad_metadata=ad_metadata
        )
        g = lambda x: f(x, y=2.0)["z"]

        def tags(f: Any) -> list[str | None]:
            calls = re.findall(r"= call @.*", primax.jit(f).lower(1.0).as_text())
            tag = re.compile('tag = "(.)"')
            return [m and m[1] for m in map(tag.search, calls)]

        assert tags(g) == ["x"] and tags(primax.grad(g)) == found
        assert tags(lambda x: primax.jvp(g, (x,), (x,))) == ["x"]
        np.testing.assert_allclose(primax.grad(g)(1.0), 6 * np.cos(1), rtol=1e-6)
        np.testing.assert_allclose(primax.hessian(g)(1.0), -6 * np.sin(1), rtol=1e-6)
        xs = np.arange(3, dtype=np.float32)
        np.testing.assert_allclose(primax.vmap(primax.grad(g))(xs), 6 * np.cos(xs), rtol=1e-6)
        with pytest.raises(ValueError, match="'same', 'drop' or a dict"):
            xla_metadata_call2(g, {}, ad_metadata="none")

    def test_of_loops(self) -> None:
        def f(x: Any) -> Any:
            with set_xla_metadata(a="b"):
                return primax.lax.fori_loop(0, 3, lambda i, c: primax.lax.sin(c), x)

        assert 'sine a = "b"' in self.lines(f, 1.0)

    def test_of_gradients_and_batches(self) -> None:
        def f(x: Any) -> Any:
            with set_xla_metadata(a="b"):
                y = primax.lax.sin(x)
            return primax.lax.cos(y)

        assert self.lines(primax.vmap(f), np.ones(2, np.float32)) == ['sine a = "b"']
        assert self.lines(primax.grad(f), 1.0) == [
            'sine a = "b"', 'cosine a = "b"', 'multiply a = "b"'
        ]  # fmt: skip

    def test_of_values(self) -> None:
        def f(x: Any) -> Any:
            return primax.lax.cos(set_xla_metadata(primax.lax.sin(x), a="b"))

        one = np.float32(1)
        assert self.lines(f, one) == self.lines(primax.grad(f), one) == ['sine a = "b"']
        assert self.lines(primax.vmap(f), np.ones(2, np.float32)) == ['sine a = "b"']
        assert float(primax.grad(f)(one)) == pytest.approx(-np.sin(np.sin(1)) * np.cos(1))
        assert set_xla_metadata(3.0, a="b") == 3.0
        assert self.lines(lambda x: set_xla_metadata({"y": [x * 2]}, k=1), 1.0) == [
            'multiply k = "1"'
        ]
        with pytest.raises(TypeError):
            set_xla_metadata("text", a="b")

    def test_of_calls(self) -> None:
        @xla_metadata_call(a="b")
        def f(x: Any) -> Any:
            return primax.lax.sin(x) * 2

        assert self.lines(f, 1.0) == ['call a = "b"']
        assert self.lines(primax.grad(f), 1.0) == ['call a = "b"', 'call a = "b"']
        assert float(primax.grad(f)(1.0)) == pytest.approx(2 * np.cos(1))

    def test_programs_with_other_metadata_are_traced_again_once(self) -> None:
        traces = []

        @primax.jit
        def f(x: Any) -> Any:
            traces.append(None)
            return x + 1

        for _ in range(3):
            with set_xla_metadata(a="b"):
                f(1.0)
            f(1.0)
        assert len(traces) == 2


def test_export_of_a_function_of_the_numpy_layer() -> None:
    import primax.numpy as jnp
    from primax import export

    x = np.ones((2, 3), np.float32)
    exported = export.export(jnp.cos)(x)
    assert exported.fun_name == "cos"
    assert np.array_equal(export.deserialize(exported.serialize()).call(x), jnp.cos(x))


def test_functions_of_symbolic_sizes() -> None:
    import primax.numpy as jnp
    from primax import export, nn

    (a,) = export.symbolic_shape("a")
    spec = primax.ShapeDtypeStruct((a,), np.float32)
    one_hot = export.export(primax.jit(lambda x: nn.one_hot(jnp.arange(3), x.shape[0])))(spec)
    assert one_hot.call(np.ones(4, np.float32)).tolist() == np.eye(3, 4).tolist()
    for shift in (2, -7):
        rolled = export.export(primax.jit(lambda x, s=shift: jnp.roll(x, s)))(spec)
        for n in (1, 5):
            x = np.arange(n, dtype=np.float32)
            assert rolled.call(x).tolist() == np.roll(x, shift).tolist()
