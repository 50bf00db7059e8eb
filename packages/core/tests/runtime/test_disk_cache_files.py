"""Files of the cache on disk: contents, number and permissions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib

import pytest

from primax_core._base.digest import digest
from primax_core._base.identity import CACHE_FOLDER
from primax_core._runtime.disk import files, folder, store
from primax_core._runtime.disk.files import Damaged, Entry

KEY = digest(b"key")
OTHER = digest(b"other")


def entry(size: int = 100, name: str = "f", needs=()) -> Entry:
    return Entry(name, "cpu", "0.12.0", needs, bytes(i % 251 for i in range(size)))


def fields(e: Entry) -> tuple:
    return tuple(getattr(e, n) for n in Entry.__slots__)


@pytest.mark.parametrize("size", [0, 1, 4096, 32 * 1024 - 1, 32 * 1024, 200_000])
@pytest.mark.parametrize("needs", [(), ("lapack",), ("a b", "ü", "c\td")])
def test_entries_come_back(size, needs):
    original = entry(size, "größe", needs)
    assert fields(files.unpack(files.pack(original, KEY), KEY)) == fields(original)


def test_newlines_in_a_name_are_replaced():
    assert files.unpack(files.pack(entry(name="a\nb\n\nc"), KEY), KEY).name == "a b  c"


def test_large_entries_are_compressed():
    assert len(files.pack(entry(200_000), KEY)) < 20_000


def test_incompressible_entries_are_stored_uncompressed():
    noise = os.urandom(100_000)
    original = Entry("f", "cpu", "1", (), noise)
    data = files.pack(original, KEY)
    assert noise in data and files.unpack(data, KEY).blob == noise


@pytest.mark.parametrize("size", [50, 50_000])
def test_every_flipped_byte_is_detected(size):
    data = files.pack(entry(size, needs=("n",)), KEY)
    step = max(1, len(data) // 400)
    for at in sorted({*range(min(130, len(data))), *range(130, len(data), step)}):
        broken = bytearray(data)
        broken[at] ^= 1 << (at % 8)
        with pytest.raises(Damaged):
            files.unpack(bytes(broken), KEY)


def test_every_truncation_is_detected():
    data = files.pack(entry(50), KEY)
    for length in range(len(data)):
        with pytest.raises(Damaged):
            files.unpack(data[:length], KEY)
    with pytest.raises(Damaged):
        files.unpack(data + b"\0", KEY)


def test_another_key_is_detected():
    with pytest.raises(Damaged, match="checksum"):
        files.unpack(files.pack(entry(), KEY), OTHER)
    with pytest.raises(Damaged, match="checksum"):
        files.unpack_link(files.pack_link(OTHER, KEY), OTHER)


def test_links_and_executables_are_distinguished():
    with pytest.raises(Damaged, match="does not begin"):
        files.unpack(files.pack_link(OTHER, KEY), KEY)
    with pytest.raises(Damaged, match="does not begin"):
        files.unpack_link(files.pack(entry(), KEY), KEY)
    assert files.unpack_link(files.pack_link(OTHER, KEY), KEY) == OTHER


def _signed(body: bytes) -> bytes:
    return files.EXECUTABLE + digest(body, KEY) + body


def test_lengths_are_checked_under_a_correct_checksum():
    head = files._HEAD
    for body in (
        head.pack(0, 10, 10) + b"123",
        head.pack(1 << 31, 3, 3) + b"123",
        head.pack(0, 3, 1 << 40) + b"123",
        head.pack(0, len(z := zlib.compress(b"123")), 4) + z,
    ):
        with pytest.raises(Damaged, match="lengths"):
            files.unpack(_signed(body), KEY)


# The folder


@pytest.fixture
def home(tmp_path):
    return str(tmp_path / "cache")


def test_written_bytes_are_read(home):
    assert store.read(home, KEY, ".xla") is None
    assert store.write(home, KEY, ".xla", b"abc") == 4096
    assert store.read(home, KEY, ".xla") == b"abc"
    assert store.read(home, KEY, ".link") is None
    assert store.write(home, KEY, ".xla", b"abc") == 0
    store.remove(home, KEY, ".xla")
    store.remove(home, KEY, ".xla")
    assert store.read(home, KEY, ".xla") is None


def test_reading_a_file_updates_its_time(home):
    store.write(home, KEY, ".xla", b"abc")
    path = os.path.join(home, KEY.hex() + ".xla")
    now = time.time()
    for age, renewed in ((60, False), (2 * 3600, True), (-2 * 3600, True)):
        os.utime(path, (now - age, now - age))
        store.read(home, KEY, ".xla")
        assert (abs(os.stat(path).st_mtime - now) < 30) == renewed, age


def _fill(home: str, count: int, size: int = 4096) -> list[bytes]:
    keys = [digest(bytes([i])) for i in range(count)]
    now = time.time()
    for i, key in enumerate(keys):
        store.write(home, key, ".xla", b"x" * size)
        at = now - 10_000 + 10 * i
        os.utime(os.path.join(home, key.hex() + ".xla"), (at, at))
    return keys


def test_the_least_recently_used_files_are_evicted_first(home):
    keys = _fill(home, 20)
    store.read(home, keys[0], ".xla")  # used now
    assert store.evict(home, 10 * 4096) <= 10 * 4096
    left = {f.name[:64] for f in store.listing(home)}
    assert left == {k.hex() for k in [keys[0], *keys[-8:]]}


def test_small_files_count_as_whole_blocks(home):
    _fill(home, 20, size=1)
    store.evict(home, 10 * 4096)
    assert len(store.listing(home)) <= 10


def test_nothing_is_evicted_within_the_limit(home):
    _fill(home, 20)
    assert store.evict(home, 20 * 4096) == 20 * 4096
    assert len(store.listing(home)) == 20


def test_foreign_files_are_not_removed(home):
    _fill(home, 3)
    strange = ["notes.txt", "jit_f-0123-cache", "ab.xla", KEY.hex() + ".bak"]
    for name in strange:
        with open(os.path.join(home, name), "w") as file:
            file.write("x" * 100_000)
    os.mkdir(os.path.join(home, KEY.hex() + ".xla"))
    store.evict(home, 0)
    assert store.clear(home) == (0, 0)
    assert sorted(os.listdir(home)) == sorted([*strange, KEY.hex() + ".xla"])


def test_temporary_files_of_ended_processes_are_removed(home):
    _fill(home, 1)
    old = os.path.join(home, KEY.hex() + ".0123456789abcdef.tmp")
    new = os.path.join(home, OTHER.hex() + ".0123456789abcdef.tmp")
    for path in (old, new):
        with open(path, "w"):
            pass
    os.utime(old, (0, 0))
    store.evict(home, 1 << 30)
    assert not os.path.exists(old) and os.path.exists(new)
    assert len(store.listing(home)) == 1
    assert store.clear(home)[0] == 2 and not os.listdir(home)


def test_a_failed_write_leaves_nothing(home, monkeypatch):
    def fails(self, old, new):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder.Folder, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        store.write(home, KEY, ".xla", b"abc")
    assert os.listdir(home) == []


def test_a_missing_folder_counts_as_empty(home):
    assert store.listing(home) == [] and store.clear(home) == (0, 0)
    assert list(store.check(home)) == []


def test_descriptors_are_closed(home):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for i in range(50):
        store.write(home, digest(bytes([i])), ".xla", b"x")
        store.read(home, digest(bytes([i])), ".xla")
        store.read(home, OTHER, ".xla")
    store.evict(home, 4096)
    store.clear(home)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 1


@pytest.mark.skipif(os.name != "posix", reason="owners and modes")
def test_a_folder_replaced_by_an_unsafe_one_is_detected(home):
    store.write(home, KEY, ".xla", b"abc")
    os.chmod(home, 0o777)
    for use in (
        lambda: store.read(home, KEY, ".xla"),
        lambda: store.write(home, OTHER, ".xla", b""),
        lambda: store.evict(home, 0),
        lambda: store.clear(home),
    ):
        with pytest.raises(folder.Unsafe):
            use()
    os.chmod(home, 0o700)
    assert store.read(home, KEY, ".xla") == b"abc"


# Where


@pytest.mark.parametrize(
    "platform,environment,expected",
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/{}"),
        ("linux", {"HOME": "/home/a"}, "/home/a/.cache/{}"),
        ("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, "/home/a/.cache/{}"),
        ("darwin", {"HOME": "/Users/a"}, "/Users/a/Library/Caches/{}"),
        ("darwin", {"HOME": "/Users/a", "XDG_CACHE_HOME": "/x"}, "/x/{}"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/{}/Cache"),
        ("win32", {}, None),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="paths are written as on POSIX")
def test_the_default_folder(monkeypatch, platform, environment, expected):
    for name in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(folder.sys, "platform", platform)
    assert folder.location() == (expected and expected.format(CACHE_FOLDER))


# Many processes at once

WORKER = """
import os, random, sys
from primax_core._base.digest import digest
from primax_core._runtime.disk import files, store
home, seed = sys.argv[1:]
draw = random.Random(int(seed))
hits = 0
for i in range(400):
    n = draw.randrange(60)
    key = digest(bytes([n]))
    data = store.read(home, key, ".xla")
    if data is None:
        made = files.Entry(f"p{n}", "cpu", "1", (), bytes([n]) * draw.choice((100, 40_000)))
        store.write(home, key, ".xla", files.pack(made, key))
    else:
        found = files.unpack(data, key)
        assert found.name == f"p{n}" and set(found.blob) == {n}
        hits += 1
    if i % 5 == 0:
        assert store.evict(home, 40 * 4096) <= 40 * 4096
print(hits)
"""


def test_processes_write_and_evict_concurrently(home):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, home, str(seed)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in range(4)
    ]  # fmt: skip
    for worker in workers:
        out, error = worker.communicate(timeout=120)
        assert worker.returncode == 0, error
        assert int(out) > 50
    assert store.evict(home, 40 * 4096) <= 40 * 4096
    assert all(isinstance(contents, Entry) for _, contents in store.check(home))
    assert not [n for n in os.listdir(home) if n.endswith(".tmp")]


def test_times_of_the_future_do_not_keep_files(home):
    """They come from another clock; such files are removed first."""
    keys = _fill(home, 20)
    future = time.time() + 70 * 365 * 86400
    for i in range(30):
        path = os.path.join(home, f"{KEY.hex()}.{i:016x}.tmp")
        with open(path, "wb") as file:
            file.write(b"x" * 10_000)
        os.utime(path, (future, future))
    os.utime(os.path.join(home, keys[3].hex() + ".xla"), (future, future))
    assert store.evict(home, 10 * 4096) <= 10 * 4096
    left = {f.name[:64] for f in store.listing(home)}
    assert left == {k.hex() for k in keys[-9:]}
