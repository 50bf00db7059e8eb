"""Errors about the mesh axes in types."""


class ShardingTypeError(TypeError):
    """The mesh axes in the types of operands do not fit together."""
