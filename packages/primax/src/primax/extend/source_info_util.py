"""Source locations and named scopes: the reference's ``jax.extend.source_info_util``."""

from __future__ import annotations

from primax_core.extend import register_internal_path

from .._adapters.naming import (
    NameStack as NameStack,
    SourceInfo as SourceInfo,
    current as current,
    current_name_stack as current_name_stack,
    extend_name_stack as extend_name_stack,
    new_name_stack as new_name_stack,
    new_source_info as new_source_info,
    reset_name_stack as reset_name_stack,
    set_name_stack as set_name_stack,
    summarize as summarize,
    transform_name_stack as transform_name_stack,
    user_context as user_context,
)


def register_exclusion(path: str) -> None:
    """Hide the code of a file or folder in source locations and tracebacks."""
    register_internal_path(path)
