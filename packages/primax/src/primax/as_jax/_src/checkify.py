"""Checkify."""

from primax_core.checkify import *
from primax_core.checkify import Error as Error, checkify as checkify, user_checks as user_checks
