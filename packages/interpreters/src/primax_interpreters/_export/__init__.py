"""Export of functions as bytes that other processes, versions and machines can call."""
