"""The stages of a compiled function: traced, lowered, compiled."""

from typing import Any

from ._api.jit import JitFunction
from ._api.stages import (
    ArgInfo as ArgInfo,
    Compiled as Compiled,
    Lowered as Lowered,
    Traced as Traced,
)

Wrapped = JitFunction
CompilerOptions = dict[str, Any]
