"""``explain``: what a function's program is, what it costs, and what became of it."""
