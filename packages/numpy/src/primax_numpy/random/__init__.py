"""Random numbers from explicit keys, equal to the reference's bit for bit."""

from ._keys import PRNGKey as PRNGKey
from ._keys import fold_in as fold_in
from ._keys import split as split
from ._samplers import bernoulli as bernoulli
from ._samplers import bits as bits
from ._samplers import normal as normal
from ._samplers import permutation as permutation
from ._samplers import uniform as uniform
