"""The version of the reference that the facade follows."""

from ._top import VERSION as __version__, VERSION_INFO as __version_info__

__all__ = ["__version__", "__version_info__"]
