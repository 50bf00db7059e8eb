"""Utilities for sequences."""

from primax._adapters.sequences import (
    merge_lists as merge_lists,
    partition_list as partition_list,
    safe_map as safe_map,
    safe_zip as safe_zip,
    split_list as split_list,
    unzip2 as unzip2,
    unzip3 as unzip3,
)
