"""Start of plugins, and warnings for those that are not started. The plugins are fakes."""

import warnings

import pytest

from primax_core._runtime import custom_calls, plugin_start, plugins
from primax_core._runtime.jaxlib_versions import JAXLIB_VERSION, check_version

CUDA = ("xla_cuda13", "jax_plugins.xla_cuda13")
TPU = ("tpu", "libtpu")


@pytest.fixture
def installed(monkeypatch):
    """Install fake plugins: entry points, and a start function for each platform."""

    def install(entries, **starters):
        monkeypatch.setattr(plugins, "_entry_points", lambda: list(entries))
        monkeypatch.setattr(plugins, "_STARTERS", starters)

    return install


def fails(error):
    def start(module):
        raise error

    return start


def test_names():
    assert plugins.platforms_named("gpu") == ("cuda", "rocm", "gpu")
    assert plugins.platforms_named("cuda") == ("cuda", "gpu")
    assert plugins.platforms_named("mine") == ("mine",)
    names = {"xla_cuda13": "cuda", "cuda12": "cuda", "xla_rocm7": "rocm", "libtpu": "tpu", "x": "x"}
    assert {n: plugins.platform_in(n) for n in names} == names


def test_installed_plugins_are_started(installed):
    installed([CUDA, TPU, ("other", "other")], cuda=lambda m: ("cuda", m), tpu=lambda m: ("tpu", m))
    installed_plugins = {"cuda": ("cuda", CUDA[1]), "tpu": ("tpu", TPU[1])}
    assert plugins.start([]) == installed_plugins
    assert (
        plugins.start(["gpu", "cpu"])
        == plugins.start(["cuda"])
        == {"cuda": installed_plugins["cuda"]}
    )
    assert plugins.start(["cpu"]) == {}


def test_the_first_plugin_of_a_platform_wins(installed):
    installed([CUDA, ("xla_cuda12", "jax_plugins.xla_cuda12")], cuda=lambda m: m)
    assert plugins.start([]) == {"cuda": CUDA[1]}


def test_missing_hardware_is_ignored(installed):
    installed([CUDA], cuda=fails(plugins.Unavailable("no NVIDIA device")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plugins.start([]) == {}
    with pytest.raises(RuntimeError, match="platform cuda could not be started: no NVIDIA device"):
        plugins.start(["gpu"])


def test_a_broken_plugin_warns(installed):
    installed([CUDA, TPU], cuda=fails(OSError("libcudnn.so.9")), tpu=lambda m: m)
    with pytest.warns(UserWarning, match=r"plugin xla_cuda13 \(cuda\) is installed but.*libcudnn"):
        assert plugins.start([]) == {"tpu": "libtpu"}
    with pytest.raises(RuntimeError, match="platform cuda could not be started: libcudnn"):
        plugins.start(["cuda"])


def test_versions_of_plugins():
    own = ".".join(map(str, JAXLIB_VERSION))
    plugin_start.check_plugin_version("jax_cuda13_pjrt", own)
    plugin_start.check_plugin_version("jax_cuda13_pjrt", own + ".1")
    plugin_start.check_plugin_version("jax_cuda13_pjrt", None)
    with pytest.raises(RuntimeError, match=rf"0\.9\.0 does not belong to jaxlib {own}"):
        plugin_start.check_plugin_version("jax_cuda13_pjrt", "0.9.0")


def test_versions_of_jaxlib():
    for good in [(0, 10, 2), (0, 11, 2), (0, 12, 0)]:
        check_version(good)
    for bad in [(0, 10, 1), (0, 13, 0), (1, 0, 0)]:
        with pytest.raises(ImportError, match=r"pip install 'jaxlib>=0\.10\.2,<0\.13'"):
            check_version(bad)


def test_cuda_needs_its_library_and_a_device(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(plugins.Unavailable, match="jax_plugin_fake13 is not installed"):
        plugin_start.start_cuda("jax_plugin_fake13")
    (tmp_path / "jax_plugin_fake13").mkdir()
    (tmp_path / "jax_plugin_fake13" / "__init__.py").write_text("raise SystemExit")
    with pytest.raises(plugins.Unavailable, match=r"xla_cuda_plugin.so does not exist"):
        plugin_start.start_cuda("jax_plugin_fake13")
    (tmp_path / "jax_plugin_fake13" / "xla_cuda_plugin.so").touch()
    monkeypatch.setattr(plugin_start, "_has_nvidia_device", lambda: False)
    with pytest.raises(plugins.Unavailable, match="no NVIDIA device or driver"):
        plugin_start.start_cuda("jax_plugin_fake13")
    monkeypatch.setattr(plugin_start, "_has_nvidia_device", lambda: True)
    monkeypatch.setattr(plugin_start, "installed_version", lambda name: "0.9.0")
    with pytest.raises(RuntimeError, match="does not belong to jaxlib"):
        plugin_start.start_cuda("jax_plugin_fake13")


def test_order_of_starting_cuda(monkeypatch, tmp_path):
    done = []

    class Native:
        def __getattr__(self, name):
            return lambda *args: (done.append((name, args)), name)[1]

    monkeypatch.setattr(plugin_start, "beside", lambda module, file: tmp_path / file)
    monkeypatch.setattr(plugin_start, "_has_nvidia_device", lambda: True)
    monkeypatch.setattr(plugin_start, "installed_version", lambda name: None)
    monkeypatch.setattr(
        plugin_start, "_load_nvidia_libraries", lambda v: done.append(("libraries", v))
    )
    monkeypatch.setattr(plugin_start, "register_cuda_targets", lambda api, v: done.append((api, v)))
    monkeypatch.setattr(plugin_start, "_jax", Native())
    monkeypatch.setattr(
        plugin_start, "_register_profiler", lambda api: done.append(("profiler", api))
    )
    assert plugin_start.start_cuda("jax_plugins.xla_cuda13") == "get_c_api_client"
    name = plugin_start.private_name("cuda")
    assert [step[0] for step in done] == [
        "libraries", "load_pjrt_plugin", "profiler", "initialize_pjrt_plugin", "get_c_api_client",
        "load_pjrt_plugin",
    ]  # fmt: skip
    assert done[1][1] == (name, str(tmp_path / "xla_cuda_plugin.so"), None)
    assert name != "cuda" and name.endswith("_cuda")


def test_custom_calls_of_cuda(monkeypatch):
    import sys
    import types

    monkeypatch.setattr(plugins, "_running", {})
    registered = []
    extension = types.ModuleType("jax_cuda13_plugin.cuda_plugin_extension")
    extension.ffi_types = lambda: {"T": "type"}
    extension.ffi_handlers = lambda: {"h": "handler"}
    extension.register_custom_type = lambda *args: registered.append(args)
    extension.register_custom_call_target = lambda *args: registered.append(args)
    solver = types.ModuleType("jax_cuda13_plugin._solver")
    solver.registrations = lambda: {"s": "solve"}
    hybrid = types.ModuleType("jax_cuda13_plugin._hybrid")
    hybrid.registrations = lambda: {"e": {"instantiate": "i", "execute": "x"}}
    hybrid.initialize = lambda: registered.append("looked up LAPACK")
    package = types.ModuleType("jax_cuda13_plugin")
    package.__path__ = []
    for m in (package, extension, solver, hybrid):
        monkeypatch.setitem(sys.modules, m.__name__, m)
    plugin_start.register_cuda_targets("api", 13)
    assert plugins.running("cuda") == [("api", extension)]
    assert registered == [
        ("api", "T", "type"),
        ("api", "h", "handler", "CUDA", 1),
        ("api", "s", "solve", "CUDA", 1),
        ("api", "e", {"instantiate": "i", "execute": "x"}, "CUDA", 1),
    ]
    for _ in range(2):
        custom_calls.ensure(["cuda_hybrid"])
    assert registered.count("looked up LAPACK") == 1
    plugin_start.register_cuda_targets("another api", 13)
    custom_calls.ensure(["cuda_hybrid"])
    assert registered.count("looked up LAPACK") == 3
    custom_calls.renew(["cuda_hybrid"])


def test_entry_points_are_read_only_where_there_may_be_some(monkeypatch, tmp_path):
    monkeypatch.setattr(plugins.sys, "path", [str(tmp_path)])
    assert plugins._entry_points() == []
    (tmp_path / "libtpu").mkdir()
    assert plugins._entry_points() == [TPU]
