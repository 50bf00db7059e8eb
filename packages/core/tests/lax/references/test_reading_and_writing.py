"""Reads and writes with indices against NumPy; refused indices and values."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, ref as r

F32 = np.float32
A = np.arange(7 * 3 * 4 * 5, dtype=F32).reshape(7, 3, 4, 5)
SMALL = np.arange(6, dtype=F32).reshape(2, 3)
I2 = np.array([0, 2])
S = slice

# The user's index, and the equivalent index of NumPy if it differs.
INDICES = {
    "all": ((...,), None),
    "nothing": ((), None),
    "int": ((1,), None),
    "negative": ((-1, 0), None),
    "int between": ((S(None), 1, S(None), -2), None),
    "slice": ((S(1, 3),), None),
    "slice to the end": ((S(2, None), S(-2, None)), None),
    "beyond the end": ((S(5, 100),), None),
    "empty": ((S(3, 1),), None),
    "step": ((S(None, None, 2), ..., S(1, None, 3)), None),
    "dots": ((0, ..., 1), None),
    "bool": ((True,), (1,)),
    "window": ((px.ds(1, 3),), (S(1, 4),)),
    "window with stride": ((S(None), S(None), px.ds(1, 2, 2)), (S(None), S(None), S(1, 4, 2))),
    "array": ((I2,), None),
    "negative positions": ((np.array([-1, 2, -7]),), None),
    "array inside": ((S(None), I2), None),
    "arrays together": ((S(None), I2, I2), None),
    "arrays apart": ((S(None), I2, S(None), I2), None),
    "int and array apart": ((0, S(None), I2), None),
    "int and array together": ((S(None), 0, I2), None),
    "array, slice, int": ((I2, S(None), 0), None),
    "table of positions": ((S(None), np.array([[0, 1, 2], [2, 1, 0]])), None),
    "broadcast positions": ((S(None), np.array([[0, 1]]), np.array([[0], [1]])), None),
    "array and slice": ((S(1, 3), I2), None),
    "array and step": ((S(None, None, 2), I2), None),
    "array, then step": ((S(None), I2, S(None, None, 2)), None),
    "small positions": ((np.array([0, 2], np.uint8),), None),
    "mask": ((A[:, 0, 0, 0] > 100,), None),
    "mask of two axes": ((A[:, :, 0, 0] % 40 == 0,), None),
}


@pytest.fixture(params=INDICES, ids=list(INDICES))
def index(request):
    ours, theirs = INDICES[request.param]
    return ours, ours if theirs is None else theirs


class TestIndices:
    def test_reading(self, index):
        ours, theirs = index
        np.testing.assert_array_equal(px.new_ref(A)[ours], A[theirs])
        np.testing.assert_array_equal(px.jit(lambda q: q[ours])(px.new_ref(A)), A[theirs])

    def test_writing(self, index):
        ours, theirs = index
        new = -1 - np.arange(A[theirs].size, dtype=F32).reshape(A[theirs].shape)
        expected = A.copy()
        expected[theirs] = new
        now, later = px.new_ref(A), px.new_ref(A)
        now[ours] = new
        np.testing.assert_array_equal(now[...], expected)
        old = px.jit(lambda q, v: r.swap(q, ours, v))(later, new)
        np.testing.assert_array_equal(old, A[theirs])
        np.testing.assert_array_equal(later[...], expected)

    def test_adding(self, index):
        ours, theirs = index
        more = np.arange(A[theirs].size, dtype=F32).reshape(A[theirs].shape)
        expected = A.copy()
        np.add.at(expected, theirs, more)
        now, later = px.new_ref(A), px.new_ref(A)
        r.addupdate(now, ours, more)
        np.testing.assert_array_equal(now[...], expected)
        px.jit(lambda q, v: r.addupdate(q, ours, v))(later, more)
        np.testing.assert_array_equal(later[...], expected)

    def test_repeated_indices(self):
        q = px.new_ref(SMALL)
        r.addupdate(q, np.array([1, 1]), np.ones((2, 3), F32))
        np.testing.assert_array_equal(q[...], SMALL + F32([[0], [2]]))

    def test_traced_indices(self):
        f = px.jit(lambda q, i: (q[i], q[i, px.ds(i, 2)], q[:, i]))
        for i in (0, 1, -1):
            row, part, column = f(px.new_ref(SMALL), i)
            np.testing.assert_array_equal(row, SMALL[i])
            np.testing.assert_array_equal(column, SMALL[:, i])
            start = min(i % 3, 1)
            np.testing.assert_array_equal(part, SMALL[i, start : start + 2])

    @pytest.mark.parametrize("where", [7, -7])
    def test_traced_indices_out_of_bounds(self, where):
        at = 1 if where > 0 else 0
        f = px.jit(lambda q, i: q[i])
        np.testing.assert_array_equal(f(px.new_ref(SMALL), where), SMALL[at])
        np.testing.assert_array_equal(px.new_ref(SMALL)[np.array([where])], SMALL[[at]])
        q = px.new_ref(SMALL)
        q[np.array([where])] = np.ones((1, 3), F32)
        r.addupdate(q, np.array([where]), np.ones((1, 3), F32))
        np.testing.assert_array_equal(q[...], SMALL)
        px.jit(lambda q, i: r.set(q, i, np.zeros(3, F32)))(q, where)
        np.testing.assert_array_equal(q[at], np.zeros(3))


class TestOperations:
    def test_swap_returns_the_old_value(self):
        q = px.new_ref(SMALL)
        np.testing.assert_array_equal(r.swap(q, 0, np.zeros(3, F32)), SMALL[0])
        np.testing.assert_array_equal(np.asarray(r.swap(q, ..., SMALL))[0], np.zeros(3))
        np.testing.assert_array_equal(r.get(q), SMALL)
        np.testing.assert_array_equal(r.get(q, (1, 2)), SMALL[1, 2])

    def test_operators(self):
        q = px.new_ref(np.zeros(3, F32))
        q[...] += 1.0
        q[0] += 2.0
        q[1:] *= 3.0
        assert q[...].tolist() == [3.0, 3.0, 3.0]
        q.addupdate(np.ones(3, F32))
        q.addupdate(F32(1), 2)
        assert [float(x) for x in q] == [4.0, 4.0, 5.0]

    def test_views(self):
        q = px.new_ref(A)
        view = q.at[1].at[2]
        np.testing.assert_array_equal(view[...], A[1, 2])
        np.testing.assert_array_equal(q.at[1][2, 0], A[1, 2, 0])
        view[0] = np.zeros(5, F32)
        view.set(view.get() + 1.0)
        view.addupdate(np.ones((4, 5), F32))
        expected = A[1, 2].copy()
        expected[0] = 0
        np.testing.assert_array_equal(q[1, 2], expected + 2)
        assert view.shape == (4, 5) and view.dtype == F32

    def test_empty(self):
        q = px.empty_ref(px.ShapeDtypeStruct((2, 3), np.int8))
        assert q.shape == (2, 3) and q.dtype == np.int8 and q[...].shape == (2, 3)
        f = px.jit(lambda x: (lambda e: (r.set(e, ..., x), e[...])[1])(px.empty_ref(x)))
        np.testing.assert_array_equal(f(SMALL), SMALL)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
    def test_dtypes(self, dtype):
        x = lax.convert_element_type(np.array([0, 1, 1]), dtype)
        q = px.new_ref(x)
        q[0] = lax.full((), 1, dtype)
        assert q.dtype == x.dtype and q[...].tolist() == [1, 1, 1]

    def test_the_users_array_is_copied(self):
        mine = np.zeros(3, F32)
        x = px.device_put(np.zeros(3, F32))
        a, b = px.new_ref(mine), px.new_ref(x)
        mine[0] = 9
        before = b[...]
        a[1] = b[1] = 1.0
        b[...] = x
        b[2] = 1.0
        assert a[...].tolist() == [0.0, 1.0, 0.0]
        assert x.tolist() == before.tolist() == [0.0, 0.0, 0.0] and b[2] == 1.0


class TestObject:
    def test_text(self):
        q = px.new_ref(SMALL)
        assert repr(q) == "Ref([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32)"
        assert (q.shape, q.dtype, q.ndim, q.size, len(q)) == ((2, 3), F32, 2, 6, 2)
        assert px.typeof(q) is r.AbstractRef(px.typeof(SMALL))
        assert str(px.typeof(q)) == "Ref{float32[2,3]}"
        assert q.sharding == q[...].sharding
        assert px.block_until_ready(q) is q and px.tree.leaves([q]) == [q]

    def test_classes(self):
        def look(q):
            inside.append((isinstance(q, px.Ref), q.shape, str(px.typeof(q)), repr(q)))
            return q[0]

        inside: list = []
        q = px.new_ref(SMALL)
        px.jit(look)(q)
        px.vmap(look)(q)
        px.grad(lambda x: look(px.new_ref(x)))(SMALL[0])
        assert isinstance(q, px.Ref) and not isinstance(SMALL, px.Ref)
        assert [i[:3] for i in inside] == [
            (True, (2, 3), "Ref{float32[2,3]}"),
            (True, (3,), "Ref{float32[3]}"),
            (True, (3,), "Ref{float32[3]}"),
        ]
        assert inside[0][3] == "JitTracer(Ref{float32[2,3]})"

    def test_types_are_strong(self):
        assert not px.typeof(px.new_ref(1.0)).weak_type and px.new_ref(2).dtype == np.int32
        assert not px.typeof(px.new_ref(1.0)[...]).weak_type
        assert not px.typeof(px.jit(lambda: px.new_ref(1.0)[...])()).weak_type

    def test_copies(self):
        q = px.new_ref(SMALL)
        for other in (copy.copy(q), copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
            other[0] = np.zeros(3, F32)
            np.testing.assert_array_equal(q[...], SMALL)
            assert other[0].tolist() == [0, 0, 0] and px.typeof(other) is px.typeof(q)


def bad_value(change):
    return lambda: change(px.new_ref(SMALL))


REFUSED = {
    "scalar for a row": (bad_value(lambda q: r.set(q, 0, 1.0)), ValueError, "Expected shape: (3,)"),
    "row for all": (
        bad_value(lambda q: r.set(q, ..., np.ones(3, F32))),
        ValueError,
        "Invalid shape for `swap`. Ref shape: (2, 3). Expected shape: (2, 3). Value shape: (3,)",
    ),
    "shape added": (
        bad_value(lambda q: r.addupdate(q, 0, np.ones(4, F32))),
        ValueError,
        "Invalid shape for `addupdate`",
    ),
    "dtype": (
        bad_value(lambda q: r.set(q, (0, 0), 1)),
        ValueError,
        "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32",
    ),
    "dtype added": (
        bad_value(lambda q: r.addupdate(q, (0, 0), 1)),
        ValueError,
        "Invalid dtype for `addupdate`",
    ),
    "out of bounds": (bad_value(lambda q: q[5]), ValueError, "Out of bound indexer: idx=5, dim=2."),
    "far below": (bad_value(lambda q: q[-3]), ValueError, "idx=-3, dim=2"),
    "window": (bad_value(lambda q: q[px.ds(1, 2)]), ValueError, "Out of bound slice: start=1"),
    "too many": (bad_value(lambda q: q[0, 0, 0]), ValueError, "must not be longer than `shape`"),
    "backwards": (bad_value(lambda q: q[::-1]), ValueError, "step >= 1 (found: -1)"),
    "text": (bad_value(lambda q: q["a"]), TypeError, "got 'a' of type str"),
    "list": (bad_value(lambda q: q[[0, 1]]), TypeError, "arrays of integers"),
    "float": (bad_value(lambda q: q[1.0]), TypeError, "indexed with integers"),
    "float array": (bad_value(lambda q: q[np.ones(2)]), TypeError, "must have an integer type"),
    "new axis": (bad_value(lambda q: q[0, None]), IndexError, "cannot be indexed with None"),
    "two dots": (bad_value(lambda q: q[..., ...]), IndexError, "single ellipsis"),
    "mask that does not fit": (
        bad_value(lambda q: q[np.array([True])]),
        IndexError,
        "a mask of shape (1,) does not fit axes of sizes (2,)",
    ),
    "traced mask": (
        lambda: px.jit(lambda m: px.new_ref(SMALL)[m])(np.array([True, False])),
        px.errors.NonConcreteBooleanIndexError,
        "",
    ),
    "traced bounds": (
        lambda: px.jit(lambda i: px.new_ref(SMALL)[i : i + 1])(0),
        TypeError,
        "use ds(start, size)",
    ),
    "ref as index": (bad_value(lambda q: q[px.new_ref(0)]), TypeError, "read it first"),
    "ref as value": (
        bad_value(lambda q: r.set(q, ..., px.new_ref(SMALL))),
        ValueError,
        "write its contents",
    ),
    "large number": (
        lambda: r.set(px.new_ref(np.int32(0)), ..., 2**40),
        OverflowError,
        "too large",
    ),
    "no ref": (lambda: r.get(SMALL, 0), ValueError, "Can only call `ref_get` on a `Ref`"),
    "no ref to swap": (lambda: r.swap(SMALL, 0, 1.0), ValueError, "Can only call `ref_swap`"),
    "no ref to freeze": (lambda: px.freeze(SMALL), ValueError, "Can only call `freeze`"),
    "ref of a tree": (lambda: px.new_ref({"a": 1}), TypeError, "<class 'dict'>"),
    "ref of a ref": (lambda: px.new_ref(px.new_ref(1.0)), TypeError, "give it an array"),
    "empty of a shape": (lambda: px.empty_ref((3,)), TypeError, "needs a shape and a dtype"),
    "memory space": (
        lambda: px.new_ref(1.0, memory_space="vmem"),
        NotImplementedError,
        "inside of a `jit`",
    ),
    "as an array": (
        lambda: lax.sin(px.new_ref(1.0)),
        TypeError,
        "sin got a Ref of type Ref{float32[]} at position 0",
    ),
    "as an array in jit": (
        lambda: px.jit(lambda q: lax.add(1.0, q))(px.new_ref(1.0)),
        TypeError,
        "add got a Ref of type Ref{float32[]} at position 1",
    ),
    "as a NumPy array": (lambda: np.asarray(px.new_ref(1.0)), TypeError, "`ref[...]`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error) as actual:
        call()
    assert text in str(actual.value)


class TestEnds:
    @pytest.mark.parametrize("traced", [False, True])
    @pytest.mark.parametrize("end", [px.freeze, px.free_ref])
    def test_freed_references_are_refused(self, end, traced):
        def use(how):
            def f(x):
                q = px.new_ref(x)
                end(q)
                how(q)
                return x

            with pytest.raises(ValueError, match=f"used after `{end.__name__}`"):
                (px.jit(f) if traced else f)(SMALL)

        use(lambda q: q[0])
        use(lambda q: r.set(q, 0, np.ones(3, F32)))
        use(px.freeze)
        use(px.free_ref)

    def test_values(self):
        assert px.freeze(px.new_ref(F32(2))) == 2
        assert px.free_ref(px.new_ref(1.0)) is None
        assert "ended by `freeze`" in repr((lambda q: (px.freeze(q), q)[1])(px.new_ref(1.0)))

    def test_only_the_creating_function_frees_a_reference(self):
        for end in (px.freeze, px.free_ref):
            with pytest.raises(ValueError, match="only the function that makes a reference"):
                px.jit(lambda q, end=end: end(q))(px.new_ref(1.0))

    def test_the_error_names_the_users_line(self):
        with pytest.raises(ValueError) as actual:
            px.new_ref(SMALL)[9]
        assert actual.traceback[-1].path.name != "staging.py"
        assert any("px.new_ref(SMALL)[9]" in str(e.statement) for e in actual.traceback)
