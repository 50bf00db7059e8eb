"""The class of the runtime's errors, under its former name."""

from primax.errors import JaxRuntimeError as JaxRuntimeError

XlaRuntimeError = JaxRuntimeError
