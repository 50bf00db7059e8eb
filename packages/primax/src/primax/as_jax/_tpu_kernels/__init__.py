"""``jax.experimental.pallas.ops.tpu``: attention with masks, imported on any platform.

The functions have the reference's signatures and results. They are ordinary operations, which run
on every platform, so sizes of blocks have no effect on them.
"""
