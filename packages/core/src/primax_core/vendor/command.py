"""Command line: ``python -m primax_core.vendor --into acme/_vendor``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from . import manifest as manifests, writing
from .contents import contents, digest, manifest_path
from .manifest import Manifest
from .target import (
    ADDITIONS,
    CORE,
    KIT,
    TESTS,
    Refused,
    Target,
    check_folder,
    check_free,
    check_name,
    check_prefix,
    package_of,
)

_ABOUT: Final = (
    "Copy the core into the sources of another package, or to the top level, with its license. "
    "With --update and --check, options that are left out are those of the copy."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit status.

    0: done, or no difference; 1: ``--check`` found a difference; 2: refused or failed.
    """
    try:
        return _run(_parser().parse_args(arguments))
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: nothing was changed: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {CORE}.vendor", description=_ABOUT)
    add = parser.add_argument
    add("--into", required=True, metavar="FOLDER", help="folder of the copy, as acme/_vendor")
    add("--name", help=f"name of the copy in that folder, by default {CORE}")
    add("--prefix", help="prefix of environment variables, by default the outermost package's name")
    add(
        "--with", dest="additions", nargs="*", choices=ADDITIONS, metavar="NAME",
        help=f"also copied: {', '.join(ADDITIONS)}; layers are taken from installed wheels",
    )  # fmt: skip
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--update", action="store_true", help="replace a copy; print the changes")
    modes.add_argument(
        "--check", action="store_true",
        help="compare a copy with what --update would write; status 1 if they differ",
    )  # fmt: skip
    return parser


def _run(options: argparse.Namespace) -> int:
    folder = check_folder(options.into)
    if not options.update and not options.check:
        return _copy(folder, options)
    if not folder.is_dir():
        raise Refused(f"{folder} does not exist")
    name = _existing_name(folder, options.name)
    if options.check:
        return _check(folder, name, options)
    with writing.locked(folder):
        writing.recover(folder, name)
        return _update(folder, name, options)


def _existing_name(folder: Path, name: str | None) -> str:
    if name is not None:
        return check_name(name)
    names = manifests.names_in(folder)
    if len(names) > 1:
        raise Refused(f"{folder} contains several copies: add --name with one of {names}")
    return names[0] if names else CORE


def _target(folder: Path, name: str, options: argparse.Namespace, old: Manifest | None) -> Target:
    package = package_of(folder)
    prefix = options.prefix if old is None or options.prefix is not None else old.prefix
    prefix = check_prefix(prefix, package, name)
    additions = options.additions
    if additions is None:
        additions = old.additions if old else ()
    chosen = {*additions, *([KIT] if TESTS in additions else [])}
    target = Target(folder, package, name, prefix, tuple(a for a in ADDITIONS if a in chosen))
    for copied in target.names.values():
        check_name(copied)
    check_free(target, frozenset(old.folders if old else ()))
    return target


def _copy(folder: Path, options: argparse.Namespace) -> int:
    name = check_name(CORE if options.name is None else options.name)
    if folder.is_dir():
        with writing.locked(folder):
            writing.recover(folder, name)
    if manifests.read(folder, name) is not None:
        raise Refused(f"{folder / name} is a copy already: use --update")
    target = _target(folder, name, options, None)
    files = contents(target)
    with _folder_for(target), writing.locked(folder):
        writing.write(folder, name, files, [])
    for original, copied in target.names.items():
        print(f"copied {original} to {folder / copied}; import {target.dotted(copied)}")
    print(f"environment variables: {target.prefix}_ENABLE_X64 and others")
    requires = json.loads(files[manifest_path(name)])["requires"]
    print(f"add to the dependencies of your package: {', '.join(requires)}")
    return 0


@contextmanager
def _folder_for(target: Target) -> Iterator[None]:
    """Make the folder of a copy if there is none, and remove it if the copy fails."""
    if target.folder.exists():
        yield
        return
    target.folder.mkdir()
    init = target.folder / "__init__.py"
    try:
        if target.package:
            init.write_text('"""Copies of other packages."""\n', "utf-8")
        yield
    except BaseException:
        init.unlink(missing_ok=True)
        target.folder.rmdir()
        raise


def _update(folder: Path, name: str, options: argparse.Namespace) -> int:
    old = _manifest(folder, name)
    target = _target(folder, name, options, old)
    state = manifests.state(folder, old)
    if state.edited or state.unlisted:
        _print_paths("edited", state.edited)
        _print_paths("not in the manifest", state.unlisted)
        raise Refused(
            "nothing was changed, because these files would be lost. Save their changes as a "
            "patch, restore or remove the files, then run --update again"
        )
    files = contents(target)
    if not _print_changes(folder, name, old, files, state.missing):
        print(f"{folder / name} is up to date: {old}")
        return 0
    writing.write(folder, name, files, list(old.folders))
    print(f"updated {folder / name} from {old} to {_manifest(folder, name)}")
    return 0


def _check(folder: Path, name: str, options: argparse.Namespace) -> int:
    if writing.interrupted(folder, name):
        print(f"a run in {folder} was interrupted or is not finished: run --update")
        return 1
    old = _manifest(folder, name)
    target = _target(folder, name, options, old)
    state = manifests.state(folder, old)
    _print_paths("edited", state.edited)
    _print_paths("not in the manifest", state.unlisted)
    changed = _print_changes(folder, name, old, contents(target), state.missing)
    if changed or state.edited or state.unlisted:
        return 1
    print(f"{folder / name} is as --update would write it: {old}")
    return 0


def _manifest(folder: Path, name: str) -> Manifest:
    manifest = manifests.read(folder, name)
    if manifest is None:
        raise Refused(f"{folder} contains no copy called {name}: run without --update and --check")
    return manifest


def _print_changes(
    folder: Path, name: str, old: Manifest, files: dict[str, bytes], missing: list[str]
) -> bool:
    """Print the differences between a manifest and the files of a copy; True if there are any."""
    own = manifest_path(name)
    new = {path: digest(data) for path, data in files.items() if path != own}
    common = new.keys() & old.files.keys()
    changed = sorted(p for p in common if new[p] != old.files[p])
    _print_paths("missing", missing)
    _print_paths("added", sorted(new.keys() - old.files.keys()))
    _print_paths("changed", changed)
    _print_paths("removed", sorted(old.files.keys() - new.keys()))
    differs = bool(missing or changed or new.keys() != old.files.keys())
    if not differs and (folder / own).read_bytes() != files[own]:
        _print_paths("changed", [own])
        differs = True
    return differs


def _print_paths(what: str, paths: list[str]) -> None:
    for path in paths:
        print(f"{what}: {path}")
