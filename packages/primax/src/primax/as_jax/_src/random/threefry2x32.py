"""Seeds, bits and keys of the default generator, on arrays of key words."""

from typing import Any as _Any

from primax.extend.random import (
    threefry2x32_p as threefry2x32_p,
    threefry_2x32 as threefry_2x32,
    threefry_prng_impl as _implementation,
)

threefry_seed: _Any = _implementation.seed
threefry_split: _Any = _implementation.split
threefry_fold_in: _Any = _implementation.fold_in
threefry_random_bits: _Any = _implementation.bits
