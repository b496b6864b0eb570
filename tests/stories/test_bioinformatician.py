"""A bioinformatician has measured affinities in a long table, and wants to know which targets to test a new drug on.

Raw files: descriptors of drugs and of targets by id, in different orders, some of them never measured; measurements as
drug, target, pKd, with repeats and gaps.
"""

import numpy as np
import pandas as pd
import pytest

from rankrls import ConditionalRankRLS


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(60, 3)), rng.normal(size=(80, 3))
    drugs = pd.DataFrame(u @ rng.normal(size=(3, 8)) + 0.2 * rng.normal(size=(60, 8))).add_prefix("fp")
    targets = pd.DataFrame(v @ rng.normal(size=(3, 10)) + 0.2 * rng.normal(size=(80, 10))).add_prefix("aa")
    drugs.insert(0, "drug", [f"CHEMBL{100 + i}" for i in range(60)])
    targets.insert(0, "target", [f"P{i:05d}" for i in range(80)])
    affinity = 6 + u @ v.T / 1.5
    pairs = rng.permutation(50 * 80)[:2500]  # the last ten drugs are new
    i, j = pairs // 80, pairs % 80
    table = pd.DataFrame(
        {"drug": drugs["drug"].to_numpy()[i], "target": targets["target"].to_numpy()[j], "pKd": affinity[i, j]}
    )
    table["pKd"] += 0.3 * rng.normal(size=len(table))
    table = pd.concat([table, table.sample(50, random_state=0)])  # measured twice
    drugs.sample(frac=1, random_state=1).to_csv(tmp_path / "drugs.csv", index=False)
    targets.to_csv(tmp_path / "targets.csv", index=False)
    table.to_csv(tmp_path / "affinities.csv", index=False)
    truth = pd.DataFrame(affinity, index=drugs["drug"], columns=targets["target"])
    return tmp_path, truth


def test_from_three_tables_to_the_targets_to_test(files):
    folder, truth = files
    drugs = pd.read_csv(folder / "drugs.csv", index_col="drug")
    targets = pd.read_csv(folder / "targets.csv", index_col="target")
    measured = pd.read_csv(folder / "affinities.csv")

    # a name that is in only one of the files is an error that tells which
    odd = measured.replace({"target": {"P00003": "P00003.1"}})
    with pytest.raises(ValueError, match=r"'P00003\.1'.*of 2,550 like this"):
        ConditionalRankRLS(1.0).fit_edges(drugs, odd, "pKd", targets, source="drug", target="target")

    # how good will it be for a new drug? not as good as for one that was measured
    model = ConditionalRankRLS(kernel="rbf")
    known = measured.groupby(["drug", "target"])["pKd"].mean().unstack()
    names = {"source": "drug", "target": "target"}
    found = model.evaluate(drugs, measured, targets, settings=[1, 2], n_splits=3, y="pKd", **names)
    assert found[1].mean() > found[2].mean() > 0.75

    # does it beat ranking targets by their mean over the other drugs?
    new = [name for name in truth.index if name not in known.index]
    with pytest.warns(UserWarning, match="10 of 60 objects of X have no edge"):
        model.fit_edges(drugs, measured, "pKd", targets, **names)
    assert len(new) == 10
    places = {name: model.rank(name, top=5) for name in new}
    promising = known.mean().sort_values(ascending=False).index
    hits = np.mean([truth.loc[name, places[name]["id"]].mean() for name in new])
    simple = np.mean([truth.loc[name, promising[:5]].mean() for name in new])
    assert hits > simple + 0.5  # the decision: test the five targets that the model names for each drug

    # as a table to send to the laboratory
    wanted = pd.DataFrame({"drug": new[0], "target": truth.columns})
    scored = model.predict_edges(drugs, wanted, targets, **names)
    assert list(scored.sort_values("rank")["id"][:5]) == list(places[new[0]]["id"])
