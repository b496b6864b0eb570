"""Learned weights in the formats of search engines."""

from __future__ import annotations

import json
import re

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import checks

WINDOW = 100  # documents of each retriever, if a model does not know how many it learned from
ENGINES = ("elasticsearch", "opensearch", "vespa", "solr")


def export(model: BaseEstimator, to: str, *, window: int | None = None) -> str:
    """The weights of a fitted `Fusion` in the format of a search engine.

    Parameters
    ----------
    model : Fusion
        Fitted.
    to : {"elasticsearch", "opensearch", "vespa", "solr"}
        A linear retriever, a search pipeline with a normalization-processor, a rank profile with a global phase, or a
        function query. Replace the placeholder queries by your own: each is a match in the field with the retriever's
        name, with `{{query}}` for the words of the query.
    window : int, default=None
        Documents each retriever contributes; None takes as many as in the runs from which the weights were learned,
        since the smallest of their scores is the zero of the scale.

    Returns
    -------
    text : str

    Raises
    ------
    ValueError
        If the engine cannot normalise scores as in training: only OpenSearch supports "zscore".

    Examples
    --------
    >>> from rankrls import fusion
    >>> model = fusion.Fusion().fit(*fusion.make_runs(50, random_state=0))
    >>> print(fusion.export(model, "vespa"))
    rank-profile fusion {
        function title() {
            expression: bm25(title)
        }
        function body() {
            expression: bm25(body)
        }
        function dense() {
            expression: bm25(dense)
        }
        global-phase {
            rerank-count: 20
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
    window = getattr(model, "depth_", WINDOW) if window is None else window
    checks.check_count("window", window)
    if model.normalise == "zscore" and to != "opensearch":
        raise ValueError(f'{to} cannot normalise by z-scores: fit with normalise="minmax", or export to OpenSearch')
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
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": _rounded_to_one(weights)}},
    }
    description = f"weights of {', '.join(weights)}, in the order of the sub-queries of a hybrid query"
    pipeline = {"description": description, "phase_results_processors": [{"normalization-processor": processor}]}
    return json.dumps(pipeline, indent=2)


def _rounded_to_one(weights: dict[str, float]) -> list[float]:
    """Rounded weights that add up to exactly 1, as OpenSearch requires."""
    values = list(weights.values())
    largest = values.index(max(values))
    values[largest] = round(values[largest] + 1 - sum(values), 6)
    return values


def _vespa(weights: dict[str, float], normalise: str, window: int) -> str:
    weights = _by_identifier(weights)
    functions = "".join(
        f"    function {name}() {{\n        expression: bm25({name})\n    }}\n" for name in weights
    )  # placeholders for closeness(field, embedding), freshness(timestamp) and so on
    terms = "\n            + ".join(f"{_decimal(w)} * normalize_linear({name})" for name, w in weights.items())
    return (
        f"rank-profile fusion {{\n{functions}    global-phase {{\n        rerank-count: {window}\n"
        f"        expression {{\n            {terms}\n        }}\n    }}\n}}"
    )


def _solr(weights: dict[str, float], normalise: str, window: int) -> str:
    weights = _by_identifier(weights)
    terms = ",".join(f"product({_decimal(w)},scale(query(${name},0),0,1))" for name, w in weights.items())
    queries = {name: f"{{!edismax qf={name} v=$user_query}}" for name in weights}
    request = {"query": f"{{!func}}sum({terms})", "limit": window, "params": {"user_query": "{{query}}", **queries}}
    return json.dumps(request, indent=2)


def _decimal(weight: float) -> str:
    """A number without an exponent, which not every grammar allows."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def _by_identifier(weights: dict[str, float]) -> dict[str, float]:
    """The weights under names that are valid for functions and parameters: letters, digits and underscores."""
    found: dict[str, float] = {}
    for name, weight in weights.items():
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        plain = f"_{plain}" if not plain or plain[0].isdigit() or plain == "user_query" else plain
        while plain in found:
            plain += "_"
        found[plain] = weight
    return found
