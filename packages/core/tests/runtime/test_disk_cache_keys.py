"""Keys of executables contain everything that the executables depend on."""

from __future__ import annotations

import dis
import functools
import os

import numpy as np
import pytest
from processes import run

import primax_core as px
from primax_core import lax
from primax_core._base import identity
from primax_core._ir import rules as rule_kinds
from primax_core._ir.primitive import Primitive, abstract, expand, known_primitives, lower
from primax_core._ir.samples import Operand, samples
from primax_core._lower import cache_key, compile as compiling, source_fingerprint
from primax_core._lower.lazy import lowering, mlir
from primax_core._runtime.devices import devices
from primax_core._runtime.disk import keys

F = np.float32


# Executables

MACHINE = (
    ("jaxlib", "0.12.0", ("libjax_common.so", 123)),
    ("host", "linux", "x86_64", 8, 8, ("flags", "avx avx2")),
    ("variables", ("XLA_FLAGS", None)),
    ("client", "cpu", "cpu", "tfrt"),
    ("topology", 12345),
    ("devices", 1, (0, "cpu")),
)


@pytest.mark.parametrize(
    "part,value",
    [
        (0, ("jaxlib", "0.12.1", ("libjax_common.so", 123))),
        (0, ("jaxlib", "0.12.0", ("libjax_common.so", 124))),
        (1, ("host", "linux", "x86_64", 8, 8, ("flags", "avx avx2 avx512f"))),
        (1, ("host", "linux", "x86_64", 8, 4, ("flags", "avx avx2"))),
        (1, ("host", "linux", "aarch64", 8, 8, ("flags", "avx avx2"))),
        (2, ("variables", ("XLA_FLAGS", "--xla_a=1"))),
        (3, ("client", "cuda", "cpu", "tfrt")),
        (3, ("client", "cpu", "PJRT C API", "tfrt")),
        (4, ("topology", 12346)),
        (5, ("devices", 2, (0, "cpu"))),
        (5, ("devices", 1, (1, "cpu"))),
        (5, ("devices", 1, (0, "NVIDIA H100"))),
    ],
)
def test_each_property_of_the_machine(part, value):
    changed = (*MACHINE[:part], value, *MACHINE[part + 1 :])
    assert keys.executable_key(b"d", b"o", changed) != keys.executable_key(b"d", b"o", MACHINE)


def test_module_and_options():
    distinct = {
        keys.executable_key(d, o, MACHINE)
        for d, o in ((b"d", b"o"), (b"e", b"o"), (b"d", b"p"), (b"do", b""), (b"", b"do"))
    }
    assert len(distinct) == 5
    assert keys.executable_key(b"d", b"o", MACHINE) in distinct


def test_the_description_of_the_machine():
    said = keys.describe((devices("cpu")[0],))
    assert [part[0] for part in said] == [p[0] for p in MACHINE]
    assert said == keys.describe((devices("cpu")[0],))
    if os.path.exists("/proc/cpuinfo"):
        names = {name for name, _ in said[1][5:]}
        assert names & {"flags", "Features", "isa"}


def test_processors_are_described_by_their_first_paragraph():
    text = (
        "processor\t: 0\nmodel name\t: A\ncpu MHz\t: 2100.1\nflags\t\t: fpu avx\n\nflags\t: other\n"
    )
    assert keys.processor_of(text) == (("model name", "A"), ("flags", "fpu avx"))
    arm = "processor : 0\nBogoMIPS : 50\nFeatures : fp asimd sve\nCPU part : 0xd40\n\n"
    assert keys.processor_of(arm) == (("Features", "fp asimd sve"), ("CPU part", "0xd40"))


def test_devices_and_options_change_the_options_text():
    first, second = (compiling.make_options((d,)) for d in devices("cpu")[:2])
    assert first.SerializeAsString() != second.SerializeAsString()
    flagged = compiling.make_options((devices("cpu")[0],), (("xla_backend_optimization_level", 1),))
    assert first.SerializeAsString() != flagged.SerializeAsString()


# Programs


@pytest.fixture(autouse=True)
def sources_of_the_tests(monkeypatch):
    """Keys as if the sources had not been edited lately."""
    monkeypatch.setattr(cache_key, "stamp", lambda: ("sources",))


def key(fun, *args, name="f", platform="cpu", donated=(), keep_unused=False):
    jaxpr = px.make_jaxpr(fun)(*args)
    return cache_key.key_of(jaxpr, name, platform, donated, keep_unused)


X = np.ones((2, 3), F)
BIG = px.device_put(np.arange(32, dtype=F))
BIGGER = px.device_put(np.arange(33, dtype=F))
SMALL, SMALLER = np.arange(6, dtype=F).reshape(2, 3), np.ones((2, 3), F)

DIFFERENT = {
    "operation": lambda: (key(lax.sin, X), key(lax.cos, X)),
    "shape": lambda: (key(lax.sin, X), key(lax.sin, X[:1])),
    "dtype": lambda: (key(lax.sin, X), key(lax.sin, X.astype(np.float16))),
    "weak type": lambda: (key(lax.sin, 1.0), key(lax.sin, F(1))),
    "name": lambda: (key(lax.sin, X), key(lax.sin, X, name="g")),
    "platform": lambda: (key(lax.sin, X), key(lax.sin, X, platform="tpu")),
    "donation": lambda: (key(lax.sin, X), key(lax.sin, X, donated=(0,))),
    "unused": lambda: (key(lax.sin, X), key(lax.sin, X, keep_unused=True)),
    "parameter": lambda: (
        key(lambda x: lax.cumsum(x, 0), X), key(lambda x: lax.cumsum(x, 1), X),
    ),
    "literal": lambda: (key(lambda x: x + 1, X), key(lambda x: x + 2, X)),
    "sign of zero": lambda: (key(lambda x: x + 0.0, X), key(lambda x: x + -0.0, X)),
    "small constant": lambda: (key(lambda x: x + SMALL, X), key(lambda x: x + SMALLER, X)),
    "small array": lambda: (
        key(lambda x: x + px.device_put(SMALL), X), key(lambda x: x + px.device_put(SMALLER), X),
    ),
    "size of a constant": lambda: (
        key(lambda x: lax.reduce_sum(BIG, (0,)) + x, X),
        key(lambda x: lax.reduce_sum(BIGGER, (0,)) + x, X),
    ),
    "operand order": lambda: (key(lambda x, y: x - y, X, X), key(lambda x, y: y - x, X, X)),
    "result order": lambda: (
        key(lambda x: (x + 1, x * 2), X), key(lambda x: (x * 2, x + 1), X),
    ),
    "which argument": lambda: (
        key(lambda x, y: lax.sin(x), X, X), key(lambda x, y: lax.sin(y), X, X),
    ),
    "sharing": lambda: (
        key(lambda x: (s := lax.sin(x)) + s, X), key(lambda x: lax.sin(x) + lax.sin(x), X),
    ),
    "inner name": lambda: (
        key(px.jit(lax.sin), X), key(px.jit(lambda x: lax.sin(x)), X),
    ),
    "inner body": lambda: (
        key(lambda x: lax.scan(lambda c, y: (c + y, c), lax.reduce_sum(x, (0,)), x), X),
        key(lambda x: lax.scan(lambda c, y: (c * y, c), lax.reduce_sum(x, (0,)), x), X),
    ),
    "scope": lambda: (key(lax.sin, X), key(px.named_scope("s")(lax.sin), X)),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
def test_the_key_depends_on(what):
    one, other = DIFFERENT[what]()
    assert one is not None and other is not None and one != other
    assert DIFFERENT[what]() == (one, other)


def test_options_of_the_trace_are_part_of_the_key():
    before = key(lax.sin, X)
    with px.default_matmul_precision("highest"):
        assert key(lax.sin, X) != before
    assert key(lax.sin, X) == before


def test_values_of_large_constants_are_not_part_of_the_key():
    """They are arguments of the executable."""
    other = px.device_put(np.ones(32, F))
    one, two = (key(lambda x, b=b: lax.reduce_sum(b, (0,)) + x, X) for b in (BIG, other))
    assert one == two is not None


def test_sources_are_part_of_the_key(monkeypatch):
    before = key(lax.sin, X)
    monkeypatch.setattr(cache_key, "stamp", lambda: ("other sources",))
    assert key(lax.sin, X) != before
    monkeypatch.setattr(cache_key, "stamp", lambda: None)
    assert key(lax.sin, X) is None


def test_functions_of_users_in_unread_parameters_do_not_matter():
    f = px.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (f(*p), t[0]))
    assert key(f, X) is not None


def _foreign():
    prim = Primitive("third_party")
    prim.rule(abstract)(lambda x, **_: x)
    prim.rule(lower)(lambda ctx, x, **params: x)
    return prim


class Opaque:
    """Hashable, and different in each process."""


def test_jaxprs_without_key():
    assert key(_foreign().bind, X) is None
    assert key(px.jit(_foreign().bind), X) is None
    assert (
        key(lambda x: lax.cond(lax.reduce_sum(x, (0, 1)) > 0, _foreign().bind, lambda x: x, x), X)
        is None
    )
    writer = cache_key._Writer({}, "cpu")
    for value in (Opaque(), lambda: 0, Opaque, object(), {1, 2}):
        with pytest.raises(cache_key.Unkeyable):
            writer.value(value)


def test_the_key_of_a_third_party_expansion():
    def doubled(factor):
        prim = Primitive("third_party")
        prim.rule(expand)(lambda x, **_: lax.mul(x, np.float32(factor)))
        return key(lambda x: prim.bind(x, secret=Opaque()), X)

    assert doubled(2) is not None
    assert doubled(2) == doubled(2) != doubled(3)
    opaque = Primitive("third_party")
    opaque.rule(expand)(_foreign().bind)
    assert key(opaque.bind, X) is None


@pytest.mark.parametrize("kind", [lower, lower.on("cpu"), abstract])
def test_no_keys_after_a_rule_is_replaced(kind, monkeypatch):
    """Other rules may use the primitive even if the jaxpr does not contain it."""
    assert key(lax.cos, X) is not None
    monkeypatch.setitem(lax.sin_p.rules, kind, lambda *args, **params: None)
    assert key(lax.cos, X) is None
    monkeypatch.undo()
    monkeypatch.setattr(cache_key, "stamp", lambda: ("sources",))
    assert key(lax.cos, X) is not None


def test_a_wrapped_rule_is_third_party_code(monkeypatch):
    original = lax.sin_p.rules[lower]

    @functools.wraps(original)
    def wrapped(ctx, x, **params):
        return original(ctx, x, **params)

    monkeypatch.setitem(lax.sin_p.rules, lower, wrapped)
    assert key(lax.cos, X) is None


def test_rules_do_not_read_parameters_declared_unread():
    for prim in known_primitives():
        for kind in cache_key._rule_kinds("cpu")[:-2]:
            rule = prim.rules.get(kind)
            if not identity.is_own(prim.home) or not hasattr(rule, "__code__"):
                continue
            if cache_key._parameters_read(rule) is not None:
                read = {i.argval for i in dis.get_instructions(rule) if "LOAD" in i.opname}
                assert "_" not in read, (prim, rule)


def test_all_own_rules_are_known():
    for platform in ("cpu", "cuda", "tpu"):
        writer = cache_key._Writer({}, platform)
        assert cache_key._rules_of_packages(writer, platform) == []


def _calls():
    for prim in sorted(known_primitives(), key=lambda p: (p.home, p.name)):
        rule = prim.rules.get(samples)
        if identity.is_own(prim.home) and callable(rule):
            for i, sample in enumerate(rule()):
                if sample.raises is None:
                    yield pytest.param(prim, sample, id=f"{prim.name}-{i}")


def test_equal_keys_mean_equal_modules():
    """Equal keys imply equal modules, for every sample of every primitive."""
    modules, keyed, total = {}, 0, 0
    for call in _calls():
        prim, sample = call.values
        operands = [
            px.device_put(np.ones(o.shape, o.dtype)) if isinstance(o, Operand) else o
            for o in sample.operands
        ]
        bind = sample.call or (lambda *a, p=prim, s=sample: p.bind(*a, **s.params))
        try:
            jaxpr = px.make_jaxpr(bind)(*operands)
            module = lowering.lower_module(jaxpr, "f", "cpu")
        except Exception:
            continue  # the conformance kit reports the reason
        total += 1
        key = cache_key.key_of(jaxpr, "f", "cpu", (), False)
        again = cache_key.key_of(px.make_jaxpr(bind)(*operands), "f", "cpu", (), False)
        if key is None or module.callbacks:
            continue
        keyed += 1
        assert key == again, call.id
        text = mlir.bytecode(module.module)
        assert modules.setdefault(key, text) == text, call.id
    assert total > 20 and keyed > 0.8 * total


KEYS = """
import numpy as np
import primax_core as px
from primax_core import lax
from primax_core._base import identity
from primax_core._lower import cache_key
cache_key.stamp = lambda: ("sources",)
def f(x):
    c, ys = lax.scan(lambda c, y: (c * y + 1, lax.sin(c)), lax.reduce_sum(x, (0,)), x)
    return px.grad(lambda t: lax.reduce_sum(px.jit(lax.tanh)(t) * ys, (0, 1)))(x), c
jaxpr = px.make_jaxpr(f)(np.ones((3, 2), np.float32))
print(cache_key.key_of(jaxpr, "f", "cpu", (), False).hex())
"""


def test_keys_are_the_same_in_every_process():
    distinct = {run(KEYS, PYTHONHASHSEED=str(seed)) for seed in (1, 2, 3)}
    assert len(distinct) == 1 and len(distinct.pop()) == 64


# Sources


def test_sources_that_changed_lately_have_no_stamp():
    assert source_fingerprint._take(0) is None
    later = 1 << 63
    assert source_fingerprint._take(later) == source_fingerprint._take(later) is not None


def test_every_change_of_a_source_changes_the_stamp(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("x = 1")
    (tmp_path / "b.py").write_text("y = 1")
    (tmp_path / "__pycache__").mkdir()

    def take():
        return sorted(source_fingerprint._files(str(tmp_path), ""))

    before = take()
    (tmp_path / "__pycache__" / "a.pyc").write_text("")
    assert take() == before and [f[0] for f in before] == ["b.py", "inner/a.py"]
    old = os.stat(tmp_path / "b.py")
    (tmp_path / "b.py").write_text("y = 2")
    os.utime(tmp_path / "b.py", ns=(old.st_atime_ns, old.st_mtime_ns))  # the time before the change
    assert take() != before


def test_rule_kinds_read_by_lowering_are_tracked():
    assert {lower, abstract, rule_kinds.effects, lower.on("cpu")} == set(
        cache_key._rule_kinds("cpu")
    )
    assert {lower.on("gpu"), lower.on("rocm")} <= set(cache_key._rule_kinds("rocm"))
