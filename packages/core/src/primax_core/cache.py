"""Command line of the cache of executables on disk.

``python -m primax_core.cache`` with one of ``info``, ``list``, ``verify``, ``clear`` and ``path``.
"""

from __future__ import annotations

import argparse
import sys
import time

from ._base.config import state
from ._base.identity import ENV_PREFIX
from ._runtime.disk import folder, store
from ._runtime.disk.files import Entry

__all__: list[str] = []


def _info(path: str) -> int:
    files = store.listing(path)
    limit = state.compilation_cache_max_size
    print(f"folder    {path}")
    print(f"in use    {'yes' if state.enable_compilation_cache else 'no: switched off'}")
    print(f"programs  {sum(f.name.endswith(store.EXECUTABLE) for f in files)}")
    print(f"links     {sum(f.name.endswith(store.LINK) for f in files)}")
    print(f"bytes     {sum(f.size for f in files)}")
    print(f"at most   {store.DEFAULT_LIMIT if limit < 0 else limit}")
    return 0


def _list(path: str) -> int:
    now = time.time()
    for file, contents in store.check(path):
        if isinstance(contents, bytes):
            continue
        age = f"{max(0.0, now - file.used) / 3600:9.1f} h"
        if isinstance(contents, Entry):
            needs = " ".join(contents.needs)
            about = f"{contents.platform} {contents.version} {contents.name} {needs}".rstrip()
        else:
            about = f"damaged: {contents}"
        print(f"{file.name[:12]} {file.size:10} {age}  {about}")
    return 0


def _verify(path: str) -> int:
    count = damaged = 0
    for file, contents in store.check(path):
        count += 1
        if isinstance(contents, str):
            damaged += 1
            print(f"{file.name}: {contents}")
    print(f"{count} files, {damaged} damaged")
    return 1 if damaged else 0


def _clear(path: str) -> int:
    count, size = store.clear(path)
    print(f"removed {count} files, {size} bytes")
    return 0


def _path(path: str) -> int:
    print(path)
    return 0


_COMMANDS = {
    "info": (_info, "the folder, and the number and size of its files"),
    "list": (_list, "the executables, the most recently used first"),
    "verify": (_verify, "read each file and check it; status 1 if one is damaged"),
    "clear": (_clear, "remove all its files"),
    "path": (_path, "print the folder"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command of the cache of executables on disk.

    The commands are ``info``, ``list``, ``verify``, ``clear`` and ``path``; ``python -m
    primax_core.cache`` runs this function.

    Args:
      arguments: the command line without the name of the program; by default that of the process.

    Returns:
      The exit status: 0; 1 if ``verify`` found broken files; 2 if the folder cannot be read.

    Raises:
      SystemExit: for an unknown command, and for ``--help``.

    >>> from primax_core import cache
    >>> cache.main(["verify"])  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {__spec__.name}", description="The cache of executables on disk."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, about) in _COMMANDS.items():
        commands.add_parser(name, help=about, description=about)
    chosen = parser.parse_args(arguments).command
    try:
        path = folder.location()
        if path is None:
            variable = f"{ENV_PREFIX}COMPILATION_CACHE_DIR"
            raise OSError(f"there is no home folder for the cache; set {variable}")
        return _COMMANDS[chosen][0](path)
    except OSError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
