"""Exporting functions: as bytes that later processes and versions, and other machines, can call."""
