"""Against a server on loopback that knows ranges, breaks off, or lies."""

import hashlib
import http.server
import io
import random
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainables.asr.data import download
from trainables.asr.data.download import Archive, Progress
from trainables.errors import InputError


def tar_of(*names: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in names:
            content = random.Random(name).randbytes(4000)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


CONTENT = tar_of("LibriSpeech/tiny/1/2/1-2-0001.flac", "LibriSpeech/tiny/1/2/1-2.trans.txt")
ARCHIVE = Archive("tiny", 99, "sha256", hashlib.sha256(CONTENT).hexdigest())


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT; what it does wrong and what it was asked is on it."""

    breaks_off_after = None
    answer = b""
    knows_ranges = True
    content = CONTENT

    def __init__(self) -> None:
        self.ranges: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Server = self.server
        wanted = self.headers.get("Range")
        server.ranges.append(wanted)
        if server.answer:
            self.wfile.write(server.answer)
            return
        if self.path != "/99/tiny.tar.gz":
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.knows_ranges else 0
        if start >= len(server.content):
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.breaks_off_after])
        server.breaks_off_after = None

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def get(server: Server, folder: Path, archive: Archive = ARCHIVE) -> list[Progress]:
    return list(download.download(archive, folder, f"http://127.0.0.1:{server.server_port}/"))


def test_an_archive_comes_whole_and_is_unpacked(server, tmp_path):
    progress = get(server, tmp_path)
    assert progress[-1] == Progress(len(CONTENT), len(CONTENT))
    assert download.unpack(ARCHIVE, tmp_path) == tmp_path / "LibriSpeech/tiny"
    assert len((tmp_path / "LibriSpeech/tiny/1/2/1-2-0001.flac").read_bytes()) == 4000
    assert [path.name for path in tmp_path.iterdir()] == ["LibriSpeech"]
    assert download.is_there(ARCHIVE, tmp_path)


def test_a_lost_connection_is_gone_on_with(server, tmp_path):
    server.breaks_off_after = 1000
    get(server, tmp_path)
    assert server.ranges == [None, "bytes=1000-"]
    assert (tmp_path / "tiny.tar.gz").read_bytes() == CONTENT


def test_an_earlier_attempts_part_is_gone_on_with(server, tmp_path):
    (tmp_path / "tiny.tar.gz.partial").write_bytes(CONTENT[:777])
    get(server, tmp_path)
    assert server.ranges == ["bytes=777-"]
    assert (tmp_path / "tiny.tar.gz").read_bytes() == CONTENT


def test_a_part_that_is_all_of_it_is_enough(server, tmp_path):
    (tmp_path / "tiny.tar.gz.partial").write_bytes(CONTENT)
    get(server, tmp_path)
    assert (tmp_path / "tiny.tar.gz").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.knows_ranges = False
    (tmp_path / "tiny.tar.gz.partial").write_bytes(b"x" * 777)
    get(server, tmp_path)
    assert (tmp_path / "tiny.tar.gz").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_removed(server, tmp_path):
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(InputError, match=r"tiny.tar.gz must have the sha256 checksum .* it was removed"):
        get(server, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_the_server_has_not_is_said_at_once(server, tmp_path):
    with pytest.raises(InputError, match=r"99/other.tar.gz cannot be fetched: the server answers 404 \(Not Found\)"):
        get(server, tmp_path, Archive("other", 99, "sha256", ""))
    assert len(server.ranges) == 1


@pytest.mark.parametrize("source", ["http://[::1", "http://user:se@same@mirror.example", "mirror.example", ""])
def test_what_is_no_address_is_refused_and_no_password_is_said_again(tmp_path, source):
    with pytest.raises(InputError, match=r"^`--source` must be the address of a mirror, such as https://") as raised:
        list(download.download(ARCHIVE, tmp_path, source))
    assert "same" not in str(raised.value) and "user:" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n", "Invalid IPv6 URL"),
        (b"HTTP/1.1 404 \x1b[31mgone\r\n\r\n", "the server answers 404 (Not Found)"),
        (b"HTTP/1.1 599 \x1b[31mgone\r\n\r\n", "the server answers 599 (which no standard knows)"),
        (b"HTTP/1.1 302 \x1b[31m\r\nLocation: file:///etc/passwd\r\n\r\n", "the server answers 302 (Found)"),
        (b"x" * 60_000 + b"\r\n\r\n", "characters)"),
        (b"\x1b[31m" + b"x" * 60_000 + b"\r\n\r\n", "characters)"),
    ],
    ids=["sent on to no address", "gone", "unknown", "sent on to a file", "no answer", "no answer of signs"],
)
def test_what_a_server_says_is_told_in_our_words(server, tmp_path, answer, said):
    server.answer = answer
    with pytest.raises(InputError) as raised:
        get(server, tmp_path)
    assert said in str(raised.value)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 800


@pytest.mark.parametrize("length", ["abc", "-5", "9" * 5000, "1\u00b2"])
def test_a_length_that_is_none_is_not_needed(server, tmp_path, length):
    head = f"HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n"
    server.answer = head.encode("latin-1") + CONTENT
    assert get(server, tmp_path)[-1] == Progress(len(CONTENT), 0)
    assert download.unpack(ARCHIVE, tmp_path).is_dir()


def test_no_server_is_said_after_some_attempts(server, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match=r"cannot be fetched: .*Connection refused.* The downloaded part is kept"):
        get(server, tmp_path)


def test_a_full_disk_is_foreseen(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda folder: type("", (), {"free": 10})())
    with pytest.raises(InputError, match=r"GB free, but has 0.0"):
        get(server, tmp_path)


def test_an_archive_cannot_write_elsewhere(tmp_path):
    (tmp_path / "tiny.tar.gz").write_bytes(tar_of("../outside.txt"))
    with pytest.raises(InputError, match="outside"):
        download.unpack(ARCHIVE, tmp_path)
    assert not (tmp_path.parent / "outside.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_an_archive_holds_plain_files_and_folders_alone(tmp_path, kind):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("LibriSpeech/tiny/odd")
        member.type, member.linkname = kind, "../../../outside.txt"
        tar.addfile(member)
    (tmp_path / "tiny.tar.gz").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="neither a file nor a folder"):
        download.unpack(ARCHIVE, tmp_path)
    assert not (tmp_path / "LibriSpeech").exists()


@pytest.mark.parametrize("name", ["/etc/outside.txt", "LibriSpeech/../../outside.txt"])
def test_an_archive_names_no_place_outside(tmp_path, name):
    (tmp_path / "tiny.tar.gz").write_bytes(tar_of(name))
    with pytest.raises(InputError, match="outside the destination"):
        download.unpack(ARCHIVE, tmp_path)


def test_corpora_and_subsets_are_chosen_by_name():
    assert [a.subset for a in download.choose("mini-librispeech", [])] == ["train-clean-5", "dev-clean-2"]
    assert [a.subset for a in download.choose("librispeech", ["train-other-500"])] == ["train-other-500"]
    assert len(download.choose("librispeech", [])) == 7
    with pytest.raises(
        InputError, match="no corpus 'timit' to download; the corpora are mini-librispeech, librispeech"
    ):
        download.choose("timit", [])
    with pytest.raises(InputError, match="no subset 'x'; it has train-clean-5, dev-clean-2"):
        download.choose("mini-librispeech", ["x"])
