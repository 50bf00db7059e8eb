"""Profiles of execution, on the host and on the devices, and of memory."""
