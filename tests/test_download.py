"""Downloads over a network that fails in every way, and handling of the files. The server is a thread of the test."""

import hashlib
import io
import itertools
import os
import sys
import tarfile
import threading
import time
import types
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankrls.datasets import (
    RankingData,
    dump_letor,
    fetch,
    fetch_20newsgroups,
    fetch_jester,
    fetch_letor,
    fetch_movielens,
)
from rankrls.datasets import download as downloads
from rankrls.datasets.download import DownloadError, Remote, data_home, fetched, unpacked
from shared import FOLDER

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server:
    """Serves one file; the `faults` happen one after the other, one per request, before all goes well."""

    def __init__(self, content=CONTENT, faults=()):
        self.content, self.faults, self.requests = content, list(faults), []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.headers.get("Range")
                server.requests.append(asked)
                fault = server.faults.pop(0) if server.faults else "none"
                self.answer(fault, int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0)

            def answer(self, fault, start):
                content = server.content
                if isinstance(fault, int):
                    self.send_error(fault)
                    return
                if fault == "drip headers":
                    with suppress(OSError):  # the client hangs up
                        self.wfile.write(b"HTTP/1.0 200 OK\r\nX-Endless: ")
                        for _ in range(1000):
                            self.wfile.write(b"x")
                            time.sleep(0.01)
                    return
                if fault == "corrupt":
                    content = content[:1000] + b"?" + content[1001:]
                if fault == "ignore range":
                    start = 0
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                if start:
                    shift = 7 if fault == "wrong range" else 0
                    self.send_header("Content-Range", f"bytes {start - shift}-{len(content) - 1}/{len(content)}")
                    start -= shift
                body = content[start:]
                if fault.startswith("chunks"):
                    self.send_header("Transfer-Encoding", "chunked")
                    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
                elif not fault.startswith("no length"):
                    self.send_header("Content-Length", "plenty" if fault.startswith("odd length") else str(len(body)))
                self.end_headers()
                if fault == "drip":
                    with suppress(ConnectionError):  # the client gives up
                        for byte in body[:200]:
                            self.wfile.write(bytes([byte]))
                            time.sleep(0.01)
                    return
                self.wfile.write(body[: len(body) // 2] if fault.endswith("drop") else body)
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def remote(self, *, known=True, name="file.bin"):
        address = f"http://127.0.0.1:{self.server.server_port}/{name}"
        return Remote(
            address, name, hashlib.sha256(self.content).hexdigest() if known else None, "https://example.org/"
        )


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Records waiting times instead of waiting."""
    waited = []
    monkeypatch.setattr(downloads, "_sleep", waited.append)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return waited


def test_a_file_is_downloaded_once(tmp_path):
    with Server() as server:
        path = fetched(server.remote(), tmp_path / "new")
        assert path.read_bytes() == CONTENT
        assert fetched(server.remote(), tmp_path / "new") == path
    assert len(server.requests) == 1
    assert os.listdir(tmp_path / "new") == ["file.bin"]


def test_a_connection_that_drops_is_resumed_where_it_stopped(tmp_path, pauses):
    with Server(faults=["drop", "drop", "drop"]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=150000-", "bytes=225000-", "bytes=262500-"]
    assert pauses == [0.5, 1.0, 2.0]


def test_a_server_without_ranges_starts_over(tmp_path):
    with Server(faults=["drop", "ignore range"]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_a_wrong_range_is_not_appended(tmp_path):
    with Server(faults=["drop", "wrong range"]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT


def test_a_complete_partial_file_is_renamed(tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)  # stopped right before the rename
    with Server() as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.requests == ["bytes=300000-"]


def test_server_errors_are_retried(tmp_path, pauses):
    with Server(faults=[500, 503, 429]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert len(pauses) == 3


def test_a_corrupt_file_is_fetched_again_from_the_start(tmp_path):
    with Server(faults=["corrupt"]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, None]


def test_a_file_that_stays_corrupt_is_never_kept(tmp_path):
    with (
        Server(faults=["corrupt"] * 10) as server,
        pytest.raises(DownloadError, match="the wrong file arrived: sha"),
    ):
        fetched(server.remote(), tmp_path)
    assert len(server.requests) == downloads.RETRIES
    assert os.listdir(tmp_path) == []


def test_a_missing_file_is_reported_at_once_with_a_remedy(tmp_path, pauses):
    with Server(faults=[404] * 9) as server, pytest.raises(DownloadError) as caught:
        fetched(server.remote(), tmp_path)
    message = str(caught.value)
    assert (
        "404" in message and "get file.bin from https://example.org/ yourself" in message and str(tmp_path) in message
    )
    assert len(server.requests) == 1 and not pauses


def test_being_offline_is_reported(tmp_path):
    with Server() as server:
        remote = server.remote()
    with pytest.raises(DownloadError, match=r"could not be downloaded in 5 tries \(.*refused.*\): are you offline\?"):
        fetched(remote, tmp_path)
    with pytest.raises(DownloadError, match="is not there, and download=False"):
        fetched(remote, tmp_path, download=False)


def test_a_download_broken_off_leaves_nothing_that_looks_complete(tmp_path, monkeypatch):
    def stop(response):
        yield response.read(1000)
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads, "_blocks", stop)
    with Server() as server, pytest.raises(KeyboardInterrupt):
        fetched(server.remote(), tmp_path)
    assert os.listdir(tmp_path) == ["file.bin.part"]
    monkeypatch.undo()
    with Server() as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert server.requests == ["bytes=1000-"]


def test_several_processes_want_the_same_file(tmp_path):
    with Server() as server, ThreadPoolExecutor(4) as pool:  # locks are of open files, so that threads are as good
        paths = list(pool.map(lambda _: fetched(server.remote(), tmp_path), range(8)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert len(server.requests) == 1 and os.listdir(tmp_path) == ["file.bin"]


def test_without_locks_a_download_still_works(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "fcntl", None)
    with Server(faults=["drop", "corrupt"]) as server:
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT
    assert os.listdir(tmp_path) == ["file.bin"]


def test_without_a_known_checksum_the_first_one_is_noted(tmp_path):
    with Server(faults=["drop", "chunks, drop"]) as server:
        path = fetched(server.remote(known=False), tmp_path)
        assert path.read_bytes() == CONTENT
        assert server.requests == [None, None, None]  # halves are not glued without a checksum
        assert hashlib.sha256(CONTENT).hexdigest() in (tmp_path / "file.bin.json").read_text()
        path.unlink()
        server.faults = ["corrupt"] * 10
        with pytest.raises(DownloadError, match="wrong file arrived"):
            fetched(server.remote(known=False), tmp_path)


@pytest.mark.parametrize("fault", ["no length", "no length, drop", "odd length", "odd length, drop"])
def test_a_file_that_may_be_cut_short_is_refused(tmp_path, fault):
    with Server(faults=[fault] * 10) as server:
        with pytest.raises(DownloadError, match=r"does not say how long the file is.*yourself and put it into"):
            fetched(server.remote(known=False), tmp_path)
        assert os.listdir(tmp_path) == []
        if fault.endswith("drop"):
            server.faults = [fault]  # with a checksum it is found out, and fetched again
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT


def test_slow_servers_are_given_up(tmp_path, limit):
    limit(stalled_seconds=0.2)
    with Server(faults=["drip"] * 20) as server:
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"sent \d+ bytes in \d+ seconds"):
            fetched(server.remote(), tmp_path)
        assert len(server.requests) == downloads.RETRIES and time.monotonic() - start < 20
        server.faults = []
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT


def test_slow_headers_are_given_up(tmp_path, limit):
    limit(stalled_seconds=0.1)
    with Server(faults=["drip headers"] * 20) as server:
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"had not sent its headers after 0\.2 seconds.*yourself and put it"):
            fetched(server.remote(), tmp_path)
        assert len(server.requests) == downloads.RETRIES and time.monotonic() - start < 10
        server.faults = []
        assert fetched(server.remote(), tmp_path).read_bytes() == CONTENT


def test_only_long_downloads_report_progress(tmp_path, capsys, limit):
    with Server() as server:
        limit(clock=lambda: 0.0)
        fetched(server.remote(), tmp_path / "a")
        assert capsys.readouterr() == ("", "")
        times = itertools.count()
        limit(clock=lambda: next(times))
        fetched(server.remote(), tmp_path / "b")
    printed = capsys.readouterr()
    assert printed.out == "" and "download of file.bin: 100 % in" in printed.err


# ---------------------------------------------------------------- archives


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "C:\\evil.txt", "..\\evil.txt"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_nothing_is_written_outside_of_the_folder(tmp_path, name, kind):
    archive = tmp_path / f"bad.{kind}"
    if kind == "zip":
        archive.write_bytes(zipped(**{"good.txt": "x", name: "x"}))
    else:
        with tarfile.open(archive, "w") as tar:
            tar.addfile(tarfile.TarInfo("good.txt"), io.BytesIO())
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(DownloadError, match="outside its folder"):
        unpacked(archive, tmp_path / "content")
    assert os.listdir(tmp_path) == [f"bad.{kind}"]


def test_links_out_of_the_folder_are_refused(tmp_path):
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.addfile(link)
    with pytest.raises(DownloadError):
        unpacked(tmp_path / "bad.tar", tmp_path / "content")
    assert not (tmp_path / "content").exists()


def test_a_damaged_archive_leaves_no_folder(tmp_path):
    archive = tmp_path / "file.zip"
    archive.write_bytes(b"PK nothing")
    with pytest.raises(DownloadError, match="damaged"):
        unpacked(archive, tmp_path / "content")
    assert os.listdir(tmp_path) == ["file.zip"]


def test_another_process_unpacks_at_the_same_time(tmp_path, monkeypatch):
    archive, folder = tmp_path / "file.zip", tmp_path / "content"
    archive.write_bytes(zipped(**{"a.txt": "text"}))
    check = downloads._refuse_outside
    monkeypatch.setattr(
        downloads, "_refuse_outside", lambda *names: (folder.mkdir(), (folder / "a.txt").touch(), check(*names))
    )
    assert unpacked(archive, folder) == folder
    assert sorted(os.listdir(tmp_path)) == ["content", "file.zip"]


def test_unpacking_happens_once(tmp_path):
    archive = tmp_path / "file.zip"
    archive.write_bytes(zipped(**{"a/b.txt": "text"}))
    folder = unpacked(archive, tmp_path / "content")
    assert (folder / "a/b.txt").read_text() == "text"
    archive.unlink()
    assert unpacked(archive, folder) == folder


# ---------------------------------------------------------------- the folder of data


def test_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKRLS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", "C:/local")
    expected = {
        "linux": tmp_path / "rankrls",
        "darwin": Path.home() / "Library/Caches/rankrls",
        "win32": Path("C:/local/rankrls"),
    }
    for platform, path in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert data_home() == path
    monkeypatch.setenv("RANKRLS_DATA", "~/data")
    assert data_home() == Path.home() / "data"
    assert data_home(tmp_path) == tmp_path


# ---------------------------------------------------------------- data sets

ML100K = {
    "ml-100k/u.data": "196\t242\t3\t881250949\n186\t1\t5\t891717742\n1\t242\t4\t1\n",
    "ml-100k/u.item": "1|Toy Story (1995)|01-Jan-1995||http://x|0|1|0\n242|Kolya (1996)|24-Jan-1997||http://y|0|0|1\n",
    "ml-100k/u.genre": "unknown|0\nAnimation|1\nComedy|2\n\n",
}
ML1M = {
    "ml-1m/ratings.dat": "1::1193::5::978300760\n2::1::3::978302109\n",
    "ml-1m/movies.dat": "1::Toy Story (1995)::Animation|Comedy\n1193::Amélie\x85 (1975)::Drama\n".encode("latin-1"),
}


def serve(monkeypatch, table, key, content):
    server = Server(content, faults=["drop", 500])
    monkeypatch.setitem(table, key, server.remote(name=table[key].name))
    return server


def test_movielens_100k(tmp_path, monkeypatch):
    with serve(monkeypatch, fetch._MOVIELENS, "100k", zipped(**ML100K)):
        ratings = fetch_movielens(folder=tmp_path)
    assert (ratings.user.tolist(), ratings.item.tolist(), ratings.rating.tolist()) == (
        [195, 185, 0],
        [1, 0, 1],
        [3, 5, 4],
    )
    assert ratings.item_names == ["Toy Story (1995)", "Kolya (1996)"]
    assert ratings.feature_names == ["unknown", "Animation", "Comedy"]
    assert_array_equal(ratings.ranking().X, [[0, 0, 1], [0, 1, 0], [0, 0, 1]])
    assert ratings.matrix().shape == (196, 2) and np.isnan(ratings.matrix()[1]).all()
    assert fetch_movielens(folder=tmp_path, download=False).item_names == ratings.item_names


def test_movielens_1m(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKRLS_DATA", str(tmp_path))
    with serve(monkeypatch, fetch._MOVIELENS, "1m", zipped(**ML1M)):
        ratings = fetch_movielens("1m")
    assert ratings.item_names == ["Toy Story (1995)", "Amélie\x85 (1975)"]
    assert ratings.item.tolist() == [1, 0]
    assert_array_equal(ratings.item_features, [[1, 1, 0], [0, 0, 1]])
    with pytest.raises(ValueError, match="version must be one of '100k', '1m'"):
        fetch_movielens("10m")


def test_jester_from_csv_and_from_excel_sheets(tmp_path, monkeypatch):
    rows = [[2, 1.5, 99, -9.95], [1, 99, 10, 99]]
    (tmp_path / "jester").mkdir()
    (tmp_path / "jester/jester-data-1.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    ratings = fetch_jester([1], folder=tmp_path, download=False)
    assert (ratings.user.tolist(), ratings.item.tolist(), ratings.rating.tolist()) == (
        [0, 0, 1],
        [0, 2, 1],
        [1.5, -9.95, 10],
    )
    assert ratings.item_names == ["joke 1", "joke 2", "joke 3"]
    with pytest.raises(ValueError, match="have no features"):
        ratings.ranking()
    with serve(monkeypatch, fetch._JESTER, 2, zipped(**{"jester-data-2.xls": "a sheet"})):
        monkeypatch.setitem(sys.modules, "xlrd", None)
        with pytest.raises(ImportError, match=r"rankrls\[xls\]"):
            fetch_jester([1, 2], folder=tmp_path)
    sheet = types.SimpleNamespace(nrows=2, row_values=lambda row: rows[row])
    book = types.SimpleNamespace(sheet_by_index=lambda _: sheet)
    monkeypatch.setitem(sys.modules, "xlrd", types.SimpleNamespace(open_workbook=lambda _: book))
    assert fetch_jester([1, 2], folder=tmp_path).matrix().shape == (4, 3)


def test_newsgroups_come_from_an_archive_or_through_scikit_learn(tmp_path, monkeypatch):
    def offline(**options):
        assert options["data_home"] == tmp_path / "20newsgroups"
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", offline)
    with pytest.raises(DownloadError, match=r"no network.*are you offline\?.*20news-bydate.tar.gz"):
        fetch_20newsgroups(folder=tmp_path)
    (tmp_path / "20newsgroups").mkdir()
    with tarfile.open(tmp_path / "20newsgroups/20news-bydate.tar.gz", "w:gz") as tar:
        for name, text in (("sci.space/1", b"caf\xe9"), ("rec.autos/2", b"car")):
            info = tarfile.TarInfo(f"20news-bydate-train/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    documents = fetch_20newsgroups(folder=tmp_path)
    assert (documents.texts, documents.group.tolist()) == (["car", "café"], ["rec.autos", "sci.space"])
    assert fetch_20newsgroups(categories=["sci.space"], folder=tmp_path).texts == ["café"]


def letor_archive(folder, *versions):
    folder.mkdir(parents=True)
    data = RankingData(np.arange(6.0).reshape(3, 2), np.array([0.0, 1.0, 2.0]), np.array([1, 1, 2]))
    with zipfile.ZipFile(folder / "SET.zip", "w") as archive:
        for version in versions:
            for number, part in enumerate(("trainingset.TXT", "vali.txt", "test.txt")):
                file = io.BytesIO()
                dump_letor(RankingData(data.X + number, data.y, data.qid), file)
                archive.writestr(f"SET/{version}/Fold2/{part}", file.getvalue())


def test_letor_is_found_where_the_user_put_it(tmp_path):
    letor_archive(tmp_path / "letor3-td2003", "QueryLevelNorm", "Feature-min")
    fold = fetch_letor("letor3-td2003", 2, folder=tmp_path)
    assert [part.X[0, 0] for part in (fold.train, fold.validation, fold.test)] == [0, 1, 2]
    assert fetch_letor("letor3-td2003", 2, variant="feature-MIN", folder=tmp_path).test.X[0, 0] == 2
    with pytest.raises(ValueError, match=r"variant='x' is not one of .*/Feature-min, .*/QueryLevelNorm"):
        fetch_letor("letor3-td2003", 2, variant="x", folder=tmp_path)
    letor_archive(tmp_path / "letor4-mq2008", "")
    assert fetch_letor("letor4-mq2008", 2, folder=tmp_path).train.X.shape == (3, 2)


def test_missing_letor_files_say_where_to_get_and_put_them(tmp_path):
    with pytest.raises(DownloadError) as caught:
        fetch_letor("mslr-web10k", folder=tmp_path)
    message = str(caught.value)
    assert (
        "accept its licence yourself" in message
        and "microsoft.com" in message
        and str(tmp_path / "mslr-web10k") in message
    )
    with pytest.raises(ValueError, match="did you mean 'letor3-ohsumed'"):
        fetch_letor("letor3-osumed", folder=tmp_path)


def test_a_fold_without_its_files(tmp_path):
    (tmp_path / "letor4-mq2007/Fold1").mkdir(parents=True)
    with pytest.raises(DownloadError, match=r"must hold one file train\*.txt, but holds none"):
        fetch_letor("letor4-mq2007", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "call", "shape", "n_ratings"),
    [
        ("movielens-100k", lambda: fetch_movielens(folder=FOLDER, download=False), (943, 1682), 100_000),
        ("movielens-1m", lambda: fetch_movielens("1m", folder=FOLDER, download=False), (6040, 3883), 1_000_209),
        ("jester", lambda: fetch_jester([1], folder=FOLDER, download=False), (24_983, 100), 1_810_455),
    ],
)
def test_public_ratings(name, call, shape, n_ratings):
    if not (FOLDER / name).exists():
        pytest.skip(f"no {name}: set RANKRLS_SHARED_DATA to a folder that holds it")
    ratings = call()
    assert ratings.matrix().shape == shape and len(ratings.rating) == n_ratings
