"""Derivatives along curves (``jet``): rules of primitives for which there is a shorter way than by
their forward derivatives. They are loaded when Taylor mode is first used."""

from . import control as control
from . import elementary as elementary
from . import products as products
