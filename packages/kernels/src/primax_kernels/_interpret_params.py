"""Parameters of evaluation step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Parameters of the reference's interpreter for TPUs, as the argument ``interpret``.

    Args:
      detect_races: evaluate the kernel step by step, with checks of each access. Otherwise it is
        compiled.
      uninitialized_memory: contents of memory before the first write: ``"nan"``.
      num_cores_or_threads: number of cores: 1.

    The other parameters are for the order of copies on several devices, which steps on a CPU do
    not have.

    Raises:
      ValueError: for contents or a number of cores that are not supported.
    """

    detect_races: bool = False
    on_race: str = "raise"
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"

    def __post_init__(self) -> None:
        supported = {
            "on_race": "raise", "skip_floating_point_ops": False, "uninitialized_memory": "nan",
            "num_cores_or_threads": 1, "logging_mode": None, "grid_point_recorder": None,
        }  # fmt: skip
        for name, value in supported.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"InterpretParams({name}={getattr(self, name)!r}) is not supported: kernels "
                    f"run with {name}={value!r}"
                )
