"""Checkify."""

from primax_interpreters.checkify import *
from primax_interpreters.checkify import (
    Error as Error,
    JaxRuntimeError as JaxRuntimeError,
    checkify as checkify,
    user_checks as user_checks,
)

JaxException = JaxRuntimeError
