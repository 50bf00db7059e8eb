"""Native functions, compiled with jaxlib's headers: a third-party package with C++ code."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from native_library import address, capsule, library, path
from processes import run

from primax_core import enable_x64, jit, lax, vmap
from primax_core.errors import JaxRuntimeError
from primax_core.extend import Primitive, ShapedArray, abstract, batch, lower, move_axis, native

F32, F64, I32 = map(np.dtype, ("float32", "float64", "int32"))


def primitive(rule: Any, *types: ShapedArray, name: str = "native") -> Any:
    """The jitted function of a primitive with this lowering rule."""
    prim = Primitive(name, multiple_results=True)
    prim.rule(abstract)(lambda *avals: list(types or avals))
    prim.rule(lower)(rule)
    return jit(lambda *args: prim.bind(*args))


def registered(name: str, **options: Any) -> str:
    native.register(name, getattr(library(), name), **options)
    return name


ATTRIBUTES = {
    "b": True, "i8": np.int8(-1), "i16": np.int16(-2), "i32": np.int32(-3), "i64": -4,
    "u8": np.uint8(200), "u16": np.uint16(6), "u32": np.uint32(2**32 - 1), "u64": np.uint64(2**63),
    "f32": np.float32(1.5), "f64": 2.5, "dtype": np.dtype("float16"),
    "ai8": np.int8([-1, 2]), "ai16": np.int16([3]), "ai32": np.int32([4, 5]), "ai64": [6, 7],
    "au8": np.uint8([200, 1]), "au16": np.uint16([8]), "au32": np.uint32([2**32 - 1]),
    "au64": np.uint64([9, 1]), "af32": np.float32([0.5, 0.25]), "af64": (0.125, 1.0),
    "flags": [True, False, True], "empty": np.int64([]), "text": "naïve",
    "inner": {"deep": {"leaf": np.int32(11)}, "unused": "x"},
}  # fmt: skip
ARRIVE = [
    1, -1, -2, -3, -4, 200, 6, 2**32 - 1, 2.0**63, 1.5, 2.5, 10, 1, 3, 9, 13, 201, 8, 2**32 - 1,
    10, 0.75, 1.125, 2, 0, 6, 11,
]  # fmt: skip


def test_attributes_of_every_kind_arrive():
    target = registered("acme_attributes")
    with enable_x64(True):
        (out,) = primitive(
            lambda ctx: native.call(ctx, target, [], attributes=ATTRIBUTES),
            ShapedArray((26,), F64),
        )()
    assert np.asarray(out).tolist() == ARRIVE


def test_an_attribute_of_another_type_is_named_by_the_handler():
    target = registered("acme_attributes")
    with enable_x64(True), pytest.raises(JaxRuntimeError, match="i32: Wrong scalar data type"):
        primitive(
            lambda ctx: native.call(ctx, target, [], attributes={**ATTRIBUTES, "i32": 3}),
            ShapedArray((26,), F64),
        )()


@pytest.mark.parametrize("aliases", [None, {0: 0}])
def test_a_result_uses_the_memory_of_an_operand(aliases):
    target = registered("acme_scale")
    scale = primitive(
        lambda ctx, x: native.call(
            ctx, target, [x], attributes={"by": np.float32(3)}, input_output_aliases=aliases
        ),
        ShapedArray((4,), F32),
        ShapedArray((1,), I32),
    )
    x = np.arange(4, dtype=np.float32)
    out, same = scale(x)
    assert np.asarray(out).tolist() == [0, 3, 6, 9]
    assert np.asarray(same).tolist() == [1 if aliases else 0]
    assert x.tolist() == [0, 1, 2, 3]


def test_layouts():
    target = registered("acme_memory")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    memory = primitive(
        lambda ctx, x: native.call(ctx, target, [x], operand_layouts=[(0, 1)]),
        ShapedArray((6,), F32),
    )
    assert np.asarray(memory(x)[0]).tolist() == x.T.ravel().tolist()
    both = primitive(
        lambda ctx, x: native.call(ctx, target, [x], result_layouts=[(0, 1)]),
        ShapedArray((3, 2), F32),
    )
    assert np.asarray(both(x)[0]).tolist() == x.ravel().reshape(2, 3).T.tolist()


def test_the_error_of_a_handler_is_raised_with_its_text():
    target = registered("acme_fail")
    with pytest.raises(JaxRuntimeError, match="the pivot of column 3 is zero"):
        primitive(lambda ctx, x: native.call(ctx, target, [x]))(np.float32(1))


def test_stages_and_types():
    lib = library()
    lib.acme_calls_id.restype = lib.acme_calls_info.restype = ctypes.c_void_p
    native.register_type("acme_calls", capsule(lib.acme_calls_id()), capsule(lib.acme_calls_info()))
    native.register(
        "acme_count", {"instantiate": lib.acme_count_instantiate, "execute": lib.acme_count}
    )
    count = primitive(
        lambda ctx: native.call(ctx, "acme_count", [], has_side_effect=True),
        ShapedArray((1,), F32),
    )
    assert [np.asarray(count()[0]).item() for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_earlier_interfaces(version):
    name = "acme_text" if version == 3 else "acme_plain"
    target = registered(name, api_version=0)
    text = "hello" if version == 3 else None
    plain = primitive(
        lambda ctx, x: native.call(ctx, target, [x], api_version=version, backend_config=text)
    )
    assert np.asarray(plain(np.float32(4))[0]) == (9 if version == 3 else 8)


def test_vmap_by_a_batch_rule():
    target = registered("acme_memory")
    copy_p = Primitive("acme_copy")
    copy_p.rule(abstract)(lambda x: x)
    copy_p.rule(lower)(lambda ctx, x: native.call(ctx, target, [x])[0])

    @copy_p.rule(batch)
    def _batch(axis, args, dims):
        return copy_p.bind(move_axis(args[0], dims[0], 0, axis.size)), 0

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.asarray(vmap(lambda v: lax.neg(copy_p.bind(v)), 1)(x)).tolist() == (-x.T).tolist()


def test_capsules():
    name = b"xla._CUSTOM_CALL_TARGET"
    own = address(library().acme_plain)
    native.register("acme_plain", capsule(own, name), api_version=0)
    with pytest.raises(ValueError, match=r"earlier interface.*api_version=0"):
        native.register("acme_capsule", capsule(own, name))
    with pytest.raises(ValueError, match=r"typed handler.*api_version=1"):
        native.register("acme_capsule", capsule(own), api_version=0)


PROGRAM = """
import ctypes, os, sys
import numpy as np
import primax_core as px
from primax_core.extend import Primitive, abstract, lower, native
from primax_core.extend.runtime import started_clients
from primax_core import monitoring

hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event))
if os.environ["LIBRARY"]:
    native.register("acme_memory", ctypes.CDLL(os.environ["LIBRARY"]).acme_memory)
assert not started_clients()
copy_p = Primitive("acme_copy")
copy_p.rule(abstract)(lambda x: x)
copy_p.rule(lower)(lambda ctx, x: native.call(ctx, "acme_memory", [x])[0])
try:
    print(np.asarray(px.jit(copy_p.bind)(np.float32([1, 2]))).tolist())
except LookupError as error:
    print(error)
print(sum("cache_hits" in e for e in hits))
"""


def test_an_executable_from_the_disk_in_a_new_process(tmp_path):
    env = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path), "LIBRARY": path()}
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[1.0, 2.0]", "0"]
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[1.0, 2.0]", "1"]
    *missing, hits = run(PROGRAM, **{**env, "LIBRARY": ""}).splitlines()
    assert "native functions 'acme_memory', which no imported package provides" in missing[-1]
    assert "extend.native.register('acme_memory', handler)" in missing[-1] and hits == "0"
