"""``explain``: figures of known programs, lines, histories, pages."""

from __future__ import annotations

import inspect
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core.extend import (
    Primitive,
    RuleState,
    abstract,
    expand,
    known_primitives,
    lower,
    samples,
)
from primax_core.testing import primitives_of
from primax_interpreters import Cost, cost
from primax_interpreters._insight import cost_table as table
from primax_interpreters.insight import explain

F32 = np.float32
X = np.ones((2, 3), F32)
W1, W2 = np.ones((3, 5), F32), np.ones((5, 7), F32)


def chain(x, a, b):
    y = lax.dot(x, a)
    return lax.dot(y, b)


def lines_of(fun):
    """Line numbers of a function's source by their text."""
    text, start = inspect.getsourcelines(fun)
    return {t.strip(): start + i for i, t in enumerate(text)}


@pytest.fixture(scope="module")
def report():
    return explain(chain, X, W1, W2)


# Figures


def test_operations_of_a_chain_of_products_are_exact(report):
    assert report.total.flops == 2 * 2 * 3 * 5 + 2 * 2 * 5 * 7
    assert not (report.total.estimated or report.total.repeated or report.total.unknown)
    assert report.xla_cost["flops"] == report.total.flops


def test_memory_traffic_counts_operands_and_results(report):
    assert report.total.bytes == 4 * (6 + 15 + 10) + 4 * (10 + 35 + 14)


def test_costs_belong_to_lines(report):
    at = lines_of(chain)
    result = {ln.number: s.flops for ln, s in report.lines.items()}
    assert result == {at["y = lax.dot(x, a)"]: 60, at["return lax.dot(y, b)"]: 140}
    (first, _) = report.lines
    assert first.text == "return lax.dot(y, b)" and first.short.startswith("test_explain.py:")
    assert first.function == "chain"


def test_the_size_of_the_program(report):
    assert report.equations == 2
    assert report.tally.primitives["dot_general"].equations == 2


def flops(fun, *args):
    return explain(fun, *args).total


def compared(fun, *args):
    """Our count, and XLA's of the program before optimisation."""
    ours = flops(fun, *args)
    lowered = px.jit(fun).lower(*args).cost_analysis()
    return ours.flops, lowered.get("flops", 0), ours.special, lowered.get("transcendentals", 0)


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (lambda x: x + x * x - x, (X,)),
        (lambda x: lax.max(x, lax.neg(x)), (X,)),
        (lambda x: lax.reduce_sum(x, (0, 1)), (X,)),
        (lambda x: lax.reduce_max(x, (0,)), (X,)),
        (lambda x: lax.exp(lax.sin(x)), (X,)),
        (lambda x: lax.integer_pow(x, 3), (X,)),
        (lambda x: lax.reshape(lax.transpose(x, (1, 0)), (6,)), (X,)),
        (lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ()))), (X,)),
    ],
)
def test_counts_are_those_of_xla(fun, args):
    ours, xla, special, transcendentals = compared(fun, *args)
    assert (ours, special) == (xla, transcendentals)


def test_convolutions_count_as_products_with_each_window():
    x, k = np.ones((2, 3, 8, 8), F32), np.ones((4, 3, 2, 2), F32)
    result = flops(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID"), x, k)
    assert result.flops == 2 * (2 * 4 * 7 * 7) * (3 * 2 * 2) and not result.estimated


def test_integers_are_not_floats():
    assert flops(lambda x: x * x + x, np.ones(4, np.int32)).flops == 0


def test_complex_numbers_count_as_the_real_ones_they_are_made_of():
    z = np.ones(4, np.complex64)
    assert flops(lambda x: x * x + x, z).flops == 4 * (6 + 2)
    assert flops(lambda x: lax.dot(x, x), z).flops == 8 * 4


def test_parts_of_arrays_move_what_they_take():
    x, i = np.ones(10_000, F32), np.int32(3)
    report = explain(lambda x, i: lax.dynamic_slice(x, (i,), (4,)), x, i)
    assert report.tally.primitives["dynamic_slice"].bytes == 2 * 16 + 4
    report = explain(lambda x, i: lax.dynamic_update_slice(x, np.ones(4, F32), (i,)), x, i)
    assert report.tally.primitives["dynamic_update_slice"].bytes == 2 * 16 + 4


# Programs within programs


def test_scans_count_as_often_as_they_run():
    def run(x):
        return lax.scan(lambda c, t: (c * t + c, None), x, np.ones((50, 3), F32))[0]

    result = flops(run, X)
    assert result.flops == 50 * 2 * 6 and not result.repeated


def test_loops_of_unknown_length_count_one_step_and_say_so():
    def run(x):
        return lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] * 2.0, c[1]), (x, x))

    report = explain(run, F32(1))
    assert report.total.repeated and report.total.flops == 2
    assert "+ holds a loop whose number of steps is unknown" in str(report)
    assert "2+" in str(report)


def test_conditionals_count_their_dearest_branch_and_say_so():
    def run(p, x):
        return lax.cond(p, lambda y: y * y * y, lambda y: y, x)

    result = flops(run, True, X)
    assert result.flops == 12 and result.estimated


def test_calls_count_each_time():
    inner = px.jit(lambda x: x * x)
    report = explain(lambda x: inner(inner(x)), X)
    assert report.total.flops == 12
    assert report.tally.depth == 2 and report.equations == 4


def test_derivatives_and_checkpoints_are_looked_into():
    fun = px.checkpoint(lambda x: lax.reduce_sum(lax.dot(x, W1), (0, 1)))
    assert flops(px.grad(fun), X).flops >= 2 * 2 * 3 * 5


# Rules


def test_every_primitive_can_be_estimated():
    """Each rule takes the types and parameters of the primitive's samples."""
    primitives_of(px.lax)
    asked = 0
    for prim in primitives_of(px.lax):
        if prim.state_of(samples) is not RuleState.PRESENT:
            continue
        rule = prim.require(cost)
        for sample in prim.rules[samples]():
            if sample.raises is not None or sample.call is not None:
                continue
            avals = [px.typeof(_value(o)) for o in sample.operands]
            out = prim.require(abstract)(*avals, **sample.params)
            outs = list(out) if prim.multiple_results else [out]
            result = rule(avals, outs, **sample.params)
            assert result.flops is None or result.flops >= 0, (prim.name, sample)
            assert result.bytes is None or result.bytes >= 0
            asked += 1
    assert asked > 300


def _value(operand):
    shape = getattr(operand, "shape", None)
    return np.zeros(shape, operand.dtype) if shape is not None else operand


def test_the_table_names_primitives():
    primitives_of(px.lax)
    primitives_of(px._transform)
    primitives_of(px._engine)
    known = {p.name for p in known_primitives()}
    assert set(table._TABLE) - known <= {"name", "call_exported", "inspect_sharding"}


def twice(name):
    prim = Primitive(name)
    prim.rule(abstract)(lambda x: x)
    prim.rule(lower)(lambda ctx, x: ctx.call(lambda a: a + a, x))
    return prim


def test_rules_of_others():
    prim = twice("priced")
    result = flops(prim.bind, X)
    assert result.flops == 6 and result.estimated
    prim.rule(cost)(lambda ins, outs, **_: Cost(flops=100, special=7, bytes=11))
    result = flops(prim.bind, X)
    assert (result.flops, result.special, result.bytes, result.estimated) == (100, 7, 11, False)


def test_primitives_of_others_with_an_expansion():
    prim = twice("exchanged")
    prim.rule(expand)(lambda x: lax.dot(x, W1 @ W2))
    prim = Primitive("expanded")
    prim.rule(expand)(lambda x: x * x + x)
    assert flops(prim.bind, X).flops == 12


def test_primitives_of_others_that_have_our_names():
    prim = twice("dot_general")
    assert flops(prim.bind, X).flops == 6


def test_parameters_that_describe_themselves():
    class Blocks:
        def explain_lines(self):
            return ["halves", "grid: 2", "operand: float32[3]"]

    prim = Primitive("blocked")
    prim.rule(abstract)(lambda x, *, blocks: x)
    prim.rule(lower)(lambda ctx, x, *, blocks: ctx.call(lambda a: a + a, x))
    blocks = Blocks()

    def both(x):
        return px.jit(lambda y: prim.bind(prim.bind(y, blocks=blocks), blocks=blocks))(x)

    report = explain(both, X)
    (described,) = report.described
    assert (described.primitive, described.count, described.title) == ("blocked", 2, "halves")
    assert "blocked halves at test_explain.py:" in str(report) and ", 2 times" in str(report)
    assert "    grid: 2\n    operand: float32[3]" in str(report)
    assert "operand: float32[3]</pre>" in report.to_html()


# Memory


def test_the_peak_of_memory_and_where_it_is():
    def run(x):
        big = lax.broadcast_in_dim(x, (100, 2, 3), (1, 2))
        bigger = lax.exp(big)
        small = lax.reduce_sum(bigger, (0,))
        return small * small

    report = explain(run, X)
    assert report.peak.line.number == lines_of(run)["bigger = lax.exp(big)"]
    assert report.peak.bytes == 4 * (6 + 600 + 600)
    assert {h.bytes for h in report.peak.held} == {24, 2400}
    assert report.memory.arguments == 24 and report.memory.results == 24


def test_memory_of_loops_is_counted_within():
    def run(x):
        return lax.scan(
            lambda c, _: (lax.reduce_sum(lax.broadcast(c, (1000,)), (0,)), None), x, None, length=3
        )[0]

    peak = explain(run, X).peak
    assert 24_000 <= peak.bytes < 25_000


# The compiled program


def test_kernels_and_the_lines_they_come_from():
    def run(x):
        y = lax.sin(x) * 2.0
        z = lax.dot(y, W1)
        return lax.exp(z)

    report = explain(run, X)
    at = lines_of(run)
    assert report.kernels
    lines = {ln.number for k in report.kernels for ln in k.lines}
    assert lines == {
        at["y = lax.sin(x) * 2.0"], at["z = lax.dot(y, W1)"], at["return lax.exp(z)"],
    }  # fmt: skip
    computed = {name for k in report.kernels for name in k.operations}
    assert {"sine", "dot", "exponential"} <= computed
    sine = next(k for k in report.kernels if "sine" in k.operations)
    assert sine.kind == "loop fusion" and sine.times == 1


def test_kernels_of_loops_run_as_often():
    def run(x):
        return lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=9)[0]

    report = explain(run, X)
    assert 9 in {k.times for k in report.kernels if "sine" in k.operations}


def test_scopes_of_kernels():
    def run(x):
        with px.named_scope("outer"):
            return lax.sin(x)

    assert any("outer" in s for k in explain(run, X).kernels for s in k.scopes)


# What happened


def test_what_happened_and_what_did_not():
    number = float(np.random.default_rng().random())
    fun = px.jit(lambda x: lax.sin(x) * number)
    first = {p.name: p for p in explain(fun, X).phases}
    assert first["trace"].what == "traced" and first["trace"].seconds > 0
    assert first["lower"].what.startswith("lowered") and first["compile"].what == "compiled by XLA"
    second = {p.name: p for p in explain(fun, X).phases}
    assert all(p.seconds is None for p in second.values())
    assert "was in memory" in second["compile"].what


def test_a_call_after_it_compiles_nothing():
    fun = px.jit(lambda x: lax.sin(x))
    explain(fun, X)
    assert fun._cache_size() == 1
    fun(X)
    assert fun._cache_size() == 1


# Histories


def test_the_first_signature_has_no_reason():
    report = explain(px.jit(lambda x: x), X)
    assert report.changes == () and len(report.signatures) == 1


def reason(first, second, **options):
    """Differences of the second call's signature from the first one's."""

    def fun(x, n=1):
        return x

    jitted = px.jit(fun, **options)
    jitted(*first)
    report = explain(jitted, *second)
    assert [s.current for s in report.signatures] == [False, True]
    return [(c.what, c.property, c.before, c.now) for c in report.changes]


def test_reasons_by_property():
    assert reason((X,), (X[:1],)) == [("x", "shape", "(2, 3)", "(1, 3)")]
    assert reason((X,), (X.astype(np.int32),)) == [("x", "dtype", "float32", "int32")]
    assert reason((F32(1),), (1.0,)) == [("x", "weak type", "False", "True")]
    assert reason(({"a": X},), ({"a": X[:1]},)) == [("x['a']", "shape", "(2, 3)", "(1, 3)")]
    (change,) = reason((X,), ([X],))
    assert change[:2] == ("the arguments", "structure")
    assert reason((X, 1), (X, 2), static_argnums=1) == [
        ("static argument 1", "static value", "1", "2")
    ]


def test_configuration_as_a_reason():
    jitted = px.jit(lambda x: x)
    jitted(X)
    with px.default_matmul_precision("float32"):
        (change,) = explain(jitted, X).changes
    assert change.what == "option default_matmul_precision" and change.property == "configuration"
    assert change.before == "None" and "float32" in change.now.lower()


def test_the_closest_signature_is_compared_with():
    jitted = px.jit(lambda x, y: x + y)
    jitted(X, X)
    jitted(X.astype(np.int32), X.astype(np.int32))
    report = explain(jitted, X[:1], X[:1])
    assert {c.property for c in report.changes} == {"shape"}


def test_a_signature_that_is_known():
    jitted = px.jit(lambda x: x)
    jitted(X)
    jitted(X[:1])
    report = explain(jitted, X)
    assert [s.current for s in report.signatures] == [True, False]
    assert "because of x: a new shape, (1, 3), previously (2, 3)" in str(report)


# Text and pages


def test_the_text(report):
    text = str(report)
    assert text.startswith(f"chain {__file__}:")
    for part in ("dot_general", "140", "70 %", "return lax.dot(y, b)", "Kernels", "Memory"):
        assert part in text
    assert max(map(len, text.splitlines())) < 160
    assert repr(report) == "<Report on chain: print it, or write it with to_html>"


class Page(HTMLParser):
    """Checks that tags are closed in order, and that nothing is fetched."""

    VOID = frozenset(("meta", "br", "link", "img", "path", "rect"))

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        assert tag not in ("link", "img", "iframe")
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(report, tmp_path):
    path = tmp_path / "report.html"
    text = report.to_html(path)
    assert path.read_text("utf-8") == text
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert {"svg", "table", "style", "script", "rect"} <= set(page.seen)
    assert "http" not in text and "@import" not in text and "url(" not in text
    assert "return lax.dot(y, b)" in text


def test_the_fragment_for_notebooks(report):
    page = Page()
    page.feed(report._repr_html_())
    assert page.open == [] and page.seen[0] == "div"


def test_what_users_write_is_escaped():
    def run(x):
        with px.named_scope("<b>&"):
            return lax.select(x < 3.0, x, x)  # "<script>" & more

    text = explain(run, X).to_html()
    assert "<b>" not in text.replace("<b>2", "").split("<section>", 1)[1]
    assert "&lt;script&gt;" in text


def test_boxes_of_the_picture_do_not_overlap():
    def run(x):
        parts = [lax.sin(x * float(i)) for i in range(7)]
        total = parts[0]
        for p in parts[1:]:
            total = total + p
        return total, parts[3]

    drawing = explain(run, X).drawing
    drawing.svg()
    layers: dict[int, list] = {}
    for node in drawing.nodes:
        layers.setdefault(node.layer, []).append(node)
        assert all(above.layer < node.layer for above in node.above)
    for nodes in layers.values():
        nodes.sort(key=lambda n: n.x)
        for a, b in pairwise(nodes):
            assert a.x + a.width / 2 < b.x - b.width / 2


def test_large_programs_are_drawn_by_scopes():
    def run(x):
        for i in range(8):
            with px.named_scope(f"layer{i}"):
                for _ in range(50):
                    x = lax.sin(x) + x
        for _ in range(600):
            x = x * 1.5
        return x

    report = explain(run, X)
    assert report.equations == 1400
    labels = [n.label for n in report.drawing.nodes]
    assert [f"layer{i}" for i in range(8)] == [n for n in labels if n.startswith("layer")]
    assert len(labels) <= 62
    assert len(report.to_html()) < 200_000


# Arguments


def test_shapes_in_place_of_arrays():
    shape = px.ShapeDtypeStruct((2, 3), F32)
    assert explain(chain, shape, W1, W2).total.flops == 200


def test_keywords_statics_and_donations():
    jitted = px.jit(lambda x, n, y=None: x * n + y, static_argnames="n", donate_argnums=0)
    report = explain(jitted, X, n=3, y=X)
    assert report.total.flops == 12
    assert report.memory.aliased == 24


def test_constants_that_are_large():
    big = px.device_put(np.ones((3, 500), F32))
    assert explain(lambda x: lax.dot(x, big), X).total.flops == 2 * 2 * 3 * 500


def test_callbacks_have_unknown_costs():
    struct = px.ShapeDtypeStruct((2, 3), F32)
    report = explain(lambda x: px.pure_callback(np.sin, struct, x) + x, X)
    assert report.total.unknown and report.total.flops == 6


def test_bad_input():
    with pytest.raises(TypeError, match="callable"):
        explain(3)
    with pytest.raises(TypeError, match="cannot be used inside a function"):
        px.jit(lambda x: explain(chain, x, W1, W2))(X)
    with pytest.raises(TypeError, match="abstract array"):
        explain(lambda x: x, "text")
    with pytest.raises(TypeError, match="required positional argument"):
        explain(chain, X)


def test_references_count_what_they_read_and_write():
    def run(x):
        ref = px.new_ref(x)
        ref[...] = ref[...] * x
        return ref[...]

    report = explain(run, X)
    assert report.total.flops == 6
    assert report.tally.primitives["get"].bytes == 2 * (2 * 24)
