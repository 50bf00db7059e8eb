"""Tests that programs with ``import jax`` run on Primax, only in processes that request it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import primax
from primax.as_jax import VERSION

PROGRAM = """
import sys
import jax
from jax import lax
import jax.tree_util as jtu
print(jax.__version__, jax.grad(lambda x: lax.sin(x))(0.0), jtu is jax.tree_util, sys.argv[1:])
"""


def python(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        text=True,
        capture_output=True,
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PRIMAX_")}, **env},
    )


def output(*arguments: str, **more) -> str:
    done = python(*arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def as_jax(code: str, **more) -> str:
    return output("-m", "primax.as_jax", "-c", code, **more)


class TestInvocation:
    expected = f"{VERSION} 1.0 True ['a', '-b']"

    def test_a_program(self, tmp_path):
        (tmp_path / "beside.py").write_text("import jax\nNAME = jax.__name__\n")
        (tmp_path / "program.py").write_text(
            PROGRAM + "import beside\nassert beside.NAME == 'jax'\nassert __name__ == '__main__'\n"
        )
        text = output("-m", "primax.as_jax", str(tmp_path / "program.py"), "a", "-b")
        assert text == self.expected

    def test_a_module(self, tmp_path):
        (tmp_path / "tool.py").write_text(PROGRAM)
        assert output("-m", "primax.as_jax", "-m", "tool", "a", "-b", cwd=tmp_path) == self.expected

    def test_code(self):
        assert output("-m", "primax.as_jax", "-c", PROGRAM, "a", "-b") == self.expected

    def test_a_call(self):
        code = "import primax.as_jax as a; a.install(); a.install()\n" + PROGRAM
        assert output("-c", code, "a", "-b") == self.expected

    @pytest.mark.parametrize(
        "run",
        [
            ("-m", "pytest", "-p", "primax.as_jax.pytest"),
            ("-m", "primax.as_jax", "-m", "pytest"),
            ("-m", "primax.as_jax", "-m", "pytest", "-n", "1"),
        ],
        ids=["plugin", "module", "workers"],
    )
    def test_tests(self, run, tmp_path):
        (tmp_path / "conftest.py").write_text("import jax\n")
        (tmp_path / "test_it.py").write_text(
            "import jax, primax\n\ndef test_it():\n    assert jax.jit is primax.jit\n"
        )
        run = (
            "-m",
            "pytest",
            "-p",
            "primax.as_jax.pytest",
            "-p",
            "no:cacheprovider",
            str(tmp_path),
        )
        text = output(*run, cwd=tmp_path)
        assert "1 passed" in text and f"jax {VERSION}: Primax {primax.__version__}" in text

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "no program given"),
            (["-m"], "argument expected for -m"),
            (["-x"], "unknown option -x"),
            (["nowhere.py"], "can't open file 'nowhere.py'"),
        ],
    )
    def test_invalid_command_lines(self, arguments, said):
        done = python("-m", "primax.as_jax", *arguments)
        assert done.returncode == 2 and said in done.stderr and "usage:" in done.stderr

    def test_help(self):
        assert "program.py" in output("-m", "primax.as_jax", "--help")

    def test_program_exceptions_propagate(self):
        done = python("-m", "primax.as_jax", "-c", "import jax\nraise SystemExit(7)")
        assert done.returncode == 7


class TestWithTheRealJax:
    @pytest.fixture
    def real(self, tmp_path) -> str:
        """A folder with a fake package ``jax``, which represents the real one."""
        for name in ("jax", "jax/_src", "jax/numpy"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("REAL = True\n")
        (tmp_path / "jax" / "only_there.py").write_text("")
        return str(tmp_path)

    def test_primax_precedes_the_real_jax(self, real):
        code = (
            "import sys\nimport jax\nassert not hasattr(jax, 'REAL')\n"
            "from jax import _src\nassert not hasattr(_src, 'REAL')\n"
            "try:\n    import jax.only_there\nexcept ModuleNotFoundError as e:\n    print(e)\n"
        )
        expected = "No module named 'jax.only_there': Primax has no counterpart"
        assert as_jax(code, PYTHONPATH=path(real)) == expected

    def test_install_raises_after_import_of_jax(self, real):
        code = "import jax, primax.as_jax as a\ntry: a.install()\nexcept ImportError as e: print(e)"
        said = output("-c", code, PYTHONPATH=path(real))
        assert said.startswith("jax is already imported, from ") and real in said
        assert "python -m primax.as_jax program.py" in said

    def test_process_without_install(self, real):
        code = (
            "import sys, primax, primax.lax\n"
            "assert not [m for m in sys.modules if m == 'jax' or m.startswith('jax.')]\n"
            "assert not [f for f in sys.meta_path if 'Jax' in type(f).__name__]\n"
            "assert 'primax.as_jax' not in sys.modules\n"
            "import jax\nassert jax.REAL\n"
        )
        output("-c", code, PYTHONPATH=path(real))

    def test_child_processes_are_unaffected(self, real):
        code = (
            "import subprocess, sys, jax\n"
            "subprocess.run([sys.executable, '-c', 'import jax; print(jax.REAL)'], check=True)"
        )
        assert as_jax(code, PYTHONPATH=path(real)) == "True"

    def test_uninstall(self, real):
        code = (
            "import primax.as_jax as a; a.install()\nimport jax, jax.lax\na.uninstall()\n"
            "import jax as real\nassert real.REAL and not hasattr(jax, 'REAL') and jax.lax"
        )
        output("-c", code, PYTHONPATH=path(real))


def path(first: str) -> str:
    return os.pathsep.join([first, *filter(None, [os.environ.get("PYTHONPATH")])])


class TestModules:
    def test_modules_are_shared_with_the_facade(self):
        as_jax(
            "import jax, primax, jax.lax.linalg, jax.experimental.layout\n"
            "from jax.tree_util import tree_map\n"
            "assert jax.lax is primax.lax and jax.lax.linalg is primax.lax.linalg\n"
            "assert jax.experimental.layout is primax.experimental.layout\n"
            "assert tree_map is primax.tree_util.tree_map\n"
            "assert jax.lax.__spec__.name == 'primax_core.lax'\n"
            "assert {'jit', 'numpy', 'lib', 'version'} <= set(dir(jax))\n"
        )

    def test_versions(self):
        as_jax(
            "import jax, jax.version, importlib.metadata as m\n"
            "assert jax.__version__ == jax.version.__version__ == m.version('jax')\n"
            "assert jax.__version_info__ == tuple(map(int, jax.__version__.split('.')))\n"
            "import jaxlib\nassert jax.lib.__version__ == jaxlib.__version__\n"
            "assert m.version('numpy')\n"
        )

    @pytest.mark.parametrize(
        ("statement", "said"),
        [
            ("import jax.nothing", "No module named 'jax.nothing': Primax has no counterpart"),
            ("import jax._src.nothing", "private to the reference; Primax has no counterpart"),
            ("jax.nothing", "module 'jax' has no attribute 'nothing'"),
            ("from jax.sharding import nothing", "cannot import name 'nothing'"),
            ("jax.pmap(lambda x: x)(1.0)", "pmap"),
        ],
    )
    def test_missing_modules_raise(self, statement, said):
        code = f"import jax\ntry:\n    {statement}\nexcept Exception as e:\n    print(e)"
        assert said in as_jax(code)

    def test_names_can_be_patched(self):
        as_jax(
            "import jax, primax\nfrom unittest import mock\n"
            "with mock.patch('jax.jit', 1):\n    assert jax.jit == 1\n"
            "assert jax.jit is primax.jit\n"
        )

    def test_type_name_of_compiled_functions(self):
        as_jax(
            "import jax\n"
            "assert 'PjitFunction' in str(type(jax.jit(abs)))\n"
            "assert repr(jax.jit(abs)) == '<PjitFunction of <built-in function abs>>'\n"
        )
        code = (
            "import primax, primax.as_jax as a\nbefore = str(type(primax.jit(abs)))\n"
            "a.install(); a.uninstall()\nassert str(type(primax.jit(abs))) == before"
        )
        output("-c", code)


class TestOptions:
    def test_options_from_the_environment(self):
        code = "import jax; print(jax.config.jax_enable_x64, jax.config.jax_num_cpu_devices)"
        assert as_jax(code, JAX_ENABLE_X64="1", JAX_NUM_CPU_DEVICES="3") == "True 3"
        assert as_jax(code, JAX_ENABLE_X64="1", PRIMAX_ENABLE_X64="0").startswith("False")

    def test_options_that_the_program_sets_before_its_import(self):
        code = (
            "import os; os.environ['JAX_NUM_CPU_DEVICES'] = '3'; import jax; "
            "print(len(jax.devices()))"
        )
        assert as_jax(code) == "3"

    def test_invalid_environment_value_warns(self):
        done = python("-W", "always", "-m", "primax.as_jax", "-c", "0", JAX_ENABLE_X64="perhaps")
        assert done.returncode == 0
        assert "The environment variable JAX_ENABLE_X64='perhaps' is ignored" in done.stderr


class TestPrivateModules:
    """Names of private modules are found in the public modules that have them."""

    def test_modules_without_a_file(self):
        as_jax(
            "import jax, jax._src.lax.slicing as slicing\n"
            "from jax._src import api, stages, dlpack\n"
            "from jax._src.lax.control_flow.loops import scan_p, while_loop\n"
            "from jax._src.lax.lax import add_p, exp\n"
            "from jax._src.interpreters import partial_eval as pe\n"
            "import jax._src.export.shape_poly as shape_poly\n"
            "assert slicing.dynamic_slice is jax.lax.dynamic_slice\n"
            "assert slicing.gather_p is jax.extend.core.primitives.gather_p\n"
            "assert api.jit is jax.jit and api.vmap is jax.vmap\n"
            "assert stages.Compiled is jax.stages.Compiled\n"
            "assert while_loop is jax.lax.while_loop and exp is jax.lax.exp\n"
            "assert pe.dce_jaxpr is jax.interpreters.partial_eval.dce_jaxpr\n"
            "assert jax._src.lax.slicing is slicing\n"
        )

    def test_names_beside_those_of_a_file(self):
        as_jax(
            "import jax\nfrom jax._src import core, tree_util, custom_derivatives\n"
            "assert core.Primitive is jax.extend.core.Primitive\n"
            "assert tree_util.tree_map_with_path is jax.tree_util.tree_map_with_path\n"
            "assert custom_derivatives.custom_vjp is jax.custom_vjp\n"
        )

    def test_names_without_a_public_home(self):
        as_jax(
            "import inspect, jax\n"
            "from jax._src import array, core, effects, sharding_impls\n"
            "from jax._src.api_util import infer_argnums_and_argnames as infer\n"
            "sig = inspect.signature(lambda a, b, *args, c=1: None)\n"
            "assert infer(sig, (0,), None) == ((0,), ('a',))\n"
            "assert infer(sig, None, 'b') == ((1,), ('b',))\n"
            "assert infer(sig, None, None) == ((), ())\n"
            "assert array.Shape and array.Index and core.full_lower(3) == 3\n"
            "unspecified = sharding_impls.UNSPECIFIED\n"
            "assert isinstance(unspecified, sharding_impls.UnspecifiedValue)\n"
            "assert jax.jit(lambda x: x, in_shardings=unspecified)(3.0) == 3.0\n"
            "assert effects.lowerable_effects\n"
        )

    @pytest.mark.parametrize(
        ("statement", "said"),
        [
            ("from jax._src.core import nothing", "cannot import name 'nothing'"),
            ("import jax._src.api as api\napi.nothing", "has no attribute 'nothing'"),
            ("import jax._src.lax.nothing", "private to the reference; Primax has no counterpart"),
            ("import jax._src.pallas", "private to the reference; Primax has no counterpart"),
        ],
    )
    def test_missing_names_raise(self, statement, said):
        code = f"import jax\ntry:\n    exec({statement!r})\nexcept Exception as e:\n    print(e)"
        assert said in as_jax(code)
