"""The noxfile is read on machines that have nox and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Reads the noxfile with a stand-in for nox and without any other package.
READ = """
import runpy, sys
from unittest.mock import MagicMock

own = {path.stem for path in __import__("pathlib").Path("tools").glob("*.py")}
standard = sys.stdlib_module_names | own

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in standard:
            raise ModuleNotFoundError(f"the noxfile needs {name}")

sys.modules["nox"] = sys.modules["nox.command"] = MagicMock()
sys.meta_path.insert(0, Refuse())
names = runpy.run_path("noxfile.py")
print(names["TEST_TOOLS"])
"""


def test_the_noxfile_needs_nothing_but_nox():
    done = subprocess.run([sys.executable, "-c", READ], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pytest" in done.stdout
