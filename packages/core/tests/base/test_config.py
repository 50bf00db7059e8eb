"""Options: values, overrides, threads, and the keys of caches."""

import os
import subprocess
import sys
import threading

import pytest

from primax_core._base import config, options


@pytest.fixture
def restored():
    """Restore all options after the test."""
    before = {name: config.read_global(name) for name in config.options()}
    yield
    for name, value in before.items():
        config.update(name, value)


def in_thread(fun):
    """Return the result of a call in a new thread."""
    result = []
    thread = threading.Thread(target=lambda: result.append(fun()))
    thread.start()
    thread.join()
    return result[0]


def test_update_changes_value_and_keys(restored):
    key, trace_key = config.state.key, config.state.trace_key
    config.update("enable_x64", True)
    assert config.state.enable_x64 is True
    assert config.config.enable_x64 is True
    assert config.state.key is not key
    assert config.trace_key() is not trace_key
    config.update("enable_x64", False)
    assert config.state.key is key
    assert config.trace_key() is trace_key


def test_scopes_decide_which_key_changes():
    key, trace_key = config.state.key, config.state.trace_key
    with config.enable_checks(True):
        assert config.state.key is key
    with config.debug_nans(True):
        assert config.state.key is not key
        assert config.state.trace_key is trace_key
    with config.numpy_dtype_promotion("strict"):
        assert config.state.key is not key
        assert config.state.trace_key is not trace_key
    assert config.state.key is key


def test_equal_settings_give_the_identical_key():
    with config.enable_x64(True), config.debug_nans(True):
        first, first_trace = config.state.key, config.state.trace_key
    with config.debug_nans(True), config.enable_x64(True):
        assert config.state.key is first
        assert config.state.trace_key is first_trace
    with config.enable_x64(True):
        assert in_thread(lambda: config.state.key) is not config.state.key

    def other():
        with config.enable_x64(True), config.debug_nans():
            return config.state.key

    assert in_thread(other) is first


def test_override_is_thread_local_and_hides_updates(restored):
    with config.enable_x64(True):
        assert in_thread(lambda: config.state.enable_x64) is False
        config.update("enable_x64", False)
        assert config.state.enable_x64 is True
    assert config.state.enable_x64 is False
    with config.enable_x64(False):
        config.update("enable_x64", True)
        assert config.state.enable_x64 is False
        assert in_thread(lambda: config.state.enable_x64) is True
    assert config.state.enable_x64 is True


def test_update_reaches_running_threads(restored):
    ready, changed = threading.Event(), threading.Event()
    seen = []

    def work():
        seen.append((config.state.debug_nans, config.state.key))
        ready.set()
        changed.wait()
        seen.append((config.state.debug_nans, config.state.key))

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    config.update("debug_nans", True)
    changed.set()
    thread.join()
    assert [value for value, _ in seen] == [False, True]
    assert seen[1][1] is config.state.key


def test_overrides_nest_and_survive_errors():
    with config.numpy_rank_promotion("warn"):
        with pytest.raises(KeyError), config.numpy_rank_promotion("raise"):
            raise KeyError
        assert config.state.numpy_rank_promotion == "warn"
    assert config.state.numpy_rank_promotion == "allow"


def test_context_managers_are_reentrant():
    strict = config.numpy_dtype_promotion("strict")
    with strict, strict:
        assert config.state.numpy_dtype_promotion == "strict"
    assert config.state.numpy_dtype_promotion == "standard"


def test_decorator():
    @config.enable_x64(True)
    def f():
        """Doc."""
        return config.state.enable_x64

    assert f() is True
    assert f.__doc__ == "Doc."
    assert config.state.enable_x64 is False


def test_flags_default_to_true_and_other_options_require_an_argument():
    with config.checking_leaks():
        assert config.state.check_tracer_leaks is True
        assert config.state.checking_leaks is True
    with pytest.raises(TypeError, match="default_device config option requires an argument"):
        config.default_device()


def test_context_option_has_name_and_value():
    assert config.enable_x64.__name__ == "enable_x64"
    assert config.enable_x64.value is False
    assert "enable_x64" in repr(config.enable_x64)


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("nothing", 1, AttributeError, "Unrecognized config option: nothing"),
        (
            "numpy_rank_promotion",
            "x",
            ValueError,
            r"must be in \['allow', 'warn', 'raise'\], got x",
        ),
        ("default_matmul_precision", "x", ValueError, "must be None or in"),
        ("num_cpu_devices", "x", ValueError, "must be of type int"),
        ("num_cpu_devices", True, ValueError, "must be of type int"),
        ("enable_x64", "perhaps", ValueError, "takes True or False"),
        ("default_device", [], ValueError, "hashable"),
        ("platforms", 3, ValueError, "must be None or of type str"),
    ],
)
def test_bad_values(name, value, error, text):
    key = config.state.key
    with pytest.raises(error, match=text):
        config.update(name, value)
    assert config.state.key is key


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("enable_x64", 1, True),
        ("enable_x64", "false", False),
        ("default_matmul_precision", None, None),
        ("default_matmul_precision", "bf16_bf16_f32", "BF16_BF16_F32"),
        ("persistent_cache_min_compile_time_secs", 2, 2.0),
        ("platforms", "cpu", "cpu"),
    ],
)
def test_values_are_canonicalized(restored, name, argument, value):
    config.update(name, argument)
    assert getattr(config.state, name) == value
    assert type(getattr(config.state, name)) is type(value)


def test_a_bad_value_raises_when_the_context_manager_is_created():
    with pytest.raises(ValueError, match="new enum value"):
        config.numpy_rank_promotion("x")


def test_unknown_option_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Unrecognized config option: foo"):
        _ = config.config.foo
    with pytest.raises(AttributeError, match=r"config\.update"):
        config.config.enable_x64 = True


def test_listeners_run_before_updates_and_may_raise(restored):
    def refuse(value):
        assert config.read_global("random_seed_offset") == 0
        raise RuntimeError(f"no {value}")

    config.on_update("random_seed_offset", refuse)
    with pytest.raises(RuntimeError, match="no 3"):
        config.update("random_seed_offset", 3)
    assert config.state.random_seed_offset == 0
    config._listeners["random_seed_offset"].remove(refuse)


def test_other_wheels_define_options(restored, monkeypatch):
    monkeypatch.setenv("PRIMAX_TEST_OF_DEFINE", "7")
    before = config.state.key
    manager = config.define(options.Option("test_of_define", int, 3, options.TRACE, "a test"))
    assert config.state.test_of_define == 7
    assert in_thread(lambda: config.state.test_of_define) == 7
    assert config.state.key is before  # cached functions do not depend on it
    key = config.state.trace_key
    with manager(8):
        assert config.state.trace_key is not key
    assert config.state.trace_key is key
    with pytest.raises(ValueError, match="already defined"):
        config.define(options.Option("test_of_define", int, 3))


def from_environment(**variables):
    code = (
        "from primax_core._base.config import state;"
        "print(state.enable_x64, state.num_cpu_devices, state.default_matmul_precision)"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
    )


def test_environment_variables():
    done = from_environment(
        PRIMAX_ENABLE_X64="true", PRIMAX_NUM_CPU_DEVICES="8", PRIMAX_DEFAULT_MATMUL_PRECISION="high"
    )
    assert done.stdout.split() == ["True", "8", "high"], done.stderr


def test_error_names_the_bad_environment_variable():
    done = from_environment(PRIMAX_NUM_CPU_DEVICES="many")
    assert "PRIMAX_NUM_CPU_DEVICES='many' is not an integer" in done.stderr


def test_every_option_is_documented_and_its_default_is_valid():
    for option in options.OPTIONS:
        assert option.doc, option
        assert option.check(option.default) == option.default


def test_keys_print_the_changed_options_and_do_not_pickle():
    import pickle

    with config.enable_x64(True), config.debug_nans(True):
        assert "enable_x64=True" in repr(config.state.key)
        assert "debug_nans=True" in repr(config.state.key)
        with pytest.raises(TypeError, match="one process"):
            pickle.dumps(config.state.key)


def test_state_of_ended_threads_is_freed():
    import gc

    before = len(config._threads)
    for _ in range(5):
        in_thread(lambda: config.state.key)
    gc.collect()
    assert len(config._threads) <= before


def test_numbers_are_no_truth_values():
    with pytest.raises(ValueError, match="option enable_x64 takes True or False, got 3"):
        config.update("enable_x64", 3)
    with pytest.raises(ValueError, match="option debug_nans takes True or False, got -1"):
        config.debug_nans(-1)
    with config.debug_nans(1):
        assert config.state.debug_nans is True
