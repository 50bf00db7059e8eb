"""Example libraries: models and training built from pure functions."""
