"""Archives: what they hold is imported as if it lay there, and what would fill the disk is refused."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import struct
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poc.errors import InputError
from poc.ingest import describe, import_logs
from poc.ingest.archives import expand
from poc.ingest.sources import Source
from poc.ingest.spool import Limits, Spool


def chat(number):
    function = {"name": "look", "arguments": json.dumps({"n": number})}
    return {
        "task_id": f"t{number}",
        "messages": [
            {"role": "user", "content": f"do {number}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
    }


def lines(*numbers):
    return "".join(json.dumps(chat(number)) + "\n" for number in numbers).encode()


def zipped(members, kind=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(members, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zstd(content):
    return pa.Codec("zstd").compress(content, asbytes=True)


def paths(workspace):
    return [row["path"] for row in workspace.rows("SELECT path FROM sources ORDER BY path")]


def rejects(workspace):
    return workspace.rows("SELECT path, place, reason, records FROM rejects JOIN sources USING (source_id) ORDER BY 1")


def left_behind(workspace):
    return [entry.name for entry in workspace.files.iterdir()]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_packed_file_is_known_by_its_content(workspace, write, pack):
    path = write("whatever.name", pack(lines(1, 2, 3)))
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.runs, result.steps) == (3, 3, 3, 3)
    assert paths(workspace) == [str(path)]
    assert left_behind(workspace) == []
    # The same content unpacked is the same source.
    again = import_logs(workspace, write("plain.jsonl", lines(1, 2, 3)))
    assert (again.imported, again.skipped, len(paths(workspace))) == (0, 3, 1)


def test_packed_files_written_one_behind_the_other(workspace, write):
    halves = [lines(1), lines(2, 3)]
    assert import_logs(workspace, write("a.gz", b"".join(map(gzip.compress, halves)))).runs == 3
    result = import_logs(workspace, write("b.zst", b"".join(map(zstd, [lines(4), lines(5, 6)]))))
    assert result.runs == 3


@pytest.mark.parametrize("pack", [zipped, tarred, lambda members: tarred(members, "w"), lambda m: zstd(tarred(m, "w"))])
def test_each_file_of_an_archive_is_a_source(workspace, write, pack):
    members = {
        "run/a.jsonl": lines(1, 2),
        "run/b.jsonl": lines(3),
        "run/notes.txt": b"Dear all,\nthese are logs.\n",
        ".hidden/c.jsonl": lines(7),
        "__MACOSX/run/._a.jsonl": b"\x00\x05\x16\x07",
    }
    path = write("logs.bin", pack(members))
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.runs) == (4, 3, 1, 3)
    assert paths(workspace) == [f"{path}!run/{name}" for name in ("a.jsonl", "b.jsonl", "notes.txt")]
    assert [row["path"] for row in rejects(workspace)] == [f"{path}!run/notes.txt"]
    again = import_logs(workspace, path)
    assert (again.imported, again.skipped, again.rejected) == (0, 3, 1)
    assert len(paths(workspace)) == 3


def test_archives_in_an_archive_are_opened_once_more(workspace, write):
    third = zipped({"deep.jsonl": lines(9)})
    path = write(
        "logs.zip",
        zipped(
            {
                "a.jsonl.gz": gzip.compress(lines(1)),
                "b.zip": zipped({"in.jsonl": lines(2), "third.zip": third}),
                "c.tgz": tarred({"x/in.jsonl": lines(3)}),
            }
        ),
    )
    result = import_logs(workspace, path)
    assert (result.runs, result.rejected) == (3, 1)
    assert paths(workspace) == [
        f"{path}!{name}" for name in ("a.jsonl.gz", "b.zip!in.jsonl", "b.zip!third.zip", "c.tgz!x/in.jsonl")
    ]
    assert "too deep" in rejects(workspace)[0]["reason"]


def test_a_database_and_a_parquet_file_in_archives(workspace, write, tmp_path):
    file = tmp_path / "calls.db"
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE calls (run_id TEXT, tool TEXT, arguments TEXT, result TEXT)")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("INSERT INTO calls VALUES ('r1', 'look', '{}', 'ok')")  # stands in the write-ahead log only
    with_log = {"calls.db": file.read_bytes(), "calls.db-wal": (tmp_path / "calls.db-wal").read_bytes()}
    db.close()
    table = pa.table({"run_id": ["p1", "p1"], "tool": ["a", "b"], "arguments": ["{}", "{}"], "result": ["x", "y"]})
    pq.write_table(table, tmp_path / "calls.parquet")
    archive = write("tables.zip", zipped({**with_log, "calls.parquet": (tmp_path / "calls.parquet").read_bytes()}))
    result = import_logs(workspace, archive)
    assert (result.runs, result.steps, result.rejected) == (2, 3, 0)
    packed = write("p.parquet.gz", gzip.compress((tmp_path / "calls.parquet").read_bytes()))
    assert describe(packed).columns == ["run_id", "tool", "arguments", "result"]


def test_a_file_named_itself_in_an_archive_alone_has_to_be_a_log(workspace, write):
    with pytest.raises(InputError, match="format is not known") as caught:
        import_logs(workspace, write("a.zip", zipped({"prose.txt": b"Dear all,\n\nhere are the logs.\n"})))
    assert caught.value.where.endswith("a.zip!prose.txt")
    with pytest.raises(InputError, match="holds no files"):
        import_logs(workspace, write("b.zip", zipped({"empty/": b""})))


@pytest.mark.parametrize("pack", [gzip.compress, zstd, bz2.compress, lzma.compress])
def test_of_a_cut_file_what_can_be_unpacked_is_read(workspace, write, pack):
    content = b"".join(
        json.dumps({**chat(number), "note": str(hash((number, "x")))}).encode() + b"\n" for number in range(6000)
    )
    packed = pack(content)
    result = import_logs(workspace, write("log.bin", packed[: len(packed) * 3 // 4]))
    assert result.read == result.imported + result.rejected
    if pack is not bz2.compress:  # it gives nothing out before a block of 900 KB is whole
        assert result.imported > 1000
    told = [row for row in rejects(workspace) if "damaged" in row["reason"]]
    assert [row["records"] for row in told] == [1]


def test_a_damaged_or_encrypted_file_costs_itself_only(workspace, write):
    archive = bytearray(zipped({"a.jsonl": lines(1, 2), "b.jsonl": lines(3), "c.jsonl": lines(4)}, zipfile.ZIP_STORED))
    archive[archive.index(b'"do 3"') + 2] ^= 1  # a checksum that does not fit
    central = archive.rindex(b"PK\x01\x02")
    local = archive.index(b"PK\x03\x04", archive.index(b'"t3"'))
    for place in (central + 8, local + 6):
        struct.pack_into("<H", archive, place, 1)
    result = import_logs(workspace, write("a.zip", bytes(archive)))
    assert (result.imported, result.rejected) == (2, 2)
    reasons = {row["path"].rsplit("!")[-1]: row["reason"] for row in rejects(workspace)}
    assert "Bad CRC" in reasons["b.jsonl"]
    assert "encrypted" in reasons["c.jsonl"]


# Bombs ---------------------------------------------------------------------------------------------------


def test_ten_gigabytes_of_zeros_are_refused(workspace, write):
    bomb = gzip.compress(bytes(64 << 20)) * 160
    assert len(bomb) < 20 << 20
    path = write("zeros.jsonl.gz", bomb)
    with pytest.raises(InputError, match="more than 200 times its size") as caught:
        import_logs(workspace, path)
    assert "unpack it" in caught.value.todo
    spool = Spool(path.parent)
    with pytest.raises(InputError):
        list(expand(Source(path), spool, lambda source: False))
    assert spool.written < 80 << 20  # it is told by what came out so far, not at the end
    assert left_behind(workspace) == []
    assert paths(workspace) == []


def test_a_bomb_in_a_folder_stops_no_other_file(workspace, write, tmp_path):
    (tmp_path / "logs").mkdir()
    write("logs/a.jsonl", lines(1, 2))
    write("logs/bomb.zip", zipped({"zeros.jsonl": bytes(80 << 20)}))
    write("logs/c.jsonl.gz", gzip.compress(lines(3)))
    result = import_logs(workspace, tmp_path / "logs")
    assert (result.runs, result.rejected) == (3, 1)
    assert "200 times its size" in rejects(workspace)[0]["reason"]


def test_bombs_in_bombs_unpack_to_no_more_than_one(workspace, write, tmp_path):
    inner = zipped({f"{number}.jsonl": bytes(8 << 20) for number in range(16)})
    spool = Spool(tmp_path, Limits(free_ratio=1 << 20))
    path = write("42.zip", zipped({f"lib {number}.zip": inner for number in range(16)}))
    with pytest.raises(InputError, match="times its size"):
        list(expand(Source(path), spool, lambda source: False))
    assert spool.written < 20 << 20
    # Deeper ones are not opened at all.
    deep = inner
    for _ in range(5):
        deep = zipped({"a.zip": deep, "b.zip": deep})
    found = list(expand(Source(write("deep.zip", deep)), Spool(tmp_path / "."), lambda source: False))
    assert len(found) == 4
    assert all(source.fault for source in found)


def test_the_other_limits(write, tmp_path):
    def opened(path, **limits):
        spool = Spool(tmp_path, Limits(**limits))
        found = list(expand(Source(path), spool, lambda source: False))
        return sum(source.size for source in found)

    path = write("many.zip", zipped({f"{number}.jsonl": lines(number) for number in range(30)}))
    whole = opened(path, members=30)
    assert whole == sum(len(lines(number)) for number in range(30))
    with pytest.raises(InputError, match="more than 29 files"):
        opened(path, members=29)
    assert opened(path, total=whole) == whole
    with pytest.raises(InputError, match="would have to be laid down"):
        opened(path, total=whole - 1)
    with pytest.raises(InputError, match="left on the disk"):
        opened(path, reserve=1 << 60)


def test_a_limit_that_a_zip_lies_about(write, tmp_path):
    """The sizes in a zip's own table are not believed: bytes are counted."""
    archive = bytearray(zipped({"a.jsonl": bytes(3 << 20)}))
    central = archive.rindex(b"PK\x01\x02")
    struct.pack_into("<I", archive, central + 24, 10)
    spool = Spool(tmp_path, Limits(free_ratio=1 << 10, ratio=2))
    found = list(expand(Source(write("liar.zip", bytes(archive))), spool, lambda source: False))
    assert spool.written <= 10
    assert found[0].fault or found[0].notes


def test_unpacking_can_be_stopped(workspace, write):
    class Stop(Exception):
        pass

    def stop(done, total, note):
        if note.startswith("unpacking"):
            raise Stop

    with pytest.raises(Stop):
        import_logs(workspace, write("a.zip", zipped({"a.jsonl": lines(1)})), progress=stop)
    assert left_behind(workspace) == []


# Text in another encoding ------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_read_as_what_it_says(workspace, write, encoding):
    text = json.dumps({**chat(1), "task_id": "größe 漢字 😀"}, ensure_ascii=False) + "\r\n" + lines(2).decode()
    content = text.encode(encoding)
    if encoding == "utf-16-be":
        content = b"\xfe\xff" + content
    result = import_logs(workspace, write("windows.jsonl", content))
    assert (result.runs, result.rejected) == (2, 0)
    keys = {row["task_key"] for row in workspace.rows("SELECT task_key FROM tasks")}
    assert keys == {"größe 漢字 😀", "t2"}


def test_broken_utf16_is_noted(workspace, write):
    text = json.dumps(chat(1)) + "\n" + json.dumps(chat(2))
    content = text.encode("utf-16-le").replace("do 1".encode("utf-16-le"), b"d\x00o\x00\x00\xd8" + b"1\x00")
    result = import_logs(workspace, write("w.jsonl", b"\xff\xfe" + content + b"\x0a\x00" + b"{\x00}"))
    assert result.runs == 2
    reasons = [row["reason"] for row in rejects(workspace)]
    assert any("invalid UTF-8" in reason for reason in reasons)
    assert result.rejected == 1  # the half line at the end
