"""Comparison of the programs that processes begin."""

from __future__ import annotations

import re

import pytest
from several import together

from primax_core.extend.processes import SharedProgram
from primax_distributed.processes._agreement import Agreement, message_of
from primax_distributed.processes._wire import Lines


def program(name, digest="d", types="(f32[8]) -> (f32[])", ranks=(0, 1)):
    return [name, types, digest, list(ranks)]


def run(*steps):
    """The first difference of programs that ranks begin: pairs of a rank and a program."""
    agreement = Agreement()
    for rank, begun in steps:
        difference = agreement.begin(rank, begun)
        if difference is not None:
            return difference
    assert all(not programs for programs in agreement._open.values())
    return None


def test_equal_programs_in_any_interleaving():
    a, b = program("a"), program("b")
    assert run((0, a), (0, b), (1, a), (1, b)) is None
    assert run((0, a), (1, a), (1, b), (0, b)) is None


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (program("train"), program("eval"), "rank 1 begins program 2 (eval), rank 0 program 2 (tr"),
        (program("f", types="(i8[])"), program("f", types="(u8[])"), "types (u8[]) and (i8[])"),
        (program("f", "1"), program("f", "2"), "but with different operations, constants"),
        (program("f"), program("f", ranks=(0, 1, 2)), "over the ranks [0, 1, 2] and [0, 1]"),
    ],
)  # fmt: skip
def test_differences(first, second, text):
    same = program("same")
    assert text in run((0, same), (1, same), (0, first), (1, second))


def test_programs_over_some_of_the_processes():
    pair, other, all3 = program("p"), program("q", ranks=(1, 2)), program("all", ranks=(0, 1, 2))
    steps = [(0, pair), (0, all3), (2, other), (2, all3), (1, other), (1, pair), (1, all3)]
    assert run(*steps) is None
    swapped = run((0, pair), (0, all3), (1, all3))
    assert swapped.startswith("rank 1 begins program 1 (all), rank 0 program 1 (p)")


def test_long_types_fit_into_a_line():
    types = "(" + "f32[8], " * 50_000 + ") -> ()"
    line = message_of(SharedProgram("f", types, "ab", (0, 1)))
    assert len(line) < 1000
    (message,) = Lines().add(line)
    assert message["begins"][0] == "f" and message["begins"][1].startswith("(f32[8], f32")


START = """
processes.initialize(f'127.0.0.1:{port}', n, rank, compare_programs=True)
from primax_distributed import Mesh, NamedSharding, P
from primax_core import lax
mesh = Mesh(np.array(pc.devices()), ("d",))
parts, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
import primax_distributed
def made(size):
    ones = np.ones(size, np.float32)
    return primax_distributed.make_array_from_callback((size,), parts, lambda i: ones[i])
def summed(factor, name="train_step"):
    def step(x):
        return lax.reduce_sum(x * factor, (0,))
    step.__name__ = name
    return pc.jit(step, out_shardings=whole)
x = made(8)
step = summed(np.float32(2))
for i in range(30):
    y = step(x)
assert float(y) == 16
began = time.monotonic()
def report(run):
    try:
        np.asarray(run())
        for i in range(100):  # it may end before the difference is known
            np.asarray(step(x)); time.sleep(0.1)
    except processes.ProgramMismatchError as e:
        print("after", time.monotonic() - began, e)
"""


def checked(code, *texts):
    outputs, statuses = together(START + code, timeout=60)
    assert statuses == [0, 0], outputs
    for output in outputs:
        assert all(text in output for text in texts), output
        seconds = re.search(r"after ([\d.]+) ", output)
        assert seconds is not None and float(seconds[1]) < 20, output
    return outputs


def test_another_function_is_named():
    checked(
        "report(lambda: summed(2, 'eval_step')(x) if rank == 1 else step(x))",
        "the programs of the processes differ: rank ", "program 31 (eval_step)",
        "program 31 (train_step)", "in the same order. Look before this program for a branch",
    )  # fmt: skip


def test_constants_of_one_process_are_found():
    checked(
        "other = summed(np.float32(rank + 3))\nreport(lambda: other(x))",
        "program 31 (train_step)", "with different operations, constants or orders of devices",
    )  # fmt: skip


def test_other_shapes_are_shown():
    checked(
        "report(lambda: step(made(8 + 8 * rank)))",
        "of the types (f32[", "(f32[8] P('d',)) -> (f32[])", "(f32[16] P('d',)) -> (f32[])",
    )  # fmt: skip


def test_equal_programs_pass_and_cost_little():
    outputs, statuses = together(
        START
        + """
began = time.perf_counter()
from primax_distributed.processes import _initialize
joined = _initialize.joined()
begin = joined.watch(core.SharedProgram("f", "(f32[8]) -> (f32[])", "0" * 16, (0, 1)))
for i in range(1000):
    begin()
print("microseconds", (time.perf_counter() - began) * 1e3)
y = step(x)
print("result", float(y))
"""
    )
    assert statuses == [0, 0] and all("result 16.0" in o for o in outputs), outputs
    microseconds = [float(o.split("microseconds ")[1].split()[0]) for o in outputs]
    assert max(microseconds) < 1000, microseconds


def test_all_processes_compare_or_none():
    outputs, statuses = together("""
print(attempt(lambda: processes.initialize(
    f'127.0.0.1:{port}', n, rank, compare_programs=rank == 0, initialization_timeout=20)))
""")
    assert statuses == [0, 0], outputs
    assert all("has compare_programs on and process " in o for o in outputs), outputs


def test_the_variable_of_the_environment():
    variables = [{"PRIMAX_COMPARE_PROGRAMS": "1"}, {"PRIMAX_COMPARE_PROGRAMS": "often"}]
    (_, refused), statuses = together(
        """
if rank == 1:
    print(attempt(lambda: processes.initialize(f'127.0.0.1:{port}', n, rank)))
else:
    print(_initialize._compares())
""",
        variables=variables,
    )
    assert statuses == [0, 0]
    assert "ValueError: PRIMAX_COMPARE_PROGRAMS must be 0 or 1, got 'often'" in refused
