"""References in loops and conditionals; refused aliases."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import primax_core as px
from primax_core import lax, ref as r
from test_support import assert_close

F32 = np.float32
X3 = np.array([1.0, 2.0, 3.0], F32)
SMALL = np.arange(6, dtype=F32).reshape(2, 3)

EACH_WAY = pytest.mark.parametrize("wrap", [lambda f: f, px.jit], ids=["eager", "jit"])


close = partial(assert_close, rtol=2e-5, atol=1e-6)


def total(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


class TestScan:
    @EACH_WAY
    @pytest.mark.parametrize("unroll", [1, 2, True])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_reads_writes_and_sums(self, wrap, unroll, reverse):
        read, written, summed = px.new_ref(X3), px.new_ref(np.zeros(4, F32)), px.new_ref(F32(0))

        def body(c, x):
            i, v = x
            written[i] = v * read[1]
            summed[...] += written[i]
            return c + 1.0, summed[...]

        xs = (np.arange(4), np.arange(4, dtype=F32))
        f = wrap(lambda xs: lax.scan(body, F32(0), xs, reverse=reverse, unroll=unroll))
        c, ys = f(xs)
        expected = np.arange(4) * 2.0
        sums = np.cumsum(expected[::-1])[::-1] if reverse else np.cumsum(expected)
        assert float(c) == 4.0
        close(ys, sums)
        close(written[...], expected)
        close(read[...], X3)
        assert float(summed[...]) == 12.0

    @EACH_WAY
    def test_references_of_the_body(self, wrap):
        def body(c, x):
            q = px.new_ref(c)
            q[0] = x
            return q[...] * 2.0, q[1]

        c, ys = wrap(lambda c, xs: lax.scan(body, c, xs))(X3, X3)
        close(c, [6, 16, 24])
        close(ys, [2, 4, 8])

    @EACH_WAY
    def test_scanned_references(self, wrap):
        q = px.new_ref(SMALL)

        def body(c, row):
            row[0] = c
            return c + row[1], row[...]

        c, ys = wrap(lambda q: lax.scan(body, F32(10), q))(q)
        close(ys, [[10, 1, 2], [11, 4, 5]])
        close(q[...], ys)
        assert float(c) == 15.0
        close(lax.map(lambda row: row[2], q), [2, 5])

    def test_derivatives(self):
        def with_refs(x):
            q = px.new_ref(x)

            def body(c, i):
                q[i] = lax.sin(q[i]) * c
                return c * q[i], q[0]

            c, ys = lax.scan(body, F32(1), np.arange(3))
            return c + total(ys) + total(q[...])

        def without(x):
            def body(c, i):
                c, v = c
                new = lax.sin(lax.dynamic_index_in_dim(v, i, 0, False)) * c
                v = lax.dynamic_update_index_in_dim(v, new, i, 0)
                return (c * new, v), lax.index_in_dim(v, 0, 0, False)

            (c, v), ys = lax.scan(body, (F32(1), x), np.arange(3))
            return c + total(ys) + total(v)

        for wrap in (px.grad, px.jacfwd, px.hessian, lambda f: px.jit(px.grad(px.jit(f)))):
            close(wrap(with_refs)(X3), wrap(without)(X3))
        batch = np.stack([X3, X3 * 2])
        close(px.vmap(px.grad(with_refs))(batch), px.vmap(px.grad(without))(batch))

    @EACH_WAY
    def test_plumbing(self, wrap):
        steps = px.new_ref(np.int32(0))
        scale = px.new_ref(F32(2))

        def f(x):
            def body(c, _):
                steps[...] += 1
                return c * x * scale[...], None

            return lax.scan(body, F32(1), length=3)[0]

        assert float(wrap(px.grad(f))(F32(1))) == 24.0
        assert int(steps[...]) == 3

    def test_values_that_are_read_are_residuals_of_each_step(self):
        q = px.new_ref(F32(1))

        def f(x):
            def body(c, _):
                q[...] += 1.0
                return lax.sin(c * q[...] * x), None

            return lax.scan(body, F32(1), length=3)[0]

        def g(x):
            c = F32(1)
            for k in (2.0, 3.0, 4.0):
                c = lax.sin(c * k * x)
            return c

        close(px.grad(f)(F32(0.3)), px.grad(g)(F32(0.3)))
        q[...] = F32(1)
        close(px.grad(px.checkpoint(f))(F32(0.3)), px.grad(g)(F32(0.3)))
        assert float(q[...]) == 4.0

    @EACH_WAY
    def test_sums_are_computed_once_per_step(self, wrap):
        q = px.new_ref(F32(0))

        def f(x, w):
            def body(c, _):
                r.addupdate(q, ..., F32(1))
                return c * lax.sin(w) * x, None

            return lax.scan(body, F32(1), length=3)[0]

        wrap(px.grad(f))(F32(2), F32(1))
        assert float(q[...]) == 3.0

    @EACH_WAY
    @pytest.mark.parametrize("axis", [0, 1])
    def test_mapped_and_scanned(self, wrap, axis):
        start = np.arange(12, dtype=F32).reshape(2, 2, 3)
        q = px.new_ref(start)

        def f(q):
            return lax.scan(lambda c, row: (r.set(row, 0, c), (c + 1, row[1]))[1], F32(10), q)[1]

        out = wrap(px.vmap(f, in_axes=axis))(q)
        close(out, np.moveaxis(start, axis, 0)[:, :, 1])
        close(np.moveaxis(np.asarray(q[...]), axis, 0)[:, :, 0], [[10, 11], [10, 11]])

    @EACH_WAY
    def test_mapped(self, wrap):
        q = px.new_ref(SMALL)

        def f(q, x):
            return lax.scan(
                lambda c, i: (r.addupdate(q, i, x), (c, q[i]))[1], F32(0), np.arange(3)
            )[1]

        out = wrap(px.vmap(f))(q, np.array([10, 20], F32))
        close(out, SMALL + F32([[10], [20]]))
        close(q[...], out)

    def test_disabled_jit(self):
        q = px.new_ref(F32(0))
        with px.disable_jit():
            lax.scan(lambda c, x: (r.addupdate(q, ..., x), (c, None))[1], 0, X3)
            lax.fori_loop(0, 2, lambda i, c: (r.addupdate(q, ..., F32(i)), c)[1], 0)
            lax.cond(True, lambda: r.addupdate(q, ..., F32(1)), lambda: None)
        assert float(q[...]) == 8.0


class TestWhile:
    @EACH_WAY
    def test_condition_and_body_share_a_reference(self, wrap):
        q = px.new_ref(X3)

        def f(n):
            return lax.while_loop(
                lambda i: q[0] < n, lambda i: (r.addupdate(q, 0, q[1]), i + 1)[1], 0
            )

        assert int(wrap(f)(F32(8))) == 4
        close(q[...], [9, 2, 3])

    @EACH_WAY
    def test_a_condition_that_writes(self, wrap):
        asked, turns = px.new_ref(np.int32(0)), px.new_ref(np.int32(0))

        def test(i):
            asked[...] += 1
            return (i < 3) & (turns[...] < 100)

        def body(i):
            turns[...] += asked[...]
            return i + 1

        assert int(wrap(lambda: lax.while_loop(test, body, 0))()) == 3
        assert (int(asked[...]), int(turns[...])) == (4, 6)

    def test_derivatives(self):
        def f(x):
            q = px.new_ref(x)
            lax.while_loop(lambda i: i < 3, lambda i: (r.set(q, i, q[i] * q[0]), i + 1)[1], 0)
            return total(q[...])

        close(f(X3), 1 + 2 + 3)
        # x0^2 + x1 x0^2 + x2 x0^2
        close(px.jvp(f, (X3,), (X3,))[1], 2 + 6 + 9)
        close(px.jacfwd(f)(X3), [12, 1, 1])
        with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
            px.grad(f)(X3)

    @EACH_WAY
    def test_plumbing(self, wrap):
        count = px.new_ref(np.int32(0))

        def f(x):
            def body(c):
                count[...] += 1
                return c[0] + 1, c[1] * x

            return lax.while_loop(lambda c: c[0] < 3, body, (0, F32(1)))[1]

        assert float(wrap(lambda x: px.jvp(f, (x,), (F32(1),)))(F32(2))[1]) == 12.0
        assert float(px.linearize(f, F32(2))[1](F32(1))) == 12.0
        assert int(count[...]) == 6

    @EACH_WAY
    def test_mapped_with_different_lengths(self, wrap):
        q = px.new_ref(np.zeros((3, 2), F32))

        def f(q, n):
            return lax.while_loop(
                lambda i: i < n, lambda i: (r.addupdate(q, 0, F32(1)), i + 1)[1], 0
            )

        assert wrap(px.vmap(f))(q, np.array([2, 0, 5])).tolist() == [2, 0, 5]
        close(q[:, 0], [2, 0, 5])
        shared = px.new_ref(F32(0))
        with pytest.raises(ValueError, match="unbatched array reference"):
            px.vmap(lambda n: lax.while_loop(
                lambda i: i < n, lambda i: (r.addupdate(shared, ..., F32(1)), i + 1)[1], 0
            ))(np.array([2, 0, 5]))  # fmt: skip

    @EACH_WAY
    def test_fori_loop(self, wrap):
        q = px.new_ref(X3)
        f = wrap(lambda n: lax.fori_loop(0, n, lambda i, c: (r.addupdate(q, i, F32(1)), c)[1], 0))
        f(2)
        close(q[...], [2, 3, 3])
        lax.fori_loop(0, 3, lambda i, c: (r.addupdate(q, i, F32(1)), c)[1], 0)
        close(q[...], [3, 4, 4])


class TestCond:
    @EACH_WAY
    def test_branches_read_and_write(self, wrap):
        a, b = px.new_ref(X3), px.new_ref(SMALL)

        def first():
            a[0] = b[0, 1]
            return a[1]

        def second():
            b[1] = a[...]
            return b[0, 2]

        f = wrap(lambda p: lax.cond(p, first, second))
        assert float(f(False)) == 2.0
        close(b[1], X3)
        close(a[...], X3)
        assert float(f(True)) == 2.0
        close(a[...], [1, 2, 3])

    @EACH_WAY
    def test_switch_with_operands(self, wrap):
        q = px.new_ref(X3)
        branches = [lambda q: q[0], lambda q: (r.set(q, 1, F32(9)), q[1])[1], lambda q: q[2] * 2.0]
        f = wrap(lambda i, q: lax.switch(i, branches, q))
        assert [float(f(i, q)) for i in (2, 1, 7, 0)] == [6.0, 9.0, 6.0, 1.0]
        close(q[...], [1, 9, 3])

    def test_derivatives(self):
        def f(x):
            q = px.new_ref(x)
            y = lax.cond(
                q[0] > 0, lambda: (r.set(q, 0, q[1]), q[1])[1], lambda: q[2]
            )  # fmt: skip
            return y * total(q[...])

        for wrap in (px.grad, px.jacfwd, lambda g: px.jit(px.grad(px.jit(g)))):
            close(wrap(f)(X3), [0, 11, 2])
            close(wrap(f)(-X3), [-3, -3, -9])
        batch = np.stack([X3, -X3])
        close(px.vmap(px.grad(f))(batch), [[0, 11, 2], [-3, -3, -9]])

    @EACH_WAY
    def test_mapped_predicates_select_the_written_values(self, wrap):
        q = px.new_ref(SMALL)
        f = lambda q, p: lax.cond(p, lambda: (r.set(q, 0, F32(9)), q[1])[1], lambda: q[2])
        close(wrap(px.vmap(f))(q, np.array([True, False])), [1, 5])
        close(q[...], [[9, 1, 2], [3, 4, 5]])
        one = px.new_ref(X3)
        with pytest.raises(ValueError, match="unbatched array reference"):
            px.vmap(lambda p: f(one, p))(np.array([True, False]))


ref_of = lambda: px.new_ref(X3)


def returned(call):
    return call, "mutable array references cannot be returned"


REFUSED = {
    "jit": (
        lambda: (lambda q: px.jit(lambda a, b: a[0] + b[0])(q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "jit tree": (
        lambda: (lambda q: px.jit(lambda d: d["a"][0])({"a": q, "b": q}))(ref_of()),
        "appeared at both d['a'] and d['b']",
    ),
    "jit closure": (
        lambda: (lambda q: px.jit(lambda a: a[0] + q[0])(q))(ref_of()),
        "was both closed over and passed as the argument a",
    ),
    "jit inside": (
        lambda: px.jit(lambda q: px.jit(lambda a, b: a[0])(q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "jit inside closure": (
        lambda: px.jit(lambda q: px.jit(lambda a: a[0] + q[0])(q))(ref_of()),
        "closed over and passed as the argument a",
    ),
    "vmap": (
        lambda: (lambda q: px.vmap(lambda a, b: a[...])(q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "checkpoint": (
        lambda: (lambda q: px.checkpoint(lambda a, b: a[...])(q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "make_jaxpr": (
        lambda: (lambda q: px.make_jaxpr(lambda a, b: a[...])(q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "cond": (
        lambda: (lambda q: lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], q, q))(ref_of()),
        "appeared at both a and b",
    ),
    "cond closure": (
        lambda: (lambda q: lax.cond(True, lambda a: q[0], lambda a: a[0], q))(ref_of()),
        "closed over and passed as the argument a",
    ),
    "scan closure": (
        lambda: (lambda q: lax.scan(lambda c, x: (c, q[0] + x[...]), 0, q))(ref_of()),
        "closed over and passed as the argument x",
    ),
    "result of jit": returned(lambda: px.jit(lambda x: {"v": px.new_ref(x)})(X3)),
    "argument of jit": returned(lambda: px.jit(lambda q: q)(ref_of())),
    "closure of jit": returned(lambda: (lambda q: px.jit(lambda: q)())(ref_of())),
    "result of make_jaxpr": returned(lambda: px.make_jaxpr(px.new_ref)(X3)),
    "carry": returned(lambda: lax.scan(lambda c, x: (c, x), ref_of(), X3)),
    "new carry": returned(lambda: lax.scan(lambda c, x: (px.new_ref(c), x), F32(0), X3)),
    "scanned result": returned(lambda: lax.scan(lambda c, x: (c, px.new_ref(x)), F32(0), X3)),
    "while": returned(lambda: lax.while_loop(lambda c: False, lambda c: c, ref_of())),
    "fori_loop": returned(lambda: lax.fori_loop(0, 3, lambda i, c: c, ref_of())),
    "branch": returned(lambda: lax.cond(True, lambda q: q, lambda q: q, ref_of())),
}


class TestAliases:
    @pytest.mark.parametrize("name", REFUSED)
    def test_refused(self, name):
        call, text = REFUSED[name]
        with pytest.raises(ValueError) as actual:
            call()
        assert text in str(actual.value) and "Ref{float32" in str(actual.value)

    def test_errors_name_the_source_of_a_returned_reference(self):
        for f, where in (
            (lambda q: q, "passed in as the argument q"),
            (lambda q: px.new_ref(q[...]), "created on line"),
            (lambda q: OTHER, "closed over by the function"),
        ):
            with pytest.raises(ValueError, match=where):
                px.jit(f)(ref_of())

    @pytest.mark.parametrize("transform", [px.grad, px.vmap], ids=["grad", "vmap"])
    def test_results_of_transformed_functions(self, transform):
        with pytest.raises(TypeError, match="cannot be its result: return what it holds"):
            transform(px.new_ref)(X3 if transform is px.vmap else F32(1))

    def test_a_leaked_reference(self):
        leaked: list = []
        px.jit(lambda x: leaked.append(px.new_ref(x)))(X3)
        for use in (lambda q: q[0], lambda q: r.set(q, 0, F32(1))):
            with pytest.raises(px.errors.UnexpectedTracerError, match="RefTracer"):
                use(leaked[0])

    def test_the_check_is_optional(self):
        q = ref_of()
        with _off():
            f = px.jit(lambda a, b: (r.set(a, 0, F32(9)), b[0])[1])
            assert float(f(q, q)) == 9.0
        close(q[...], [9, 2, 3])


class _off:
    def __enter__(self):
        px.config.update("mutable_array_checks", False)

    def __exit__(self, *exc):
        px.config.update("mutable_array_checks", True)


OTHER = px.new_ref(X3)
