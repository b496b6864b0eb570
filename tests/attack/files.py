"""Damaged model and data files: either an error that names the file, or exactly what the bytes say."""

import bz2
import contextlib
import gzip
import io
import lzma
import random
import re
import tempfile
import tracemalloc
import zlib
from functools import cache
from pathlib import Path

import numpy as np

import fuzz_models
import oracles as text_oracles
from rankrls import ModelFileError, RankRLS, datasets, load, save

from . import problems
from .trial import DeviationError, Refused

KINDS = (
    fuzz_models.damaged,
    fuzz_models.forged_text,
    fuzz_models.forged_tree,
    fuzz_models.forged_tree,
    fuzz_models.forged_body,
)


@cache
def originals():
    """The bytes of some models; also imports everything needed to read them."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for make in fuzz_models.MODELS:
            save(make(), f"{folder}/m")
            load(f"{folder}/m")
            found.append(Path(folder, "m").read_bytes())
    return found


@contextlib.contextmanager
def bounded(size):
    """Raise an error if more memory was used than a file of that size explains."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
        if peak > 64 * size + (64 << 20):  # besides the buffers of readers
            raise DeviationError(f"{peak} bytes of memory for a file of {size}")
    finally:
        tracemalloc.stop()


def model_file(t):
    """A model file with bytes changed, or forged with a matching checksum."""
    pick = random.Random(t.number(0, 2**40))
    whole = pick.choice(originals())
    kind = pick.choice(KINDS)
    data = kind(whole, pick)
    t.do(f"# {kind.__name__} of a model file of {len(whole)} bytes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        path.write_bytes(data)
        with bounded(len(data)):
            try:
                model = load(path)
            except ModelFileError as error:
                raise Refused(str(error)) from None
    t.true("a damaged file was read", kind is not fuzz_models.damaged or data == whole)
    with contextlib.suppress(Exception):  # a model of forged numbers may be unable to predict, but not crash
        model.predict(fuzz_models.X.copy())


# ---------------------------------------------------------------- data files

PACK = {
    "plain": lambda b: b,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def letor_text(t):
    """Lines of LETOR, regular or not."""
    rows = problems.rows(t, m=(2, 12), n=(1, 5), weights=False, extreme=t.chance(0.3))
    qid = np.sort(rows.qid)
    names = [f"q{q}" if t.chance(0.3) else str(q) for q in range(int(qid.max()) + 1)]
    comments = np.array([t.pick("", f" docid = D{i}", " a # b") for i in range(len(qid))], dtype=object)
    X = np.where(t.rng.random(rows.X.shape) < t.pick(0.0, 0.1), np.nan, rows.X)
    data = datasets.RankingData(X, rows.y, np.array([names[q] for q in qid]), None, t.pick(None, comments))
    file = io.BytesIO()
    datasets.dump_letor(data, file)
    text = file.getvalue()
    return text.replace(b"\n", b"\r\n") if t.chance(0.1) else text


def mutated(t, data):
    """Change bytes in ways that happen to text, and in ways that happen to any file."""
    pick = random.Random(t.number(0, 2**40))
    if t.chance(0.4):
        return fuzz_models.damaged(data, pick)
    found = bytearray(data)
    tokens = b"NULL nan inf 1e999 0x1 1_0 qid: : # - + . e 1:1 99999999999:1 100000000:1".split()
    tokens += [b" ", b"\n", b"\t", b"\r", b"\x00", b"\xff\xfe", b"9" * 30]
    for _ in range(pick.randint(1, 3)):
        place = pick.randrange(len(found) + 1)
        found[place : place + pick.randint(0, 2)] = pick.choice(tokens)
    return bytes(found)


def letor_file(t):
    """A LETOR file, damaged or not: the reader must find what a plain-Python reader finds."""
    packing, text = t.pick("plain", "plain", *PACK), letor_text(t)
    if t.chance(0.8):
        if packing == "plain" or t.chance(0.5):
            text = mutated(t, text)
            data = PACK[packing](text)
        else:
            data, text = mutated(t, PACK[packing](text)), None
    else:
        data = PACK[packing](text)
    t.let(data=data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows-of-a-file.{packing}"
        path.write_bytes(data)
        t.do("load_letor(path of data)")
        found = read(t, path, lambda: datasets.load_letor(path, sparse=t.chance(0.3)))
    if text is None:
        try:
            text = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}[packing](data)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, KeyError, ValueError):
            raise DeviationError("a damaged archive was read") from None
    compare(t, found, text)


def read(t, path, reader):
    """What a reader returns; its errors must name the file."""
    try:
        with bounded(path.stat().st_size):
            return reader()
    except (ValueError, TypeError, OSError, MemoryError) as error:
        if path.name not in str(error) and path.parent.name not in str(error):
            raise DeviationError(f"the error does not name the file: {type(error).__name__}: {error}") from error
        if "should not happen" in str(error):
            raise DeviationError(str(error)) from error
        raise Refused(f"{type(error).__name__}: {str(error).replace(str(path), 'FILE')}") from None


SPACES = re.compile(rb"[\x1c-\x1f\x85\xa0]")  # which are spaces to str.split, but not in a LETOR file


def compare(t, found, text):
    if SPACES.search(text):
        return
    try:
        rows = text_oracles.letor_rows(text.decode("utf-8", "surrogateescape"))
    except (ValueError, IndexError) as error:
        raise DeviationError(f"read, though it cannot be understood: {error}") from None
    X = found.X.toarray() if hasattr(found.X, "toarray") else found.X
    first = 0 if any(0 in values for _, _, values, _ in rows) else 1
    t.same("rows", len(found.y), len(rows))
    labels = np.array([label for label, *_ in rows])
    t.true(f"labels are {found.y.tolist()}, the file says {labels}", np.array_equal(found.y, labels, equal_nan=True))
    for i, (_, qid, values, _) in enumerate(rows):
        if found.qid is not None:
            t.same("query", str(found.qid[i]), str(qid))
        expected = np.zeros(X.shape[1])
        for j, value in values.items():
            expected[j - first] = value
        same = (X[i] == expected) | (np.isnan(X[i]) & np.isnan(expected))
        t.true(f"row {i} is {X[i].tolist()}, the file says {expected.tolist()}", bool(same.all()))


def parquet_file(t):
    """A Parquet file with bytes changed: either a fit or an error that names the file."""
    import polars as pl

    rows = problems.rows(t, m=(6, 20), n=(1, 4), weights=False, extreme=False)
    frame = pl.DataFrame({**{f"f{j}": rows.X[:, j] for j in range(rows.X.shape[1])}, "y": rows.y, "qid": rows.qid})
    file = io.BytesIO()
    frame.write_parquet(file, compression=t.pick("uncompressed", "zstd", "snappy"))
    data = mutated(t, file.getvalue())
    t.let(data=data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows-of-a-file.parquet"
        path.write_bytes(data)
        t.do("RankRLS(1.0).fit(path of data)")
        try:
            model = RankRLS(1.0).fit(path, "y", "qid")
        except Exception as error:
            if type(error) not in (ValueError, TypeError, OSError, MemoryError, FileNotFoundError):
                raise
            known = (
                "no comparable pair",
                "overflow when they are added up",
                "underflow when they are added up",
            )  # of numbers that the file does hold
            if "rows-of-a-file" not in str(error) and not any(text in str(error) for text in known):
                raise DeviationError(f"the error does not name the file: {type(error).__name__}: {error}") from error
            raise Refused(type(error).__name__) from None
    t.true("weights that are numbers", bool(np.isfinite(model.coef_).all()))


CATEGORIES = {
    "damaged model files": model_file,
    "damaged text files": letor_file,
    "damaged Parquet files": parquet_file,
}
