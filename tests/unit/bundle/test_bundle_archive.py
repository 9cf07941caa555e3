"""The archive is written reproducibly and read without trust: hostile ones are refused before they can do harm."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mragaudit.bundle.archive import FIXED_SECONDS, LIMITS, Limits, unpack_archive, write_archive
from mragaudit.errors import ArchiveError

PLAIN = "results/x/trials.jsonl"
MEMBERS: dict[str, Path | bytes] = {
    "README.md": b"read me\n",
    PLAIN: b'{"a": 1}\n',
    "results/x/tables/f1.csv": b"a,b\n",
}

Build = Callable[[tarfile.TarFile], None]


def _add(tar: tarfile.TarFile, name: str, content: bytes = b"x\n", **fields: object) -> None:
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for key, value in fields.items():
        setattr(header, key, value)
    tar.addfile(header, io.BytesIO(content))


def _add_all(tar: tarfile.TarFile, names: list[str]) -> None:
    for name in names:
        _add(tar, name)


def _archive(folder: Path, build: Build, *, form: int = tarfile.PAX_FORMAT) -> Path:
    path = folder / "hostile.tar.gz"
    with tarfile.open(path, "w:gz", format=form) as tar:
        build(tar)
    return path


def _target(folder: Path) -> Path:
    target = folder / "unpacked"
    target.mkdir()
    return target


def test_the_same_members_give_the_same_bytes_whatever_their_order_and_times(tmp_path: Path) -> None:
    on_disk = tmp_path / "table.csv"
    on_disk.write_bytes(b"a,b\n")
    write_archive(tmp_path / "one.tar.gz", MEMBERS)
    os.utime(on_disk, (1, 1))
    members = dict(reversed(MEMBERS.items())) | {"results/x/tables/f1.csv": on_disk}
    write_archive(tmp_path / "two.tar.gz", members)
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_what_was_written_is_unpacked_with_equal_times(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.tar.gz", MEMBERS)
    target = _target(tmp_path)
    assert set(unpack_archive(tmp_path / "one.tar.gz", target)) == set(MEMBERS)
    assert {name: (target / name).read_bytes() for name in MEMBERS} == MEMBERS
    assert {(target / name).stat().st_mtime for name in MEMBERS} == {FIXED_SECONDS}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_an_archive_packed_anew_by_another_tar_program_is_read(form: int, tmp_path: Path) -> None:
    """Such programs add folders, a leading `./` and, in one format, headers with fractions of seconds."""

    def build(tar: tarfile.TarFile) -> None:
        folder = tarfile.TarInfo("./results")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        _add(tar, f"./{PLAIN}", mtime=1.5 if form == tarfile.PAX_FORMAT else 1)

    assert list(unpack_archive(_archive(tmp_path, build, form=form), _target(tmp_path))) == [PLAIN]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/etc/passwd.md", "absolute path"),
        ("C:/windows.md", "absolute path"),
        ("../outside.md", 'leads out of the folder with ".."'),
        ("results/../../outside.md", 'leads out of the folder with ".."'),
        ("results/x/.hidden.json", "no name that a bundle gives"),
        ("results\\..\\outside.md", "no name that a bundle gives"),
        ("results/x/a\nb.json", "no name that a bundle gives"),
        ("results//x.json", "no name that a bundle gives"),
        ("results/" + "d/" * 9 + "x.json", "no name that a bundle gives"),
        ("results/" + "y" * 300 + ".json", "no name that a bundle gives"),
        ("Snakefile", "nothing that a bundle holds"),
        ("workflow/profiles/default/config.yaml", "nothing that a bundle holds"),
        ("sitecustomize.py", "nothing that a bundle holds"),
        ("results/x/index/vectors.pkl", "nothing that a bundle holds"),
        ("resources/prompts/en.sh", "nothing that a bundle holds"),
    ],
)
def test_a_name_that_no_bundle_has_is_refused(name: str, message: str, tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, name))
    with pytest.raises(ArchiveError, match=message):
        unpack_archive(path, _target(tmp_path))
    assert not (tmp_path / "outside.md").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("/etc/outside", "absolute path"), ("results/../../outside", "leads out of the folder")]
)
def test_a_folder_outside_is_refused_like_a_file(name: str, message: str, tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, name, b"", type=tarfile.DIRTYPE))
    with pytest.raises(ArchiveError, match=message):
        unpack_archive(path, _target(tmp_path))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.CONTTYPE, "an entry of type"),
        (tarfile.GNUTYPE_SPARSE, "an entry of type"),
    ],
)
def test_what_is_no_plain_file_is_refused(kind: bytes, message: str, tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN, b"", type=kind, linkname="/etc/passwd"))
    with pytest.raises(ArchiveError, match=message):
        unpack_archive(path, _target(tmp_path))


@pytest.mark.parametrize("second", [PLAIN, f"./{PLAIN}", PLAIN.upper().replace(".JSONL", ".jsonl"), f"{PLAIN}/y.json"])
def test_a_name_that_stands_twice_is_refused(second: str, tmp_path: Path) -> None:
    def build(tar: tarfile.TarFile) -> None:
        _add(tar, PLAIN)
        _add(tar, second.replace("RESULTS", "results"))

    with pytest.raises(ArchiveError, match="stands twice"):
        unpack_archive(_archive(tmp_path, build), _target(tmp_path))


def test_a_file_below_which_another_would_lie_is_refused(tmp_path: Path) -> None:
    def build(tar: tarfile.TarFile) -> None:
        _add(tar, "results/x.json/y.json")
        _add(tar, "results/x.json")

    with pytest.raises(ArchiveError, match="stands twice"):
        unpack_archive(_archive(tmp_path, build), _target(tmp_path))


def test_more_files_than_allowed_are_refused(tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add_all(tar, [f"results/x/{number}.json" for number in range(4)]))
    assert len(unpack_archive(path, _target(tmp_path), limits=Limits(n_files=4))) == 4
    with pytest.raises(ArchiveError, match="more than 3 files; --max-files"):
        unpack_archive(path, _target(tmp_path / "unpacked"), limits=Limits(n_files=3))


def test_more_folders_than_allowed_are_refused(tmp_path: Path) -> None:
    def build(tar: tarfile.TarFile) -> None:
        for number in range(4):
            _add(tar, f"results/{number}", b"", type=tarfile.DIRTYPE)

    with pytest.raises(ArchiveError, match="more than 3 files"):
        unpack_archive(_archive(tmp_path, build), _target(tmp_path), limits=Limits(n_files=3))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """64 MiB of zeros in 64 KB: the header says so, and nothing is written."""
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN, bytes(1 << 26)))
    target = _target(tmp_path)
    with pytest.raises(ArchiveError, match="more than 1048576 bytes; --max-bytes"):
        unpack_archive(path, target, limits=Limits(n_bytes=1 << 20))
    assert list(target.rglob("*")) == []


def test_a_bomb_in_a_header_is_refused_without_holding_it_in_memory(tmp_path: Path) -> None:
    """A header's extension of 64 MiB, which tar programs read whole."""
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN, pax_headers={"comment": "0" * (1 << 26)}))
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match="more bytes come than the headers"):
            unpack_archive(path, _target(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_endless_padding_behind_the_last_file_is_refused(tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN))
    path.write_bytes(path.read_bytes() + gzip.compress(bytes(1 << 24)))
    with pytest.raises(ArchiveError, match="more bytes come than the headers"):
        unpack_archive(path, _target(tmp_path))


def test_bytes_hidden_behind_the_last_file_are_refused(tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN))
    path.write_bytes(path.read_bytes() + gzip.compress(b"hidden"))
    with pytest.raises(ArchiveError, match="bytes that belong to no file"):
        unpack_archive(path, _target(tmp_path))


def test_a_chain_of_header_extensions_is_refused(tmp_path: Path) -> None:
    """Each extension has tar's reader call itself once more."""
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 11
    block = header.tobuf(tarfile.USTAR_FORMAT) + b"11 path=ab\n".ljust(512, b"\0")
    path = tmp_path / "chain.tar.gz"
    path.write_bytes(gzip.compress(block * 5000))
    with pytest.raises(ArchiveError, match=r"more bytes come than the headers|damaged, or no archive"):
        unpack_archive(path, _target(tmp_path))


@pytest.mark.parametrize("fields", [{"size": "-512"}, {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1"}])
def test_a_header_that_lies_about_sizes_is_refused(fields: dict[str, str], tmp_path: Path) -> None:
    path = _archive(tmp_path, lambda tar: _add(tar, PLAIN, bytes(2048), pax_headers=fields))
    with pytest.raises(ArchiveError):
        unpack_archive(path, _target(tmp_path))


@pytest.mark.parametrize("kept", [0, 5, 40, -9])
def test_a_truncated_archive_is_refused(kept: int, tmp_path: Path) -> None:
    write_archive(tmp_path / "one.tar.gz", MEMBERS)
    content = (tmp_path / "one.tar.gz").read_bytes()
    (tmp_path / "one.tar.gz").write_bytes(content[:kept])
    with pytest.raises(ArchiveError, match="damaged, or no archive of ours"):
        unpack_archive(tmp_path / "one.tar.gz", _target(tmp_path))


def test_a_tar_that_ends_between_two_headers_is_refused(tmp_path: Path) -> None:
    """A broken second header looks like the end of the archive to tar's reader."""
    path = _archive(tmp_path, lambda tar: _add_all(tar, [PLAIN, "README.md"]))
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[1024 + 148 : 1024 + 156] = b"00000000"  # the checksum field of the second header
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(ArchiveError, match="damaged"):
        unpack_archive(path, _target(tmp_path))


def test_a_flipped_bit_in_the_compressed_stream_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.tar.gz", MEMBERS)
    content = bytearray((tmp_path / "one.tar.gz").read_bytes())
    content[-6] ^= 1  # gzip's own checksum
    (tmp_path / "one.tar.gz").write_bytes(bytes(content))
    with pytest.raises(ArchiveError, match="damaged"):
        unpack_archive(tmp_path / "one.tar.gz", _target(tmp_path))


def test_a_missing_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"nowhere.tar.gz: no such file"):
        unpack_archive(tmp_path / "nowhere.tar.gz", _target(tmp_path))


def test_a_member_with_a_foreign_name_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="nothing that a bundle holds"):
        write_archive(tmp_path / "one.tar.gz", {"notes.txt": b""})
    assert list(tmp_path.iterdir()) == []


def test_the_limits_allow_the_largest_published_run() -> None:
    """100 documents, 1,500 trials and five judges are about 20 MB in 100 files."""
    assert LIMITS.n_files > 1000
    assert LIMITS.n_bytes > 500_000_000


def test_a_folder_in_the_place_of_an_archive_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"this is a folder; name the archive, bundle\.tar\.gz"):
        unpack_archive(tmp_path, _target(tmp_path))
