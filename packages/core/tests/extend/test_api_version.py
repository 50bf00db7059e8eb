"""`requires`: versions that are accepted, and the message for those that are not."""

from __future__ import annotations

from importlib import metadata

import pytest

import primax_core
from primax_core import extend
from primax_core.extend import requires, versions

NAME = primax_core.__name__.rpartition(".")[2].replace("_", "-")


class Installed:
    """An installed distribution, faked."""

    version = "0.7.2"

    def __init__(self, *requires: str) -> None:
        self.requires = requires


def message(monkeypatch, offers, requirements=(), vendored=False, **needs) -> str:
    monkeypatch.setattr(versions, "API_VERSION", offers)
    monkeypatch.setattr(versions, "VENDORED", vendored)
    monkeypatch.setattr(primax_core, "__version__", "0.2.0")
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(*requirements))
    with pytest.raises(ImportError) as e:
        requires("acme-solvers", **needs)
    return str(e.value)


def test_the_version_of_this_core_is_accepted():
    requires("acme-solvers", since=extend.API_VERSION)
    requires("acme-solvers", since=(1, 0))


@pytest.mark.parametrize(
    "offers, since, before",
    [
        ((1, 4), (1, 4), None),
        ((1, 99), (1, 4), None),
        ((2, 0), (1, 4), (3, 0)),
        ((1, 6), (1, 4), (1, 7)),
        ((10, 1), (9, 20), (11, 0)),
    ],
)
def test_versions_within_the_range_are_accepted(monkeypatch, offers, since, before):
    monkeypatch.setattr(versions, "API_VERSION", offers)
    requires("acme-solvers", since=since, before=before)


@pytest.mark.parametrize(
    "offers, since, before",
    [
        ((1, 3), (1, 4), None),
        ((2, 0), (1, 4), None),
        ((1, 7), (1, 4), (1, 7)),
        ((0, 9), (1, 0), None),
    ],
)
def test_versions_outside_the_range_are_refused(monkeypatch, offers, since, before):
    text = message(monkeypatch, offers, since=since, before=before)
    assert f"offers {offers[0]}.{offers[1]}" in text


def test_the_message_names_both_versions_and_the_command(monkeypatch):
    needs = ("numpy>=2.0", f"{NAME}[export]<1,>=0.1", f"{NAME}; extra == 'more'")
    assert message(monkeypatch, (2, 0), needs, since=(1, 4)) == (
        "acme-solvers 0.7.2 needs version 1.4 or later of the extension API (below 2.0); the "
        f"installed {NAME} 0.2.0 offers 2.0. Install a matching pair: "
        f"pip install --upgrade acme-solvers '{NAME}[export]<1,>=0.1'"
    )


def test_the_message_without_metadata_of_the_package(monkeypatch):
    assert message(monkeypatch, (1, 3), since=(1, 4)).endswith(f"acme-solvers {NAME}")

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(ImportError, match=r"^acme-solvers needs version 1\.4 or later") as e:
        requires("acme-solvers", since=(1, 4))
    assert str(e.value).endswith(f"pip install --upgrade acme-solvers {NAME}")


def test_the_message_in_a_copy_names_the_command_that_copies(monkeypatch):
    text = message(monkeypatch, (2, 0), vendored=True, since=(1, 4))
    assert text.endswith("Copy a matching pair: python -m primax_core.vendor --update")
