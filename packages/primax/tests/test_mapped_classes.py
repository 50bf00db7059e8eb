"""``register_vmappable``: classes that ``vmap`` splits and joins by functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import primax
from primax import lax
from primax.interpreters import batching


class Named:
    """An array whose axes have names; no pytree."""

    def __init__(self, names: str, data: Any) -> None:
        self.names = names
        self.data = data


@dataclass(frozen=True)
class Spec:
    name: str
    axis: int


@dataclass(frozen=True)
class Size:
    """A number of examples that is no integer."""

    n: int


def to_elt(cont: Callable[..., Any], iota: Callable[[], Any], value: Named, spec: Spec) -> Named:
    return Named(value.names.replace(spec.name, ""), cont(value.data, spec.axis))


def from_elt(cont: Callable[..., Any], size: Any, example: Named, spec: Spec) -> Named:
    names = example.names[: spec.axis] + spec.name + example.names[spec.axis :]
    return Named(names, cont(size, example.data, spec.axis))


DATA = np.arange(6, dtype=np.float32).reshape(2, 3)
I, J = Spec("i", 0), Spec("j", 1)


@pytest.fixture
def named() -> Iterator[Callable[..., None]]:
    registered = []

    def register(cls: type = Named, size: type = int, iota: Any = None, **functions: Any) -> None:
        split, join = functions.get("to_elt", to_elt), functions.get("from_elt", from_elt)
        batching.register_vmappable(cls, Spec, size, split, join, iota)
        registered.append(cls)

    register()
    yield register
    for cls in set(registered):
        batching.unregister_vmappable(cls)


def doubled(x: Named) -> Named:
    return Named(x.names, x.data * 2)


def test_values_of_a_class(named: Any) -> None:
    out = primax.vmap(doubled, in_axes=I, out_axes=Spec("i", 1), axis_size=2)(Named("ij", DATA))
    assert out.names == "ji" and np.array_equal(out.data, 2 * DATA.T)
    scaled = primax.vmap(
        lambda x, s: {"a": Named(x.names, x.data * s), "b": s},
        in_axes=(I, 0),
        out_axes={"a": I, "b": 0},
    )(Named("ij", DATA), np.float32([3, 5]))
    assert np.array_equal(scaled["a"].data, DATA * [[3], [5]]) and scaled["a"].names == "ij"
    assert np.array_equal(scaled["b"], [3, 5])
    made = primax.vmap(lambda s: Named("k", s * np.ones(4, np.float32)), out_axes=I)(np.arange(2.0))
    assert made.names == "ik" and np.array_equal(made.data, [[0] * 4, [1] * 4])
    same = primax.vmap(lambda s: Named("k", np.ones(4, np.float32)), out_axes=I)(np.arange(2.0))
    assert same.data.shape == (2, 4)


@pytest.mark.parametrize("wrapped", [primax.jit, lambda f: f, primax.checking_leaks])
def test_nested_maps_under_transformations(named: Any, wrapped: Any) -> None:
    def total(data: Any) -> Any:
        inner = primax.vmap(doubled, in_axes=I, out_axes=I, axis_size=2)
        outer = primax.vmap(inner, in_axes=J, out_axes=J, axis_size=3)
        return lax.reduce_sum(lax.square(outer(Named("ij", data)).data), (0, 1))

    if wrapped is primax.checking_leaks:
        with primax.checking_leaks():
            assert total(DATA) == 4 * (DATA**2).sum()
    else:
        assert np.array_equal(wrapped(primax.grad(total))(DATA), 8 * DATA)


def test_collectives_and_indices(named: Any) -> None:
    def split(cont: Any, iota: Any, value: Named, spec: Spec) -> Any:
        return cont(value.data, spec.axis) + 10 * iota()

    named(to_elt=split)
    f = primax.vmap(
        lambda x: (x, lax.psum(x, "q"), lax.axis_index("q")),
        in_axes=I, out_axes=(0, None, 0), axis_size=2, axis_name="q",
    )  # fmt: skip
    x, total, index = f(Named("ij", DATA))
    assert np.array_equal(x, DATA + [[0], [10]]) and np.array_equal(total, DATA.sum(0) + 10)
    assert np.array_equal(index, [0, 1])


def test_sizes_of_another_class(named: Any) -> None:
    named(size=Size, iota=lambda size: np.arange(size.n))
    out = primax.vmap(doubled, in_axes=I, out_axes=J, axis_size=Size(2))(Named("ij", DATA))
    assert np.array_equal(out.data, 2 * DATA.T)
    with pytest.raises(TypeError, match="axis_size is a str, for which register_vmappable"):
        primax.vmap(doubled, in_axes=I, axis_size="2")(Named("ij", DATA))


def test_classes_in_each_other(named: Any) -> None:
    class Pair:
        def __init__(self, first: Any, second: Any) -> None:
            self.parts = first, second

    named(
        Pair,
        to_elt=lambda cont, iota, value, spec: Pair(*(cont(p, spec) for p in value.parts)),
        from_elt=lambda cont, size, x, spec: Pair(*(cont(size, p, spec) for p in x.parts)),
    )
    pair = Pair(Named("ij", DATA), Named("i", DATA[:, 0]))
    out = primax.vmap(lambda p: Pair(*map(doubled, p.parts)), I, I, axis_size=2)(pair)
    assert [p.names for p in out.parts] == ["ij", "i"]
    assert np.array_equal(out.parts[1].data, 2 * DATA[:, 0])


def test_pytrees_are_mapped_by_their_functions(named: Any) -> None:
    @primax.tree_util.register_pytree_node_class
    class Tree(Named):
        def tree_flatten(self) -> Any:
            return (self.data,), self.names

        @classmethod
        def tree_unflatten(cls, names: str, leaves: Any) -> Tree:
            return cls(names, *leaves)

    x = Tree("ij", DATA)
    assert primax.vmap(lambda x: x)(x).names == "ij"
    named(Tree, to_elt=lambda cont, iota, value, spec: cont(value.data, 1) + len(value.names))
    assert np.array_equal(primax.vmap(lambda x: x, axis_size=3)(x), DATA.T + 2)


def test_none_and_integers_reach_the_functions(named: Any) -> None:
    named(
        to_elt=lambda cont, iota, x, spec: Named(x.names, cont(x.data, spec)),
        from_elt=lambda cont, size, x, spec: Named(x.names, cont(size, x.data, spec)),
    )
    x = Named("ij", DATA)
    assert np.array_equal(primax.vmap(doubled, -1, -1, axis_size=3)(x).data, 2 * DATA)
    assert primax.vmap(doubled, None, None, axis_size=5)(x).data.shape == (2, 3)
    assert primax.vmap(doubled, None, 1, axis_size=5)(x).data.shape == (2, 5, 3)
    with pytest.raises(ValueError, match="None as the axis of a result that is mapped"):
        primax.vmap(doubled, 0, None, axis_size=2)(x)
    with pytest.raises(ValueError, match="axis 7 is out of bounds"):
        primax.vmap(doubled, 0, 7, axis_size=2)(x)


def test_errors(named: Any) -> None:
    x = Named("ij", DATA)
    with pytest.raises(ValueError, match="vmap maps 5 examples, but to_elt maps axis 0"):
        primax.vmap(doubled, in_axes=I, out_axes=I, axis_size=5)(x)
    with pytest.raises(ValueError, match="axis_size must be specified"):
        primax.vmap(doubled, in_axes=I, out_axes=I)(x)
    with pytest.raises(ValueError, match="axis_size` argument was 3"):
        primax.vmap(lambda x, y: y, in_axes=(I, 0), axis_size=3)(x, np.ones(2))
    with pytest.raises(TypeError, match=r"in_axes has Spec.* for an array of type float32\[2\]"):
        primax.vmap(lambda y: y, in_axes=I)(np.ones(2))
    with pytest.raises(TypeError, match=r"out_axes has Spec.*belongs to values of class Named"):
        primax.vmap(lambda y: y, out_axes=I)(np.ones(2))
    with pytest.raises(TypeError, match="maps values of class Array itself"):
        batching.register_vmappable(primax.Array, Spec, int, to_elt, from_elt, None)
    with pytest.raises(TypeError, match="takes a class as spec_type"):
        batching.register_vmappable(Named, 3, int, to_elt, from_elt, None)  # type: ignore[arg-type]


def test_unregistered_classes() -> None:
    with pytest.raises(KeyError):
        batching.unregister_vmappable(Named)
    with pytest.raises(TypeError, match="in_axes must be an int"):
        primax.vmap(doubled, in_axes=I)
    assert np.array_equal(primax.vmap(lambda x: x, axis_size=2)(np.ones(2)), [1, 1])
