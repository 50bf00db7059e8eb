"""Reading weak sets that other threads change."""

from __future__ import annotations

import sys
import threading
from weakref import WeakSet

from primax_core._base.weak_sets import members


class Member:
    pass


class Changing(WeakSet):
    """A set that another thread changes during the first two copies."""

    changes = 2

    def __iter__(self):
        for member in super().__iter__():
            if self.changes:
                self.changes -= 1
                raise RuntimeError("Set changed size during iteration")
            yield member


def test_a_set_that_changes_is_copied_again():
    one, two = Member(), Member()
    objects = Changing([one, two])
    objects.changes = 2
    assert set(members(objects)) == {one, two} and objects.changes == 0


def test_members_while_a_thread_adds_some():
    objects: WeakSet[Member] = WeakSet()
    early = [Member() for _ in range(100)]
    objects.update(early)
    done = threading.Event()
    more: list[Member] = []

    def add() -> None:
        while not done.is_set():
            more.append(Member())
            objects.add(more[-1])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=add)
    thread.start()
    try:
        for _ in range(50):
            assert set(members(objects)) >= set(early)
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
