"""Linear models in the formats of search engines.

A linear model after scalers is a linear model of the raw features: `linear` folds the scalers into the weights. The
constant they add to every score is left out if a format has no place for it; it does not change rankings.

Examples
--------
>>> from rankrls import RankRLS, export
>>> from rankrls.datasets import make_search
>>> data = make_search(30, random_state=0)
>>> model = RankRLS().fit(data.X, data.y, qid=data.qid)
>>> '"class": "org.apache.solr.ltr.model.LinearModel"' in export.to_solr(model, data.feature_names)
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators.pipelines import ranker_of
from .terms import affine, feature_names, scalers_of, terms_of


@dataclass(frozen=True)
class LinearModel:
    """score(x) = sum_j weights_j x_j + intercept, with x_j the raw value of feature names_j.

    Attributes
    ----------
    names : list of str
        Features.
    weights : ndarray of shape (n_features,)
        Their weights, with scalers folded in.
    intercept : float
        Constant added to every score.

    Examples
    --------
    >>> LinearModel(["bm25", "clicks"], np.array([0.5, 0.0]), 0.0).used()
    {'bm25': 0.5}
    """

    names: list[str]
    weights: np.ndarray
    intercept: float

    def used(self) -> dict[str, float]:
        """Weights by name, without those that are zero."""
        return {name: float(w) for name, w in zip(self.names, self.weights, strict=True) if w != 0}


def linear(model: BaseEstimator, names: Sequence[str] | None = None) -> LinearModel:
    """The weights of raw features in a fitted linear model, alone or after scalers in a pipeline.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted, linear RankRLS, CoRankRLS, TransductiveRankRLS or RankingPursuit; steps before it may be
        StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler.
    names : list of str, default=None
        Features in the order of the columns; None: the names the model was fitted with, or f1, f2, ...

    Returns
    -------
    linear : LinearModel

    Raises
    ------
    ValueError
        If the scores are not a linear function of the features of one document.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankrls import RankRLS, export
    >>> X, y = np.array([[1.0, 100.0], [2.0, 300.0], [3.0, 100.0], [4.0, 200.0]]), [0, 1, 2, 3]
    >>> model = make_pipeline(StandardScaler(), RankRLS(alpha=1e-6)).fit(X, y)
    >>> raw = export.linear(model, names=["bm25", "clicks"])
    >>> bool(np.allclose(X @ raw.weights + raw.intercept, model.predict(X)))
    True
    """
    weights, intercept = _weights(ranker_of(model))
    for step in reversed(scalers_of(model)):
        scale, shift = _affine(step)
        intercept += float(weights @ np.broadcast_to(shift, weights.shape))
        weights = weights * scale
    if not np.isfinite(weights).all():
        raise ValueError("the model has weights that are not finite, which no format can hold")
    return LinearModel(feature_names(model, len(weights), names), weights, intercept)


def to_json(model: BaseEstimator, names: Sequence[str] | None = None) -> str:
    """Plain JSON: every weight by name, and the intercept.

    Parameters
    ----------
    model, names
        As in `linear`.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from rankrls import RankRLS, export
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> print(export.to_json(model, ["bm25", "clicks"]))
    {
      "format": "rankrls-linear",
      "weights": {
        "bm25": 0.8,
        "clicks": 0.0
      },
      "intercept": 0.0
    }
    """
    raw = linear(model, names)
    weights = dict(zip(raw.names, raw.weights.tolist(), strict=True))
    return _json({"format": "rankrls-linear", "weights": weights, "intercept": raw.intercept})


def to_svmrank(model: BaseEstimator) -> str:
    """A model file of SVMrank (and SVMlight), for `svm_rank_classify`: one support vector, the weights.

    Parameters
    ----------
    model
        As in `linear`. Features are numbered from 1.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from rankrls import RankRLS, export
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> print(export.to_svmrank(model).splitlines()[-1])
    1 1:0.8 #
    """
    raw = linear(model)
    values = " ".join(f"{j}:{float(w)!r}" for j, w in enumerate(raw.weights, start=1) if w != 0)
    head = [
        "SVM-light Version V6.20",
        "0 # kernel type",
        "3 # kernel parameter -d ",
        "1 # kernel parameter -g ",
        "1 # kernel parameter -s ",
        "1 # kernel parameter -r ",
        "empty# kernel parameter -u ",
        f"{len(raw.weights)} # highest feature index ",
        "0 # number of training documents ",
        "2 # number of support vectors plus 1 ",
        f"{-raw.intercept + 0.0!r} # threshold b, each following line is a SV (starting with alpha*y)",
    ]
    return "\n".join([*head, f"1 {values} #" if values else "1 #"]) + "\n"


def to_opensearch(model: BaseEstimator, names: Sequence[str] | None = None, *, name: str = "rankrls") -> str:
    """The body of `POST _ltr/_featureset/SET/_createmodel` of the LTR plugins of OpenSearch and Elasticsearch.

    Parameters
    ----------
    model, names
        As in `linear`; names are those of the feature set.
    name : str, default="rankrls"
        Name of the model in the search engine.

    Returns
    -------
    text : str
        JSON; features with zero weight are left out, which the plugins read as zero.

    Examples
    --------
    >>> from rankrls import RankRLS, export
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> print(export.to_opensearch(model, ["bm25", "clicks"]))
    {
      "model": {
        "name": "rankrls",
        "model": {
          "type": "model/linear",
          "definition": "{\\"bm25\\": 0.8}"
        }
      }
    }
    """
    definition = json.dumps(linear(model, names).used(), ensure_ascii=False)
    return _json({"model": {"name": name, "model": {"type": "model/linear", "definition": definition}}})


def to_solr(model: BaseEstimator, names: Sequence[str] | None = None, *, name: str = "rankrls") -> str:
    """The body of `PUT schema/model-store` of Solr's LTR module: a LinearModel.

    Parameters
    ----------
    model, names, name
        As in `to_opensearch`; names are those of the feature store.

    Returns
    -------
    text : str
        JSON; features with zero weight are left out.

    Examples
    --------
    >>> from rankrls import RankRLS, export
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> print(export.to_solr(model, ["bm25", "clicks"]))
    {
      "class": "org.apache.solr.ltr.model.LinearModel",
      "name": "rankrls",
      "features": [
        {
          "name": "bm25"
        }
      ],
      "params": {
        "weights": {
          "bm25": 0.8
        }
      }
    }
    """
    used = linear(model, names).used()
    features = [{"name": feature} for feature in used]
    body = {"class": "org.apache.solr.ltr.model.LinearModel", "name": name, "features": features}
    return _json({**body, "params": {"weights": used}})


def to_vespa(model: BaseEstimator, names: Sequence[str] | None = None, *, name: str = "rankrls") -> str:
    """A rank profile of Vespa: names are its rank features, such as `bm25(title)` or `attribute(clicks)`.

    Parameters
    ----------
    model, names, name
        As in `to_opensearch`.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from rankrls import RankRLS, export
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> print(export.to_vespa(model, ["bm25(title)", "attribute(clicks)"]))
    rank-profile rankrls {
        first-phase {
            expression {
                0.8 * bm25(title)
            }
        }
    }
    """
    raw = linear(model, names)
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"the name of a rank profile has only letters, digits and _, got {name!r}")
    for feature in raw.used():
        if not re.fullmatch(r"[A-Za-z_]\w*(\([^(){};\n]*\))?(\.\w+)*", feature):
            raise ValueError(f"{feature!r} is not a rank feature of Vespa: pass names such as bm25(title)")
    terms = [f"{w!r} * {feature}" for feature, w in raw.used().items()]
    terms += [repr(raw.intercept)] if raw.intercept or not terms else []
    lines = [f"            {'+ ' if number else ''}{term}" for number, term in enumerate(terms)]
    first = [f"rank-profile {name} {{", "    first-phase {", "        expression {"]
    return "\n".join([*first, *lines, "        }", "    }", "}"])


# ---------------------------------------------------------------- weights


def _weights(ranker: BaseEstimator) -> tuple[np.ndarray, float]:
    """Weights and intercept of a ranker; an error if it is not linear."""
    terms, intercept = terms_of(ranker)
    kernel = next((term.kernel for term in terms if term.kernel is not None), None)
    if kernel is not None:
        name = type(getattr(kernel, "kernel", kernel)).__name__  # inside a kernel of scaled columns, if it is one
        raise ValueError(
            f"a kernel model ({name}) is not linear, and the format only holds weights of features: use ONNX "
            "(export.to_onnx, --to onnx)"
        )
    if terms[0].coef.ndim > 1:
        raise ValueError(f"the model has {terms[0].coef.shape[1]} targets, but the format holds one")
    weights = np.zeros(ranker.n_features_in_)
    for term in terms:
        np.add.at(weights, term.columns, term.coef)  # a view may name a column twice
    return weights, float(intercept)


def _affine(step: BaseEstimator) -> tuple[Any, Any]:
    if getattr(step, "clip", False):
        raise ValueError(f"{type(step).__name__}(clip=True) is not linear, and cannot be folded into weights")
    return affine(step)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
