"""Recording of profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from primax_core.extend.runtime import api_boundary, clients, new_lock

from .data import ProfileData, checked_folder, write_profile
from .native import ProfileOptions, start_session
from .perfetto import serve_once

PathLike = str | os.PathLike[str]

_lock = new_lock()
_running: ProfileSession | None = None


class ProfileSession:
    """One profile: all threads between :meth:`start` and :meth:`stop`.

    Args:
      log_dir: folder for the profile when it stops, in the layout of TensorBoard and XProf; nothing
        is written without one.
      create_perfetto_link: on stopping, print a link that opens the trace in Perfetto, and wait
        until the trace is fetched.
      create_perfetto_trace: also write ``perfetto_trace.json.gz``.
      profiler_options: a ``ProfileOptions``: levels of tracing, among others.

    It is a context manager. A process records one profile at a time.

    >>> import numpy as np
    >>> from primax_core import lax
    >>> with ProfileSession() as session:
    ...     y = lax.sin(np.ones(3)).block_until_ready()
    >>> session.is_running
    False
    >>> session.profile_data.find_plane_with_name("/host:CPU").name
    '/host:CPU'
    """

    def __init__(
        self,
        log_dir: PathLike | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ):
        self._log_dir = None if log_dir is None else os.fspath(log_dir)
        self._link = create_perfetto_link
        self._perfetto = create_perfetto_trace or create_perfetto_link
        self._options = profiler_options
        self._session: Any = None
        self._data: ProfileData | None = None

    @property
    def is_running(self) -> bool:
        """True while the profile is recorded."""
        return self._session is not None

    @property
    def profile_data(self) -> ProfileData | None:
        """The profile, after it has stopped."""
        return self._data

    @api_boundary
    def start(self) -> ProfileSession:
        """Start recording.

        Raises:
          RuntimeError: if a profile is already being recorded.
          OSError: if the folder cannot be written to.
        """
        global _running
        if self._log_dir is not None:
            checked_folder(self._log_dir)
        clients()  # plug-ins register their profilers
        options = ProfileOptions() if self._options is None else self._options
        if not isinstance(options, ProfileOptions):
            raise TypeError(f"profiler_options must be a ProfileOptions, got {options!r}")
        with _lock:
            if _running is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at a time: stop "
                    "the other first."
                )
            self._session = start_session(options)
            _running = self
        return self

    @api_boundary
    def stop(self) -> ProfileData:
        """Stop recording, and write the files.

        Raises:
          RuntimeError: if the session is not running.
        """
        global _running
        with _lock:
            if self._session is None:
                raise RuntimeError("No profile started: this session is not running")
            session, self._session, _running = self._session, None, None
            self._data = ProfileData.from_serialized_xspace(session.stop())
        if self._log_dir is not None:
            session_id = self._options.session_id if self._options is not None else ""
            self._write(self._log_dir, session_id)
        elif self._link:
            raise ValueError("create_perfetto_link needs a log_dir to write the trace to")
        return self._data

    def _write(self, log_dir: str, session_id: str) -> None:
        assert self._data is not None
        path = write_profile(self._data, log_dir, session_id, self._perfetto)
        if self._link:
            serve_once(path)

    def export_profile_data(
        self,
        log_dir: PathLike,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the finished profile to a folder; see :func:`export_profile_data`."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.is_running:
            self.stop()


@api_boundary
def start_trace(
    log_dir: PathLike | None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> ProfileSession:
    """Start a profile, which :func:`stop_trace` stops and writes to ``log_dir``.

    Arguments and errors are those of :class:`ProfileSession`; the running session is returned.
    """
    session = ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    return session.start()


@api_boundary
def stop_trace() -> ProfileData:
    """Stop the profile that was started last, and write its files.

    Raises:
      RuntimeError: if no profile is running.
    """
    session = _running
    if session is None:
        raise RuntimeError("No profile started")
    return session.stop()


@contextmanager
def trace(
    log_dir: PathLike | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[ProfileSession]:
    """Context manager that records a profile of its body; arguments as :class:`ProfileSession`.

    >>> with trace() as session:
    ...     pass
    >>> session.profile_data is not None
    True
    """
    session = start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield session
    finally:
        if session.is_running:
            session.stop()


@api_boundary
def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: PathLike,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a profile to a folder, as :class:`ProfileSession` does.

    Args:
      profile_data: a profile, or a session that has stopped.
      session_id: name of the profile's folder; by default the time.

    Raises:
      TypeError: for other values.
      RuntimeError: for a session that has not stopped.
      OSError: if the folder cannot be written to.
    """
    if isinstance(profile_data, ProfileSession):
        data = profile_data.profile_data
        if data is None:
            raise RuntimeError("the session has no profile yet: stop it first")
        profile_data = data
    if not isinstance(profile_data, ProfileData):
        raise TypeError(
            f"Expected ProfileData or ProfileSession, got {type(profile_data).__name__}"
        )
    perfetto = create_perfetto_trace or create_perfetto_link
    path = write_profile(profile_data, checked_folder(log_dir), session_id, perfetto)
    if create_perfetto_link:
        serve_once(path)
