"""Shardings."""

from primax_core.extend import SingleDeviceSharding as SingleDeviceSharding
