"""``breakpoint``, and views of shardings."""
