"""Reads and writes under ``jvp`` and ``vmap`` keep their index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import primax_core as px
from primax_core import lax, ref as r
from primax_core.extend import walk

F32 = np.float32
SHAPE = (4, 5, 6)
START = np.arange(120, dtype=F32).reshape(SHAPE)


def steps(q):
    q[1] = q[0]
    r.addupdate(q, 2, q[0])
    return r.swap(q, 3, q[1])


def lines(fun, *args):
    return str(px.make_jaxpr(fun)(*args)).splitlines()[1:-1]


class TestPrograms:
    def test_tangents(self):
        q, dq = px.new_ref(START), px.new_ref(START)
        assert [x.strip() for x in lines(lambda q, dq: px.jvp(steps, (q,), (dq,)), q, dq)] == [
            "c:f32[5,6] <- a[0,:,:]",
            "d:f32[5,6] <- b[0,:,:]",
            "a[1,:,:] <- c",
            "b[1,:,:] <- d",
            "e:f32[5,6] <- a[0,:,:]",
            "f:f32[5,6] <- b[0,:,:]",
            "a[2,:,:] += e",
            "b[2,:,:] += f",
            "g:f32[5,6] <- a[1,:,:]",
            "h:f32[5,6] <- b[1,:,:]",
            "i:f32[5,6], a[3,:,:] <- a[3,:,:], g",
            "j:f32[5,6], b[3,:,:] <- b[3,:,:], h",
        ]

    def test_a_value_without_tangent_clears_the_tangent_of_its_part(self):
        q, dq = px.new_ref(START), px.new_ref(START)
        write = lambda q: (r.set(q, (0, 0, 0), F32(3)), r.addupdate(q, (1, 1, 1), F32(3)))[0]
        assert [x.strip() for x in lines(lambda q, dq: px.jvp(write, (q,), (dq,)), q, dq)] == [
            "a[0,0,0] <- 3.0:f32[]",
            "c:f32[] = broadcast_in_dim 0.0:f32[]",
            "b[0,0,0] <- c",
            "a[1,1,1] += 3.0:f32[]",
        ]

    @pytest.mark.parametrize("dim", range(3))
    def test_batches(self, dim):
        q = px.new_ref(START)
        equations = [
            x.strip() for x in lines(px.vmap(steps, in_axes=dim, out_axes=max(dim - 1, 0)), q)
        ]
        rows = [f"a[:,{i},:]" if dim == 0 else f"a[{i},:,:]" for i in range(4)]
        shape = np.delete(SHAPE, 0 if dim else 1)
        kind = f"f32[{','.join(map(str, shape))}]"
        assert equations == [
            f"b:{kind} <- {rows[0]}",
            f"{rows[1]} <- b",
            f"c:{kind} <- {rows[0]}",
            f"{rows[2]} += c",
            f"d:{kind} <- {rows[1]}",
            f"e:{kind}, {rows[3]} <- {rows[3]}, d",
        ]

    def test_a_batch_of_positions(self):
        at = np.arange(4)
        names = lambda f, *args: [e.primitive.name for e in px.make_jaxpr(f)(*args).eqns]
        assert names(px.vmap(lambda q, i: q[i]), px.new_ref(START), at)[-1] == "get"
        table = px.new_ref(START)
        assert names(px.vmap(lambda i: table[i]), at)[-1] == "get"
        assert "dynamic_slice" not in names(
            px.vmap(lambda q, i: q[px.ds(i, 2)]), px.new_ref(START), at
        )

    def test_loops(self):
        def loop(q):
            def body(i, c):
                q[i] = q[i] * c
                r.addupdate(q, i, c)
                return c * F32(0.5)

            return lax.fori_loop(0, 3, body, F32(1))

        n = 1000
        q, dq, qs = (px.new_ref(np.ones(s, F32)) for s in (n, n, (4, n)))
        for jaxpr in (
            px.make_jaxpr(lambda q, dq: px.jvp(loop, (q,), (dq,)))(q, dq),
            px.make_jaxpr(px.vmap(loop))(qs),
        ):
            results = [v.aval.shape for e in walk(jaxpr) for v in e.outvars]
            assert (n,) not in results and (4, n) not in results


def test_tangent_references_of_integers():
    q = px.new_ref(np.arange(3))
    out = px.jvp(lambda x: (r.set(q, 0, 5), x * q[0])[1], (F32(2),), (F32(1),))
    assert [float(x) for x in out] == [10.0, 5.0] and int(q[0]) == 5


@pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])
def test_values_of_other_types_are_refused(wrap):
    q, dq = px.new_ref(START), px.new_ref(START)
    f = wrap(lambda q: r.set(q, 0, np.zeros(5, F32)))
    with pytest.raises(ValueError, match=r"Expected shape: \(5, 6\). Value shape: \(5,\)"):
        px.jvp(f, (q,), (dq,))
    with pytest.raises(ValueError, match=r"Expected shape: \(6,\). Value shape: \(5,\)"):
        px.vmap(f)(q)


@pytest.mark.parametrize("i", [-9, -4, -1, 0, 3, 9])
@pytest.mark.parametrize("write", [r.set, r.addupdate])
def test_positions_out_of_bounds_are_clamped(i, write):
    q = px.new_ref(START[0])
    px.vmap(lambda q, i: write(q, i, F32(500)))(q, np.array([i, i, 1, 2, 3]))
    expected = START[0].copy()
    for row, at in enumerate([i, i, 1, 2, 3]):
        at = min(max(at + 6 if at < 0 else at, 0), 5)
        expected[row, at] = 500 + (expected[row, at] if write is r.addupdate else 0)
    np.testing.assert_array_equal(q[...], expected)


# Random indices: a batch against a loop over its examples

KINDS = ("int", "position", "batched", "slice", "step", "start", "batched start", "array",
         "batched array")  # fmt: skip


@st.composite
def indices(draw):
    """An index of an array of two axes, as a function of the operands of one example."""
    entries, operands, lengths = [], [], draw(st.integers(1, 2))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(2)]
    for kind, n in zip(kinds, (4, 5)):
        k = len(operands)
        batched = kind.startswith("batched")
        number = st.integers(-n - 2, n + 2) if "array" not in kind else st.integers(0, n - 1)
        if "array" in kind:
            number = st.lists(number, min_size=lengths, max_size=lengths, unique=True)
        value = draw(st.lists(number, min_size=3, max_size=3) if batched else number)
        if kind in ("position", "batched", "array", "batched array"):
            operands.append((np.array(value, np.int32), batched))
            entries.append(lambda p, k=k: p[k])
        elif kind in ("start", "batched start"):
            operands.append((np.array(value, np.int32), batched))
            size, stride = draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (n, 1)]))
            entries.append(lambda p, k=k, s=size, t=stride: px.ds(p[k], s, t))
        else:
            i = draw(st.integers(0, n - 1))
            fixed = {"int": i, "slice": slice(i, n), "step": slice(0, n, 2)}[kind]
            entries.append(lambda p, fixed=fixed: fixed)
    return lambda p: tuple(e(p) for e in entries), operands


@settings(max_examples=60, deadline=None)
@given(indices(), st.sampled_from([0, 1, 2, None]), st.booleans())
def test_random_indices(index, dim, of_tangents):
    index, operands = index
    values = [px.device_put(x) for x, _ in operands]
    axes = [0 if b else None for _, b in operands]
    x = np.arange(60, dtype=F32).reshape(3, 4, 5)
    rows = [
        [v[k] if a == 0 else v for v, a in zip([o for o, _ in operands], axes)] for k in range(3)
    ]
    if dim is None and not any(b for _, b in operands):
        return

    def run(q, p):
        if dim is None:
            return [q[index(p)]]
        old = q[index(p)]
        r.set(q, index(p), old * F32(2) + F32(1))
        r.addupdate(q, index(p), old)
        return [old, r.swap(q, index(p), old * F32(3)), q[index(p)]]

    run = px.jit(run)
    whole = x[0] if dim is None else np.moveaxis(x, 0, dim)
    q = px.new_ref(whole)
    if of_tangents and dim is not None:
        # In the contents, all of it is linear up to a constant.
        dq = px.new_ref(whole * 2)
        batched = px.vmap(run, in_axes=(dim, axes))
        out, dots = px.jvp(lambda q: batched(q, values), (q,), (dq,))
    else:
        out, dots, dq = px.vmap(run, in_axes=(dim, axes))(q, values), None, None
    outs, lasts = [], []
    for k in range(3):
        own = px.new_ref(x[0] if dim is None else x[k])
        outs.append(run(own, [px.device_put(v) for v in rows[k]]))
        lasts.append(np.asarray(own[...]))
    for j, o in enumerate(out):
        np.testing.assert_array_equal(o, np.stack([np.asarray(one[j]) for one in outs]))
    if dim is not None:
        np.testing.assert_array_equal(np.moveaxis(np.asarray(q[...]), dim, 0), np.stack(lasts))
    if dots is not None:
        at_zero = [px.new_ref(np.zeros((4, 5), F32)) for _ in range(3)]
        offsets = [run(own, [px.device_put(v) for v in row]) for own, row in zip(at_zero, rows)]
        for j, (o, dot) in enumerate(zip(out, dots)):
            zero = np.stack([np.asarray(one[j]) for one in offsets])
            np.testing.assert_array_equal(dot, 2 * (np.asarray(o) - zero))
        zero = np.stack([np.asarray(own[...]) for own in at_zero])
        tangent = np.moveaxis(np.asarray(dq[...]), dim, 0)
        np.testing.assert_array_equal(tangent, 2 * (np.stack(lasts) - zero))


@pytest.mark.parametrize("name", ["start", "size", "stride"])
def test_slices_of_values_that_are_no_integers(name):
    for value in ("a", 1.5):
        message = f"ds\\(start, size, stride\\): {name} must be an integer or a scalar array"
        with pytest.raises(TypeError, match=message):
            px.ds(**{"start": 0, "size": 3, name: value})
