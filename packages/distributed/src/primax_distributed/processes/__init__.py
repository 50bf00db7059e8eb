"""Several processes that compute together: joining, leaving, and going on after a death."""

from ._errors import (
    JoinError as JoinError,
    ProcessFailure as ProcessFailure,
    ProgramMismatchError as ProgramMismatchError,
)
from ._generations import Generation as Generation, generations as generations
from ._initialize import (
    initialize as initialize,
    is_initialized as is_initialized,
    member as member,
    shutdown as shutdown,
)
