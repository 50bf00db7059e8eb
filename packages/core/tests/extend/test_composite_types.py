"""Values of registered classes that transformations take apart into arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from primax_core import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    eval_shape,
    grad,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    tree_util,
    vjp,
    vmap,
)
from primax_core.extend.traces import register_composite_type


class Pair:
    """Two arrays and a label."""

    def __init__(self, first: Any, second: Any, label: str = "pair") -> None:
        self.first, self.second, self.label = first, second, label


@dataclass(frozen=True)
class Mapped:
    """The mapped axes of both arrays."""

    first: int | None
    second: int | None


@dataclass(frozen=True)
class Labelled:
    label: str

    def restore(self, arrays: Sequence[Any]) -> Any:
        return Pair(*arrays, self.label)

    def resembles(self, other: Any) -> bool:
        return type(other) is Labelled

    def axes(self, spec: Any, of_result: bool) -> Sequence[int | None]:
        return (spec.second, spec.first) if of_result and self.label == "swap" else (
            spec.first, spec.second
        )  # fmt: skip


register_composite_type(Pair, lambda x: (Labelled(x.label), (x.first, x.second)), Mapped)
F32 = np.float32
X = Pair(F32(2), F32(3))


def product(x: Pair) -> Any:
    return x.first * x.second


def values(x: Pair) -> tuple[float, float]:
    assert type(x) is Pair
    return float(x.first), float(x.second)


def test_leaf_of_trees() -> None:
    assert tree_util.tree_leaves({"a": X}) == [X]
    assert tree_util.tree_map(lambda x: x.label, [X]) == ["pair"]


def test_jit_compiles_once_per_composition() -> None:
    traced = []

    @jit
    def f(x: Pair, y: Any) -> Any:
        traced.append(x.label)
        return {"sum": x.first + y, "pair": Pair(x.second, x.first, "swap")}

    for label in ("pair", "pair", "other", "pair"):
        out = f(Pair(F32(2), F32(3), label), 1.0)
        assert float(out["sum"]) == 3 and values(out["pair"]) == (3, 2)
        assert out["pair"].label == "swap"
    assert traced == ["pair", "other"]
    assert float(jit(lambda: product(X))()) == 6


@pytest.mark.parametrize("wrap", [lambda f: f, jit, checkpoint], ids=["eager", "jit", "remat"])
def test_derivatives(wrap: Callable[..., Any]) -> None:
    f = wrap(product)
    assert values(grad(f)(X)) == (3, 2)
    assert [float(v) for v in jvp(f, (X,), (Pair(F32(1), F32(10)),))] == [6, 23]
    out, pull = vjp(wrap(lambda x: Pair(x.second, x.first * 2, "swap")), X)
    assert values(out) == (3, 4)
    (ct,) = pull(Pair(F32(5), F32(7)))  # the label of a cotangent may differ
    assert values(ct) == (14, 5)
    value, linear = linearize(f, X)
    assert float(value) == 6 and float(linear(Pair(F32(1), F32(0)))) == 3
    (ct,) = linear_transpose(wrap(lambda x: x.first * 2 + x.second), X)(1.0)
    assert values(ct) == (2, 1)
    second = jvp(grad(f), (X,), (Pair(F32(1), F32(10)),))[1]
    assert values(second) == (10, 1)


def test_custom_rules() -> None:
    @custom_vjp
    def f(x: Pair, y: Any) -> Any:
        return x.first * y

    f.defvjp(
        lambda x, y: (f(x, y), x),
        lambda x, ct: (Pair(ct * 100, x.second, "ct"), None),
    )
    assert values(grad(f)(X, 2.0)) == (100, 3)
    assert float(grad(f, 1)(X, 2.0)) == 0

    @custom_jvp
    def g(x: Pair) -> Pair:
        return Pair(x.second, x.first)

    g.defjvp(lambda primals, tangents: (g(*primals), Pair(tangents[0].first, F32(0) * 1, "dot")))
    assert values(jvp(g, (X,), (Pair(F32(5), F32(6)),))[1]) == (5, 0)

    h = custom_vjp(lambda x: x.first)
    h.defvjp(lambda x: (x.first, None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match=r"same container .pytree. structure as the args"):
        grad(h)(X)


def test_vmap() -> None:
    batch = Pair(np.arange(3, dtype=F32), np.arange(6, dtype=F32).reshape(2, 3))
    out = vmap(lambda x: x.first + x.second, in_axes=(Mapped(0, 1),))(batch)
    np.testing.assert_array_equal(out, [[0, 3], [2, 5], [4, 7]])
    out = vmap(lambda x: x.first + x.second.sum(), in_axes=Mapped(0, None), axis_size=3)(batch)
    np.testing.assert_array_equal(out, [15, 16, 17])
    both = Pair(np.arange(3, dtype=F32), np.ones(3, F32))
    out = vmap(lambda x: Pair(x.second, x.first, "swap"), out_axes=Mapped(0, 0))(both)
    np.testing.assert_array_equal(out.second, [0, 1, 2])
    with pytest.raises(TypeError, match=r"in_axes must be an int, None, or .nested. container"):
        vmap(product, in_axes=("x",))(both)


def test_loops_and_branches() -> None:
    def step(c: Pair, _: Any) -> tuple[Pair, Any]:
        return Pair(c.first + 1, c.second * 2), c.first

    carry, ys = lax.scan(step, X, None, length=3)
    assert values(carry) == (5, 24) and ys.tolist() == [2, 3, 4]
    last = lax.while_loop(lambda c: c.first < 10, lambda c: step(c, None)[0], X)
    assert values(last) == (10, 3 * 2**8)
    assert values(lax.fori_loop(0, 2, lambda _, c: step(c, None)[0], X)) == (4, 12)
    out = jit(lambda b: lax.cond(b, lambda x: x, lambda x: step(x, None)[0], X))(False)
    assert values(out) == (3, 6)
    assert float(lax.switch(1, [product, lambda x: x.first], X)) == 2
    with pytest.raises(TypeError, match=r"a value of type Labelled.*their types differ"):
        lax.scan(lambda c, _: (Pair(c.first, c.second, "new"), None), X, None, length=3)


def test_staging() -> None:
    jaxpr = make_jaxpr(lambda a, x: x.second * a)(1.0, X)
    assert [str(v.aval) for v in jaxpr.invars] == ["~float32[]", "float32[]", "float32[]"]
    assert jaxpr.debug_info.arg_names == ("a", "x[<flat index 0>]", "x[<flat index 1>]")
    assert eval_shape(product, X).shape == ()
    compiled = jit(lambda x: Pair(x.second, x.first)).lower(X).compile()
    assert values(compiled(X)) == (3, 2)


def test_results_that_are_no_arrays() -> None:
    with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
        jit(lambda x: Pair("text", x.first))(X)
