"""The report of `python -m primax.as_jax --report`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from primax.as_jax import _report

PROGRAM = """
import jax
from jax import lax

for module, name in [(jax, "not_here"), (lax, "nor_here"), (jax.random, "nor_this")]:
    assert not hasattr(module, name)
try:
    from jax.lax import missing_function
except ImportError:
    pass
try:
    import jax._src.missing_module
except ModuleNotFoundError:
    pass


@jax.jit
def compiled(x):
    return lax.mul(lax.sin(x), 2.0)


def loop():
    x = lax.iota("float32", 3)
    for _ in range(70):
        x = lax.sin(x)
        x = lax.mul(x, x)
    return x


loop()
for n in (1, 2, 2, 3):
    compiled(lax.full((n,), 1.0))
for _ in range(2):
    jax.jit(lambda x: lax.neg(x))(1.0)
print("result")
"""


def run(program: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PRIMAX_", "JAX_"))}
    command = [sys.executable, "-m", "primax.as_jax", *options, str(program)]
    return subprocess.run(command, text=True, capture_output=True, env={**inherited, **env})


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    program = tmp_path_factory.mktemp("report") / "program.py"
    program.write_text(PROGRAM)
    done = run(program, "--report")
    assert done.returncode == 0 and done.stdout == "result\n", done.stderr
    return done.stderr.replace(f"{program}:", "program:").splitlines()


def section(lines: list[str], title: str) -> list[str]:
    """The lines below a title."""
    start = lines.index(title) + 1
    rest = lines[start:]
    end = next((i for i, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return rest[:end]


def test_missing_names_with_lines(lines):
    assert section(lines, "names that Primax does not have") == [
        "  jax._src.missing_module, asked for at program:12 (<module>)",
        "  jax.lax.missing_function, asked for at program:8 (<module>)",
        "  jax.lax.nor_here, asked for at program:6 (<module>)",
        "  jax.not_here, asked for at program:6 (<module>)",
        "  jax.random.nor_this, asked for at program:6 (<module>)",
    ]


def test_retraces_with_reasons(lines):
    retraces = section(lines, "functions that were traced more than once")
    assert retraces[0] == "  compiled: 3 times, called at program:32 (<module>)"
    assert "    1 times: x: a new shape, (2,), previously (1,)" in retraces
    assert retraces[-2:] == [
        "  <lambda>: 2 times, called at program:34 (<module>)",
        "    2 times: it was never traced before (or its function object is new)",
    ]
    assert not any("TRACING CACHE MISS" in line for line in lines)


def test_operations_outside_of_jit(lines):
    islands = section(lines, "operations that ran one by one, outside of jit")
    assert islands[0].endswith(" operations in program:22 (loop)")
    assert {"    70 times sin in line 25", "    70 times mul in line 26"} <= {*islands}


def test_times(lines):
    times = section(lines, "time")
    assert [line.split(":")[0].strip() for line in times[:4]] == [
        "tracing",
        "lowering",
        "compilation and loading",
        "executables",
    ]
    assert any("jit(compiled)" in line for line in times)


def test_report_of_a_program_that_fails(tmp_path):
    program = tmp_path / "fails.py"
    program.write_text("import jax\njax.not_here\n")
    done = run(program, "--report")
    assert done.returncode == 1
    assert "AttributeError: module 'jax' has no attribute 'not_here'" in done.stderr
    assert f"  jax.not_here, asked for at {program}:2 (<module>)" in done.stderr


def test_log_that_the_program_wants(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import jax\njax.jit(lambda x: x)(1.0)\n")
    done = run(program, "--report", JAX_EXPLAIN_CACHE_MISSES="1")
    assert "TRACING CACHE MISS for <lambda>" in done.stderr


def test_no_report_without_the_option(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import jax, sys\nprint('primax.as_jax._report' in sys.modules)\n")
    done = run(program)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_program_is_needed():
    done = subprocess.run(
        [sys.executable, "-m", "primax.as_jax", "--report"], text=True, capture_output=True
    )
    assert done.returncode == 2
    assert done.stderr.endswith("primax.as_jax: no program given\n")


def test_nested_spans_count_once():
    assert _report.covered([(0.0, 4.0), (1.0, 2.0), (3.0, 5.0), (7.0, 8.0)]) == 6.0
    assert _report.covered([]) == 0


def test_long_sections_are_cut():
    report = _report.Report()
    code = test_long_sections_are_cut.__code__
    for i in range(_report.SHOWN + 2):
        report.note_missing(f"jax.name{i:02}", code, 1)
    shown = section(report.text().splitlines(), "names that Primax does not have")
    assert len(shown) == _report.SHOWN + 1 and shown[-1] == "  and 2 lines more"
    assert section(report.text().splitlines(), "functions that were traced more than once") == [
        "  none"
    ]
