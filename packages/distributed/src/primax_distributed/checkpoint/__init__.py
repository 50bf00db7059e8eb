"""Checkpoints of sharded arrays: atomic, asynchronous, restored on any mesh or as NumPy arrays.

It needs tensorstore: ``pip install 'primax-distributed[checkpoint]'``.
"""

from ._async import AsyncCheckpointer as AsyncCheckpointer
from ._errors import CheckpointDamagedError as CheckpointDamagedError
from ._errors import CheckpointError as CheckpointError
from ._errors import CheckpointExistsError as CheckpointExistsError
from ._errors import CheckpointMismatchError as CheckpointMismatchError
from ._errors import CheckpointNotFoundError as CheckpointNotFoundError
from ._errors import CheckpointWriteError as CheckpointWriteError
from ._restore import restore as restore
from ._save import save as save
from ._steps import describe as describe
from ._steps import prune as prune
from ._steps import steps as steps
