"""Source locations and named scopes of operations."""

from primax.extend.source_info_util import *
