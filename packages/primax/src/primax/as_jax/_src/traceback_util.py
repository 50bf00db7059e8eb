"""Traceback filtering."""

from primax._adapters.frames import (
    api_boundary as api_boundary,
    exclude_paths,
    include_frame as include_frame,
    register_exclusion as register_exclusion,
)

_exclude_paths = exclude_paths
