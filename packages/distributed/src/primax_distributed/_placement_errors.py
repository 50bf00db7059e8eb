"""Errors about the mesh axes in types."""

from primax_core.extend.runtime import ErrorWithPage


class ShardingTypeError(ErrorWithPage, TypeError, page=True):
    """The mesh axes in the types of operands do not fit together, or leave the result open.

    Raised while an operation is traced or called. The message names the operation, the types of its
    operands, and the argument or call that decides: ``out_sharding=``, ``reshard``, ``pcast``.
    """
