"""LETOR text: every number as float() reads it, whichever way it was parsed; errors are precise."""

import bz2
import gzip
import io
import lzma
import sys
import tracemalloc
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import oracles
from rankrls import RankRLS
from rankrls.cli.text import source
from rankrls.core.fused import compiled_code
from rankrls.datasets import RankingData, dump_letor, iter_letor, load_letor, read_svmlight
from rankrls.datasets.letor import decimals, lines
from rankrls.datasets.letor import text as letor_text
from rankrls.datasets.letor.matrix import Assembly
from rankrls.system import files
from shared import unpacked

HAS_NUMBA = find_spec("numba") is not None
needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="compiled code needs numba")
MQ2008 = b"""2 qid:10032 1:0.056537 2:0.000000 3:0.666667 4:1.000000 #docid = GX029-35-5894638 inc = 0.01 prob = 0.1\r
0 qid:10032 1:0.279152 2:0.000000 3:0.000000 4:0.000000 #docid = GX030-77-6315042 inc = 1 prob = 0.341364\r
1 qid:q:17 1:-1.5 2:NULL 3:1e-7 4:12345678901234567890 #docid = http://x.org/#1\r
"""


def read(text, **options):
    return load_letor(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


def dumped(data, **options):
    file = io.BytesIO()
    dump_letor(data, file, **options)
    return file.getvalue()


def assert_same(a, b):
    assert_array_equal(a.X.toarray() if sparse.issparse(a.X) else a.X, b.X.toarray() if sparse.issparse(b.X) else b.X)
    assert_array_equal(a.y, b.y)
    for one, other in ((a.qid, b.qid), (a.comments, b.comments)):
        assert (one is None) == (other is None)
        assert one is None or one.tolist() == other.tolist()


# ---------------------------------------------------------------- numbers


def in_bulk(tokens, extended=decimals.EXTENDED):
    text = b" ".join(tokens)
    length = np.array([len(token) for token in tokens])
    end = np.cumsum(length + 1) - 1 + decimals.PADDING
    return decimals.decimals(decimals.padded(text), end - length, end, extended=extended)


def assert_as_float_reads(tokens, extended=decimals.EXTENDED):
    values, odd = in_bulk(tokens, extended)
    for token, value, left in zip(tokens, values, odd, strict=True):
        if not left:
            assert np.float64(float(token)).tobytes() == value.tobytes(), token
    return odd


written = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).flatmap(lambda v: st.integers(0, 17).map(lambda n: f"{v:.{n}f}")),
    st.from_regex(r"-?[0-9]{0,12}\.?[0-9]{0,12}", fullmatch=True).filter(lambda t: any(map(str.isdigit, t))),
    st.integers(-(10**22), 10**22).map(str),
)


@settings(deadline=None)
@given(st.lists(written, min_size=1, max_size=40))
@example(
    ["-0", "-0.0", ".5", "5.", "0.1", "9007199254740993", "0.3000000000000000166", "1" * 30, "0." + "0" * 24 + "1"]
)
def test_numbers_in_bulk_are_bit_for_bit_those_of_float(tokens):
    assert_as_float_reads([token.encode() for token in tokens])


@needs_numba
@settings(deadline=None)
@given(st.lists(written, min_size=1, max_size=40))
@example(["-0", "-0.0", ".5", "5.", "0.1", "9007199254740993", "0.3000000000000000166", "18014398509481983"])
@example([str(2**k + i) for k in range(53, 64) for i in (-1, 1, 2 ** (k - 53), 2 ** (k - 53) - 1)])
def test_numbers_in_compiled_code_are_bit_for_bit_those_of_float(tokens):
    rows = lines.parse_compiled("\n".join(f"{token} 1:{token}" for token in tokens).encode(), 1)
    if rows is not None:  # too many are left to float
        assert rows.values.tobytes() == rows.y.tobytes() == np.array(list(map(float, tokens))).tobytes()


@needs_numba
def test_compiled_code_reads_plain_and_shortest_decimals():
    values = np.random.default_rng(0).normal(size=(5000, 4))
    for text in (repr, "{:.6f}".format, "{:.15f}".format):
        given = [[text(v) for v in row] for row in values.tolist()]
        rows = lines.parse_compiled("\n".join(f"0 1:{a} 3:{b} 4:{c} 9:{d}" for a, b, c, d in given).encode(), 1)
        assert rows.features.tolist() == [1, 3, 4, 9] and rows.counts is None
        assert_array_equal(rows.values, np.array([[float(v) for v in row] for row in given]))


def test_plain_decimals_are_all_read_in_bulk():
    rng = np.random.default_rng(0)
    for digits in (0, 2, 6, 8, 11):
        assert not assert_as_float_reads([b"%.*f" % (digits, v) for v in rng.normal(scale=50, size=2000)]).any()


def test_shortest_decimals_are_read_in_bulk_except_between_two_floats():
    odd = assert_as_float_reads([repr(v).encode() for v in np.random.default_rng(0).uniform(0.01, 9, 20_000).tolist()])
    assert odd.mean() < 0.01 or np.finfo(np.longdouble).nmant == 52


def test_without_extended_precision_nothing_changes():
    assert_as_float_reads([repr(v).encode() for v in np.random.default_rng(0).normal(size=2000).tolist()], False)


ODD = ["", "-", ".", "-.", "1.2.3", "1..2", "1-2", "+5", "NULL", "1e5", "0x1", "é", "1234567.1234567.1"]


@pytest.mark.parametrize("token", [token.encode() for token in ODD])
def test_unusual_decimals_are_left_to_the_caller(token):
    assert in_bulk([b"1.5", token, b"2"])[1].tolist() == [False, True, False]


# ---------------------------------------------------------------- both ways of reading

tokens = st.one_of(written, st.sampled_from(["NULL", "nan", "inf", "1e-300", "-2.5E+3"]))
names = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="#\x85\xa0\x7f"), min_size=1, max_size=12
)


@st.composite
def texts(draw):
    """Valid LETOR text that may be odd: blanks, tabs, CRLF, comments with anything in them, empty lines."""
    with_qid, odd, alike = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    same = draw(st.sets(st.integers(0, 30), min_size=1, max_size=6))
    blank = st.sampled_from([" ", "  ", "\t"] if odd else [" "])
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        line = draw(tokens)
        if with_qid:
            line += f"{draw(blank)}qid:{draw(names)}"
        for feature in sorted(same if alike else draw(st.sets(st.integers(0, 30), max_size=6))):
            line += f"{draw(blank)}{feature}:{draw(tokens)}"
        line += draw(st.sampled_from(["", " ", "  ", "    "]))
        line += draw(st.sampled_from(["", "#", "#docid = A:1 # x", "# é: \u2028"]))
        lines.append(line + draw(st.sampled_from(["", "\r"])))
        if odd and draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "#only: a comment", "  ", "\r"])))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@settings(max_examples=300, deadline=None)
@given(texts())
def test_rows_are_those_of_the_oracle(text):
    expected = oracles.letor_rows(text)
    ways = [lines.parse, lines.parse_lines, *([partial(lines.parse, compiled=True)] if HAS_NUMBA else [])]
    for data in (parse(text.encode(), 1) for parse in ways):
        assert_array_equal(data.y, [label for label, *_ in expected])
        assert (data.qid is None and expected[0][1] is None) or data.qid.tolist() == [row[1] for row in expected]
        features = [list(row[2]) for row in expected]
        values = [list(row[2].values()) for row in expected]
        if data.counts is None:
            assert [data.features.tolist()] * len(data) == features
            assert_array_equal(data.values, values)
        else:
            assert data.counts.tolist() == [len(row) for row in features]
            assert data.features.tolist() == list(chain(*features))
            assert_array_equal(data.values, list(chain(*values)))
        assert (data.comments or [""] * len(data)) == [row[3] for row in expected]


SIX_DECIMALS = st.integers(0, 9_999_999).map(lambda number: f"{number / 1e6:.6f}")


@settings(deadline=None)
@given(st.lists(st.lists(SIX_DECIMALS, min_size=3, max_size=3), min_size=1, max_size=8), st.booleans(), st.data())
def test_values_at_fixed_places_are_those_of_float(rows, with_qid, source):
    names = source.draw(st.sampled_from([(1, 2, 3), (0, 9, 10), (7, 99, 1234567)]))
    text = "".join(
        f"{i % 3}{f' qid:{i // 2}' if with_qid else ''} {' '.join(map('{}:{}'.format, names, row))}\n"
        for i, row in enumerate(rows)
    )
    found = lines.parse_regular(text.encode(), 1)
    assert found.values.tolist() == [[float(value) for value in row] for row in rows]
    assert found.features.tolist() == list(names) and found.y.tolist() == [i % 3 for i in range(len(rows))]
    assert (found.qid is not None) == with_qid and (not with_qid or found.qid[-1] == str((len(rows) - 1) // 2))


@pytest.mark.parametrize("qid", ["", " qid:7", " qid:q:17", " qid:x qid:y", " 5:1", " qid:", " qid:" + "long" * 9])
@pytest.mark.parametrize(
    "value", ["0.123456", "12.12345", "-0.12345", "0.12345x", "0x123456", "0.1234567", "0.12345:", ".1234567"]
)
@pytest.mark.parametrize("label", ["1", "1.5", "", "1 0:0.000001", "#", "label"])
def test_one_odd_line_among_values_at_fixed_places(qid, value, label):
    rows = [f"2 qid:{i} 1:0.100000 2:0.{i:06d}\n" for i in range(5)]
    rows.insert(2, f"{label}{qid} 1:0.500000 2:{value}\n")
    text = "".join(rows).encode()

    def outcome_of(parse):
        try:
            data = parse(text, 1)
            width = data.values.shape[-1] if data.counts is None else 0
            counts = [width] * len(data) if data.counts is None else data.counts.tolist()
            return data.y.tolist(), data.qid.tolist(), counts, data.values.ravel().tolist(), data.lines.tolist()
        except lines.LineError as error:
            return str(error)

    assert outcome_of(lines.parse) == outcome_of(lines.parse_lines)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("odd", ["", "1 qid:9 2:7\n", "1 qid:9 1:1 2:2 3:3 4:4\n", "# nothing\n\n"])
@pytest.mark.parametrize("place", [0, 150, 300])
def test_rows_that_are_stacked_while_they_are_read_are_those_of_one_block(dtype, pack, odd, place, tmp_path, limit):
    rows = [f"{i % 3} qid:{i // 10} 1:{i}.5 2:-{i} 3:0.{i:06d}\n" for i in range(300)]
    path = tmp_path / "rows"
    path.write_bytes(pack("".join([*rows[:place], odd, *rows[place:]]).encode()))
    whole = load_letor(path, dtype=dtype)
    limit(text_bytes=500)
    data = load_letor(path, dtype=dtype)
    assert_same(data, whole)
    assert data.X.dtype == dtype and data.X.flags.c_contiguous and data.X.flags.writeable


def test_the_size_of_a_file_is_known_if_it_has_one(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 1:2\n")
    with path.open("rb") as file, source(str(path), quiet=True) as counted:
        assert files.size_of(path) == files.size_of(file) == files.size_of(counted) == 6
    assert files.size_of(io.BytesIO(b"1 1:2\n")) == files.size_of(tmp_path / "nothing") == 0


def test_a_comment_keeps_a_carriage_return_before_that_of_its_line():
    text = b"1 1:2  2:3 # a\r\r\n2 1:2 2:3\r\n"
    assert lines.parse(text, 1).comments == lines.parse_lines(text, 1).comments == [" a\r", ""]


def test_rows_of_a_file_are_not_put_together_again_once_they_are_stacked(tmp_path, limit, monkeypatch):
    path = tmp_path / "rows"
    path.write_text("".join(f"1 qid:{i // 10} 1:{i} 2:{-i}\n" for i in range(1000)))
    limit(text_bytes=500)
    monkeypatch.delattr(Assembly, "_dense")
    assert load_letor(path).X.tolist() == [[i, -i] for i in range(1000)]


@needs_numba
@pytest.mark.parametrize(
    "rows",
    [
        ["1:1 2:2 3:3", "1:4", "1:5 2:6 3:7", "1:8 5:9 6:1 7:2", "1:3 2:4"],
        [
            "1:0.5 20:1.5 300:2.5",
            "01:0.25 20:0.123456 300:1",
            "1:0.5 20:-1.5 300:0.123456",
            "1:1 2:0.123456 3:1.1234567",
        ],
        ["1234567:1 12345678:2 99999999:3", "1234567:4 12345678:5 99999999:6", "12345678:7"],
        [" ".join(f"{j}:{j}" for j in range(3000)), " ".join(f"{j}:0.{j:06d}" for j in range(1, 3001))],
        ["0:1", "", "0:2 1:3", "# 0:4", "0:0.123456", "0:0.123456# 1:2"],
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", " # x\n"])
def test_compiled_code_reads_rows_with_other_features_than_the_row_before(rows, end):
    text = "".join(f"1 qid:1 {row}{end}" if ":" in row else f"{row}{end}" for row in rows).encode()
    found, expected = lines.parse_compiled(text, 1), lines.parse_lines(text, 1)
    if found is None:
        found = lines.parse_compiled(lines.tidied(text), 1)
    given = (len(found) * found.features.tolist(), [found.features.shape[0]] * len(found))
    features, counts = given if found.counts is None else (found.features.tolist(), found.counts.tolist())
    assert features == expected.features.tolist() and counts == expected.counts.tolist()
    assert found.values.ravel().tolist() == expected.values.tolist()
    assert found.lines.tolist() == expected.lines.tolist()


def outcome(text, errors):
    """What was read, or the error message."""
    try:
        return read(text, errors=errors, sparse=True), ""
    except (ValueError, OSError) as error:
        return None, str(error)


@settings(deadline=None)
@given(texts(), st.sampled_from(["raise", "skip"]), st.data())
def test_damaged_text_gives_a_clear_error_or_is_skipped(text, errors, source):
    damaged = bytearray(text.encode())
    for _ in range(source.draw(st.integers(1, 4))):
        damaged[source.draw(st.integers(0, len(damaged) - 1))] = source.draw(st.integers(0, 255))
    data, message = outcome(bytes(damaged), errors)
    if HAS_NUMBA:
        with compiled_code(True):
            again, said = outcome(bytes(damaged), errors)
        assert said == message
        assert data is None or (again.skipped == data.skipped and assert_same(data, again) is None)
    assert data is None or data.X.shape[0] == len(data) >= 1
    assert data is not None or "line " in message or "has no rows" in message


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_never_crashes(garbage):
    for errors in ("raise", "skip"):
        data, message = outcome(garbage, errors)
        assert data is not None or "the input" in message


def test_the_fast_parser_takes_only_regular_text():
    regular = MQ2008.replace(b"q:17", b"q17")
    assert lines.parse_regular(regular, 1) is not None
    for odd in (b"\t3:", b" 9:", b" x 3:", b" 3: "):
        assert lines.parse_regular(regular.replace(b" 3:", odd), 1) is None
    for line in (b"1 x qid:q17 1:1", b"1 qid:q 17 1:1", b" 1 qid:q17 1:1"):
        assert lines.parse_regular(regular + line + b" 2:2 3:3 4:4\n", 1) is None
    assert_same(read(regular), read(regular.replace(b" 2:", b" \t 2:")))


def test_fields_of_a_letor_line():
    data = read(MQ2008)
    assert data.y.tolist() == [2, 0, 1]
    assert data.qid.tolist() == ["10032", "10032", "q:17"]
    assert_array_equal(data.X[2], [-1.5, np.nan, 1e-7, 12345678901234567890.0])
    assert data.doc_ids.tolist() == ["GX029-35-5894638", "GX030-77-6315042", "http://x.org/#1"]
    assert data.comments[1] == "docid = GX030-77-6315042 inc = 1 prob = 0.341364"
    assert data.skipped == 0 and len(data) == 3


# ---------------------------------------------------------------- options


def test_lines_without_query_ids_or_comments():
    data = read("1 1:2 3:4\n0 2:5\n")
    assert data.qid is None and data.comments is None and data.doc_ids is None
    assert_array_equal(data.X, [[2, 0, 4], [0, 5, 0]])


def test_features_are_numbered_from_zero_if_one_is():
    text = "1 qid:1 1:7\n0 qid:1 2:8\n"
    assert_array_equal(read(text).X, [[7, 0], [0, 8]])
    assert_array_equal(read(text, zero_based=True).X, [[0, 7, 0], [0, 0, 8]])
    assert_array_equal(read(text + "0 qid:1 0:9\n").X, [[0, 7, 0], [0, 0, 8], [9, 0, 0]])
    with pytest.raises(
        ValueError, match=r"line 3: feature 0, but features were given as numbered from 1.*zero_based=True"
    ):
        read(text + "0 qid:1 0:9\n", zero_based=False)


def test_number_of_features():
    assert read("1 2:3\n", n_features=4).X.tolist() == [[0, 3, 0, 0]]
    with pytest.raises(ValueError, match=r"line 2: feature 5, but .* at most 4: pass a larger n_features"):
        read("1 2:3\n1 5:3\n", n_features=4)


def test_missing_and_absent_values():
    text = "1 qid:1 1:3 2:NULL\n0 qid:1 1:NULL 2:-2\n0 qid:1 2:-1\n1 qid:2 1:nan 2:4\n"
    assert_array_equal(read(text).X, [[3, np.nan], [np.nan, -2], [0, -1], [np.nan, 4]])
    assert_array_equal(read(text, missing="minimum").X, [[3, -2], [0, -2], [0, -1], [0, 4]])
    assert_array_equal(read(text, missing=-9).X, [[3, -9], [-9, -2], [0, -1], [-9, 4]])
    assert_array_equal(read(text, missing=-9, sparse=True).X.toarray(), read(text, missing=-9).X)
    assert_array_equal(read(text, absent=np.nan).X, [[3, np.nan], [np.nan, -2], [np.nan, -1], [np.nan, 4]])
    with pytest.raises(ValueError, match="need sparse=False"):
        read(text, missing="minimum", sparse=True)


def test_unscored_rows_have_the_label_nan():
    assert_array_equal(read("nan qid:1 1:2\nNULL qid:1 1:2\n3 qid:1 1:2\n").y, [np.nan, np.nan, 3])


def test_single_precision_and_sparse_rows():
    assert read(MQ2008, dtype=np.float32).X.dtype == np.float32
    X = read(MQ2008, sparse=True).X
    assert sparse.issparse(X) and X.format == "csr"
    assert_array_equal(X.toarray(), read(MQ2008).X)
    assert_array_equal(read_svmlight(io.BytesIO(MQ2008)).X.toarray(), read(MQ2008).X)


def test_a_file_too_large_to_be_dense_says_so(limit):
    limit(free_memory=1e6)
    with pytest.raises(MemoryError, match=r"the input as 1 dense rows of 99999999 features .* sparse=True"):
        read("1 99999999:1\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"errors": "ignore"}, "errors must be one of 'raise', 'skip'"),
        ({"missing": "mean"}, "missing must be one of"),
        ({"zero_based": "no"}, "zero_based must be one of"),
        ({"dtype": int}, "float64 or float32"),
        ({"n_features": 0}, "at least 1"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        read(MQ2008, **options)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:2", "the label 'x' is not a number"),
        ("x 1 2", "the label 'x' is not a number; LETOR text looks like 2 qid:7 1:0.5 2:1.3: is this a table?"),
        ("1_0 qid:1 1:2", "the label '1_0' is not a number"),
        ("1 qid:1 1:2 3", "'3' is not feature:value"),
        ("1 qid:1 a:2", "'a:2' is not feature:value"),
        ("1 qid:1 -1:2", "'-1:2' is not feature:value"),
        ("1 qid:1 123456789:2", "below 100,000,000"),
        ("1 qid:1 1:2:3", "the value of '1:2:3' is neither a number nor NULL"),
        ("1 qid:1 1:null", "the value of '1:null' is neither"),
        ("1 qid:1 1:", "the value of '1:' is neither"),
        ("1 qid:1 1:2 1:3", "feature 1 is given twice, again as '1:3'"),
        ("1 qid: 1:2", "the query id of 'qid:' is empty"),
        ("1 1:2", "no qid, unlike the lines before it"),
        ("1 qid:1 1:" + "9" * 60 + "z", "9999...' is neither"),
    ],
)
def test_malformed_lines_are_named_with_the_reason(tmp_path, line, message):
    path = tmp_path / "train.txt"
    path.write_text(f"0 qid:1 1:5\n\n{line}\n0 qid:1 1:6\n")
    with pytest.raises(ValueError) as caught:
        load_letor(path)
    assert f"{path}, line 3: " in str(caught.value)
    assert message in str(caught.value) and 'errors="skip"' in str(caught.value)
    data = load_letor(path, errors="skip")
    assert data.X.tolist() == [[5], [6]] and data.skipped == 1


def test_line_numbers_count_across_blocks(limit):
    limit(text_bytes=40)
    text = "".join(f"{i % 3} qid:{i // 7} 1:{i}\n" for i in range(100))
    assert_array_equal(read(text).X[:, 0], np.arange(100))
    with pytest.raises(ValueError, match="line 101: the label 'oops'"):
        read(text + "oops\n")
    with pytest.raises(ValueError, match="line 101: no qid"):
        read(text + "1 1:2\n")
    data = read(text + "oops\n1 1:2\n" + text, errors="skip")
    assert len(data) == 200 and data.skipped == 2


def test_files_without_rows():
    for text in ("", "\n\n", "# nothing\n"):
        with pytest.raises(ValueError, match="the input has no rows"):
            read(text)
    with pytest.raises(ValueError, match="none of its 2 lines could be read"):
        read("a\nb\n", errors="skip")
    with pytest.raises(FileNotFoundError):
        load_letor("no such file")


# ---------------------------------------------------------------- compressed files


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst", ""])
def test_compressed_files_are_read_and_written(tmp_path, suffix):
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"data.txt{suffix}"
    dump_letor(read(MQ2008), path)
    assert_same(load_letor(path), read(MQ2008))
    assert (path.read_bytes()[:1] == b"2") == (suffix == "")
    path = path.rename(tmp_path / "whatever")  # the content decides, not the name
    assert_same(load_letor(path), read(MQ2008))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_damaged_archive_is_an_error_that_names_it(compress):
    with pytest.raises(OSError, match="the input is damaged or cut short"):
        read(compress(MQ2008 * 50)[:-20])


def test_zstandard_missing_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"rankrls\[zstd\]"):
        read(b"\x28\xb5\x2f\xfd....")


def test_open_files_stay_open(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(MQ2008)
    with open(path, "rb") as file:
        load_letor(file)
        assert not file.closed
    with open(path, "rb", buffering=0) as file:
        load_letor(file)
        assert not file.closed
    with open(path) as file, pytest.raises(TypeError, match="binary mode"):
        load_letor(file)


# ---------------------------------------------------------------- blocks


@pytest.mark.parametrize("block_bytes", [1, 30, 200, 1 << 20])
@pytest.mark.parametrize("rows", [1, 5, 17, 1000])
def test_blocks_are_whole_queries_and_together_everything(limit, block_bytes, rows):
    limit(text_bytes=block_bytes)
    sizes = [1, 4, 9, 1, 1, 30, 2, 2, 2]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    text = "".join(f"{i % 2} qid:q{q} 1:{i} {2 + i % 2}:1 # {i}\n" for i, q in enumerate(qid)).encode()
    blocks = list(iter_letor(io.BytesIO(text), rows=rows, n_features=3))
    whole = read(text)
    for name in ("X", "y", "qid", "comments"):
        assert_array_equal(np.concatenate([getattr(block, name) for block in blocks]), getattr(whole, name))
    for block in blocks:
        assert len(block) <= rows or len(set(block.qid)) == 1
        assert block.X.shape[1] == 3
    assert len({q for block in blocks for q in set(block.qid)}) == sum(len(set(block.qid)) for block in blocks)


def test_blocks_give_the_same_model_as_the_whole_file():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 8)
    text = dumped(RankingData(rng.normal(size=(240, 5)), rng.integers(0, 3, 240).astype(float), qid))
    model = RankRLS(alpha=1.0)
    for block in iter_letor(io.BytesIO(text), rows=50):
        model.partial_fit(block.X, block.y, qid=block.qid)
    data = read(text)
    np.testing.assert_allclose(model.coef_, RankRLS(alpha=1.0).fit(data.X, data.y, qid=data.qid).coef_)


def test_invalid_blocks_are_refused():
    text = "1 qid:1 1:1\n0 qid:2 1:1\n1 qid:1 1:1\n"
    with pytest.raises(ValueError, match="line 3: query '1' comes again after other queries.*sort the file"):
        list(iter_letor(io.BytesIO(text.encode())))
    with pytest.raises(ValueError, match="has no query ids.*use load_letor"):
        list(iter_letor(io.BytesIO(b"1 1:1\n")))
    with pytest.raises(
        ValueError, match="line 2: feature 2, but the first block had features at most 1: pass a larger n_fe"
    ):
        list(iter_letor(io.BytesIO(b"1 qid:1 1:1\n0 qid:2 2:1\n"), rows=1))
    with pytest.raises(ValueError, match="line 2: feature 0, .* numbered from 1: pass zero_based=True"):
        list(iter_letor(io.BytesIO(b"1 qid:1 1:1\n0 qid:2 0:1\n"), rows=1))
    with pytest.raises(ValueError, match="at least 1"):
        iter_letor(io.BytesIO(b""), rows=0)


def test_blocks_count_what_they_skip():
    text = b"bad\n1 qid:1 1:1\n0 qid:2 1:1\nbad\nworse\n1 qid:3 1:1\n"
    blocks = list(iter_letor(io.BytesIO(text), rows=1, errors="skip"))
    assert [block.y.tolist() for block in blocks] == [[1], [0], [1]]
    assert sum(block.skipped for block in blocks) == 3


def test_blocks_are_read_as_they_are_needed(limit):
    limit(text_bytes=1000)
    file = io.BytesIO(b"".join(b"1 qid:%d 1:%d\n" % (i // 10, i) for i in range(20_000)))
    blocks = iter_letor(file, rows=100)
    assert len(next(blocks)) == 100
    assert file.tell() < 50_000  # of some 300,000
    assert sum(map(len, blocks)) == 19_900


def test_an_abandoned_iteration_leaves_no_file_open(tmp_path, limit):
    limit(text_bytes=64)
    path = tmp_path / "data.txt"
    path.write_text("".join(f"1 qid:{i} 1:{i}\n" for i in range(500)))
    blocks = iter_letor(path, rows=3)
    next(blocks)
    blocks.close()  # an open file would be a ResourceWarning, which is an error here


# ---------------------------------------------------------------- writing


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(
        lambda m: st.tuples(
            st.lists(st.lists(st.floats(allow_nan=True), min_size=3, max_size=3), min_size=m, max_size=m),
            st.lists(st.floats(allow_nan=True), min_size=m, max_size=m),
            st.lists(names, min_size=m, max_size=m) | st.none(),
            st.lists(
                st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")), min_size=m, max_size=m
            )
            | st.none(),
        )
    ),
    st.booleans(),
)
def test_written_rows_read_back_exactly(rows, zero_based):
    X, y, qid, comments = rows
    data = RankingData(
        np.array(X),
        np.array(y),
        None if qid is None else np.array(qid),
        None,
        None if comments is None else np.array(comments, dtype=object),
    )
    text = dumped(data, zero_based=zero_based)
    again = read(text)
    assert_same(again, data)
    assert_array_equal(np.signbit(again.X[~np.isnan(data.X)]), np.signbit(data.X[~np.isnan(data.X)]))
    assert dumped(again, zero_based=zero_based) == text
    if not comments and qid:
        assert_same(read(dumped(replace(data, X=sparse.csr_array(data.X))), n_features=3, zero_based=False), data)


def test_single_precision_is_written_short_and_reads_back_exactly():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    text = dumped(RankingData(X, np.zeros(20)))
    assert_array_equal(read(text, dtype=np.float32).X, X)
    assert len(text) < 20 * 50


def test_scikit_learn_reads_what_we_write(tmp_path):
    path = tmp_path / "data.txt"
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(30, 4)), rng.integers(0, 3, 30).astype(float), rng.integers(0, 5, 30))
    dump_letor(data, path)
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    assert_array_equal(X.toarray(), data.X)
    assert_array_equal(y, data.y)
    assert_array_equal(qid, data.qid)


def test_blocks_can_be_written_one_after_the_other(tmp_path):
    text = "".join(f"{i % 2} qid:{i // 3} 1:{i}\n" for i in range(30)).encode()
    dump_letor(iter_letor(io.BytesIO(text), rows=7), tmp_path / "copy.txt")
    assert (tmp_path / "copy.txt").read_bytes() == text


@pytest.mark.parametrize(
    "field", [{"qid": np.array(["a b"])}, {"qid": np.array([""])}, {"comments": np.array(["a\nb"])}]
)
def test_a_refused_write_leaves_the_old_file(tmp_path, field):
    path = tmp_path / "data.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="cannot be written"):
        dump_letor(replace(RankingData(np.eye(1), np.ones(1)), **field), path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------- the sets themselves


@pytest.mark.parametrize(
    ("archive", "name", "shape", "n_queries"),
    [
        ("letor2-ohsumed", "OHSUMED/Data/All/OHSUMED.txt", (16140, 25), 106),
        ("letor4-mq2008", "MQ2008/Querylevelnorm.txt", (15211, 46), 784),
        ("mslr-web-fold1-5k", "msn1.fold1.train.5k.txt", (5000, 136), 43),
        ("lightgbm-lambdarank", "rank.train", (3005, 300), None),
    ],
)
def test_public_sets_are_read_as_scikit_learn_reads_them(archive, name, shape, n_queries):
    path = unpacked(archive) / name
    data = load_letor(path)
    X, y, *qid = load_svmlight_file(str(path), query_id=n_queries is not None)
    assert data.X.shape == shape
    assert_array_equal(data.X, X.toarray())
    assert_array_equal(data.y, y)
    if n_queries:
        assert_array_equal(data.qid.astype(int), qid[0])
        assert len(set(data.qid)) == n_queries
        assert_same(read(dumped(data)), data)
    assert all(lines.parse_regular(text, 1) is not None for _, text in letor_text._texts(io.BytesIO(path.read_bytes())))


def test_missing_values_of_letor_3_become_its_minimum_version():
    folder = unpacked("letor3-ohsumed") / "OHSUMED"
    filled = load_letor(folder / "Feature-null/ALL/OHSUMED.txt", missing="minimum")
    missing = np.isnan(load_letor(folder / "Feature-null/ALL/OHSUMED.txt").X)
    official = load_letor(folder / "Feature-min/ALL/OHSUMED.txt")
    assert missing.any(axis=1).sum() == 7146
    different = filled.X != official.X
    assert (missing.sum(), different.sum()) == (51490, 243)
    assert not official.X[different].any()
    assert_same(replace(filled, X=official.X), official)


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
def test_blocks_may_cut_queries(rows, tmp_path):
    text = "".join(f"{i % 3} qid:{i * 7 % 5} 1:{i} 2:{-i}\n" for i in range(20))
    (tmp_path / "scattered.txt").write_text(text)
    whole = load_letor(tmp_path / "scattered.txt")
    blocks = list(iter_letor(tmp_path / "scattered.txt", rows=rows, whole_queries=False))
    assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1) and len(blocks[-1]) <= rows
    for name in ("X", "y", "qid"):
        assert_array_equal(np.concatenate([getattr(block, name) for block in blocks]), getattr(whole, name))
    with pytest.raises(ValueError, match="whole_queries=True"):
        iter_letor(tmp_path / "scattered.txt", missing="minimum", whole_queries=False)
    (tmp_path / "plain.txt").write_text("1 1:1\n0 1:2\n")
    assert [block.qid for block in iter_letor(tmp_path / "plain.txt", rows=1, whole_queries=False)] == [None, None]


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_lines_without_features_are_judgments(sparse_rows, tmp_path):
    text = b"3 qid:1 # 1370 star trek\n0 qid:1 # 12 star trek\n1 qid:2 # 7\n"  # as Quepid exports them
    data = read(text, sparse=sparse_rows)
    assert data.X.shape == (3, 0) and data.y.tolist() == [3, 0, 1] and data.qid.tolist() == ["1", "1", "2"]
    assert data.doc_ids.tolist() == ["1370", "12", "7"]
    assert dumped(data) == text
    assert [block.X.shape for block in iter_letor(io.BytesIO(text), rows=1)] == [(2, 0), (1, 0)]
    (tmp_path / "judgments.txt").write_bytes(text)
    for arguments in ((data.X, data.y, data.qid), (tmp_path / "judgments.txt",)):
        with pytest.raises(ValueError, match=r"0 feature\(s\).*join the features of their documents"):
            RankRLS(1.0).fit(*arguments)


def test_long_query_ids_do_not_widen_the_others(tmp_path):
    lengthy = lambda n: b"".join(
        b"%d qid:%b 1:%d\n" % (i % 2, b"q" * n if i < 2 else b"%d" % (i // 4), i) for i in range(400)
    )
    for n in (64, 65, 1000):
        data = read(lengthy(n))
        assert data.qid.nbytes <= 64 * 4 * len(data) and data.qid[0] == "q" * n and len(set(data.qid)) == 101
        assert dumped(data) == lengthy(n)
    (tmp_path / "rows.txt").write_bytes(lengthy(1000))
    assert_array_equal(RankRLS(1.0).fit(tmp_path / "rows.txt").coef_, RankRLS(1.0).fit(data.X, data.y, data.qid).coef_)
    with pytest.raises(ValueError, match=r"line 1: the query id 'qid:qqq.*has 100,000 characters, more than 1,000"):
        read(lengthy(100_000))


@pytest.mark.parametrize(
    "reader", [load_letor, lambda path: list(iter_letor(path)), lambda path: RankRLS(1.0).fit(path)]
)
def test_a_line_without_end_is_refused_before_it_fills_the_memory(reader, tmp_path):
    path = tmp_path / "rows.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"1 qid:1 1:1\n0 qid:1 1:")
        for _ in range(40):
            file.write(b"1" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"rows.txt.gz, line 2: more than 16,777,216 bytes without an end"):
        reader(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20
