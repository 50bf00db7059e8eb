"""Arrays and jaxprs in notebooks."""

import html.parser
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._runtime import array_html
from primax_core._runtime.array import ArrayImpl


class Balanced(html.parser.HTMLParser):
    """Fails for elements that are not closed in order, and collects the cells of tables."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)
        self.text.append(data)


def parsed(text):
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    return parser


DTYPES = {d: getattr(ml_dtypes, d) for d in ("bfloat16", "int4")}


def shown(x):
    page = parsed(x._repr_html_())
    return "".join(page.text).split("\n")[0], page.rows


def test_matrix_has_the_type_the_device_and_a_table():
    head, rows = shown(px.device_put(np.arange(6, dtype=np.float32).reshape(2, 3) / 4))
    assert head == "f32[2,3] · 24 bytes · cpu:0"
    assert rows == [["0", "1", "2"], ["0", "0", "0.25", "0.5"], ["1", "0.75", "1", "1.25"]]


def test_long_axes_show_both_ends():
    head, rows = shown(px.device_put(np.arange(2000, dtype=np.int32).reshape(100, 20)))
    assert head == "i32[100,20] · 7.812 KiB · cpu:0"
    assert rows[0] == ["0", "1", "2", "3", "…", "16", "17", "18", "19"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "3", "…", "96", "97", "98", "99"]
    assert rows[-1][-1] == "1999" and set(rows[5][1:]) == {"…"}


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (np.float32(1.5), "1.5"),
        (np.zeros((0, 3), np.int8), "[]"),
        (np.ones((1, 1, 2), np.int16), "[[[1 1]]]"),
    ],
)
def test_arrays_without_a_table_show_text(x, text):
    page = parsed(px.device_put(x)._repr_html_())
    assert "".join(page.text).split("\n")[1] == text and page.rows == []


def test_scalars_of_python_are_weakly_typed():
    assert shown(lax.add(px.device_put(1), 1))[0] == "i32[] · weakly typed · 4 bytes · cpu:0"


@pytest.mark.parametrize("dtype", ["bool", "complex64", "bfloat16", "int4", "uint8"])
def test_values_of_all_kinds(dtype):
    x = px.device_put(np.array([1, 0, 1], DTYPES.get(dtype, dtype)))
    _, rows = shown(x)
    assert rows[0] == ["0", "1", "2"] and len(rows[1]) == 3


def test_deleted_arrays():
    x = px.device_put(np.ones(3, np.float32)) + 0
    x.delete()
    text = "".join(parsed(x._repr_html_()).text)
    assert text == "f32[3] · deleted\nArray has been deleted with shape=float32[3]."


def test_values_that_are_not_copied(monkeypatch):
    monkeypatch.setattr(array_html, "MOST_BYTES", 8)
    x = px.device_put(np.ones(3, np.float32))
    assert "are not copied" not in x._repr_html_()
    monkeypatch.setattr(ArrayImpl, "_value", property(lambda self: pytest.fail("was copied")))
    devices = type("Sharding", (), {"is_fully_addressable": True, "_devices": [Gpu()]})()
    spec = type("Spec", (), {"aval": px.typeof(x), "sharding": devices})()
    fake = type("Fake", (), {"_spec": spec, "nbytes": 12})()
    assert "are not copied from the device" in array_html._values(fake)
    devices.__class__.is_fully_addressable = devices.__class__.is_fully_replicated = False
    assert "Other processes have a part" in array_html._values(fake)


class Gpu:
    platform = "gpu"


def test_jaxpr_has_colored_parts_and_its_text():
    def f(x):
        return px.jit(lambda y: lax.sin(y) * 2.0)(x)

    jaxpr = px.make_jaxpr(f)(np.ones(3, np.float32))
    text = jaxpr._repr_html_()
    style, _, body = text.partition("</style>")
    assert "".join(parsed(body.removesuffix("</div>")).text) == str(jaxpr)
    spans = re.findall(r'<span class="(\w+)">(.*?)</span>', body)
    assert {("keyword", "let"), ("type", "f32[3]"), ("primitive", "sin")} <= {*spans}
    assert ("keyword", "lambda") in spans and "name=&lt;lambda&gt;" in body
    for kind, _ in spans:
        assert f".primax-jaxpr .{kind} {{ color:" in style
    assert "@media (prefers-color-scheme: dark)" in style and "[data-theme=light]" in style


def test_source_lines_of_a_jaxpr_are_colored():
    from primax_core._ir.jaxpr_html import jaxpr_html

    text = px.make_jaxpr(lax.sin)(1.0).pretty_print(source_info=True)
    assert '<span class="line"> # ' in jaxpr_html(text)


def test_import_loads_nothing_for_notebooks():
    code = (
        "import sys, primax_core as px; px.make_jaxpr(px.lax.sin)(1.0); repr(px.lax.sin(1.0))\n"
        "print([m for m in sys.modules if m.endswith('_html')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
