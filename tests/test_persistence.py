"""Model files: every fitted model comes back the same; anything else is a clear error."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import rankrls
from cases import problem
from rankrls import (
    AutoRanker,
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
    metrics,
    persistence,
    save,
)
from rankrls.relations.folds import RelationKFold
from rankrls.system.files import replacing

KEPT = Path(__file__).parent / "models"

X, y, qid = problem()
unscored = np.where(qid > 4, np.nan, y)
relation = np.random.default_rng(0).normal(size=(40, 40))
G = X @ X.T


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
    "columns together": lambda: RankRLS(1.0, kernel="rbf").fit(np.asfortranarray(X), y, qid=qid),
    "group splitter": ranker(cv=GroupKFold(3)),
    "leave groups out": ranker(cv=LeaveOneGroupOut()),
    "metric as a function": ranker(scoring=metrics.ndcg),
    "precomputed": lambda: RankRLS(1.0, kernel="precomputed").fit(G, y, qid=qid),
    "transductive, precomputed": lambda: TransductiveRankRLS(1.0, kernel="precomputed").fit(G, unscored, qid=qid),
    "transductive, basis": lambda: TransductiveRankRLS(1.0, kernel="rbf", basis=6).fit(X, unscored, qid=qid),
    "conditional, precomputed": lambda: ConditionalRankRLS(1.0, kernel="precomputed").fit(G, relation),
    "pursuit, precomputed": lambda: RankingPursuit(3, kernel="precomputed").fit(G, y, qid=qid),
    "scaled": lambda: make_pipeline(StandardScaler(), RankRLS()).fit(X, y, rankrls__qid=qid),
    "imputed": lambda: make_pipeline(
        SimpleImputer(add_indicator=True), QuantileTransformer(n_quantiles=9), PowerTransformer(), RankRLS(1.0)
    ).fit(np.where(X > 3, np.nan, X), y, rankrls__qid=qid),
    "normalised": lambda: make_pipeline(Normalizer(), RobustScaler(), RankingPursuit(2)).fit(X, y),
    "scaled thrice": lambda: make_pipeline(MinMaxScaler(), MaxAbsScaler(), RobustScaler(), RankRLS(1.0)).fit(
        X, y, rankrls__qid=qid
    ),
}


def scores(model):
    pairwise = model.__sklearn_tags__().input_tags.pairwise or getattr(model, "kernel", None) == "precomputed"
    rows = (G if pairwise else X).copy()  # as a kernel looks whether rows are the points themselves
    rows = rows.astype(np.float32 if getattr(model, "coef_", X).dtype == np.float32 else np.float64)
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
    behind = {"_candidate", "_history", "_kept", "_trained_queries"}  # training rows stay behind
    assert vars(same).keys() == vars(model).keys() - behind
    save(same, tmp_path / "again.rankrls")
    assert (tmp_path / "again.rankrls").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.rankrls", "model.rankrls"]


def test_loaded_models_can_be_updated(tmp_path):
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


KINDS = {
    "RankRLS": lambda X: RankRLS(1.0).fit(X, y, qid=qid),
    "CoRankRLS": lambda X: CoRankRLS(1.0, 1.0, basis=5, random_state=0).fit(X, unscored, qid=qid),
    "TransductiveRankRLS": lambda X: TransductiveRankRLS(1.0).fit(X, unscored, qid=qid),
    "ConditionalRankRLS": lambda X: ConditionalRankRLS(1.0, kernel="rbf").fit(X, relation),
    "RankingPursuit": lambda X: RankingPursuit(2).fit(X, y, qid=qid),
    **{
        kernel: lambda X, kernel=kernel: RankRLS(1.0, kernel=kernel, basis=7).fit(X, y, qid=qid)
        for kernel in ("linear", "rbf", "poly", "laplacian", "cosine")
    },
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KINDS)
def test_precision_is_kept(name, dtype, tmp_path):
    model = KINDS[name](X.astype(dtype))
    save(model, tmp_path / "m")
    same = load(tmp_path / "m")
    assert_array_equal(same.predict(X.astype(dtype)), model.predict(X.astype(dtype)))
    types = {key: value.dtype for key, value in vars(model).items() if isinstance(value, np.ndarray)}
    assert {key: value.dtype for key, value in vars(same).items() if isinstance(value, np.ndarray)} == types


def test_scaling_by_query_alone(tmp_path):
    model = PerQueryMinMax().fit(X, qid=qid)
    save(model, tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").transform(X, qid=qid), model.transform(X, qid=qid))


def test_requests_of_metadata_are_kept(tmp_path):
    u = np.arange(1.0, 41)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        made = make_pipeline(scaler, RankRLS(1.0).set_fit_request(sample_weight="u"))
        save(made.fit(X, y, qid=qid, u=u), tmp_path / "m")
        again = load(tmp_path / "m")
        assert repr(again[-1].get_metadata_routing()) == repr(made[-1].get_metadata_routing())
        assert_array_equal(again.fit(X, y, qid=qid, u=u)[-1].coef_, made[-1].coef_)


def test_parameters_that_came_later_take_their_defaults(tmp_path):
    save(RankRLS(1.0).fit(X, y, qid=qid), tmp_path / "m")

    def older(header):
        del header["model"]["state"]["verbose"]

    (tmp_path / "old").write_bytes(forged((tmp_path / "m").read_bytes(), older))
    assert load(tmp_path / "old").verbose is False


def test_models_of_the_first_auto_ranker_are_read(tmp_path):
    model = AutoRanker(candidates=["additive"]).fit(X, y, qid=qid)
    save(model, tmp_path / "m")

    def older(header):
        state = header["model"]["state"]
        for name in ("encoder_", "additive_"):
            del state[name]
        assert {part["class"] for part in state["parts_"]} == {"StackPart"}
        for part in state["parts_"]:
            part["class"] = "Part"

    (tmp_path / "old").write_bytes(forged((tmp_path / "m").read_bytes(), older))
    assert_array_equal(load(tmp_path / "old").predict(X, qid), model.predict(X, qid))


def test_a_pipeline_with_scaling_by_query(tmp_path):
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(PerQueryMinMax(), RankRLS(1.0)).fit(X, y, qid=qid)
        save(model, tmp_path / "m")
        same = load(tmp_path / "m")
        assert_array_equal(same.predict(X, qid=qid), model.predict(X, qid=qid))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RankRLS(1.0, kernel=lambda A, B: A @ B.T).fit(X, y, qid=qid), "RankRLS.kernel is the function"),
        (lambda: RankRLS(scoring=lambda y, s, q: 0.0), "RankRLS.scoring is the function"),
        (lambda: RankRLS(random_state=np.random.default_rng(0)), "random_state is a numpy.random"),
        (lambda: StandardScaler().fit(X) and object(), "save takes an estimator"),
        (
            lambda: GridSearchCV(RankRLS(), {"alpha": [1.0, 2.0]}, cv=2).fit(X, y),
            "GridSearchCV: save its best_estimator_",
        ),
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
        set_path("model", "state", "predict", value={"$": "object", "class": "Linear", "state": {}}),
        set_path("model", "routing", value={"$": "dict", "items": [["owner", {"$": "dict", "items": []}]]}),
        set_path("model", "state", "x", value={"$": "dict", "items": [[{"$": "array", "number": 0}, 1]]}),
        set_path("model", "state", "x", value={"$": "dtype", "text": "|O8"}),
        set_path("model", "state", "x", value={"$": "metric", "name": "eval"}),
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


@pytest.mark.skipif(sys.platform != "linux", reason="bounds of memory are set as Linux does")
def test_thousands_of_damaged_and_forged_files():
    """In a process of its own, with bounds of memory and time, that notes any code that runs."""
    script = Path(__file__).parent / "fuzz_models.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(rankrls.__file__).parent.parent), "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(script), "5000", "0"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    outcome = {tuple(line.split()[:2]): int(line.split()[2]) for line in done.stdout.splitlines()}
    assert sum(outcome.values()) == 5000 and outcome["forged_tree", "loaded"] > 100


@pytest.mark.skipif(sys.platform != "linux", reason="a device of Linux")
def test_files_that_are_no_models_are_not_read_to_the_end():
    with pytest.raises(ModelFileError, match="not a model file"):
        load("/dev/zero")


@pytest.mark.parametrize(
    ("part", "place", "value"), [("indptr", -1, -8), ("indptr", 3, 10**6), ("indices", 0, -1), ("indices", 5, 6)]
)
def test_sparse_rows_that_lead_outside_are_refused(part, place, value, tmp_path):
    """Products with such rows would read arbitrary memory."""
    model = RankRLS(1.0, kernel="rbf", basis=9).fit(sparse.csr_array(X), y, qid=qid)
    getattr(model.X_fit_, part)[place] = value
    save(model, tmp_path / "m")
    with pytest.raises(ModelFileError, match="not a valid model file"):
        load(tmp_path / "m")


def test_arrays_do_not_overlap(written, tmp_path):
    """Otherwise a small file could ask for as many copies of itself as it names."""
    path = tmp_path / "m"

    def many(header):
        header["arrays"] += [header["arrays"][-1]] * 1000

    path.write_bytes(forged(written, many))
    with pytest.raises(ModelFileError, match="inside another one or beyond the end"):
        load(path)


def test_newer_files_are_refused(written, tmp_path):
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


def test_old_model_files_exist():
    assert len(list(KEPT.glob("*.rankrls"))) >= 3


def test_public_names():
    assert rankrls.save is save and rankrls.load is load


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_file_keeps_its_permissions_and_a_read_only_one_is_not_replaced(tmp_path):
    path, model = tmp_path / "model.rankrls", ranker(alpha=1.0)()
    save(model, path)
    path.chmod(0o600)
    save(model, path)
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    path.chmod(0o400)
    with pytest.raises(PermissionError, match="read-only"):
        save(ranker(alpha=2.0)(), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.rankrls"]


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_leftovers_of_a_killed_write_are_removed_by_the_next(tmp_path):
    path = tmp_path / "model.rankrls"
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom rankrls.system.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    with replacing(path):  # one that is being written to stays, also while another process writes the same file
        save(ranker(alpha=1.0)(), path)
        assert len(list(tmp_path.iterdir())) == 2
    save(ranker(alpha=1.0)(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.rankrls"]
