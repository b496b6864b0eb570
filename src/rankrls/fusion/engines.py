"""Learned weights in the languages of search engines."""

from __future__ import annotations

import json

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import checks

ENGINES = ("elasticsearch", "opensearch", "vespa", "solr")


def export(model: BaseEstimator, to: str, *, window: int = 100) -> str:
    """The weights of a fitted `Fusion` as a search engine takes them.

    Parameters
    ----------
    model : Fusion
        Fitted.
    to : {"elasticsearch", "opensearch", "vespa", "solr"}
        A linear retriever, a search pipeline with a normalization-processor, a rank profile with a global phase, or a
        function query. The queries themselves are yours: they stand in it by the names of the retrievers.
    window : int, default=100
        Documents each retriever contributes.

    Returns
    -------
    text : str

    Raises
    ------
    ValueError
        If the engine cannot normalise as the weights were learned: "zscore" is for OpenSearch alone.

    Examples
    --------
    >>> from rankrls import fusion
    >>> model = fusion.Fusion().fit(*fusion.make_runs(50, random_state=0))
    >>> print(fusion.export(model, "vespa"))
    rank-profile fusion {
        global-phase {
            rerank-count: 100
            expression {
                0.30738 * normalize_linear(title)
                + 0.217715 * normalize_linear(body)
                + 0.474905 * normalize_linear(dense)
            }
        }
    }
    """
    check_is_fitted(model, "weights_")
    checks.check_choice("to", to, ENGINES)
    if model.normalise == "zscore" and to != "opensearch":
        raise ValueError(f'{to} does not normalise by z-scores: fit with normalise="minmax", or export to OpenSearch')
    weights = {name: round(float(w), 6) for name, w in zip(model.names_, model.weights_, strict=True)}
    return {"elasticsearch": _elasticsearch, "opensearch": _opensearch, "vespa": _vespa, "solr": _solr}[to](
        weights, model.normalise, window
    )


def _elasticsearch(weights: dict[str, float], normalise: str, window: int) -> str:
    retrievers = [
        {"retriever": {"standard": {"query": {"match": {name: "{{query}}"}}}}, "weight": w, "normalizer": "minmax"}
        for name, w in weights.items()
    ]
    return json.dumps({"retriever": {"linear": {"retrievers": retrievers, "rank_window_size": window}}}, indent=2)


def _opensearch(weights: dict[str, float], normalise: str, window: int) -> str:
    technique = {"minmax": "min_max", "zscore": "z_score"}[normalise]
    processor = {
        "normalization": {"technique": technique},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": _adding_up(weights)}},
    }
    description = f"weights of {', '.join(weights)}, in the order of the sub-queries of a hybrid query"
    pipeline = {"description": description, "phase_results_processors": [{"normalization-processor": processor}]}
    return json.dumps(pipeline, indent=2)


def _adding_up(weights: dict[str, float]) -> list[float]:
    """Rounded weights that add up to 1, as OpenSearch demands."""
    values = list(weights.values())
    largest = values.index(max(values))
    values[largest] = round(values[largest] + 1 - sum(values), 6)
    return values


def _vespa(weights: dict[str, float], normalise: str, window: int) -> str:
    terms = "\n            + ".join(f"{w:g} * normalize_linear({name})" for name, w in weights.items())
    return (
        "rank-profile fusion {\n    global-phase {\n"
        f"        rerank-count: {window}\n        expression {{\n            {terms}\n        }}\n    }}\n}}"
    )


def _solr(weights: dict[str, float], normalise: str, window: int) -> str:
    terms = ",".join(f"product({w:g},scale(query(${name},0),0,1))" for name, w in weights.items())
    return json.dumps({"query": f"{{!func}}sum({terms})", "limit": window}, indent=2)
