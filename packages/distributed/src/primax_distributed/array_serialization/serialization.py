"""Reading and writing of arrays at addresses of tensorstore.

The functions leave atomicity and structure to the caller; :mod:`primax_distributed.checkpoint`
provides both.
"""

from ._manager import (
    GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase,
    run_deserialization as run_deserialization,
    run_serialization as run_serialization,
)
from ._specs import get_tensorstore_spec as get_tensorstore_spec
from ._transfers import async_deserialize as async_deserialize, async_serialize as async_serialize
