"""Registration of native functions: handlers, types, libraries, versions."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ffi_library import library, path, registered, run

import primax_ffi
from primax_core import ShapeDtypeStruct as S, jit, lax
from primax_core.errors import JaxRuntimeError
from primax_ffi import (
    _versions,
    ffi_call,
    include_dir,
    load_library,
    pycapsule,
    register_ffi_target,
    register_ffi_type,
    register_ffi_type_id,
)

F32 = np.dtype(np.float32)
LEGACY = b"xla._CUSTOM_CALL_TARGET"


def capsule(address: int, name: bytes | None = None) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, name, None)


def address(name: str) -> int:
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


def test_capsules_of_functions_and_of_addresses():
    for handler in (library().acme_memory, address("acme_memory")):
        register_ffi_target("acme_capsule", pycapsule(handler))
    out = ffi_call("acme_capsule", S((3,), F32))(np.float32([1, 2, 3]))
    assert np.asarray(out).tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="not 'acme'"):
        pycapsule("acme")
    with pytest.raises(ValueError, match="address of the function is 0"):
        pycapsule(0)


def test_a_library(tmp_path):
    loaded = load_library(path(), {"acme_lib_memory": "acme_memory"})
    assert isinstance(loaded, ctypes.CDLL)
    load_library(path(), {"acme_staged_memory": {"execute": "acme_memory"}})
    load_library(Path(path()), ["acme_memory"])
    load_library(path(), "acme_plain", api_version=0)
    for name in ("acme_lib_memory", "acme_staged_memory"):
        out = ffi_call(name, S((3,), F32))(np.float32([1, 2, 3]))
        assert np.asarray(out).tolist() == [1, 2, 3]
    with pytest.raises(AttributeError, match="no function 'acme_absent': define the handler with"):
        load_library(path(), ["acme_absent"])
    with pytest.raises(FileNotFoundError, match="there is no shared library"):
        load_library(tmp_path / "absent.so", ["f"])


def test_the_versions_of_handlers(monkeypatch):
    assert _versions.version_of(library().acme_scale) == _versions.installed_version()
    assert _versions.version_of(pycapsule(library().acme_count)) is not None
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda frame: None)
    assert _versions.version_of(nothing) is None
    assert _versions.version_of(capsule(address("acme_plain"), LEGACY)) is None
    monkeypatch.setattr(_versions, "installed_version", lambda: (0, 1))
    with pytest.raises(RuntimeError) as caught:
        register_ffi_target("acme_newer", library().acme_scale)
    assert "'acme_newer' was built with the headers of interface version 0." in str(caught.value)
    assert "jaxlib takes 0.1: build it with the headers of the oldest" in str(caught.value)


def test_headers():
    assert (Path(include_dir()) / "xla" / "ffi" / "api" / "ffi.h").is_file()


def test_states():
    lib = library()
    lib.acme_calls_id.restype = lib.acme_calls_info.restype = ctypes.c_void_p
    parts = {
        "type_id": pycapsule(lib.acme_calls_id()), "type_info": pycapsule(lib.acme_calls_info())
    }  # fmt: skip
    register_ffi_type("acme_calls", parts)
    stages = {"instantiate": lib.acme_count_instantiate, "execute": lib.acme_count}
    register_ffi_target("acme_count", stages, platform="Host")
    count = jit(ffi_call("acme_count", S((1,), F32), has_side_effect=True))
    assert [np.asarray(count()).item() for _ in range(3)] == [1, 2, 3]
    register_ffi_type("acme_calls", parts)
    register_ffi_type_id("acme_gpu_type", capsule(8), platform="CUDA")
    with pytest.raises(ValueError, match="registered for cuda with other capsules"):
        register_ffi_type_id("acme_gpu_type", capsule(16), platform="cuda")
    for wrong in (capsule(8), {"type_info": capsule(8)}, {"type_id": capsule(8), "id": None}):
        with pytest.raises(ValueError, match="it is to be a dictionary of capsules"):
            register_ffi_type("acme_wrong", wrong)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_earlier_interfaces(version):
    name = registered("acme_text" if version == 3 else "acme_plain", api_version=0)
    call = ffi_call(
        name, S((), F32), custom_call_api_version=version,
        legacy_backend_config="hello" if version == 3 else None,
    )  # fmt: skip
    assert np.asarray(jit(call)(np.float32(4))) == (9 if version == 3 else 8)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("acme_bad", 8), {}, "the address of a function: wrap it in a capsule with pycapsule"),
        (("acme_bad", None), {}, "is a NoneType, but it is to be a capsule"),
        (("acme_bad", {}), {}, "of which execute is required"),
        (("acme_bad", capsule(8)), {"platform": 3}, "the platform of a native function is a text"),
        (("acme_bad", capsule(8, b"other")), {"platform": "tpu"}, "'tpu': the platforms are cpu"),
        (("acme_bad", capsule(8, LEGACY)), {}, r"earlier interface.*api_version=0"),
    ],
)
def test_registrations_that_are_not_valid(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        register_ffi_target(*arguments, **options)


def test_a_name_has_one_handler():
    register_ffi_target("acme_once", library().acme_memory)
    register_ffi_target("acme_once", library().acme_memory)
    with pytest.raises(ValueError, match="'acme_once' is registered for cpu with another handler"):
        register_ffi_target("acme_once", library().acme_scale)


def test_unregistered_functions(tmp_path, monkeypatch):
    registered("acme_scale")
    with pytest.raises(LookupError) as caught:
        jit(ffi_call("acme_scael", S((3,), F32)))(np.ones(3, F32))
    text = str(caught.value)
    assert "the native function 'acme_scael', called at " in text and "test_ffi_targets.py:" in text
    assert "did you mean 'acme_scale'?; or register it before" in text
    (tmp_path / "wonderkernels.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LookupError, match=r"'wonderkernels' is installed.*: import wonderkernels"):
        ffi_call("wonderkernels_sort", S((3,), F32))(np.ones(3, F32))
    registered("acme_memory")
    branches = {"cpu": lambda x: x, "cuda": ffi_call("acme_cuda_only", S((3,), F32))}
    out = jit(lambda x: lax.platform_dependent(x, **branches))(np.ones(3, F32))
    assert np.asarray(out).tolist() == [1, 1, 1]


def test_functions_that_xla_has_itself():
    text = jit(ffi_call("xla_ffi_python_cpu_callback", S((), F32))).lower(np.float32(1)).as_text()
    assert "@xla_ffi_python_cpu_callback" in text


def test_functions_of_other_platforms():
    register_ffi_target("acme_gpu", capsule(8, b"not asked"), platform="gpu")
    with pytest.raises(NotImplementedError, match="registered for cuda, rocm, but called on cpu"):
        ffi_call("acme_gpu", S((3,), F32))(np.ones(3, F32))


PROGRAM = """
import os
import numpy as np
import primax_core as px
from primax_core import monitoring
from primax_core.extend.runtime import started_clients
from primax_ffi import ffi_call, load_library

hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event))
if os.environ["LIBRARY"]:
    load_library(os.environ["LIBRARY"], ["acme_scale"])
assert not started_clients()
call = ffi_call("acme_scale", px.ShapeDtypeStruct((2,), np.float32))
try:
    by = np.float32(float(os.environ["BY"]))
    out = px.jit(lambda x: call(x, by=by, fail=""))(np.float32([1, 2]))
    print(np.asarray(out).tolist())
except LookupError as error:
    print(error)
print(sum("cache_hits" in e for e in hits))
"""


def test_executables_on_disk(tmp_path):
    env = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path), "LIBRARY": path(), "BY": "3"}
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[3.0, 6.0]", "0"]
    assert run(PROGRAM, **env).splitlines()[-2:] == ["[3.0, 6.0]", "1"]
    assert run(PROGRAM, **{**env, "BY": "4"}).splitlines()[-2:] == ["[4.0, 8.0]", "0"]
    *missing, hits = run(PROGRAM, **{**env, "LIBRARY": ""}).splitlines()
    assert "native function" in missing[-1] and "'acme_scale'" in missing[-1] and hits == "0"


def test_a_handler_that_is_registered_as_another_kind():
    """XLA would call an untyped function as a handler, and crash."""
    run(
        """
        import ctypes, os
        import numpy as np, pytest
        from primax_core import ShapeDtypeStruct as S
        from primax_ffi import ffi_call, register_ffi_target
        library = ctypes.CDLL(os.environ["ACME_LIBRARY"])
        register_ffi_target("acme_memory", library.acme_memory)
        register_ffi_target("acme_plain", library.acme_plain, api_version=0)
        x = np.float32([1, 2])
        with pytest.raises(NotImplementedError, match="as an earlier interface .* typed handler"):
            ffi_call("acme_memory", S((2,), np.float32), custom_call_api_version=2)(x)
        with pytest.raises(NotImplementedError, match="as a typed handler .* earlier interface"):
            ffi_call("acme_plain", S((2,), np.float32))(x)
        """
    )


def test_operands_that_the_handler_does_not_take():
    """XLA reports them when the program runs; none of them ends the process."""
    run(
        """
        import ctypes, os
        import numpy as np, pytest
        from primax_core import ShapeDtypeStruct as S
        from primax_core.errors import JaxRuntimeError
        from primax_ffi import ffi_call, register_ffi_target
        library = ctypes.CDLL(os.environ["ACME_LIBRARY"])
        register_ffi_target("acme_scale", library.acme_scale)
        x, result = np.float32([1, 2]), S((2,), np.float32)
        good = {"by": np.float32(1), "fail": ""}
        for args, out, attributes in [
            ((x, x), result, good), ((), result, good), ((x.astype(np.int32),), result, good),
            ((x,), [result, result], good), ((x,), S((2,), np.int32), good),
            ((x,), result, {"by": 1.0, "fail": ""}), ((x,), result, {"fail": ""}),
            ((x,), result, {"by": np.float32(1), "fail": 3}), ((x,), result, {}),
        ]:
            with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT"):
                outs = ffi_call("acme_scale", out)(*args, **attributes)
                [np.asarray(o) for o in (outs if isinstance(outs, list) else [outs])]
        """
    )


def test_public_names_are_documented():
    for name in dir(primax_ffi):
        value = getattr(primax_ffi, name)
        if not name.startswith("_") and callable(value):
            assert value.__doc__, name


def test_import_starts_no_devices_and_loads_no_mlir():
    run(
        """
        import sys, primax_ffi
        from primax_core.extend import started_clients
        others = {m.partition(".")[0] for m in sys.modules if m.startswith("primax")}
        assert others == {"primax_core", "primax_ffi"}, others
        assert not started_clients() and "jax" not in sys.modules
        assert "jaxlib.mlir" not in sys.modules
        """
    )


def test_errors_of_handlers_in_compiled_functions():
    registered("acme_scale")
    call = ffi_call("acme_scale", S((2,), F32))
    with pytest.raises(JaxRuntimeError, match="pivot of column 3"):
        jit(lambda x: call(x, by=np.float32(1), fail="error"))(np.ones(2, F32)).block_until_ready()


def test_arguments_of_load_library(tmp_path):
    for symbols in (3, [3], {"a": 3}, {"a": {"execute": None}}):
        with pytest.raises(TypeError, match=r"contain .*, but they are names of functions"):
            load_library(path(), symbols)
    with pytest.raises(TypeError, match="takes the path of a shared library, not None"):
        load_library(None, ["acme_scale"])
    with pytest.raises(FileNotFoundError, match="there is no shared library"):
        load_library(tmp_path, ["acme_scale"])
    with pytest.raises(
        FileNotFoundError, match=r"'k\.h', but there is no such file, and no '.*k\.h'"
    ):
        load_library(path(), signatures="k.h")
    (tmp_path / "k.h").write_bytes(b"// primax: \xff")
    with pytest.raises(ValueError, match=r"k\.h with signatures is not a text in UTF-8"):
        load_library(path(), signatures=tmp_path / "k.h")
    with pytest.raises(TypeError, match="traits of 'acme_t' is 'x', not a number"):
        register_ffi_target("acme_t", library().acme_scale, traits="x")


def test_handlers_that_are_made_when_a_program_needs_them(monkeypatch):
    handlers: list[Any] = [8, library().acme_memory, library().acme_memory]
    loads = []

    def load():
        loads.append(1)
        return handlers[len(loads) - 1]

    register_ffi_target("acme_loaded", load=load, signature="f32[n] -> f32[n]")
    register_ffi_target("acme_loaded", load=load)
    call = jit(lambda x: ffi_call("acme_loaded")(x))
    x = np.float32([1, 2])
    with pytest.raises(TypeError, match="'acme_loaded' is the address of a function: wrap it"):
        call(x)
    monkeypatch.setattr(_versions, "installed_version", lambda: (0, 0))
    with pytest.raises(RuntimeError, match="'acme_loaded' was built with the headers of"):
        call(x)
    monkeypatch.undo()
    assert np.asarray(call(x)).tolist() == [1, 2] and len(loads) == 3
    with pytest.raises(TypeError, match="pass a handler, or load=, a function that returns it"):
        register_ffi_target("acme_loaded", handlers[2], load=load)
    with pytest.raises(TypeError, match="pass a handler, or load="):
        register_ffi_target("acme_loaded", load="acme")
