"""Views of references: one access for a chain of slices and integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_core as px
from primax_core import lax, ref as r

F32 = np.float32
N = 12
START = np.arange(N, dtype=F32)
BLOCK = np.arange(40, dtype=F32).reshape(5, 8)


def equations(fun, *args):
    """The names of the primitives of a function of references, in order."""
    return [e.primitive.name for e in px.make_jaxpr(fun)(*args).eqns]


class TestPrograms:
    def test_constant_indices_are_one_access(self):
        q = px.new_ref(BLOCK)
        assert equations(lambda q: q.at[1:5].at[1:3].get(), q) == ["get"]
        assert equations(lambda q: q.at[1:5].at[1].at[2:6][-1], q) == ["get"]
        assert equations(lambda q: q.at[:, 2:7].at[::2, 1].get(), q) == ["get"]
        assert equations(lambda q: r.get(q.at[1:5], 0), q) == ["get"]
        assert equations(lambda q: r.set(q.at[1:5], 0, START[:8]), q) == ["swap"]
        assert equations(lambda q: r.swap(q.at[1:5], 0, START[:8]), q) == ["swap"]
        assert equations(lambda q: r.addupdate(q.at[1:5], 0, START[:8]), q) == ["addupdate"]

    def test_writes_do_not_read(self):
        q = px.new_ref(BLOCK)

        def write(q):
            q.at[1:5].at[1:3][0, 2:4] = np.ones(2, F32)
            q.at[2].at[1:3].addupdate(np.ones(2, F32))

        jaxpr = px.make_jaxpr(write)(q)
        assert [e.primitive.name for e in jaxpr.eqns] == ["swap", "addupdate"]
        assert [tuple(map(str, e.params["index"])) for e in jaxpr.eqns] == [
            ("integer", "StaticSlice(start=2, size=2, stride=1)"),
            ("integer", "StaticSlice(start=1, size=2, stride=1)"),
        ]

    def test_a_traced_start_is_clamped_to_the_view(self):
        q = px.new_ref(START)
        read = lambda q, i: q.at[2:8].at[px.ds(i, 3)].get()
        assert equations(read, q, np.int32(0)) == ["lt", "add", "select_n", "clamp", "add", "get"]
        for i, first in ((0, 2), (3, 5), (9, 5), (-1, 5), (-6, 2)):
            assert px.jit(read)(q, np.int32(i)).tolist() == [first, first + 1, first + 2]

    def test_axes_that_are_whole_add_nothing(self):
        q = px.new_ref(BLOCK)
        read = lambda q, i, j: q.at[:, 2:6].at[i].at[1:3].get()
        assert equations(read, q, np.int32(0), np.int32(1)) == ["get"]

    def test_arrays_of_positions_are_not_composed(self):
        q = px.new_ref(BLOCK)
        view = q.at[1:5].at[np.array([0, 2])]
        assert type(view.base) is type(view) and view.root is q
        np.testing.assert_array_equal(view.get(), BLOCK[1:5][[0, 2]])
        view.at[:, 0].set(np.full(2, -1, F32))
        view.at[1].addupdate(np.ones(8, F32))
        assert r.swap(view, (0, 1), F32(5)) == 9
        expected = BLOCK.copy()
        expected[[1, 3], 0] = -1
        expected[3] += 1
        expected[1, 1] = 5
        np.testing.assert_array_equal(q[...], expected)


def test_attributes():
    q = px.new_ref(BLOCK)
    view = q.at[1:3].at[0]
    assert view.base is view.root is q
    assert (view.shape, view.ndim, view.dtype) == ((8,), 1, np.float32)
    assert repr(view).startswith("RefView(Ref(")
    assert repr(q.at) == f"RefIndexer({q!r})"


class TestArguments:
    """A view is an argument like its reference."""

    @staticmethod
    def double(view):
        view[...] = view[...] * 2
        return view[...]

    @pytest.mark.parametrize(
        "way", [px.jit, px.checkpoint, lambda f: lambda v: lax.cond(True, f, f, v)]
    )
    @pytest.mark.parametrize("at", [px.ds(1, 2), slice(1, 3), 1, np.array([1, 2])], ids=str)
    def test_of_transformed_functions(self, way, at):
        q, plain = px.new_ref(START), px.new_ref(START)
        np.testing.assert_array_equal(way(self.double)(q.at[at]), self.double(plain.at[at]))
        np.testing.assert_array_equal(q[...], plain[...])

    def test_a_traced_position(self):
        @px.jit
        def add(q, i):
            px.jit(lambda view: view.addupdate(F32(10)))(q.at[i])

        q = px.new_ref(START[:3])
        add(q, 1)
        assert q[...].tolist() == [0.0, 11.0, 2.0]

    def test_types(self):
        q = px.new_ref(START)
        assert px.eval_shape(lambda v: v[...], q.at[1:3]).shape == (2,)
        assert equations(self.double, q.at[1:3]) == ["get", "mul", "swap", "get"]

    def test_of_differentiated_functions(self):
        q = px.new_ref(START)
        f = lambda x, view: x * view[...]
        assert float(px.grad(f)(F32(2), q.at[3])) == 3.0
        assert float(px.grad(px.checkpoint(f))(F32(2), q.at[3])) == 3.0

    def test_two_views_of_a_reference(self):
        q = px.new_ref(START)
        with pytest.raises(ValueError, match="only one reference to a mutable array"):
            px.jit(lambda a, b: a[...] + b[...])(q.at[0], q.at[1])

    def test_vmap_refuses_them(self):
        with pytest.raises(TypeError, match="cannot be mapped along an axis"):
            px.vmap(lambda view: view[...])(px.new_ref(START).at[1:3])


def test_empty_views():
    q = px.new_ref(BLOCK)
    view = q.at[2:2].at[:, 1:3]
    assert view.shape == (0, 2) and view.get().shape == (0, 2)
    view.set(np.zeros((0, 2), F32))
    with pytest.raises(TypeError, match="slice_sizes"):
        px.jit(lambda q, i: q.at[2:2].at[i].get())(q, 0)
    np.testing.assert_array_equal(q[...], BLOCK)


def test_errors_name_the_view():
    q = px.new_ref(START)
    with pytest.raises(ValueError, match=r"Out of bound indexer: idx=6, dim=6"):
        q.at[2:8].at[6]
    with pytest.raises(ValueError, match=r"Out of bound slice: start=4, size=3"):
        q.at[2:8].at[px.ds(4, 3)]
    with pytest.raises(ValueError, match=r"Expected shape: \(2,\)"):
        q.at[2:8].at[1:3].set(np.zeros(3, F32))


@pytest.mark.parametrize("compiled", [False, True])
def test_empty_view_of_a_strided_view(compiled):
    def run(q):
        view = q.at[3:4:3, 0].at[1:1].at[0:0]
        view.addupdate(np.ones(0, F32))
        return view.get()

    q = px.new_ref(BLOCK)
    assert (px.jit(run)(q) if compiled else run(q)).shape == (0,)
    np.testing.assert_array_equal(q[...], BLOCK)


# Random chains against NumPy


@st.composite
def chains(draw):
    """Indices of successive views of 2 axes: for references (of operands) and for NumPy."""
    shape, chain, operands = [5, 8], [], []
    for _ in range(draw(st.integers(1, 4))):
        ours, numpys, sizes = [], [], []
        # A write with a stride is a scatter, which drops positions out of bounds.
        strides, margin = draw(st.sampled_from([((1,), 3), ((1, 2, 3), 0)]))
        for n in shape:
            k = len(operands)
            kind = draw(st.sampled_from(["slice", "whole", "int", "position", "start"]))
            if kind in ("int", "position") and n:
                beyond = 0 if kind == "int" else margin
                i = draw(st.integers(-n - beyond, n - 1 + beyond))
                if kind == "int":
                    ours.append(lambda p, i=i: i)
                else:
                    ours.append(lambda p, k=k: p[k])
                    operands.append(i)
                numpys.append(min(max(i + n if i < 0 else i, 0), n - 1))
            elif kind == "start" and n:
                size = draw(st.integers(1, n))
                stride = draw(st.sampled_from(strides))
                size = min(size, (n - 1) // stride + 1)
                span = (size - 1) * stride + 1
                i = draw(st.integers(-n - 3, n + 3))
                ours.append(lambda p, k=k, size=size, stride=stride: px.ds(p[k], size, stride))
                operands.append(i)
                first = min(max(i + n if i < 0 else i, 0), n - span)
                numpys.append(slice(first, first + span, stride))
                sizes.append(size)
            else:
                start, stop, step = 0, n, 1
                if kind == "slice":
                    start, stop = sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n))))
                    step = draw(st.sampled_from(strides))
                ours.append(lambda p, s=slice(start, stop, step): s)
                numpys.append(slice(start, stop, step))
                sizes.append(len(range(start, stop, step)))
        chain.append((ours, tuple(numpys)))
        shape = sizes
    return chain, np.array(operands, np.int32)


@settings(max_examples=40, deadline=None)
@given(chains(), st.booleans())
def test_random_chains(chain, compiled):
    chain, operands = chain
    part = np.arange(BLOCK.size).reshape(BLOCK.shape)
    for _, index in chain:
        part = part[index]
    shape = np.shape(part)

    def run(q, p):
        view = q
        for ours, _ in chain:
            view = view.at[tuple(e(p) for e in ours)]
        assert view.shape == shape and view.root is q
        old = view.get()
        view.set(old * F32(2))
        view.addupdate(np.ones(shape, F32))
        return old

    q = px.new_ref(BLOCK)
    positions = [px.device_put(i) for i in operands]  # concrete, but not constants
    old = px.jit(run)(q, positions) if compiled else run(q, positions)
    expected = BLOCK.copy()
    np.testing.assert_array_equal(old, expected.ravel()[part])
    expected.ravel()[part] = expected.ravel()[part] * 2 + 1
    np.testing.assert_array_equal(q[...], expected)
