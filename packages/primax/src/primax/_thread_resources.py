"""The reference's record of ``with mesh:``, for libraries that read it."""

from __future__ import annotations

from typing import Any

from ._several_devices import of_wheel


class ResourceEnv:
    """The mesh of ``with mesh:``."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh of the innermost ``with mesh:`` in this thread, or an empty one."""
        return of_wheel(__name__, "entered_mesh")()

    def __repr__(self) -> str:
        return f"ResourceEnv(physical_mesh={self.physical_mesh!s})"


class ThreadResources:
    """The record of ``with mesh:`` in each thread."""

    env: ResourceEnv = ResourceEnv()


thread_resources: ThreadResources = ThreadResources()
