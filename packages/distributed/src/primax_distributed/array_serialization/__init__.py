"""Arrays in tensorstore, with the reference's interface. See also :mod:`..checkpoint`."""

from . import serialization as serialization
