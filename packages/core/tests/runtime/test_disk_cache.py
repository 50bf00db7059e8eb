"""The cache of executables on disk: later processes use it and compute equal results."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest
from disk_processes import SIN, kept, process

from primax_core._base.identity import CACHE_FOLDER

# Most tests start two processes or more.
pytestmark = pytest.mark.rotate(every=3, whole=True)

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no owners and modes")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)


def test_the_next_process_neither_lowers_nor_compiles(tmp_path):
    first = process(tmp_path)
    assert (first.lowered, first.looked_for, first.fetched) == (1, 1, 0)
    assert len(kept(tmp_path)) == len(kept(tmp_path, ".link")) == 1
    second = process(tmp_path)
    assert (second.lowered, second.looked_for, second.fetched) == (0, 0, 1)
    assert second.values == first.values
    assert not first.said and not second.said


def test_mlir_is_not_imported_for_cached_executables(tmp_path):
    code = SIN + "; print(json.dumps([done, said, ['jaxlib.mlir.ir' in sys.modules]]))"
    assert process(tmp_path, code).values == [True]
    assert process(tmp_path, code).values == [False]


def test_a_jaxpr_without_key_is_looked_up_by_its_module(tmp_path):
    code = "source_fingerprint._stamp = None\n" + SIN
    process(tmp_path, code)
    assert not kept(tmp_path, ".link")
    second = process(tmp_path, code)
    assert (second.lowered, second.looked_for, second.fetched) == (1, 1, 1)


def test_a_link_to_a_removed_executable(tmp_path):
    first = process(tmp_path)
    kept(tmp_path)[0].unlink()
    second = process(tmp_path)
    assert (second.lowered, second.looked_for, second.fetched) == (1, 1, 0)
    assert second.values == first.values and len(kept(tmp_path)) == 1


PROGRAMS = """
x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
def f(a):
    b = lax.exp(a) * px.jit(lambda t: lax.tanh(t) + t)(a)
    c, ys = lax.scan(lambda c, r: (c * r, c + r), lax.reduce_sum(b, (0,)), b)
    return lax.cond(lax.reduce_sum(c, (0,)) > 0, lambda t: t * 2, lambda t: -t, ys), c
big = px.device_put(np.arange(64, dtype=np.float32))
g = px.jit(lambda a, unused: (lax.reduce_sum(a, (0, 1)) + big, f(a)))
outs = px.tree.leaves(g(x, 1.0))
grad = px.grad(lambda a: lax.reduce_sum(px.jit(f)(a)[0], (0, 1)))(x)
donating = px.jit(lambda a: a * 3 + 1, donate_argnums=0)
given = px.device_put(x)
given_result = donating(given)
donated = given.is_deleted()
with px.enable_x64(True):
    wide = px.jit(lambda a: lax.sin(a) / 3)(np.linspace(0, 1, 5))
half = lax.convert_element_type(px.jit(lambda a: lax.sin(a) * a)(
    lax.convert_element_type(x, px.dtypes.bfloat16)), np.float32)
ints = px.jit(lambda a: lax.neg(a))(np.array([3, -1, 2], np.int8))
report(*outs, grad, given_result, donated, wide, wide.dtype.itemsize, half, ints)
"""


def test_results_equal_those_without_a_cache_bitwise(tmp_path):
    off = process(tmp_path / "off", PROGRAMS, PRIMAX_ENABLE_COMPILATION_CACHE=0)
    first = process(tmp_path, PROGRAMS)
    second = process(tmp_path, PROGRAMS)
    assert off.fetched == first.fetched == 0
    assert second.fetched == first.looked_for and second.looked_for == 0
    assert off.values == first.values == second.values
    assert off.values[-5] is True  # donated
    assert off.values[-3] == 8  # x64


DEVICES = """
on = [px.device_put(np.float32(2), d) for d in px.devices()]
outs = [lax.sin(x) for x in on]
assert [o.sharding.device_set for o in outs] == [x.sharding.device_set for x in on]
report(*outs)
"""


def test_each_device_has_its_own_entry(tmp_path):
    first = process(tmp_path, DEVICES, PRIMAX_NUM_CPU_DEVICES=3)
    second = process(tmp_path, DEVICES, PRIMAX_NUM_CPU_DEVICES=3)
    assert len(kept(tmp_path)) == 3
    assert (second.looked_for, second.fetched) == (0, 3)
    assert first.values == second.values
    third = process(tmp_path, DEVICES, PRIMAX_NUM_CPU_DEVICES=2)
    assert third.fetched == 0


def test_xla_flags_are_part_of_the_key(tmp_path):
    process(tmp_path)
    changed = process(tmp_path, XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    assert changed.fetched == 0 and len(kept(tmp_path)) == 2


def test_compiler_options_are_part_of_the_key(tmp_path):
    code = """
    options = {"xla_backend_optimization_level": int(os.environ["LEVEL"])}
    report(px.jit(lambda x: lax.sin(x), compiler_options=options)(np.float32(1)))
    """
    process(tmp_path, code, LEVEL=0)
    assert process(tmp_path, code, LEVEL=1).fetched == 0
    assert process(tmp_path, code, LEVEL=0).fetched == 1


INSPECTED = """
c = px.jit(lambda x: lax.sin(x) * 2).lower(np.ones(3, np.float32)).compile()
text, cost, memory = c.as_text(), c.cost_analysis(), c.memory_analysis()
print(json.dumps([done, said, [text, sorted(cost.items()), str(memory)]]))
"""


def test_a_fetched_executable_can_be_inspected(tmp_path):
    first = process(tmp_path, INSPECTED)
    second = process(tmp_path, INSPECTED)
    assert second.fetched == 1 and first.values == second.values


# What is not kept


@pytest.mark.parametrize(
    "off",
    [
        "PRIMAX_ENABLE_COMPILATION_CACHE=0",
        "PRIMAX_COMPILATION_CACHE_MAX_SIZE=0",
        "PRIMAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=1000",
        "PRIMAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=1000000",
    ],
)
def test_disabled(tmp_path, off):
    name, _, value = off.partition("=")
    report = process(tmp_path, **{name: value})
    assert not kept(tmp_path) and not report.said


def test_nothing_is_read_while_disabled(tmp_path):
    process(tmp_path)
    assert process(tmp_path, PRIMAX_ENABLE_COMPILATION_CACHE=0).fetched == 0
    code = "px.config.update('enable_compilation_cache', False)\n" + SIN
    assert process(tmp_path, code).fetched == 0


CALLBACKS = """
factor = float(os.environ["FACTOR"])
log = []

def scaled(x):
    if factor < 0:
        raise ValueError(f"factor {factor}")
    return np.asarray(x) * np.float32(factor)

def noted(x):
    log.append(float(x))

def f(x):
    def body(c, row):
        px.io_callback(noted, None, c, ordered=True)
        return c + px.pure_callback(scaled, row, row), c
    return lax.scan(body, np.float32(0), x)

try:
    total, steps = px.jit(f)(np.arange(4, dtype=np.float32))
    report(total, steps, log)
except px.errors.JaxRuntimeError as error:
    report(str(error.__cause__))
"""


def test_executables_with_callbacks_call_the_functions_of_their_process(tmp_path):
    first = process(tmp_path, CALLBACKS, FACTOR=2)
    assert first.values == [12.0, [0.0, 0.0, 2.0, 6.0], [0.0, 0.0, 2.0, 6.0]]
    second = process(tmp_path, CALLBACKS, FACTOR=3)
    assert second.values == [18.0, [0.0, 0.0, 3.0, 9.0], [0.0, 0.0, 3.0, 9.0]]
    assert (first.fetched, second.fetched) == (0, 1)
    failed = process(tmp_path, CALLBACKS, FACTOR=-1)
    assert failed.values == ["factor -1.0"] and failed.fetched == 1
    assert not kept(tmp_path, ".link")


SORTS = """
x = np.array([3, 1, 2, 5], np.float32)
f = px.jit(lambda x: (lax.sort(lax.neg(x)), *lax.sort((x, lax.iota(np.int32, 4)), num_keys=1)))
largest = px.jit(lambda x: lax.top_k(x, 2))
report(*f(x), *f(x), *largest(x.astype(np.int8)))
"""


def test_sorts_are_serialized_before_they_run(tmp_path):
    first = process(tmp_path, SORTS)
    second = process(tmp_path, SORTS)
    sorts = 2 * [[-5, -3, -2, -1], [1, 2, 3, 5], [1, 2, 0, 3]]
    assert first.values == second.values == [*sorts, [5, 3], [3, 0]]
    assert second.fetched == first.looked_for > 0 and second.looked_for == 0


# Native functions

NATIVE = """
from primax_core._ir.primitive import Primitive, abstract, lower
from primax_core._runtime import custom_calls
from primax_core._lower.lazy import hlo
if os.environ.get("PROVIDED"):
    @custom_calls.provides_custom_calls("something native")
    def _():
        assert not done["fetched"], "registered after the executable was loaded"
        print("registered")
native_p = Primitive("native")
native_p.rule(abstract)(lambda x: x)

@native_p.rule(lower)
def _(ctx, x):
    ctx.needs.add("something native")
    return hlo.negate(x)

try:
    report(px.jit(lambda x: native_p.bind(x))(np.float32(2)))
except LookupError as error:
    report(str(error))
"""


def test_native_functions_are_registered_before_loading(tmp_path):
    assert process(tmp_path, NATIVE, PROVIDED=1).values == [-2.0]
    second = process(tmp_path, NATIVE, PROVIDED=1)
    assert second.values == [-2.0] and second.fetched == 1
    third = process(tmp_path, NATIVE)
    assert "no imported package provides" in third.values[0]


LAPACK = """
from primax_core.lax import linalg
a = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
report(px.jit(linalg.cholesky)(a), *px.tree.leaves(px.jit(linalg.eigh)(a)))
"""


def test_lapack_programs_from_disk(tmp_path):
    linalg = pytest.importorskip("primax_core.lax.linalg")
    if not hasattr(linalg, "cholesky"):
        pytest.skip("no decompositions yet")
    first = process(tmp_path, LAPACK)
    second = process(tmp_path, LAPACK)
    assert second.fetched >= 2 and second.looked_for == 0
    assert first.values == second.values


# Damage


def _damaged_at(data: bytes) -> dict[str, bytes]:
    flipped = {
        name: data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        for name, at in {
            "magic": 3, "checksum": 20, "lengths": 44, "about": 64, "first": 120,
            "middle": len(data) // 2, "last": len(data) - 1,
        }.items()
    }  # fmt: skip
    return {
        **flipped, "empty": b"", "one byte": b"P", "header only": data[:40],
        "truncated": data[: len(data) // 2], "longer": data + b"\0", "other": b"x" * len(data),
    }  # fmt: skip


@pytest.mark.rotate(every=4, whole=True)
def test_damaged_files_are_not_loaded(tmp_path):
    good = process(tmp_path)
    path = kept(tmp_path)[0]
    data = path.read_bytes()
    for name, damaged in _damaged_at(data).items():
        path.write_bytes(damaged)
        outcome = process(tmp_path)
        assert outcome.values == good.values, name
        assert outcome.fetched == 0 and len(outcome.said) == 1 and "damaged" in outcome.said[0], (
            name
        )
        assert path.read_bytes()[:8] == data[:8], name  # rewritten
        again = process(tmp_path)
        assert again.fetched == 1 and not again.said, name


def test_a_damaged_link_is_not_followed(tmp_path):
    good = process(tmp_path)
    (path,) = kept(tmp_path, ".link")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    outcome = process(tmp_path)
    assert (outcome.lowered, outcome.fetched) == (1, 1) and outcome.values == good.values
    assert path.read_bytes() == data


def test_a_file_under_another_key_is_not_loaded(tmp_path):
    process(tmp_path)
    (sine,) = kept(tmp_path)
    process(tmp_path, "report(lax.cos(np.float32(1.5)))")
    (cosine,) = (p for p in kept(tmp_path) if p != sine)
    cosine.write_bytes(sine.read_bytes())
    outcome = process(tmp_path, "report(lax.cos(np.float32(1.5)))")
    assert outcome.values == [pytest.approx(0.0707372)] and "damaged" in outcome.said[0]


# Places


@posix
def test_the_folder_is_private_to_the_user(tmp_path):
    old = os.umask(0)
    try:
        process(tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / CACHE_FOLDER).stat().st_mode) == 0o700
    for path in (tmp_path / CACHE_FOLDER).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_refused(tmp_path, mode):
    process(tmp_path)
    (tmp_path / CACHE_FOLDER).chmod(mode)
    outcome = process(tmp_path)
    assert outcome.fetched == 0 and len(outcome.said) == 1
    assert "other users can write" in outcome.said[0]


@posix
def test_a_file_that_others_can_write_is_refused(tmp_path):
    process(tmp_path)
    kept(tmp_path)[0].chmod(0o666)
    outcome = process(tmp_path)
    assert outcome.fetched == 0 and "other users can write" in outcome.said[0]


@root
def test_a_folder_of_another_user_is_refused(tmp_path):
    process(tmp_path)
    os.chown(tmp_path / CACHE_FOLDER, 12345, -1)
    outcome = process(tmp_path)
    assert (
        outcome.fetched == 0
        and len(outcome.said) == 1
        and "belongs to user 12345" in outcome.said[0]
    )


@root
def test_a_file_of_another_user_is_refused(tmp_path):
    process(tmp_path)
    os.chown(kept(tmp_path)[0], 12345, -1)
    outcome = process(tmp_path)
    assert outcome.fetched == 0 and "belongs to user 12345" in outcome.said[0]


@root
def test_root_creates_no_folder_in_another_users_home(tmp_path):
    os.chown(tmp_path, 12345, -1)
    outcome = process(tmp_path)
    assert not (tmp_path / CACHE_FOLDER).exists() and not outcome.said


@posix
def test_a_symbolic_link_is_not_read(tmp_path):
    process(tmp_path)
    (path,) = kept(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert process(tmp_path).fetched == 0


UNPRIVILEGED = "os.setgid(12345); os.setuid(12345)\n"


@root
def test_a_home_that_cannot_be_written(tmp_path):
    # Other users may not be able to read the interpreter, so privileges are dropped late.
    code = UNPRIVILEGED + SIN
    outcome = process("/proc/1", code)
    assert not outcome.said and outcome.values == [pytest.approx(0.9974950)]


@posix
def test_no_home():
    outcome = process("/dev/null")
    assert not outcome.said and outcome.fetched == 0 and outcome.values


def test_a_file_with_the_name_of_the_folder(tmp_path):
    (tmp_path / CACHE_FOLDER).write_text("not a folder")
    outcome = process(tmp_path)
    assert outcome.values and outcome.fetched == 0
    assert (tmp_path / CACHE_FOLDER).read_text() == "not a folder"


def test_the_folder_is_removed_while_in_use(tmp_path):
    code = """
    import shutil
    outs = [lax.sin(np.float32(1))]
    writer.finish()
    shutil.rmtree(os.path.dirname(folder.location()))
    outs.append(lax.cos(np.float32(1)))
    report(*outs)
    """
    outcome = process(tmp_path / "home", code)
    assert len(outcome.values) == 2 and not outcome.said
    assert len(kept(tmp_path / "home")) == 1  # created again


@pytest.mark.parametrize("error", ["OSError(28, 'No space left')", "MemoryError('no memory')"])
def test_write_errors_warn_once(tmp_path, error):
    code = f"""
    def write(*args):
        raise {error}
    store.write = write
    report(lax.sin(np.float32(1)), lax.cos(np.float32(1)))
    """
    outcome = process(tmp_path, code)
    assert len(outcome.values) == 2
    assert len(outcome.said) == 1 and "cannot be cached" in outcome.said[0]


@posix
def test_a_limit_on_the_size_of_files(tmp_path):
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    report(lax.sin(np.float32(1)), lax.cos(np.float32(1)))
    """
    outcome = process(tmp_path, code)
    assert len(outcome.said) == 1 and "cannot be cached" in outcome.said[0]
    assert not [p for p in (tmp_path / CACHE_FOLDER).iterdir() if p.suffix != ".link"]


@root
def test_a_full_file_system(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        code = "report(*[f(np.float32(1)) for f in (lax.sin, lax.cos, lax.tan, lax.exp, lax.log)])"
        outcome = process(disk, code)
        assert len(outcome.values) == 5 and len(outcome.said) == 1
        assert not list((disk / CACHE_FOLDER).glob("*.tmp"))
        again = process(disk, code)
        assert again.values == outcome.values
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_url_is_not_a_folder(tmp_path):
    outcome = process(tmp_path, PRIMAX_COMPILATION_CACHE_DIR="gs://bucket/cache")
    assert len(outcome.said) == 1 and "not a folder of this machine" in outcome.said[0]


def test_invalid_folders(tmp_path):
    gone = tmp_path / "gone"
    code = f"""
    os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})
    px.config.update("compilation_cache_dir", "relative")
    a = lax.sin(np.float32(1))
    px.config.update("compilation_cache_dir", "/a" + chr(0) + "b")
    report(a, lax.cos(np.float32(1)))
    """
    outcome = process(tmp_path, code)
    assert len(outcome.values) == 2 and len(outcome.said) <= 1 and not kept(tmp_path)


def test_a_chosen_folder(tmp_path):
    chosen = tmp_path / "chosen"
    process(tmp_path, PRIMAX_COMPILATION_CACHE_DIR=chosen)
    assert len(list(chosen.glob("*.xla"))) == 1 and not (tmp_path / CACHE_FOLDER).exists()
    code = f"px.config.update('compilation_cache_dir', {str(chosen)!r})\n" + SIN
    assert process(tmp_path, code).fetched == 1


# Processes


def test_the_last_executable_is_written_before_exit(tmp_path):
    process(tmp_path, "lax.sin(np.float32(1)); print(json.dumps([done, said, []]))")
    assert len(kept(tmp_path)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_neither_waits_nor_writes(tmp_path):
    code = """
    import warnings
    warnings.simplefilter("ignore")
    before = lax.sin(np.float32(1))
    child = os.fork()
    if not child:
        writer.finish(30)   # the parent's thread does not exist here
        float(before)
        os._exit(7 if writer._queue.jobs else 0)
    assert os.waitpid(child, 0)[1] == 0
    report(before)
    """
    process(tmp_path, code)
    assert len(kept(tmp_path)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_before_the_first_operation(tmp_path):
    code = """
    child = os.fork()
    if not child:
        lax.sin(np.float32(1))
        writer.finish()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    report(lax.sin(np.float32(1)))
    """
    assert process(tmp_path, code).fetched == 1


def test_a_vendored_copy_may_share_the_folder(tmp_path):
    """Its sources differ, so it has its own links; equal modules are compiled once."""
    process(tmp_path)
    other = process(tmp_path, 'source_fingerprint._stamp = ("another package",)\n' + SIN)
    assert (other.lowered, other.fetched) == (1, 1)
    assert len(kept(tmp_path)) == 1 and len(kept(tmp_path, ".link")) == 2


def test_compilations_are_logged_for_cached_executables(tmp_path):
    for _ in range(2):
        outcome = process(tmp_path, PRIMAX_LOG_COMPILES=1)
        assert any("Finished XLA compilation of jit(sin)" in line for line in outcome.said)


def test_the_size_limit_applies_to_written_files(tmp_path):
    code = """
    for i in range(12):
        px.jit(lambda x, i=i: lax.sin(x) * float(i))(np.float32(1))
        writer.finish()
    report()
    """
    limit = 6 * 8192
    process(tmp_path, code, PRIMAX_COMPILATION_CACHE_MAX_SIZE=limit)
    assert 2 <= len(kept(tmp_path)) <= 6
    assert sum(-(-p.stat().st_size // 4096) * 4096 for p in kept(tmp_path, "*")) <= limit


def test_equal_programs_of_other_files_and_lines_share_an_executable(tmp_path):
    code = """
def f(x):
    return lax.sin(x) * 2
report(px.jit(f)(1.0))
"""
    other = code.replace("f(x)", "f(argument)").replace("sin(x)", "sin(argument)")
    first = process(tmp_path, code)
    second = process(tmp_path, "\n\n\n" + other)
    assert (first.lowered, first.fetched) == (1, 0)
    assert (second.lowered, second.looked_for, second.fetched) == (0, 0, 1)
    assert second.values == first.values
    without_link = process(tmp_path, "source_fingerprint._stamp = None\n\n" + other)
    assert (without_link.lowered, without_link.fetched) == (1, 1)
    exact = process(tmp_path, other, PRIMAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY=1)
    assert (exact.lowered, exact.fetched) == (1, 0)


NESTED = """
def nested(x, depth):
    if not depth:
        return x + 1
    return lax.cond(x > depth, lambda x: nested(x, depth - 1), lambda x: x - depth, x)
f = px.jit(lambda x: nested(x, DEPTH))
report(f(np.float32(100)))
"""


@pytest.mark.parametrize(("depth", "stored"), [(20, 1), (40, 0)])
def test_what_jaxlib_cannot_read_again_is_not_written(tmp_path, depth, stored):
    """jaxlib reads executables with up to about 32 nested conditionals."""
    for _ in range(2):
        outcome = process(tmp_path, NESTED.replace("DEPTH", str(depth)))
        assert outcome.values == [101] and not outcome.said
    assert outcome.fetched == stored and len(kept(tmp_path)) == stored


@posix
def test_files_that_the_cache_did_not_write(tmp_path):
    """Neither a file that claims a terabyte nor a named pipe is read."""
    first = process(tmp_path)
    (path,) = kept(tmp_path)
    (link,) = kept(tmp_path, ".link")
    for victim in (path, link):
        for make in (
            lambda p: os.truncate(p, 1 << 40),
            lambda p: (p.unlink(), os.mkfifo(p, 0o600)),
        ):
            process(tmp_path)
            make(victim)
            outcome = process(tmp_path)
            assert outcome.values == first.values and "damaged" in outcome.said[0]
            assert victim.is_file() and victim.stat().st_size < 1 << 20
