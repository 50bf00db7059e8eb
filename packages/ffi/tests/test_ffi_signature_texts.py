"""Signatures as texts, and in comments of headers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ffi_library import library, path

from primax_core import jit
from primax_ffi import Signature, ffi_call, load_library, register_ffi_target
from primax_ffi._signature_text import declared_signatures, signature_of_text

X = np.arange(6, dtype=np.float32).reshape(2, 3)
PAIR = "f32[... n], f32[n] -> f32[... n], f32[... n]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[b n], f32[n] -> f32[b n]", Signature(["f32[b n]", "f32[n]"], "f32[b n]")),
        (PAIR, Signature(["f32[... n]", "f32[n]"], ["f32[... n]"] * 2)),
        (
            "T[4,n];eps:f32,axes : i64 [],name: str->[T[n]]",
            Signature(["T[4 n]"], ["T[n]"], {"eps": "f32", "axes": "i64[]", "name": "str"}),
        ),
        ("f32, bf16[] -> f32, aliases {0: 0}", Signature(["f32", "bf16"], "f32", None, {0: 0})),
        (
            "f32[n], i8[m] -> i8[m], f32[n], aliases {1: 0, 0: 1}",
            Signature(["f32[n]", "i8[m]"], ["i8[m]", "f32[n]"], None, {1: 0, 0: 1}),
        ),
        ("; n: u64 -> i32[4]", Signature([], "i32[4]", {"n": "u64"})),
        ("-> i32[4]", Signature([], "i32[4]")),
        ("f32[n] -> []", Signature(["f32[n]"], [])),
        ("f32[b\n n] ->\n f32[n]", Signature(["f32[b n]"], "f32[n]")),
    ],
)
def test_texts(text, expected):
    assert signature_of_text(text) == expected
    if not expected.attrs and not expected.aliases:
        assert signature_of_text(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("f32[b n, f32[n] -> f32", "the sizes of an array lack the closing ']'", 3),
        ("f32[b n] f32 -> f32", "'->' is expected before the types of the results", 9),
        ("f32[n] -> f33[n]", "'f33' in the signature's 'f33[n]' is not a dtype", 10),
        ("f32[b n] -> f32[m]", "contains ['m'], which no operand contains", 0),
        ("f32[n]; eps f32 -> f32[n]", "':' is expected between the name of an attribute", 12),
        ("f32[n]; eps: f32, eps: f32 -> f32", "the attribute 'eps' is declared twice", 18),
        ("f32[n]; eps: g32 -> f32", "'g32' in the signature's 'g32' is not a dtype", 13),
        ("f32[n]; eps: i64[ -> f32", "']' is expected after the dtype of an array", 18),
        ("f32[n]; -> f32", "the name of an attribute is expected", 8),
        ("f32[n]", "'->' is expected", 6),
        ("", "the type of an array is expected", 0),
        ("f32[n] -> f32[n],", "the type of an array is expected", 17),
        ("f32[n] -> [f32[n]", "']' is expected after the types of the results", 17),
        ("f32[n] -> [f32[n]], f32", "the type of a result, or aliases", 20),
        ("f32[n] -> f32[n] f32", "'f32' is not expected here", 17),
        ("f32[n] -> f32[n], aliases {0}", "':' is expected between an operand and a result", 28),
        ("f32[n] -> f32[n], aliases {a: 0}", "the number of an operand is expected", 27),
        ("f32[n] -> f32[n], aliases {0: 1}", "the alias 0: 1", 0),
        ("f32[n!] -> f32", "the size 'n!'", 0),
        ("f32[n] -> f32[n ...]", "... may be in front only", 10),
        ("f32[n],\n  f33[n]\n -> f32", "'f33' in the signature's 'f33[n]' is not a dtype", 2),
    ],
)
def test_errors_have_a_caret(text, problem, column):
    with pytest.raises(ValueError, match=r"^signature: ") as caught:
        signature_of_text(text)
    message, line, caret = str(caught.value).split("\n")
    assert problem in message
    assert line[2:] in text.split("\n") and caret == " " * (column + 2) + "^"


HEADER = """\
#pragma once
// Kernels of acme.
// primax: acme_norm(f32[b n], f32[n]; eps: f32) -> f32[b n], aliases {0: 0}
int unrelated(int primax);  // primax: acme_first(f32[n]) -> f32[]

/* primax: acme_pair(f32[n],
 *                   f32[n]) ->
 *   f32[n], f32[n] */
/// primax: acme_none(;
///    n: i64) -> f32[4]
int acme_none();
"""


def test_headers(tmp_path):
    expected = {
        "acme_norm": Signature(
            ["f32[b n]", "f32[n]"], "f32[b n]", {"eps": "f32"}, {0: 0}
        ),
        "acme_first": Signature(["f32[n]"], "f32"),
        "acme_pair": Signature(["f32[n]", "f32[n]"], ["f32[n]", "f32[n]"]),
        "acme_none": Signature([], "f32[4]", {"n": "i64"}),
    }  # fmt: skip
    assert declared_signatures(HEADER) == expected
    (tmp_path / "acme.h").write_text(HEADER)
    assert declared_signatures(tmp_path / "acme.h") == expected


@pytest.mark.parametrize(
    ("text", "line", "problem", "shown"),
    [
        ("\n\n// primax: f() -> f33", 3, "'f33' .* is not a dtype", "// primax: f() -> f33"),
        ("// primax: f(f32[n],\n//   f33[n]) -> f32", 2, "'f33'", "//   f33[n]) -> f32"),
        ("// primax: f(f32[n])\nint f();", 1, "'->' is expected", "// primax: f(f32[n])"),
        ("/* primax: f(f32[n]) */ int f();", 1, "'->' is exp", "/* primax: f(f32[n]) */ int f();"),
        ("/* primax: f(f32[n\n", 1, "closing ']'", "/* primax: f(f32[n"),
        ("// primax: (f32) -> f32", 1, "the name of a function", "// primax: (f32) -> f32"),
        ("// primax: f f32 -> f32", 1, r"'\(' is expected", "// primax: f f32 -> f32"),
        ("// primax: f(f32; -> f32", 1, "an attribute is", "// primax: f(f32; -> f32"),
        ("// primax: f() -> f32\n// primax: f() -> i32", 2, "'f' has another signature in line 1",
         "// primax: f() -> i32"),
    ],
)  # fmt: skip
def test_errors_in_headers(tmp_path, text, line, problem, shown):
    header = tmp_path / "acme.h"
    header.write_text(text)
    with pytest.raises(ValueError, match=problem) as caught:
        declared_signatures(header)
    message, source, caret = str(caught.value).split("\n")
    assert message.startswith(f"{header}:{line}: ") and source[2:] == shown
    assert caret.strip() == "^" and len(caret) <= len(source) + 1


def test_headers_without_declarations(tmp_path):
    (tmp_path / "acme.h").write_text("int f();\n")
    with pytest.raises(ValueError, match=r"acme\.h contains no signatures: declare each function"):
        declared_signatures(tmp_path / "acme.h")
    with pytest.raises(FileNotFoundError):
        declared_signatures(tmp_path / "other.h")


DECLARED_PAIR = f"// primax: acme_declared_pair({PAIR.replace(' ->', ') ->')}"


def test_libraries_with_headers(tmp_path):
    header = tmp_path / "acme.h"
    header.write_text(DECLARED_PAIR)
    for signatures in (header, str(header), DECLARED_PAIR):
        load_library(path(), signatures=signatures)
        total, product = jit(ffi_call("acme_declared_pair"))(X, X[0])
        assert np.asarray(total).tolist() == (X + X[0]).tolist()
        assert np.asarray(product).tolist() == (X * X[0]).tolist()
    load_library(path(), ["acme_declared_pair"], signatures=header)
    with pytest.raises(TypeError, match="takes 2 operands, but the call has 1"):
        ffi_call("acme_declared_pair")(X)
    targets = {"acme_texts_pair": "acme_declared_pair"}
    load_library(path(), targets, signatures={"acme_texts_pair": PAIR})
    assert len(ffi_call("acme_texts_pair")(X, X[0])) == 2


def test_headers_next_to_the_library(tmp_path, monkeypatch):
    (tmp_path / "acme.so").symlink_to(Path(path()))
    (tmp_path / "acme.h").write_text(DECLARED_PAIR)
    load_library(tmp_path / "acme.so", signatures="acme.h")
    with pytest.raises(FileNotFoundError, match=r"other\.h"):
        load_library(tmp_path / "acme.so", signatures="other.h")


def test_functions_that_headers_do_not_declare():
    for symbols, signatures, kind, text in (
        (None, None, TypeError, r"lacks the names of functions: pass symbols=.* or signatures="),
        (None, {}, TypeError, "lacks the names of functions"),
        (["acme_declared_pai"], DECLARED_PAIR, ValueError,
         r"of \['acme_declared_pai'\] are not declared in the text .* did you mean 'acme_decl"),
        (None, "// primax: acme_missing() -> f32", AttributeError, "no function 'acme_missing'"),
        (["acme_declared_pair"], {"other": PAIR}, ValueError, r"signatures of \['other'\]"),
        (["acme_declared_pair"], 3, TypeError, "signatures is 3: it is a header"),
        (["acme_declared_pair"], {"acme_declared_pair": "f32 f32"}, ValueError, "'->' is exp"),
    ):  # fmt: skip
        with pytest.raises(kind, match=text):
            load_library(path(), symbols, signatures=signatures)


def test_registration_with_a_text():
    handler = library().acme_declared_pair
    register_ffi_target("acme_texts_two", handler, signature=PAIR)
    assert len(ffi_call("acme_texts_two")(X, X[0])) == 2
    with pytest.raises(ValueError, match="is registered with another signature"):
        register_ffi_target("acme_texts_two", handler, signature="f32[n] -> f32[n]")


@pytest.mark.parametrize(
    "text",
    [
        "032[n] -> f32[n]",
        "a[n] -> f32[n]",
        "timedelta64[n] -> f32[n]",
        "f32[²] -> f32[²]",
        "f32[٣] -> f32[٣]",
        f"f32[{2**63}] -> f32[{2**63}]",
    ],
)
def test_numbers_that_are_none(text):
    with pytest.raises(ValueError, match=r"signature: .*\n"):
        register_ffi_target("acme_number", library().acme_scale, signature=text)


def test_mutated_texts():
    """A text is a signature, or a ``ValueError`` says what is wrong."""
    random = np.random.default_rng(0)
    texts = [
        "// primax: f(f32[b n], f32[n]; eps: f32, axes: i64[] -> f32[b n], aliases {0: 0}",
        "/* primax: f(T[... n],\n *  i32[4];) -> [T[... n], f32] */\n/// primax: g() -> []\n",
    ]
    marks = " \t\n\r[](){},;:->.*/_09abfT²٣\0\x85\u2028"
    errors = 0
    for i in range(1000):
        text = texts[i % 2]
        for _ in range(random.integers(1, 5)):
            start, stop = sorted(random.integers(0, len(text), 2).tolist())
            new = [text[start:stop] * 2, marks[random.integers(len(marks))], ""][random.integers(3)]
            text = text[:start] + new + text[stop if random.integers(2) else start + 1 :]
        try:
            declared_signatures("// primax: h(f32) -> f32\n" + text)
        except ValueError:
            errors += 1
    assert 500 < errors < 1000
