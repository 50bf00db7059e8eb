"""References: mutable arrays. Imported on first use."""
