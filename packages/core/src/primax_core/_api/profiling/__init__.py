"""Profiles: what ran when, on the host and on the devices, and what lies in memory."""
