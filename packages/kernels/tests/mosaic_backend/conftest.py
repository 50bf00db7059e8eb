"""Modules that these tests share with those of the Triton backend."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "triton_backend"))
