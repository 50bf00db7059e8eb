"""Evaluation of the text of Mosaic's kernels on the devices of a mesh, one thread for each.

Copies between devices are made as late as the kernel allows: the destination has arbitrary contents
from the start of a copy to the wait for its arrival, and the source is read when it may change. One
thread runs at a time; a mesh whose devices all wait is an error.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mosaic_evaluator import NAME, Call, Machine, Operation, evaluate, garbage


@dataclass
class Transfer:
    """A copy between devices: its memories, and the addresses of its semaphores."""

    source: Any
    target: Any
    sent: int
    received: int
    has_left: bool = False

    def leave(self) -> None:
        """Read the source, if that has not been done."""
        if not self.has_left:
            self.source, self.has_left = self.source.copy(), True


class Network:
    """The devices of a mesh, and what they wait for."""

    def __init__(self, count: int, seed: int):
        self.condition = threading.Condition()
        self.calls: list[Any] = [None] * count
        self.running, self.waiting = count, 0
        self.failed = False
        self.sent: list[Transfer] = []
        self.under_way: list[Transfer] = []
        self.barriers = [np.zeros((), np.int64) for _ in range(count)]
        self.random = random.Random(seed)

    def changed(self) -> None:
        """Let the devices look again at what they wait for, and perhaps one of them go on."""
        self.waiting = 0
        self.condition.notify_all()
        if self.random.random() < 0.5:
            self.condition.wait(timeout=0.001)

    def until(self, ready: Callable[[], Any]) -> Any:
        """The result of a function when it is true."""
        while not (result := ready()):
            self.waiting += 1
            if self.failed or self.waiting >= self.running:
                self.failed = True
                self.condition.notify_all()
                raise AssertionError("all devices wait")
            self.condition.wait(timeout=20)
        return result

    def ended(self) -> None:
        """Note that a device has run its program."""
        self.running -= 1
        self.waiting = 0
        self.condition.notify_all()

    def memory(self, mine: Any, device: int, of: int) -> Any:
        """The memory of a device at the place of one of another device."""
        own, other = self.calls[device].memories, self.calls[of].memories
        for a, b in zip([*own, self.barriers[device]], [*other, self.barriers[of]], strict=True):
            offset = _address(mine) - _address(a)
            if 0 <= offset < max(a.nbytes, 1):
                return np.ndarray(mine.shape, mine.dtype, b.data, offset, mine.strides)
        raise AssertionError("memory that the other devices do not have")


def _address(x: Any) -> int:
    return x.__array_interface__["data"][0]


class DeviceMachine(Machine):
    """A machine that is one of several devices."""

    def __init__(self, values: dict[str, Any], copies: list[Any], network: Network, device: int):
        super().__init__(values, copies)
        self.network, self.device = network, device

    def _tpu_device_id(self, op: Operation) -> list[Any]:
        return [np.asarray(self.device, np.int32)]

    def _tpu_sem_barrier(self, op: Operation) -> list[Any]:
        return [self.network.barriers[self.device]]

    def _tpu_sem_read(self, op: Operation, semaphore: Any) -> list[Any]:
        return [semaphore.astype(np.int32)]

    def _tpu_sem_signal(self, op: Operation, semaphore: Any, n: Any, to: Any = None) -> list[Any]:
        network = self.network
        if to is not None:
            assert "device_id" in op.text
            semaphore = network.memory(semaphore, self.device, int(to))
        semaphore[...] += n
        network.changed()
        return []

    def _tpu_sem_wait(self, op: Operation, semaphore: Any, n: Any) -> list[Any]:
        self.network.until(lambda: semaphore >= n)
        semaphore[...] -= n
        return []

    def _named(self, text: str, kind: str) -> Any:
        name = re.search(rf"(?:^|\W){kind}\(({NAME})", text)
        return None if name is None else self.values[name[1]]

    def _tpu_enqueue_dma(self, op: Operation, *_: Any) -> list[Any]:
        to = self._named(op.text, "device_id")
        if to is None:
            return super()._tpu_enqueue_dma(op)
        network, device = self.network, int(to)
        assert 0 <= device < len(network.calls)
        source, target = self._named(op.text, "source"), self._named(op.text, "target")
        sent = self._named(op.text, "source_semaphore")
        received = self._named(op.text, "target_semaphore")
        assert source.shape == target.shape and source.dtype == target.dtype
        there = network.memory(target, self.device, device)
        arrival = network.memory(received, self.device, device)
        transfer = Transfer(source, there, _address(sent), _address(arrival))
        network.sent.append(transfer)
        network.under_way.append(transfer)
        if not np.shares_memory(source, there):
            there[...] = garbage(there.shape, there.dtype)
        network.changed()
        return []

    def _tpu_wait_dma2(self, op: Operation, *_: Any) -> list[Any]:
        if "device_id" not in op.text:
            return super()._tpu_wait_dma2(op)
        network = self.network
        semaphore, target = self._named(op.text, "semaphore"), self._named(op.text, "dst")
        if "core_id" in op.text:
            begun = [t for t in network.sent if t.sent == _address(semaphore)]
            assert begun, "a wait for a copy that is not begun"
            begun[0].leave()
            network.sent[:] = [t for t in network.sent if t is not begun[0]]
            return []

        def arrived() -> list[Transfer]:
            return [t for t in network.under_way if t.received == _address(semaphore)]

        transfer = network.until(arrived)[0]
        assert transfer.target.nbytes == target.nbytes
        transfer.leave()
        transfer.target[...] = transfer.source
        network.under_way[:] = [t for t in network.under_way if t is not transfer]
        return []


class DeviceCall(Call):
    """The call of one device."""

    def __init__(self, network: Network, device: int, *args: Any):
        super().__init__(*args)
        self.network, self.device = network, device

    @property
    def memories(self) -> list[Any]:
        """Memories that other devices may write."""
        return [*(w.memory for w in self.windows), *self.scratch]

    def machine(self, values: dict[str, Any]) -> Machine:
        return DeviceMachine(values, self.copies, self.network, self.device)

    def run(self) -> None:
        network = self.network
        with network.condition:
            network.calls[self.device] = self
            network.changed()
            network.until(lambda: all(c is not None for c in network.calls))
            try:
                super().run()
            except BaseException:
                network.failed = True
                raise
            finally:
                network.ended()


def evaluate_on_mesh(
    program: Any, kernel: Any, args: Sequence[Sequence[np.ndarray]], seed: int = 0
) -> list[list[np.ndarray]]:
    """The results of a kernel's program on each device.

    Args:
      args: the operands of each device.
    """
    network = Network(len(args), seed)
    results: list[Any] = [None] * len(args)
    errors: list[BaseException] = []

    def device(number: int) -> None:
        def call(*parts: Any) -> DeviceCall:
            return DeviceCall(network, number, *parts)

        try:
            results[number] = evaluate(program, kernel, args[number], call)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=device, args=(n,)) for n in range(len(args))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        others = [e for e in errors if "all devices wait" not in str(e)]
        raise (others or errors)[0]
    assert not network.sent and not network.under_way, "a copy that is not awaited"
    assert not any(b.any() for b in network.barriers), "the barrier semaphore is not 0"
    for one in network.calls:
        semaphores = [x for x in one.scratch if x.dtype == np.int64]
        assert not any(x.any() for x in semaphores), "a semaphore is not 0"
    return results
