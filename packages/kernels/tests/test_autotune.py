"""Functions whose configuration is chosen by measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from primax_core import ShapeDtypeStruct, config, grad, jit, lax, vmap
from primax_kernels import (
    Autotuned,
    BlockSpec,
    autotune,
    export_table,
    load_table,
    pallas_call,
    tune_kernels,
    unload_tables,
)
from primax_kernels._tuning import candidates, identity, store
from primax_kernels._tuning.measuring import Timing

F32 = np.float32


def scaled(x: Any, *, rows: int, factor: int = 2) -> Any:
    """``factor * x`` in blocks of rows, which divide them."""
    if x.shape[0] % rows:
        raise ValueError(f"{rows} rows do not divide {x.shape[0]}")

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = F32(factor) * x_ref[...]

    block = BlockSpec((rows,), lambda i: i)
    return pallas_call(
        kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=x.shape[0] // rows, in_specs=[block],
        out_specs=block,
    )(x)  # fmt: skip


def array(n: int = 16) -> Any:
    return np.arange(n, dtype=F32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder of results."""
    before = config.kernel_tuning_dir
    config.update("kernel_tuning_dir", str(tmp_path))
    yield tmp_path
    config.update("kernel_tuning_dir", before)
    unload_tables()


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Any, float]], None]:
    """Set the times of configurations, by the value of their first parameter."""

    def fix(seconds: dict[Any, float]) -> None:
        def time_all(listed: Any, args: Any, **how: Any) -> None:
            for c in listed:
                if c.compiled is not None:
                    c.compiled(*args)
                    c.timing = Timing([seconds[next(iter(c.config.values()))]])

        monkeypatch.setattr("primax_kernels._tuning.autotuned.time_all", time_all)

    return fix


def test_the_first_configuration_is_the_default() -> None:
    f = autotune(scaled, configs={"rows": (8, 4)})
    assert f.config(array()) == {"rows": 8}
    assert f.config_origin(array()) == "default"
    np.testing.assert_array_equal(f(array()), 2 * array())


def test_the_fastest_is_used(times: Any) -> None:
    times({8: 3.0, 4: 1.0, 2: 2.0})
    f = autotune(scaled, configs={"rows": (8, 4, 2)})
    result = f.tune(array())
    assert result.config == {"rows": 4} and result.seconds == 1.0
    assert [m.config["rows"] for m in result.measured] == [4, 2, 8]
    assert f.config(array()) == {"rows": 4}
    assert f.config(array(8)) == {"rows": 8}
    assert f.config_origin(array()) == "measurement"
    assert str(result).splitlines()[1].strip() == "1000000.0 us  rows=4"


def test_measured_on_this_cpu() -> None:
    f = autotune(scaled, configs={"rows": (8, 16)}, rtol=1e-6)
    result = f.tune(array(), rounds=3)
    assert result.config in ({"rows": 8}, {"rows": 16})
    assert 0 < result.seconds < 1 and result.device.startswith("cpu ")
    assert len(result.measured[0].samples) == 3
    np.testing.assert_array_equal(f(array()), 2 * array())


def test_as_a_decorator_with_options() -> None:
    @autotune(configs=[{"rows": 4}, {"rows": 2}], name="acme.scaled")
    def g(x: Any, *, rows: int, factor: int = 2) -> Any:
        """Docs."""
        return scaled(x, rows=rows, factor=factor)

    assert isinstance(g, Autotuned) and g.__name__ == "g" and g.__doc__ == "Docs."
    np.testing.assert_array_equal(g(array(), factor=3), 3 * array())
    np.testing.assert_array_equal(g(array(), factor=5), 5 * array())
    assert repr(g) == "<autotuned acme.scaled>"


def test_transformations_only_look_up(times: Any) -> None:
    times({8: 2.0, 4: 1.0})
    seen: list[int] = []

    @autotune(configs={"rows": (8, 4)})
    def f(x: Any, *, rows: int) -> Any:
        seen.append(rows)
        return scaled(x, rows=rows)

    with tune_kernels(True):
        jit(f)(array())
        vmap(f)(np.stack([array()] * 2))
        grad(lambda x: lax.reduce_sum(f(x), (0,)))(array())
    assert set(seen) == {8}
    f.tune(array())
    seen.clear()
    np.testing.assert_array_equal(jit(f)(array()), 2 * array())
    assert vmap(f)(np.stack([array()] * 2)).shape == (2, 16)
    gradient = grad(lambda x: lax.reduce_sum(f(x), (0,)))(array())
    np.testing.assert_array_equal(gradient, np.full(16, 2, F32))
    assert set(seen) == {4}


def test_calls_measure_if_the_option_is_set(times: Any) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    f(array())
    assert f.config_origin(array()) == "default"
    with tune_kernels(True):
        f(array())
    assert f.config(array()) == {"rows": 4}


def test_measuring_traced_values_is_refused() -> None:
    f = autotune(scaled, configs={"rows": (8, 4)})
    with pytest.raises(TypeError, match="tune measures with concrete arrays, and got a traced one"):
        jit(lambda x: f.tune(x).seconds)(array())


def test_measuring_with_shapes_alone(times: Any) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    f.tune(ShapeDtypeStruct((16,), F32))
    assert f.config(array()) == {"rows": 4}


# Invalid configurations


def test_invalid_configurations_are_left_out(times: Any) -> None:
    times({8: 1.0})
    f = autotune(scaled, configs={"rows": (5, 8, 0)})
    result = f.tune(array())
    assert result.config == {"rows": 8}
    left_out = {m.config["rows"]: m.reason for m in result.measured[1:]}
    assert left_out[5] == "refused: ValueError: 5 rows do not divide 16"
    assert left_out[0].startswith("refused: ZeroDivisionError")
    assert "rows=5  (refused" in str(result)


def test_invalid_blocks_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    compile_one = candidates._compile
    monkeypatch.setattr(candidates, "_compile", lambda c: (compiled.append(c), compile_one(c)))

    @autotune(configs={"block": ((4,), (4, 4), (8,))})
    def f(x: Any, *, block: tuple[int, ...]) -> Any:
        spec = BlockSpec(block, lambda i: i)

        def kernel(x_ref: Any, out_ref: Any) -> None:
            out_ref[...] = x_ref[...]

        return pallas_call(
            kernel, ShapeDtypeStruct(x.shape, x.dtype), grid=16 // block[0], in_specs=[spec],
            out_specs=spec,
        )(x)  # fmt: skip

    result = f.tune(array(), rounds=1)
    assert [c.config["block"] for c in compiled] == [(4,), (8,)]
    assert "refused: ValueError" in result.measured[-1].reason


def test_no_valid_configuration() -> None:
    f = autotune(scaled, configs={"rows": (5, 7)})
    with pytest.raises(RuntimeError, match=r"no configuration of .*scaled can be used") as info:
        f.tune(array())
    assert "rows=7: refused: ValueError: 7 rows do not divide 16" in str(info.value)
    assert isinstance(info.value.__cause__, ValueError)
    assert f.config_origin(array()) == "default"


def test_wrong_results_are_left_out(times: Any) -> None:
    times({8: 3.0, 4: 1.0, 2: 2.0})

    @autotune(configs={"rows": (8, 4, 2)}, rtol=1e-6)
    def f(x: Any, *, rows: int) -> Any:
        return scaled(x, rows=rows, factor=2 if rows != 4 else 3)

    result = f.tune(array())
    assert result.config == {"rows": 2}
    assert result.measured[-1].reason == (
        "wrong: result 0 differs in 15 of 16 elements from the results with rows=8"
    )
    unchecked = autotune(f.__wrapped__, configs={"rows": (8, 4, 2)}, name="unchecked")
    assert unchecked.tune(array()).config == {"rows": 4}


def test_the_configuration_in_errors_of_calls() -> None:
    f = autotune(scaled, configs={"rows": (5, 8)})
    with pytest.raises(ValueError, match="5 rows do not divide") as info:
        f(array())
    assert any("called with rows=5 (origin: default)" in note for note in info.value.__notes__)


# Configurations


class FromTriton:
    """A configuration in the form of the package ``triton``."""

    def __init__(self, **values: Any):
        self.values = values

    def all_kwargs(self) -> dict[str, Any]:
        return self.values


def test_spellings_of_configurations() -> None:
    assert autotune(scaled, configs=[FromTriton(rows=4)]).config(array()) == {"rows": 4}
    f = autotune(scaled, configs=lambda x: [{"rows": x.shape[0] // 2}])
    assert f.config(array()) == {"rows": 8} and f.config(array(8)) == {"rows": 4}
    f = autotune(scaled, configs={"rows": [4, 8]}, default={"rows": 8})
    assert f.config(array()) == {"rows": 8}
    f = autotune(scaled, configs={"rows": [4]}, default=lambda x: {"rows": x.shape[0]})
    assert f.config(array()) == {"rows": 16}


@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        ([], ValueError, "configs has no configuration"),
        ({"rows": 4}, TypeError, "a sequence of values for each name, got rows=4"),
        ([{"rows": 4}, {"cols": 4}], ValueError, "the same names"),
        ([{"rows": F32}], TypeError, "which can be stored as JSON"),
        ([4], TypeError, "a configuration is a mapping"),
        ([{4: 4}], TypeError, "names of parameters are strings"),
        ("rows", TypeError, "configs is a sequence of mappings"),
    ],
)
def test_wrong_configurations(configs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        autotune(scaled, configs=configs)(array())


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="autotune takes a function of arrays, got 3"):
        autotune(3, configs=[{}])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="key is None, a function, or a sequence of names, got 'x'"):
        autotune(scaled, configs={"rows": (4,)}, key="x")
    f = autotune(scaled, configs={"rows": (8,)})
    with pytest.raises(TypeError, match="is called with rows, which configurations choose"):
        f(array(), rows=8)
    with pytest.raises(TypeError, match="arguments by name are options and must be hashable"):
        f(array(), factor=[2])

    class Model:
        method = f

    with pytest.raises(TypeError, match="is a method"):
        Model().method(array())


# Keys


def test_keys(times: Any) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    f.tune(array(), factor=3)
    assert f.config_origin(array(), factor=3) == "measurement"
    assert f.config_origin(array()) == "default"
    assert f.config_origin(array().astype(np.int32), factor=3) == "default"

    by_name = autotune(scaled, configs={"rows": (8, 4)}, key=["x"], name="by name")
    by_name.tune(array(), factor=3)
    assert by_name.config_origin(array()) == "measurement"
    by_option = autotune(scaled, configs={"rows": (8, 4)}, key=("factor",), name="by option")
    by_option.tune(array(), factor=3)
    assert by_option.config_origin(array(32), factor=3) == "measurement"
    assert by_option.config_origin(array(32), factor=4) == "default"
    wrong = autotune(scaled, configs={"rows": (8, 4)}, key=["y"])
    with pytest.raises(ValueError, match="key has 'y', the call's arguments are x"):
        wrong.config(array())

    def size(x: Any) -> int:
        return 1 << (x.shape[0] - 1).bit_length()

    rounded = autotune(scaled, configs={"rows": (8, 4)}, key=size, name="rounded")
    rounded.tune(array(16))
    assert rounded.config_origin(ShapeDtypeStruct((12,), F32)) == "measurement"
    assert rounded.config_origin(array(8)) == "default"
    address = autotune(scaled, configs={"rows": (8, 4)}, key=lambda x: object())
    with pytest.raises(TypeError, match="return numbers, strings, or tuples of them"):
        address.config(array())


# Results on disk


def test_results_are_stored(times: Any, folder: Path) -> None:
    times({8: 2.0, 4: 1.0})
    autotune(scaled, configs={"rows": (8, 4)}).tune(array())
    again = autotune(scaled, configs={"rows": (8, 4)})
    assert again.config(array()) == {"rows": 4}
    assert again.config_origin(array()) == "measurement"
    (path,) = folder.iterdir()
    stored = json.loads(path.read_text())
    assert stored["key"] == "float32[16]" and stored["config"] == {"rows": 4}
    assert "jaxlib" in stored["versions"] and stored["seconds"] == 1.0


@pytest.mark.parametrize("what", ["source", "versions", "device", "kernel"])
def test_results_of_other_kernels_devices_and_versions(
    what: str, times: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    times({8: 2.0, 4: 1.0})
    autotune(scaled, configs={"rows": (8, 4)}).tune(array())
    name = None
    if what == "source":
        monkeypatch.setattr("primax_kernels._tuning.autotuned.source_of", lambda f: "another")
    elif what == "versions":
        monkeypatch.setattr("primax_kernels._tuning.autotuned.versions", lambda: "jaxlib 99")
    elif what == "device":
        monkeypatch.setattr(identity, "cpu_name", lambda: "cpu another")
    else:
        name = "another"
    again = autotune(scaled, configs={"rows": (8, 4)}, name=name)
    assert again.config_origin(array()) == "default"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kernel": 1}', '{"config": []}', "\udcff"], ids=range(6)
)
def test_damaged_files(text: str, times: Any, folder: Path) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    f.tune(array())
    (path,) = folder.iterdir()
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    again = autotune(scaled, configs={"rows": (8, 4)})
    with pytest.warns(UserWarning, match=r"the result of autotune in .* cannot be read"):
        assert again.config(array()) == {"rows": 8}
    again.tune(array())
    assert autotune(scaled, configs={"rows": (8, 4)}).config(array()) == {"rows": 4}


def test_folders_that_cannot_be_written(times: Any, folder: Path) -> None:
    times({8: 2.0, 4: 1.0})
    (folder / "file").write_text("")
    config.update("kernel_tuning_dir", str(folder / "file" / "below"))
    f = autotune(scaled, configs={"rows": (8, 4)})
    with pytest.warns(UserWarning, match="cannot be stored in"):
        f.tune(array())
    assert f.config(array()) == {"rows": 4}
    config.update("kernel_tuning_dir", "")
    f = autotune(scaled, configs={"rows": (8, 4)})
    f.tune(array())
    assert f.config(array()) == {"rows": 4}


def test_files_are_replaced_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "a.json"
    store.replace_text(path, "first")

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="no space"):
        store.replace_text(path, "second")
    assert path.read_text() == "first" and [p.name for p in folder.iterdir()] == ["a.json"]


def test_another_process_uses_the_result(folder: Path) -> None:
    (folder / "acme.py").write_text(
        "from primax_kernels import autotune\n"
        "@autotune(configs={'n': (1, 2)})\n"
        "def f(x, *, n):\n"
        "    if n == 1: raise ValueError('n')\n"
        "    return x\n"
    )
    env = {**os.environ, "PRIMAX_KERNEL_TUNING_DIR": str(folder / "results")}
    env["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])

    def run(code: str) -> str:
        code = f"import numpy as np, acme; x = np.ones(3, np.float32); {code}"
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("print(acme.f.tune(x, rounds=1).config)") == "{'n': 2}"
    assert run("print(acme.f.config(x), acme.f.config_origin(x))") == "{'n': 2} measurement"


def test_threads(times: Any) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(f.tune(array(n)).config))
        for n in (16, 24, 16, 32)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [{"rows": 4}] * 4


# Tables


def test_tables(times: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    f.tune(array())
    path = folder / "table" / "tuned.json"
    path.parent.mkdir()
    assert export_table(path, [f]) == 1
    monkeypatch.setattr(identity, "cpu_name", lambda: "cpu another")
    g = autotune(scaled, configs={"rows": (8, 4)})
    g.tune(array())
    assert export_table(path, [g]) == 2 == export_table(path, [g])
    monkeypatch.undo()

    config.update("kernel_tuning_dir", "")
    fresh = autotune(scaled, configs={"rows": (8, 4)})
    assert fresh.config_origin(array()) == "default"
    assert load_table(path) == 2
    assert fresh.config_origin(array()) == "table" and fresh.config(array()) == {"rows": 4}
    np.testing.assert_array_equal(fresh(array()), 2 * array())
    unload_tables()
    assert fresh.config_origin(array()) == "default"


def table_of(f: Autotuned, x: Any, **config: Any) -> dict[str, Any]:
    entry = {
        "kernel": f.name, "source": "", "key": identity.call_text((x,), {}), "versions": "",
        "device": identity.device_name(), "config": config, "seconds": None,
    }  # fmt: skip
    return {"format": "primax kernel configurations", "version": 1, "entries": [entry]}


def test_tables_are_preferred_and_may_have_other_configurations() -> None:
    f = autotune(scaled, configs={"rows": (8, 4)})
    load_table(table_of(f, array(), rows=2))
    with tune_kernels(True):
        np.testing.assert_array_equal(f(array()), 2 * array())
    assert f.config(array()) == {"rows": 2} and f.config_origin(array()) == "table"
    load_table(table_of(f, array(), columns=2))
    with pytest.raises(TypeError, match="columns") as info:
        f(array())
    assert "columns=2 (origin: table)" in info.value.__notes__[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "another"}, "is not a table of configurations"),
        ({"version": 9}, "has version 9 of the format, this package reads version 1"),
        ({"entries": 3}, "has no entries"),
        ({"entries": [3]}, "has a wrong entry: an entry is a mapping"),
        ({"entries": [{"kernel": 3}]}, "an entry has a text 'kernel', got 3"),
    ],
)
def test_wrong_tables(change: dict[str, Any], message: str) -> None:
    f = autotune(scaled, configs={"rows": (8, 4)})
    with pytest.raises(ValueError, match=message):
        load_table({**table_of(f, array(), rows=2), **change})
    assert f.config_origin(array()) == "default"


def test_wrong_files_of_tables(times: Any, folder: Path) -> None:
    times({8: 2.0, 4: 1.0})
    f = autotune(scaled, configs={"rows": (8, 4)})
    path = folder / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(ValueError, match=r"notes.txt is not a table of configurations"):
        load_table(path)
    with pytest.raises(FileNotFoundError):
        load_table(folder / "absent.json")
    with pytest.raises(ValueError, match="there are no results to export: call tune first"):
        export_table(path, [f])
    with pytest.raises(TypeError, match="export_table takes functions of autotune"):
        export_table(path, [scaled])  # type: ignore[list-item]
    f.tune(array())
    with pytest.raises(ValueError, match="is not a table of configurations"):
        export_table(path, [f])
    assert path.read_text() == "my notes"
