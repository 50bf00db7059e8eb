"""References: arrays whose contents change. Loaded on first use."""
