"""The package in a process: its library, the option, the cache on disk."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import run, wait_until_settled

import primax_ffi_cpu
from primax_core import config, jit, lax
from primax_ffi_cpu import _library, native_kernels

X = np.ones((512, 512), np.float32)
CALL = "custom_call @primax_cpu_"

PROGRAM = """
    import sys
    import numpy as np
    from primax_core import jit, lax
    import primax_ffi_cpu

    x = np.ones((512, 512), np.float32)
    f = jit(lambda x: lax.cumsum(x, 1))
    assert (np.asarray(f(x)) == np.cumsum(x, 1)).all()
    print("jaxlib.mlir.ir" in sys.modules)
    print("custom_call @primax_cpu_" in f.lower(x).as_text())
"""


def test_operations_call_the_library():
    assert CALL in jit(lambda x: lax.cumsum(x, 1)).lower(X).as_text()


def test_the_option_switches_the_kernels_off():
    f = jit(lambda x: lax.cumsum(x, 1))
    assert CALL in f.lower(X).as_text()
    with native_kernels(False):
        assert CALL not in f.lower(X).as_text()
        assert (np.asarray(f(X)) == np.cumsum(X, 1)).all()
    config.update("native", False)
    try:
        assert CALL not in f.lower(X).as_text()
    finally:
        config.update("native", True)
    assert CALL in f.lower(X).as_text()


def test_symbolic_shapes_are_left_to_the_core():
    text = run("""
        import numpy as np
        import primax_ffi_cpu
        from primax_core import ShapeDtypeStruct, jit, lax
        from primax_core.export import symbolic_shape

        x = ShapeDtypeStruct(symbolic_shape("n, 512"), np.float32)
        print(jit(lambda x: lax.cumsum(x, 1)).lower(x).as_text())
    """)
    assert "func.func" in text and CALL not in text


@pytest.mark.parametrize("native", ["1", "0"])
def test_later_processes_find_their_executables(tmp_path, native):
    environment = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path), "PRIMAX_NATIVE": native}
    wait_until_settled("primax_core", "primax_ffi_cpu")
    uses = str(native == "1")
    assert run(PROGRAM, **environment).split() == ["True", uses]
    assert run(PROGRAM, **environment).split() == ["False", uses]


def test_executables_on_disk_depend_on_the_option(tmp_path):
    cache = {"PRIMAX_COMPILATION_CACHE_DIR": str(tmp_path)}
    assert run(PROGRAM, PRIMAX_NATIVE="1", **cache).split() == ["True", "True"]
    assert run(PROGRAM, PRIMAX_NATIVE="0", **cache).split() == ["True", "False"]


def test_a_missing_library_is_an_error_that_says_how_to_build_it(tmp_path):
    """Operations keep the rules of the core then."""
    source = Path(primax_ffi_cpu.__file__).parent
    shutil.copytree(
        source, tmp_path / "primax_ffi_cpu", ignore=shutil.ignore_patterns("*.so", "*.dylib")
    )
    text = run(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        try:
            import primax_ffi_cpu
        except ImportError as error:
            print(error)
        import numpy as np
        from primax_core import lax
        print(lax.sort(np.float32([3, 1])).tolist(), lax.cumsum(np.float32([3, 1])).tolist())
    """)
    assert text.endswith("[1.0, 3.0] [3.0, 4.0]")
    assert "primax-ffi-cpu has no compiled library" in text
    assert "pip install primax-ffi-cpu" in text and "cmake -S packages/ffi_cpu" in text


def test_denormal_numbers_live_after_the_import():
    # -ffast-math in a library would flush them to zero in the whole process.
    code = """
        import numpy as np
        import primax_ffi_cpu
        print(float(np.float32(1e-40) * np.float32(1)) > 0)
    """
    assert run(code) == "True"


def test_two_copies_of_the_library_in_one_process(tmp_path):
    copied = shutil.copy(_library.PATH, tmp_path)
    text = run(f"""
        import ctypes
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        import primax_ffi_cpu
        from primax_core import jit, lax
        from primax_core.extend import Primitive, abstract, lower, native

        native.register("other_copy_sort", ctypes.CDLL({copied!r}).primax_cpu_sort)
        sort_p = Primitive("other_copy_sort")
        sort_p.rule(abstract)(lambda x: x)

        @sort_p.rule(lower)
        def _lower(ctx, x):
            attributes = dict(axis=0, num_keys=1, positions=np.int64([]), unused=np.int64([]))
            return native.call(ctx, "other_copy_sort", [x], attributes=attributes)[0]

        both = jit(lambda x: (sort_p.bind(x), lax.sort(x)))
        text = both.lower(np.ones(3000, np.float32)).as_text()
        assert "@other_copy_sort" in text and "@primax_cpu_sort" in text

        def check(seed):
            x = np.random.default_rng(seed).normal(size=3000).astype(np.float32)
            return all((np.asarray(y) == np.sort(x)).all() for y in both(x))

        with ThreadPoolExecutor(8) as pool:
            print(all(pool.map(check, range(40))))
    """)
    assert text == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process on Linux")
def test_a_lack_of_memory_is_an_error_of_the_call():
    text = run("""
        import resource
        import numpy as np
        import primax_ffi_cpu
        from primax_core import jit, lax

        x = np.random.default_rng(0).normal(size=8_000_000).astype(np.float32)
        f = jit(lambda x: lax.sort([x, x], num_keys=1)).lower(x).compile()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000, resource.RLIM_INFINITY))
        try:
            f(x)
        except RuntimeError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        print((np.asarray(f(x)[0]) == np.sort(x)).all())
    """)
    message, sorted_afterwards = text.splitlines()
    assert "RESOURCE_EXHAUSTED: out of memory for intermediate results" in message
    assert sorted_afterwards == "True"
