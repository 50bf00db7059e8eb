"""Clients and devices, and their start."""

import os

import numpy as np
import pytest
from processes import run

from primax_core._base.config import config
from primax_core._runtime import devices as module
from primax_core._runtime.devices import (
    default_backend,
    device_count,
    device_from_id,
    devices,
    local_device_count,
    local_devices,
    platform_of,
    process_count,
    process_index,
    process_indices,
    share_cpu_client,
)


def test_available_devices():
    available = devices()
    assert (
        available
        == local_devices()
        == devices("cpu")
        == local_devices(0)
        == local_devices(host_id=0)
    )
    assert isinstance(available, list) and len(available) == device_count() == local_device_count()
    assert default_backend() == platform_of(available[0]) == "cpu"
    assert (process_index(), process_count(), process_indices()) == (0, 1, [0])
    assert device_from_id("cpu", available[-1].id) is available[-1]
    assert np.array(available).shape == (len(available),) and available[:1] == [available[0]]


def test_unknown_platforms():
    with pytest.raises(
        RuntimeError, match=r"^Unknown backend foo. Available backends are \['cpu'\]"
    ):
        devices("foo")
    for name in ("gpu", "cuda"):
        with pytest.raises(RuntimeError, match=f"Unknown backend: '{name}' requested.*present are"):
            devices(name)
    with pytest.raises(ValueError, match=r"^Unknown process_index 3: the processes are \[0\]$"):
        local_devices(3)
    n = device_count()
    message = rf"no cpu device number {n}: the devices are \[CpuDevice.*num_cpu_devices"
    with pytest.raises(IndexError, match=message):
        devices()[n]
    with pytest.raises(ValueError, match="no cpu device number 99"):
        device_from_id("cpu", 99)


def test_number_of_cpu_devices_is_fixed_after_first_use():
    devices()
    before = config.num_cpu_devices
    with pytest.raises(RuntimeError, match=r"num_cpu_devices must be set before.*already"):
        config.update("num_cpu_devices", 17)
    assert config.num_cpu_devices == before
    config.update("num_cpu_devices", before)
    with pytest.raises(RuntimeError, match="started already"):
        share_cpu_client(devices()[0].client)


def test_number_of_cpu_devices():
    count = "from primax_core._runtime.devices import devices; print(len(devices()))"
    assert run(count) == "1"
    assert run(count, PRIMAX_NUM_CPU_DEVICES="3") == "3"
    assert run(count, XLA_FLAGS="--xla_force_host_platform_device_count=2") == "2"
    update = "from primax_core._base.config import config; config.update('num_cpu_devices', 5); "
    assert run(update + count, PRIMAX_NUM_CPU_DEVICES="3") == "5"


def test_importing_starts_nothing():
    printed = run("""
        import sys, threading, primax_core
        from primax_core._runtime import devices
        print(devices._clients, "jaxlib.mlir.ir" in sys.modules, threading.active_count())
    """)
    assert printed == "{} False 1"


def test_platforms():
    show = """
        from primax_core._runtime.devices import clients, devices
        try:
            print(list(clients()), devices()[0].platform)
        except RuntimeError as error:
            print(error)
    """
    assert run(show, PRIMAX_PLATFORMS="cpu") == "['cpu'] cpu"
    assert run(show, PRIMAX_PLATFORMS="cuda,cpu") == "['cpu'] cpu"
    assert "no platform of ['cuda'] could be started" in run(show, PRIMAX_PLATFORMS="cuda")


def test_the_first_start_is_thread_safe():
    printed = run("""
        import threading
        from primax_core._runtime.devices import clients, devices
        barrier, found = threading.Barrier(16), []
        def start():
            barrier.wait()
            found.append((clients()["cpu"], devices()[0]))
        threads = [threading.Thread(target=start) for _ in range(16)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(len(found), len(set(map(id, (c for c, _ in found)))), len({d for _, d in found}))
    """)
    assert printed == "16 1 1"


def test_threads_compute_concurrently():
    printed = run("""
        import threading
        import numpy as np
        from primax_core import jit
        from primax_core._runtime.array import put
        barrier, found = threading.Barrier(8), []
        f = jit(lambda x: x * 2 + 1)
        def compute(i):
            barrier.wait()
            found.append(f(put(np.full(3, i, np.float32))).tolist()[0] == 2 * i + 1)
        threads = [threading.Thread(target=compute, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(found.count(True))
    """)
    assert printed == "8"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_raises():
    printed = run("""
        import os, warnings
        import numpy as np
        warnings.simplefilter("ignore")
        from primax_core import jit
        from primax_core._runtime.array import put
        x = put(np.arange(3, dtype=np.float32))
        f = jit(lambda x: x + 1)
        f(x)
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                old = x.tolist()
                f(x)
            except RuntimeError as error:
                os.write(w, f"{old} {error}".encode())
            os._exit(0)
        os.close(w)
        os.waitpid(pid, 0)
        print(os.read(r, 1000).decode())
    """)
    assert printed.startswith(
        "[0.0, 1.0, 2.0] this process was forked from one whose devices were already"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forking_before_the_first_use_works():
    printed = run("""
        import os, warnings
        import numpy as np
        warnings.simplefilter("ignore")
        from primax_core import jit
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(w, str(jit(lambda x: x * 3)(np.float32(2)).item()).encode())
            os._exit(0)
        os.close(w)
        os.waitpid(pid, 0)
        print(os.read(r, 1000).decode())
    """)
    assert printed == "6.0"


def test_copies_share_a_client():
    printed = run("""
        from primax_core._runtime import devices
        client = devices._make_cpu_client()
        devices.share_cpu_client(client)
        print(devices.devices()[0].client is client)
    """)
    assert printed == "True"


def test_a_started_client_is_not_restarted():
    assert module.clients() is module.clients()


def test_results_of_callbacks_have_the_device_of_the_arguments():
    printed = run(
        """
        import numpy as np
        import primax_core as px
        one, two = px.devices()
        x = px.device_put(np.ones(3, np.float32), two)
        called = lambda x: px.pure_callback(lambda x: np.asarray(x), x, x)
        noted = lambda x: px.io_callback(lambda x: np.asarray(x), x, x)
        for f in (called, px.jit(called), noted, px.jit(noted)):
            assert f(x).devices() == {two} and f(x).committed, f
            assert f(np.ones(3, np.float32)).devices() == {one}
        try:
            px.pure_callback(lambda x, y: x, x, x, px.device_put(np.ones(3, np.float32), one))
        except ValueError as e:
            print(str(e).partition(":")[0])
        """,
        PRIMAX_NUM_CPU_DEVICES="2",
    )
    assert printed == "Received incompatible devices for one computation"
