"""The reference's private module of partition specs."""

from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    if name == "UnconstrainedSingleton":
        from primax.sharding import PartitionSpec

        return type(PartitionSpec.UNCONSTRAINED)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
