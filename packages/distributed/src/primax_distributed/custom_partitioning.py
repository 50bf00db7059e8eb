"""Functions with their own division over devices, and the sharding rules of their axes."""

from ._custom_partitioning import custom_partitioning as custom_partitioning
from ._custom_partitioning_p import custom_partitioning_p as custom_partitioning_p
from ._sharding_rule import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
)
