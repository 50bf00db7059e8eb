"""Signatures: declared with the registration, checked while tracing."""

from __future__ import annotations

import numpy as np
import pytest
from ffi_library import library, path

from primax_core import ShapeDtypeStruct as S, export, jit, lax, make_jaxpr, vmap
from primax_ffi import Signature, ffi_call, load_library, register_ffi_target

F32 = np.dtype(np.float32)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROW = np.float32([1, 2, 3])

PAIR = Signature(["f32[... n]", "f32[n]"], ["f32[... n]", "f32[... n]"])
SCALE = Signature(["f32[...]"], "f32[...]", {"by": "f32", "fail": "str"})
ATTRIBUTES = Signature(
    [], "f64[8]",
    {"flag": "bool", "i": "i64", "narrow": "i32", "x": "f64", "text": "str", "axes": "i64[]",
     "weights": "f32[]", "inner": "dict"},
)  # fmt: skip


@pytest.fixture(autouse=True)
def registered():
    for name, function, signature in (
        ("acme_signed_pair", "acme_sum_and_product", PAIR),
        ("acme_signed_scale", "acme_scale", SCALE),
        ("acme_signed_attributes", "acme_attributes", ATTRIBUTES),
    ):
        register_ffi_target(name, getattr(library(), function), signature=signature)


def test_results_follow_from_operands():
    total, product = jit(ffi_call("acme_signed_pair"))(X, ROW)
    assert np.asarray(total).tolist() == (X + ROW).tolist()
    assert np.asarray(product).tolist() == (X * ROW).tolist()
    out = ffi_call("acme_signed_scale", vmap_method="broadcast_all")
    assert np.asarray(out(X, by=2, fail="")).tolist() == (2 * X).tolist()
    mapped = vmap(lambda x: out(x, by=2.0, fail=""))(X)
    assert np.asarray(mapped).tolist() == (2 * X).tolist()
    outs = ffi_call("acme_signed_pair", [S((2, 3), F32)] * 2)(X, ROW)
    assert np.asarray(outs[0]).tolist() == (X + ROW).tolist()


def test_symbolic_sizes():
    (n,) = export.symbolic_shape("n")
    traced = jit(ffi_call("acme_signed_pair")).trace(S((n, 3), F32), S((3,), F32))
    assert traced.jaxpr.out_avals[0].shape == (n, 3)


def test_names_of_sizes_and_dtypes():
    signature = Signature([("T", "b n"), "T[n, m]", "i32"], ["T[b m]", "bf16[4]"])
    avals = [S((2, 3), "float16"), S((3, 5), "float16"), S((), "int32")]
    types = jit(lambda *xs: xs).trace(*avals).jaxpr.in_avals
    out = signature.result_types("f", types)
    assert [(a.shape, a.dtype.name) for a in out] == [((2, 5), "float16"), ((4,), "bfloat16")]
    assert str(signature) == "T[b n], T[n m], int32[] -> [T[b m], bfloat16[4]]"
    assert Signature(["f32[n]"], "f32[n]") == Signature([("float32", "n")], ("f32", "n"))
    assert len({PAIR, SCALE, Signature(["f32[... n]", "f32[n]"], ["f32[... n]"] * 2)}) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X,), r"takes 2 operands, but the call has 1. Its signature is float32\[... n\], flo"),
        ((X, X), r"operand 1 .* has the type float32\[2,3\], but 1 axes are expected"),
        ((X, ROW[:2]), "operand 1 .* but for axis 0 the size n is 3 in operand 0"),
        ((X, np.int32([1, 2, 3])), "operand 1 .* but the dtype float32 is expected"),
        ((np.float32(1), ROW), "but 1 axes are expected at least"),
    ],
)
def test_operands_that_do_not_fit(args, message):
    with pytest.raises(TypeError, match=message):
        make_jaxpr(ffi_call("acme_signed_pair"))(*args)


def test_letters_and_leading_axes_are_the_same_everywhere():
    signature = Signature(["T[... 2]", "T[... 2]"], "T[...]")
    types = lambda *structs: jit(lambda *xs: xs).trace(*structs).jaxpr.in_avals
    with pytest.raises(TypeError, match=r"the shape \.\.\. is \(3,\) in operand 0"):
        signature.result_types("f", types(S((3, 2), F32), S((4, 2), F32)))
    with pytest.raises(TypeError, match="the dtype T is float32 in operand 0"):
        signature.result_types("f", types(S((3, 2), F32), S((3, 2), np.int32)))
    with pytest.raises(TypeError, match="for axis 1 the size 2 is expected"):
        signature.result_types("f", types(S((3, 2), F32), S((3, 5), F32)))
    assert signature.result_types("f", types(S((2,), F32), S((2,), F32)))[0].shape == ()


GOOD = {"flag": True, "i": 2, "narrow": 3, "x": 1, "text": "t", "axes": [1, 2], "weights": [1, 2.5],
        "inner": {"depth": 9}}  # fmt: skip


def test_attributes_have_the_types_of_the_signature():
    jaxpr = make_jaxpr(lambda: ffi_call("acme_signed_attributes")(**GOOD))()
    values = {n: f.value for n, f in jaxpr.eqns[0].params["attributes"]}
    assert values["narrow"].dtype == np.int32 and values["x"].dtype == np.float64
    assert values["weights"].dtype == np.float32 and values["axes"].dtype == np.int64
    assert values["weights"].tolist() == [1, 2.5]
    make_jaxpr(lambda: ffi_call("acme_signed_attributes")(**{**GOOD, "axes": []}))()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"more": 1}, TypeError, r"has the attributes \['more'\]. The attributes of the"),
        ({"i": None}, TypeError, r"'i' of 'acme_signed_attributes' is None \(NoneType\)"),
        ({"i": 1.5}, TypeError, "is 1.5 .float., but the signature has i64"),
        ({"narrow": 2**31}, OverflowError, "is 2147483648, but the signature has i32"),
        ({"narrow": np.int64(1)}, TypeError, "of dtype int64., but the signature has i32"),
        ({"flag": 1}, TypeError, "but the signature has bool"),
        ({"x": np.float32(1)}, TypeError, "of dtype float32., but the signature has f64"),
        ({"text": 3}, TypeError, "but the signature has str"),
        ({"axes": np.int32([1])}, TypeError, "of dtype int32., but the signature has i64"),
        ({"axes": [1.5]}, TypeError, "is 1.5 .float., but the signature has i64"),
        ({"axes": [[1]]}, TypeError, "of values that are not numbers: element 0 is a list"),
        ({"axes": np.int64([[1]])}, TypeError, r"but the signature has i64\[\]"),
        ({"inner": 3}, TypeError, "but the signature has dict"),
        ({"x": True}, TypeError, "is True .bool., but the signature has f64"),
    ],
)
def test_attributes_that_do_not_fit(changes, error, message):
    with pytest.raises(error, match=message):
        make_jaxpr(lambda: ffi_call("acme_signed_attributes")(**{**GOOD, **changes}))()


def test_missing_attributes():
    with pytest.raises(TypeError, match=r"lacks the attributes \['fail'\] and has .* \['fails'\]"):
        ffi_call("acme_signed_scale")(X, by=1, fails="")


def test_aliases():
    signature = Signature(["f32[n]"], ["f32[n]", "i32[1]"], aliases={0: 0})
    register_ffi_target("acme_signed_increment", library().acme_increment, signature=signature)
    call = ffi_call("acme_signed_increment")
    out, same = jit(lambda x: call(lax.mul(x, np.float32(2))))(ROW)
    assert np.asarray(out).tolist() == [3, 5, 7] and np.asarray(same).tolist() == [1]
    _, same = jit(ffi_call("acme_signed_increment", input_output_aliases={}))(ROW)
    assert np.asarray(same).tolist() == [0]


@pytest.mark.parametrize(
    ("args", "results", "options", "message"),
    [
        ([3], "f32", {}, "3 is not the type of an array in a signature: write 'f32"),
        (["f32[n"], "f32", {}, "'f32.n' is not the type of an array"),
        (["float[n]"], "f32", {}, "'float' in the signature's 'float.n.' is not a dtype: use f32"),
        (["f32[n ...]"], "f32", {}, r"the size '...' in .* \(... may be in front only\)"),
        (["f32[n+1]"], "f32", {}, r"the size 'n\+1' in"),
        (["f32[n]"], "f32[m]", {}, r"result 0 of the signature .* contains \['m'\], which no op"),
        (["f32[n]"], "T[n]", {}, r"contains \['T'\]"),
        (["f32[n]"], "f32[... n]", {}, r"contains \['\.\.\.'\]"),
        (["f32[n]"], "f32[n]", {"attrs": {"a": 3}}, "attribute 'a' is a text such as 'f32', not 3"),
        (["f32[n]"], "f32[n]", {"attrs": {"a": "number"}}, "'number' .* is not a dtype"),
        (["f32[n]"], "f32[n]", {"aliases": {0: 1}}, "the alias 0: 1 .* does not exist"),
        (["f32[n]"], "f32[]", {"aliases": {0: 0}}, "cannot use the memory of operand 0"),
    ],
)
def test_signatures_that_are_not_valid(args, results, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Signature(args, results, **options)


def test_registrations():
    scale = library().acme_scale
    register_ffi_target("acme_signed_scale", scale, signature=SCALE)
    register_ffi_target("acme_signed_scale", scale)
    with pytest.raises(ValueError, match="registered with another signature, Signature"):
        register_ffi_target("acme_signed_scale", scale, signature=PAIR)
    with pytest.raises(TypeError, match="the signature of 'acme_new' is 32, not a Signature"):
        register_ffi_target("acme_new", scale, signature=32)
    with pytest.raises(ValueError, match="functions of the earlier interfaces"):
        register_ffi_target("acme_new", library().acme_plain, api_version=0, signature=SCALE)
    load_library(path(), {"acme_signed_lib": "acme_scale"}, signatures={"acme_signed_lib": SCALE})
    assert np.asarray(ffi_call("acme_signed_lib")(ROW, by=2, fail="")).tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match=r"signatures of \['acme_other'\], which are not among"):
        load_library(path(), ["acme_scale"], signatures={"acme_other": SCALE})


def test_results_that_differ_from_the_signature():
    with pytest.raises(TypeError, match=r"follow from its signature, .* leave result_shape_dtypes"):
        ffi_call("acme_signed_scale", S((3,), F32))(X, by=1, fail="")
    with pytest.raises(ValueError, match="None at position 0, which has no shape"):
        ffi_call("acme_unsigned")


def test_numbers_that_do_not_fit():
    call = ffi_call("acme_signed_scale")
    for by, text in (
        (1e300, "1e\\+300"),
        (-1e39, "-1e\\+39"),
        (10**400, "an integer of 1329 bits"),
    ):
        with pytest.raises(OverflowError, match=f"'by' .* is {text}, but the signature has f32"):
            call(X, by=by, fail="")
    assert np.isinf(np.asarray(call(X, by=float("inf"), fail=""))[1]).all()


def test_traced_attributes_and_sequences_of_others():
    signature = Signature([], "f32[1]", {"by": "f32", "of": "f32[]"})
    by = {"by": 1, "of": [1]}
    with pytest.raises(TypeError, match=r"'by' of 'f' is a traced value.*static_argnames"):
        jit(lambda x: signature.attributes("f", {**by, "by": x}))(1.0)
    with pytest.raises(TypeError, match="element 1 of attribute 'of' of 'f' is a traced value"):
        jit(lambda x: signature.attributes("f", {**by, "of": [1, x]}))(1.0)
    with pytest.raises(TypeError, match="'of' of 'f' is a traced value"):
        jit(lambda x: signature.attributes("f", {**by, "of": x}))(np.ones(3, F32))
    with pytest.raises(TypeError, match="element 0 is a list"):
        signature.attributes("f", {**by, "of": [[1.0], 2]})
    with pytest.raises(TypeError, match="attributes of the signature are by: f32, of: f32\\[\\]"):
        signature.attributes("f", {**by, "off": 1})


def test_operands_that_are_no_arrays():
    call = ffi_call("acme_signed_scale")
    for value, kind in (([1.0], "list"), ({"a": X}, "dict"), (None, "NoneType"), ("a", "str")):
        with pytest.raises(TypeError, match=f"operand 0 of 'acme_signed_scale' is a {kind}, but"):
            call(value, by=1, fail="")
    with pytest.raises(TypeError, match=r"call has 2\. .* Attributes are keyword arguments: by="):
        call(X, X)
