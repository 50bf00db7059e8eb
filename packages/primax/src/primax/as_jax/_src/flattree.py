"""Flat values in groups, which the reference's rules of ``scan`` receive as parameters."""

from primax._adapters.scan_groups import (
    FlatTree as FlatTree,
    enable as _enable,
    nones as nones,
    pack as pack,
)

_enable()
