"""Guards of tracing, execution, transfers, threads and garbage; user contexts."""

from __future__ import annotations

import gc
import logging
import sys
import threading

import numpy as np
import pytest

import primax_core as px
from primax_core import lax
from primax_core._base import config
from primax_core._base.identity import PUBLIC_NAME

F32 = np.float32
X = np.ones(3, F32)


def within(context, fun):
    with context:
        return fun()


class TestTracingAndExecution:
    def test_no_tracing(self):
        known = px.jit(lambda x: x + 1.0)
        known(F32(1))
        assert float(within(px.no_tracing(), lambda: known(F32(1)))) == 2.0

        def new_function(x):
            return x

        for call in (
            lambda: px.jit(new_function)(F32(1)),
            lambda: known(F32([1.0])),
            lambda: px.make_jaxpr(new_function)(F32(1)),
            lambda: px.eval_shape(new_function, F32(1)),
            lambda: lax.scan(lambda c, x: (c, x), F32(0), X),
        ):
            with pytest.raises(
                RuntimeError, match=r"re-tracing function .* but 'no_tracing' is set"
            ):
                within(px.no_tracing(True), call)

    def test_no_execution(self):
        x = px.device_put(X)
        f = px.jit(lambda x: x * 3.0)
        compiled = f.lower(x).compile()
        f(x), lax.sin(x)
        for call, name in (
            (lambda: f(x), r"jit\(<lambda>\)"),
            (lambda: lax.sin(x), "sin"),
            (lambda: px.grad(lambda x: x * 3.0)(1.0), "mul"),
            (lambda: compiled(x), r"jit\(<lambda>\)"),
        ):
            with pytest.raises(
                RuntimeError, match=f"execute function {name}, but the no_execution"
            ):
                within(px.no_execution(), call)
        assert within(px.no_execution(), lambda: f.lower(x).compile()) is not None
        np.testing.assert_array_equal(within(px.no_execution(), lambda: px.device_put(X)), X)
        np.testing.assert_array_equal(f(x), 3 * X)


class TestTransfers:
    @pytest.mark.parametrize("guard", [px.transfer_guard, px.transfer_guard_host_to_device])
    def test_from_the_host(self, guard):
        f = px.jit(lambda x: x + 1.0)
        f(X)
        for call in (lambda: f(X), lambda: f(1.0), lambda: lax.sin(X)):
            within(guard("allow"), call)
            with pytest.raises(RuntimeError,
                               match="Disallowed host-to-device transfer"):  # fmt: skip
                within(guard("disallow"), call)
        within(guard("disallow"), lambda: px.device_put(X))
        with pytest.raises(RuntimeError, match="Disallowed host-to-device transfer: aval=float32"):
            within(guard("disallow_explicit"), lambda: px.device_put(X))

    def test_device_arrays_are_not_transferred(self):
        f, x = px.jit(lambda x: x + 1.0), px.device_put(X)
        f(x)
        with px.transfer_guard("disallow_explicit"):
            np.testing.assert_array_equal(f(x), X + 1)

    def test_between_devices(self):
        x, there = px.device_put(X), px.devices()[1]
        x = lax.add(x, x)  # not bound to a device
        move = lambda: px.device_put(x, there)
        within(px.transfer_guard_device_to_device("disallow"), move)
        with pytest.raises(RuntimeError, match="Disallowed device-to-device transfer"):
            within(px.transfer_guard_device_to_device("disallow_explicit"), move)
        follow = lambda: within(px.default_device(there), lambda: lax.sin(x))
        with pytest.raises(RuntimeError, match="Disallowed device-to-device transfer"):
            within(px.transfer_guard("disallow"), follow)

    def test_the_innermost_guard_applies(self):
        f = px.jit(lambda x: x + 1.0)
        with px.transfer_guard_host_to_device("disallow"):
            np.testing.assert_array_equal(within(px.transfer_guard("allow"), lambda: f(X)), X + 1)
            with pytest.raises(RuntimeError, match="Disallowed"):
                f(X)

    def test_logged(self, caplog):
        with caplog.at_level(logging.WARNING), px.transfer_guard("log"):
            lax.sin(X)
            px.device_put(X)
        assert caplog.text.count("host-to-device transfer: aval=float32[3]") == 1

    def test_as_a_decorator_and_its_levels(self):
        @px.transfer_guard("disallow")
        def f():
            return lax.sin(X)

        with pytest.raises(RuntimeError, match="Disallowed"):
            f()
        with pytest.raises(ValueError, match="must be None or in"):
            px.transfer_guard("never")


class TestThreads:
    def test_one_thread_at_a_time(self):
        events = []

        def other():
            try:
                within(px.thread_guard(), lambda: events.append("entered"))
            except RuntimeError as e:
                events.append(str(e))

        def in_thread():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

        with px.thread_guard(), px.thread_guard(True):
            in_thread()
        in_thread()
        assert "a thread guard of another thread is active" in events[0] and events[1] == "entered"


class TestGarbage:
    @staticmethod
    def cycle():
        a = [px.device_put(X)]
        a.append(a)

    def test_logged(self, capfd):
        gc.collect()
        with px.array_garbage_collection_guard("log"):
            self.cycle()
            gc.collect()
        assert "float32[3] was deleted by the Python garbage collector" in capfd.readouterr().err
        self.cycle()
        gc.collect()
        assert "garbage" not in capfd.readouterr().err

    def test_reference_counted_arrays_do_not_warn(self, capfd):
        with px.array_garbage_collection_guard("log"):
            x = px.device_put(X)
            del x
            gc.collect()
        assert "garbage" not in capfd.readouterr().err

    def test_levels(self):
        with pytest.raises(ValueError, match="must be None or in"):
            px.array_garbage_collection_guard("never")

    def test_a_collection_while_a_thread_starts(self):
        # A collection runs at each allocation of the state of a new thread.
        failures = []
        hook, sys.unraisablehook = sys.unraisablehook, failures.append
        before = gc.get_threshold()
        gc.freeze()  # the objects of other tests, which each collection would visit
        with px.array_garbage_collection_guard("log"):
            try:
                for n in [*[1] * 20, *range(2, 30)]:
                    gc.set_threshold(n)
                    thread = threading.Thread(target=lambda: config.state.trace)
                    thread.start()
                    thread.join()
            finally:
                gc.set_threshold(*before)
                gc.unfreeze()
                sys.unraisablehook = hook
        assert failures == []


class TestUserContexts:
    def test_the_value_is_part_of_the_jit_cache_key(self):
        context, traced = px.make_user_context(default_value=3), []

        @px.jit
        def f(x):
            traced.append(context.value)
            return x + context.value

        assert float(f(1.0)) == 4.0
        assert float(within(context(5), lambda: f(1.0))) == 6.0
        assert float(within(context(5), lambda: f(1.0))) == 6.0
        assert float(f(1.0)) == 4.0 and traced == [3, 5]
        context.set_global(7)
        assert context.get_global() == context.value == 7 and float(f(1.0)) == 8.0

    def test_several_are_independent(self):
        a, b = px.make_user_context(1), px.make_user_context()
        with a("x"):
            assert (a.value, b.value) == ("x", None)

    def test_values_are_hashable(self):
        with pytest.raises(ValueError, match="takes hashable values"):
            px.make_user_context(1)([1])


@pytest.mark.parametrize("how", list(px.Inline))
def test_inlining(how):
    def f(x):
        return px.jit(lambda x: x + 1.0, inline=how)(x)

    text = px.jit(f).lower(1.0).as_text()
    spliced = not any(e.primitive.name == "jit" for e in px.make_jaxpr(f)(1.0).eqns)
    assert spliced is (how is px.Inline.TRACING)
    assert ("call @" in text) is (how not in (px.Inline.TRACING, px.Inline.LOWERING))
    assert (f'inlineable = "{how.value}"' in text) is how.value.startswith("xla")
    assert float(px.jit(f)(1.0)) == 2.0 and float(px.grad(px.jit(f))(1.0)) == 1.0


def test_slices_by_start_and_size():
    assert (px.ds(3).start, px.ds(3).size, px.ds(1, 2, stride=4).stride) == (0, 3, 4)
    assert px.ds(None) == slice(None) and px.ds(1, 2) == px.ds(1, 2)
    assert float(px.jit(lambda s: s.start * 10 + s.size)(px.ds(F32(4), 2))) == 42.0
    assert px.ds(F32(1), 2).is_dynamic_start and not px.ds(F32(1), 2).is_dynamic_size
    assert type(px.ds(1, 2)).from_slice(slice(1, 6, 2), 10) == px.ds(1, 3, 2)
    with pytest.raises(ValueError, match="`stride` must be >= 0"):
        px.ds(1, 2, stride=-1)


def test_sixteen_bit_sums_can_be_refused():
    import ml_dtypes

    x = X.astype(ml_dtypes.bfloat16)
    assert float(lax.reduce_sum(x, (0,))) == 3.0
    with px.allow_f16_reductions(False):
        with pytest.raises(ValueError, match="reduce_sum on an operand of dtype bfloat16 is not"):
            lax.reduce_sum(x, (0,))
        assert float(lax.reduce_sum(X, (0,))) == 3.0
        assert float(lax.reduce_max(x, (0,))) == 1.0


def test_disable_jit_takes_a_flag():
    kinds = []
    f = px.jit(lambda x: kinds.append(type(x)) or x)
    for disable in (True, False):
        within(px.disable_jit(disable=disable), lambda: f(1.5))
    assert kinds[0] is float and kinds[1] is not float


def test_environment():
    text = px.print_environment_info(return_string=True)
    assert all(
        word in text for word in (f"{PUBLIC_NAME}:", "jaxlib:", "numpy:", "python:", "devices:")
    )
    assert px.effects_barrier() is None


def test_every_option_has_its_context_manager():
    for name in (
        "auto_pcast", "default_prng_impl", "enable_custom_prng", "legacy_prng_key",
        "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp", "debug_key_reuse",
    ):  # fmt: skip
        manager = getattr(px, name)
        before = manager.value
        new = "rbg" if name == "default_prng_impl" else "warn" if "legacy" in name else not before
        with manager(new):
            assert getattr(config.state, name) == manager.value == new
        assert manager.value == before
