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
    first = [Member() for _ in range(100)]
    objects.update(first)
    more = [Member() for _ in range(2000)]

    def add() -> None:
        for member in more:
            objects.add(member)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=add)
    thread.start()
    try:
        while thread.is_alive():
            assert set(members(objects)) >= set(first)
    finally:
        thread.join()
        sys.setswitchinterval(interval)
    assert set(members(objects)) == {*first, *more}
