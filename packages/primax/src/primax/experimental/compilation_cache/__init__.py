"""The cache of executables on disk: the reference's ``jax.experimental.compilation_cache``."""
