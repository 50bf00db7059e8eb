"""Options."""

from primax import config as config
