"""Arrays in tensorstore, with the reference's interface. See also :mod:`..checkpoint`."""

from . import pytree_serialization as pytree_serialization, serialization as serialization
