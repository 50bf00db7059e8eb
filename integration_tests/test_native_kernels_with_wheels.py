"""Native kernels together with the other wheels: the facade, exports, several devices."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip(
    "primax_ffi_cpu", reason="native kernels need the wheel primax-ffi-cpu, and a C++ compiler"
)

import primax
import primax.numpy as jnp
from primax.export import deserialize, export

CALL = "primax_cpu_"
X = np.random.default_rng(0).normal(size=(64, 4096)).astype(np.float32)


def run(code: str, **environment: str) -> str:
    """Run code in a new interpreter and return its output; errors and crashes fail."""
    env = {k: v for k, v in os.environ.items() if k != "PRIMAX_NATIVE"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**env, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def test_the_facade_uses_the_kernels():
    assert CALL in primax.jit(lambda x: jnp.cumsum(x, 1)).lower(X).as_text()
    with primax.native_kernels(False):
        assert CALL not in primax.jit(lambda x: jnp.cumsum(x, 1)).lower(X).as_text()


@pytest.mark.parametrize(("value", "imported"), [("0", "False"), ("False", "False"), ("1", "True")])
def test_an_environment_variable_keeps_the_facade_from_using_them(value, imported):
    code = "import sys, primax; print('primax_ffi_cpu' in sys.modules)"
    assert run(code, PRIMAX_NATIVE=value) == imported


def test_the_facade_works_beside_an_installation_that_cannot_be_used(tmp_path):
    (tmp_path / "primax_ffi_cpu").mkdir()
    (tmp_path / "primax_ffi_cpu" / "__init__.py").write_text("raise ImportError('it is broken')")
    text = run(f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import primax.numpy as jnp
        print(*[w.message for w in caught if "primax-ffi-cpu" in str(w.message)])
        print(jnp.cumsum(jnp.ones(3)).tolist())
    """)
    assert text.splitlines() == [
        "primax-ffi-cpu is installed but cannot be used, so operations run without its kernels: "
        "it is broken",
        "[1.0, 2.0, 3.0]",
    ]


def test_exported_functions_do_not_need_the_kernels():
    exported = export(primax.jit(lambda x: jnp.cumsum(x, 1)))(X)
    assert CALL not in exported.mlir_module()
    np.testing.assert_allclose(
        deserialize(exported.serialize()).call(X), jnp.cumsum(X, 1), rtol=1e-4, atol=1e-3
    )


def test_several_devices():
    out = run(
        """
        import numpy as np
        import primax
        import primax.numpy as jnp
        from primax.sharding import NamedSharding, PartitionSpec as P

        x = np.random.default_rng(0).normal(size=(64, 4096)).astype(np.float32)
        mesh = primax.make_mesh((8,), ("x",))
        divided = primax.device_put(x, NamedSharding(mesh, P("x")))
        automatic = primax.jit(lambda x: jnp.cumsum(x, 1))
        specs = {"in_specs": P("x"), "out_specs": P("x")}
        manual = primax.jit(primax.shard_map(lambda x: jnp.cumsum(x, 1), mesh=mesh, **specs))
        expected = np.cumsum(x.astype(np.float64), 1)
        for f in (automatic, manual):
            lowered = f.lower(divided)
            compiled = lowered.compile().as_text()
            print("primax_cpu_" in lowered.as_text(), "all-gather" in compiled)
            np.testing.assert_allclose(f(divided), expected, rtol=1e-3, atol=1e-2)
        """,
        XLA_FLAGS=os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8",
    )
    assert out.splitlines() == ["False False", "True False"]
