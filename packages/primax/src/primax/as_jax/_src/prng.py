"""Random key implementations; requires the NumPy wheel."""

from primax.extend.random import (
    rbg_prng_impl as rbg_prng_impl,
    threefry2x32_p as threefry2x32_p,
    threefry_2x32 as threefry_2x32,
    threefry_prng_impl as threefry_prng_impl,
    unsafe_rbg_prng_impl as unsafe_rbg_prng_impl,
)
