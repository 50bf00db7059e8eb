"""Links in the cache on disk for executables that depend on rules of trusted packages."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import types
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from disk_processes import Report, kept, process

import primax_core as px
from primax_core import lax
from primax_core._lower import cache_key, source_fingerprint
from primax_core.extend import abstract, lower
from primax_core.extend.lowering import trusted_rules

INIT = "from primax_core.extend.lowering import trusted_rules\ntrusted_rules(__name__)\n"
RULES = """
import enum
from functools import partial
import numpy as np
from primax_core import lax
from primax_core.extend import Primitive, abstract, lower
from primax_core.extend.elementwise import unary
from primax_core.extend.lowering import hlo

class Mode(enum.Enum):
    PLAIN = 1
    NEGATIVE = 2

triple_p = Primitive("triple")
triple_p.rule(abstract)(lambda x, **_: x)

@triple_p.rule(lower)
def _triple(ctx, x, *, mode):
    out = hlo.add(x, hlo.add(x, x))
    return hlo.negate(out) if mode is Mode.NEGATIVE else out

cube_p = unary("cube", ("float",), lambda ctx, x: hlo.multiply(x, hlo.multiply(x, x)))

def _times(factor, ctx, x, **params):
    before, *_ = lax.sin_p.rules_before(lower.on("cpu"))
    for _ in range(factor):
        x = before(ctx, x, **params)
    return x

def replace(factor):
    return lax.sin_p.override(lower.on("cpu"), partial(_times, factor))
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package of a third party, widgets."""
    folder = tmp_path / "path" / "widgets"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(INIT)
    (folder / "rules.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def run(package: Path, code: str) -> Report:
    text = f"""
    source_fingerprint._STARTED = 1 << 63
    sys.path.insert(0, {str(package.parent)!r})
    """
    return process(package.parent.parent, textwrap.dedent(text) + textwrap.dedent(code))


REPLACED = """
import widgets.rules
widgets.rules.replace(2)
report(lax.sin(np.float32(1.5)), lax.cos(np.float32(1.5)))
"""


def test_every_link_is_kept_if_the_package_is_trusted(package):
    first = run(package, REPLACED)
    assert (first.lowered, first.fetched) == (2, 0) and len(
        kept(package.parent.parent, ".link")
    ) == 2
    second = run(package, REPLACED)
    assert (second.lowered, second.fetched) == (0, 2)
    expected = np.sin(np.sin(np.float32(1.5)))
    assert second.values == first.values == pytest.approx([expected, np.cos(np.float32(1.5))])


def test_no_link_is_kept_if_the_package_is_not_trusted(package):
    (package / "__init__.py").write_text("")
    for _ in range(2):
        assert run(package, REPLACED).lowered == 2
    assert kept(package.parent.parent, ".link") == []


def test_links_are_lost_if_a_file_of_the_package_changes(package):
    run(package, REPLACED)
    (package / "data").mkdir()
    (package / "data" / "table.txt").write_text("1")
    assert run(package, REPLACED).lowered == 2
    assert run(package, REPLACED).lowered == 0
    (package / "rules.py").write_text(RULES.replace("range(factor)", "range(factor + 1)"))
    changed = run(package, REPLACED)
    assert changed.lowered == 2
    assert changed.values[0] == pytest.approx(np.sin(np.sin(np.sin(np.float32(1.5)))))


def test_primitives_and_parameters_of_the_package(package):
    code = """
    from widgets.rules import Mode, cube_p, triple_p
    f = px.jit(lambda x: triple_p.bind(cube_p.bind(x), mode=Mode.NEGATIVE))
    g = px.jit(lambda x: triple_p.bind(cube_p.bind(x), mode=Mode.PLAIN))
    report(f(np.float32(2)), g(np.float32(2)))
    """
    first, second = run(package, code), run(package, code)
    assert (first.lowered, second.lowered) == (2, 0)
    assert second.values == first.values == [-24.0, 24.0]


def test_values_captured_by_rules_join_the_key(package):
    values = [run(package, REPLACED.replace("(2)", f"({n})")).values[0] for n in (1, 2, 3, 1)]
    assert len(set(values)) == 3 and values[0] == values[-1]


def test_an_override_that_was_taken_back_has_other_keys(package):
    code = """
    import widgets.rules
    with widgets.rules.replace(2):
        one = lax.sin(np.float32(1.5))
    report(one, lax.sin(np.float32(1.5)))
    """
    first, second = run(package, code), run(package, code)
    assert second.lowered == 0 and second.values == first.values
    assert second.values == pytest.approx([np.sin(np.sin(1.5)), np.sin(1.5)])


def test_a_package_that_is_imported_after_programs_were_compiled(package):
    code = "report(lax.cos(np.float32(1)))"
    run(package, code)
    later = run(package, "lax.cos(np.float32(1))\n" + REPLACED)
    assert (later.lowered, later.fetched) == (2, 2)
    assert run(package, code).lowered == 0  # a process without the package
    assert run(package, "lax.cos(np.float32(1))\n" + REPLACED).lowered == 0


# Keys


@pytest.fixture
def widgets(package, monkeypatch):
    """The imported package."""
    monkeypatch.setattr(source_fingerprint, "_STARTED", 1 << 63)
    monkeypatch.setattr(source_fingerprint, "_stamp", ("the core",))
    monkeypatch.setattr(source_fingerprint, "_packages", {})
    source_fingerprint.stamp.cache_clear()
    try:
        yield importlib.import_module("widgets.rules")
    finally:
        source_fingerprint.stamp.cache_clear()
        for name in [n for n in sys.modules if n.partition(".")[0] == "widgets"]:
            del sys.modules[name]


X = np.ones(3, np.float32)


def key(fun=lax.cos):
    return cache_key.key_of(px.make_jaxpr(fun)(X), "f", "cpu", (), False)


def test_an_override_changes_the_keys_of_all_programs(widgets):
    keys = [key()]
    for factor in (1, 2):
        with widgets.replace(factor):
            keys.append(key())
    assert None not in keys and len({*keys}) == 3
    assert key() == keys[0]


@pytest.mark.parametrize("trusted_first", [False, True])
def test_rules_of_other_packages_below_or_above_a_trusted_one(widgets, trusted_first):
    def other(ctx, x, **params):
        return x

    def replace_by_other():
        return lax.sin_p.override(lower.on("cpu"), other)

    steps = [replace_by_other, lambda: widgets.replace(1)]
    with steps[trusted_first]():
        with steps[not trusted_first]():
            assert key() is None
    assert key() is not None


@pytest.mark.parametrize("rule", [lambda ctx, x, **_: x, partial(lambda ctx, x, **_: x), print])
def test_primitives_of_the_package_with_rules_from_elsewhere(widgets, rule):
    with widgets.triple_p.override(lower, rule):
        assert key() is None
    assert key() is not None


def test_closures(widgets):
    def made(value):
        source = "def outer(value):\n def rule(ctx, x, **_): return value\n return rule"
        exec(source, vars(widgets), names := {})
        return names["outer"](value)

    def key_with(value):
        with lax.sin_p.override(lower, made(value)):
            return key()

    same = [1, 1.0, "1", np.float32(1), (1, [2]), {"a": 1}, {1, 2}, np.ones(2), np.dtype("int8"),
            widgets.Mode.PLAIN, widgets.Mode, widgets._triple, widgets.triple_p, len, np, made(3),
            made(4), partial(made(3), 1)]  # fmt: skip
    keys = [key_with(value) for value in same]
    assert None not in keys and len({*keys}) == len(keys)
    assert [key_with(value) for value in same] == keys

    class Local:
        pass

    for value in (object(), Local, Local(), lambda: 1, made(lambda: 1), partial(len, object())):
        assert key_with(value) is None, value


def test_the_abstract_rule_counts_too(widgets):
    with lax.sin_p.override(abstract, lambda x, **_: x):
        assert key() is None


# Arguments


@pytest.mark.parametrize(
    "name, message",
    [
        ("primax_core", "primax_core belongs to primax_core, whose rules are trusted already"),
        ("primax_core.extend", "belongs to primax_core"),
        ("primax_core._lower.cache_key", "belongs to primax_core"),
        ("not_imported", "no package 'not_imported' is imported; call it in the __init__.py"),
        ("", "no package '' is imported"),
        ("textwrap", "textwrap is a single module; its rules must be in a package"),
        (__name__, "is a single module"),
        ("json", "json was imported before this call, and its files may have changed since"),
    ],
)
def test_bad_names(name, message):
    import json  # noqa: F401

    with pytest.raises(ValueError, match=message):
        trusted_rules(name)


@pytest.mark.parametrize("value", [None, types, Path("widgets"), b"widgets"])
def test_values_that_are_no_names(value):
    with pytest.raises(TypeError, match="expected the name of a package, got"):
        trusted_rules(value)


def test_namespace_packages(tmp_path, monkeypatch):
    (tmp_path / "acme_parts").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("acme_parts")
    with pytest.raises(ValueError, match="acme_parts is a namespace package, whose files may be"):
        trusted_rules("acme_parts")


def test_a_second_call(widgets, package):
    before = key(), dict(source_fingerprint._packages)
    importlib.reload(sys.modules["widgets"])
    assert (key(), source_fingerprint._packages) == before
    os.utime(package / "rules.py", (1, 1))
    importlib.reload(sys.modules["widgets"])
    assert source_fingerprint._packages == {"widgets": None}
    assert key() is not None  # the package replaces no rule of the core
    with widgets.replace(1):
        assert key() is None


def test_files_that_changed_lately_are_not_trusted(widgets, monkeypatch):
    monkeypatch.setattr(source_fingerprint, "_STARTED", 0)
    monkeypatch.setattr(source_fingerprint, "_packages", {})
    importlib.reload(sys.modules["widgets"])
    assert source_fingerprint._packages == {"widgets": None}
    assert not source_fingerprint.is_trusted_module("widgets.rules")
    assert key() is not None
    with widgets.replace(1):
        assert key() is None


def test_names_of_trusted_modules(widgets):
    for name, expected in {
        "widgets": True, "widgets.rules": True, "widgets_more": False, "widget": False,
        "primax_core.lax": True, "primax_corelax": False,
    }.items():  # fmt: skip
        assert source_fingerprint.is_trusted_module(name) is expected
    assert not source_fingerprint.is_trusted_module(None)


def test_parts_of_a_package_and_helper_modules(widgets, package):
    inner = package / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("from . import _helper\n")
    (inner / "_helper.py").write_text(INIT.replace("__name__", "__package__"))
    importlib.import_module("widgets.inner")
    assert sorted(source_fingerprint._packages) == ["widgets", "widgets.inner"]
