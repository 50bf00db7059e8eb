"""Sorts from many threads, after forks, and under sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from processes import run

from primax_core import jit, lax
from primax_core.extend import native


def test_many_threads_sort_at_once():
    rng = np.random.default_rng(0)
    shapes = [(100,), (50_000,), (40, 500), (500, 40)]
    programs = {s: jit(lambda x: (lax.sort(x, 0), lax.top_k(x, 10, axis=0)[0])) for s in shapes}
    data = [rng.normal(size=shapes[i % 4]).astype(np.float32) for i in range(64)]
    for x in data[:4]:
        programs[x.shape](x)

    def check(x):
        for _ in range(3):
            values, largest = programs[x.shape](x)
            expected = np.sort(x, 0)
            assert np.array_equal(values, expected)
            assert np.array_equal(largest, expected[-10:][::-1])
        return True

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(check, data))


def test_processes_sort_after_a_fork():
    text = run("""
        import os
        import numpy as np
        import primax_ffi_cpu
        from primax_core import jit, lax

        x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)

        def check():
            return np.array_equal(jit(lambda x: lax.sort(x, 0))(x), np.sort(x, 0))

        child = os.fork()
        if child == 0:
            os._exit(0 if check() else 1)
        _, status = os.waitpid(child, 0)
        print(status, check())
    """)
    assert text == "0 True"


@pytest.mark.rotate(every=4, whole=True)
@pytest.mark.parametrize(
    "options", [["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
                ["-fsanitize=thread", "-DONLY_THREADS"]], ids=["address", "thread"],
)  # fmt: skip
def test_sanitizers_find_nothing(tmp_path, options):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler: install g++, or set CXX to another one")
    sources = Path(__file__).parents[1] / "native"
    if not sources.is_dir():
        pytest.skip("needs the sources of the native kernels: run the tests of a checkout")
    program = tmp_path / "check_lines"
    files = [
        Path(__file__).with_name("check_lines.cc"),
        sources / "ranks.cc",
        sources / "network_sort.cc",
    ]
    built = subprocess.run(
        [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", *options, "-pthread",
         f"-I{sources}", "-isystem", native.include_dir(),
         "-Wno-psabi", *map(str, files), "-o", str(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "cannot find" in built.stderr and "san" in built.stderr:
        pytest.skip("needs the compiler's sanitizers: install libasan, libubsan and libtsan")
    assert built.returncode == 0, built.stderr
    quiet = "allocator_may_return_null=1"
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "ASAN_OPTIONS": quiet, "TSAN_OPTIONS": quiet},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip() == "right", done.stdout + done.stderr
