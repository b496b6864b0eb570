"""Model files: everything that can be fitted comes back the same; anything else is a clear error."""

import contextlib
import hashlib
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import rankrls
from cases import problem
from rankrls import (
    ConditionalRankRLS,
    CoRankRLS,
    ModelFileError,
    PerQueryMinMax,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    View,
    bases,
    kernels,
    load,
    persistence,
    save,
)
from rankrls.selection import RelationKFold

KEPT = Path(__file__).parent / "models"

X, y, qid = problem()
unscored = np.where(qid > 4, np.nan, y)
relation = np.random.default_rng(0).normal(size=(40, 40))


def ranker(**params):
    return lambda: RankRLS(**params).fit(X, y, qid=qid)


MODELS = {
    "linear": ranker(),
    "linear, one alpha": ranker(alpha=1.0),
    "linear, float32": lambda: RankRLS().fit(X.astype(np.float32), y, qid=qid),
    "names": lambda: RankRLS().fit(__import__("pandas").DataFrame(X, columns=list("abcdef")), y, qid=qid),
    "several targets": lambda: RankRLS(1.0, tied_pairs=True).fit(X, np.column_stack([y, -y]), qid=qid),
    "pairs": lambda: RankRLS(1.0).fit_pairs(X, [(0, 1), (2, 3)]),
    "regression": ranker(regression=0.5),
    "linear kernel": ranker(kernel=kernels.Linear()),
    "gaussian": ranker(kernel="rbf"),
    "gaussian, float32": lambda: RankRLS(kernel="rbf", basis=5).fit(X.astype(np.float32), y, qid=qid),
    "gaussian of chosen width": ranker(kernel=kernels.Gaussian("auto"), basis=bases.RandomRows(9), random_state=0),
    "polynomial": ranker(kernel=kernels.Polynomial(2)),
    "laplacian": ranker(kernel="laplacian", basis=bases.KMeansCentres(6), random_state=1),
    "cosine": ranker(kernel="cosine", basis=[0, 3, 5]),
    "basis": ranker(kernel="rbf", basis=bases.PivotedCholesky(8), random_state=2),
    "sparse rows": lambda: RankRLS(kernel="rbf", basis=6).fit(sparse.csr_array(X), y, qid=qid),
    "co": lambda: CoRankRLS(basis=5, random_state=0).fit(X, unscored, qid=qid),
    "co, views": lambda: CoRankRLS(views=[View([0, 1]), View([2, 3, 4], kernel="rbf", basis=4)], random_state=0).fit(
        X, unscored, qid=qid
    ),
    "transductive": lambda: TransductiveRankRLS(alpha=1.0).fit(X, unscored, qid=qid),
    "conditional": lambda: ConditionalRankRLS(kernel="rbf").fit(X, relation),
    "conditional, linear": lambda: ConditionalRankRLS(cv=RelationKFold(4, 3, same_objects=True)).fit(X, relation),
    "conditional, edges": lambda: ConditionalRankRLS(1.0, kernel="rbf").fit_edges(
        X, [(i, (i + 1) % 40) for i in range(40)] + [(i, (i + 2) % 40) for i in range(40)], np.arange(80.0)
    ),
    "pursuit": lambda: RankingPursuit(3).fit(X, y, qid=qid),
    "pursuit, linear": lambda: RankingPursuit(kernel=None).fit(X, y, qid=qid),
    "pursuit, views": lambda: RankingPursuit(2, views=2, nu=0.1, basis=9, random_state=0).fit(X, unscored, qid=qid),
    "scaled": lambda: make_pipeline(StandardScaler(), RankRLS()).fit(X, y, rankrls__qid=qid),
    "scaled thrice": lambda: make_pipeline(MinMaxScaler(), MaxAbsScaler(), RobustScaler(), RankRLS(1.0)).fit(
        X, y, rankrls__qid=qid
    ),
}


def scores(model):
    rows = X.astype(np.float32 if getattr(model, "coef_", X).dtype == np.float32 else np.float64)  # a copy: see kernels
    if getattr(model, "feature_names_in_", None) is not None:
        rows = __import__("pandas").DataFrame(rows, columns=model.feature_names_in_)
    return model.predict(rows)


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back_the_same(name, tmp_path):
    model = MODELS[name]()
    path = tmp_path / "model.rankrls"
    save(model, path)
    same = load(path)
    assert type(same) is type(model)
    assert_array_equal(scores(same), scores(model))
    assert str(same.get_params()) == str(model.get_params())
    assert vars(same).keys() == vars(model).keys() - {"_candidate"}  # the training rows of a pursuit stay behind
    save(same, tmp_path / "again.rankrls")
    assert (tmp_path / "again.rankrls").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.rankrls", "model.rankrls"]


def test_learning_goes_on_after_loading(tmp_path):
    first, rest = qid < 3, qid >= 3
    model = RankRLS(1.0).partial_fit(X[first], y[first], qid=qid[first])
    save(model, tmp_path / "m")
    same = load(tmp_path / "m").partial_fit(X[rest], y[rest], qid=qid[rest])
    model.partial_fit(X[rest], y[rest], qid=qid[rest])
    assert_array_equal(same.coef_, model.coef_)


def test_shared_arrays_are_written_once(tmp_path):
    model = ConditionalRankRLS(1.0, kernel="rbf").fit(X, relation)
    assert model.X_fit_ is model.Z_fit_
    save(model, tmp_path / "m")
    same = load(tmp_path / "m")
    assert same.X_fit_ is same.Z_fit_


def test_a_pipeline_with_scaling_by_query(tmp_path):
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        model = make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(X, y, qid=qid)
        save(model, tmp_path / "m")
        same = load(tmp_path / "m")
        assert_array_equal(same.predict(X, qid=qid), model.predict(X, qid=qid))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RankRLS(1.0, kernel=lambda A, B: A @ B.T).fit(X, y, qid=qid), "RankRLS.kernel is a builtins.function"),
        (lambda: RankRLS(scoring=lambda y, s, q: 0.0), "RankRLS.scoring is a builtins.function"),
        (lambda: RankRLS(random_state=np.random.default_rng(0)), "random_state is a numpy.random"),
        (lambda: StandardScaler().fit(X) and object(), "save takes an estimator"),
    ],
)
def test_code_never_goes_into_a_file(make, words, tmp_path):
    with pytest.raises(TypeError, match=words):
        save(make(), tmp_path / "m")
    assert not list(tmp_path.iterdir()), "nothing is left half-written"


def test_an_interrupted_write_leaves_the_old_model(tmp_path, monkeypatch):
    path = tmp_path / "m"
    save(RankRLS(1.0).fit(X, y, qid=qid), path)
    before = path.read_bytes()

    def fails(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="disk full"):
        save(RankRLS(2.0).fit(X, y, qid=qid), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_links_and_devices_stay_what_they_are(tmp_path):
    model = RankRLS(1.0).fit(X, y, qid=qid)
    (tmp_path / "link").symlink_to(tmp_path / "m")
    save(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "m").is_file()
    save(model, os.devnull)
    assert Path(os.devnull).is_char_device()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(model, tmp_path)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    save(make_pipeline(StandardScaler(), RankRLS(1.0, kernel="rbf", basis=4)).fit(X, y, rankrls__qid=qid), path)
    return path.read_bytes()


def test_damaged_files_are_refused(written, tmp_path):
    path = tmp_path / "m"
    rng = np.random.default_rng(0)
    cases = [written[:n] for n in rng.integers(0, len(written), 200)]
    for _ in range(3000):
        data = bytearray(written)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] ^= int(rng.integers(1, 256))
        cases.append(bytes(data))
    cases += [b"", b"PK\3\4", written + b"x", written[:40] + written[50:]]
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match="not a model file|incomplete|newer version|damaged"):
            load(path)


def forged(written, change):
    """A file with another header and a checksum that fits."""
    magic, version, length = struct.unpack_from("<16sIQ", written)
    start = struct.calcsize("<16sIQ")
    header = json.loads(written[start : start + length])
    text = change(header)
    text = json.dumps(header).encode() if text is None else text
    body = struct.pack("<16sIQ", magic, version, len(text)) + text + written[start + length : -32]
    return body + hashlib.sha256(body).digest()


def set_path(*path, value):
    def change(header):
        node = header
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_path("model", "class", value="os.system"),
        set_path("model", "class", value="ModelFileError"),
        set_path("model", "$", value="pickle"),
        set_path("model", value={"$": "array", "number": 0}),
        set_path("model", value={"$": "array", "number": 10**6}),
        set_path("model", value=[[]]),
        set_path("model", "state", value={}),
        set_path("model", "state", "__class__", value=1),
        set_path("model", "state", "steps", value={"$": "int", "text": "9" * 10**5}),
        set_path("arrays", 0, "shape", value=[10**12, 10**3]),
        set_path("arrays", 0, "shape", value=[-4]),
        set_path("arrays", 0, "dtype", value="|O8"),
        set_path("arrays", 0, "dtype", value="object"),
        set_path("arrays", 0, "offset", value=-1),
        set_path("arrays", 0, "offset", value=10**12),
        lambda header: b"{" * 10**5,
        lambda header: b'{"model":' + b"[" * 10**5 + b"]" * 10**5 + b',"arrays":[]}',
        lambda header: b"null",
        lambda header: b"\xff\xfe",
    ],
)
def test_forged_files_are_refused(written, change, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(forged(written, change))
    with pytest.raises(ModelFileError, match="not a valid model file|holds a"):
        load(path)


def test_forged_headers_never_do_more_than_fail(written, tmp_path):
    """Random changes of the header under a checksum that fits: an error, or some model, and nothing else."""
    path = tmp_path / "m"
    start = struct.calcsize("<16sIQ")
    length = struct.unpack_from("<16sIQ", written)[2]
    rng = np.random.default_rng(1)
    for _ in range(1500):
        text = bytearray(written[start : start + length])
        for place in rng.integers(0, len(text), rng.integers(1, 6)):
            text[place] = int(rng.choice(np.frombuffer(b'0123456789[]{}",:$abcxyz ', dtype=np.uint8)))
        path.write_bytes(forged(written, lambda header, text=text: bytes(text)))
        with contextlib.suppress(ModelFileError):
            load(path)


def test_newer_files_say_so(written, tmp_path):
    data = bytearray(written)
    data[16:20] = struct.pack("<I", persistence.VERSION + 1)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match=r"newer version of rankrls \(format 2"):
        load(tmp_path / "m")


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.rankrls")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_keep_loading(path):
    expected = json.loads((KEPT / f"{path.stem}.json").read_text())
    model = load(path)
    np.testing.assert_allclose(model.predict(np.array(expected["X"])), expected["scores"], rtol=1e-12)


def test_there_are_kept_files():
    assert len(list(KEPT.glob("*.rankrls"))) >= 3


def test_public_names():
    assert rankrls.save is save and rankrls.load is load
