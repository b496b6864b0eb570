"""The options of every command. Nothing heavy is imported here, so that help comes at once."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

METHODS = {  # the estimator of each --method
    "rankrls": "RankRLS",
    "sparse": "RankRLS",
    "co": "CoRankRLS",
    "transductive": "TransductiveRankRLS",
    "pursuit": "RankingPursuit",
    "auto": "AutoRanker",
}
FORMATS = ("letor", "csv", "tsv", "parquet")
SCALES = ("auto", "none", "standard", "minmax", "query-minmax")
TARGETS = ("json", "svmrank", "opensearch", "elasticsearch", "solr", "vespa", "onnx")
CONVENTIONS = ("letor", "xgboost", "lightgbm", "catboost", "sklearn", "trec")


class Parser(argparse.ArgumentParser):
    """Errors on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"rankrls: error: {message}{self._hint(message)} (see {self.prog} --help)\n")

    def _hint(self, message: str) -> str:
        """The command or option that was probably meant."""
        if found := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            known = [option for option in self._option_string_actions if option.startswith("--")]
            known += [
                o for a in self._actions for sub in _parsers(a) for o in sub._option_string_actions if o[:2] == "--"
            ]
        elif found := re.search(r"argument COMMAND: invalid choice: '([^']*)'", message):
            known = [name for action in self._actions for name in (action.choices or ())]
        else:
            return ""
        close = difflib.get_close_matches(found[1], known, n=1)
        return f"; did you mean {close[0]}?" if close else ""


def _parsers(action: argparse.Action) -> Iterable[argparse.ArgumentParser]:
    return action.choices.values() if isinstance(action, argparse._SubParsersAction) else ()


def parser() -> Parser:
    """The whole command line."""
    from rankrls import __version__

    main = Parser(
        prog="rankrls",
        allow_abbrev=False,
        description="Learning to rank in closed form.",
        epilog="rankrls COMMAND --help explains the options of a command; docs/cli.md has examples.",
    )
    main.add_argument("--version", action="version", version=f"rankrls {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in (_train, _predict, _evaluate, _cv, _report, _convert, _export, _fuse, _inspect, _workbench, _demo):
        add(commands)
    return main


# ---------------------------------------------------------------- values


def auto_or(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """A value, or the word auto."""

    def value(text: str) -> Any:
        return text if text == "auto" else kind(text)

    value.__name__ = f"{kind.__name__} or auto"
    return value


def numbers(text: str) -> list[float]:
    """1,10,100 or 0.001:1000:7, seven values evenly spaced in the logarithm."""
    if ":" not in text:
        return [float(part) for part in text.split(",")]
    low, high, count = text.split(":")
    start, stop, n = float(low), float(high), int(count)
    if not (start > 0 and stop > 0 and n > 1):
        raise ValueError
    return [start * (stop / start) ** (i / (n - 1)) for i in range(n)]


def integers(text: str) -> list[int]:
    """1,5,10"""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError
    return found


def words(text: str) -> list[str]:
    """a,b,c; commas in parentheses do not count; @FILE has one a line."""
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:
                return [line.strip() for line in file if line.strip()]
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text[1:]}: {error.strerror}") from None
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def all_or_words(text: str) -> Any:
    """all, or names."""
    return True if text == "all" else words(text)


def yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError
    return text == "yes"


def missing(text: str) -> Any:
    """nan, minimum, or a number."""
    return text if text in ("nan", "minimum") else float(text)


def folds(text: str) -> Any:
    """leave-query-out, or a number of folds."""
    return text if text == "leave-query-out" else int(text)


def basis(text: str) -> Any:
    """500, or random:500, kmeans:500, cholesky:500."""
    kind, colon, size = text.rpartition(":")
    if kind not in ("", "random", "kmeans", "cholesky") or (colon and not kind):
        raise ValueError
    return (kind, int(size)) if kind else int(size)


def views(text: str) -> Any:
    """2, or groups of columns such as 1-10;11-46 or title,body;clicks."""
    if text.isdecimal():
        return int(text)
    return [group.split(",") for group in text.split(";")]


# the parameters of all estimators: name, kind of value, help
PARAMETERS: list[tuple[str, Callable[[str], Any], str]] = [
    ("alpha", auto_or(float), "regularisation; auto chooses by exact leave-query-out"),
    ("alphas", numbers, "values to choose from: 0.1,1,10 or 0.001:1000:15 (log-spaced)"),
    ("kernel", str, "linear, rbf, poly, laplacian or cosine"),
    ("gamma", str, "width of the kernel: a number, scale or auto"),
    ("degree", int, "of the poly kernel"),
    ("coef0", float, "of the poly kernel"),
    ("basis", basis, "points of a sparse kernel model: 500, random:500, kmeans:500, cholesky:500"),
    ("weighting", str, "what counts equally: pairs, queries or items"),
    ("tied_pairs", auto_or(yes_or_no), "pairs with equal labels: yes, no or auto"),
    ("regression", float, "share of plain squared error, 0 to 1"),
    ("scoring", str, "the metric that chooses, such as ndcg@10"),
    ("cv", folds, "leave-query-out, or a number of folds of queries"),
    ("positive", all_or_words, "features whose weights must not be negative: all, or a,b,c or @FILE"),
    ("nu", auto_or(float), "weight of the agreement between views"),
    ("nus", numbers, "values of nu to choose from"),
    ("views", views, "2, or groups of columns: 1-10;11-46, or by name"),
    ("fidelity", auto_or(float), "how close transduction stays to the inductive scores"),
    ("fidelities", numbers, "values of fidelity to choose from"),
    ("n_basis", auto_or(int), "basis functions, or features, of a pursuit"),
    ("max_basis", int, "the most that n-basis auto tries"),
    ("shared_basis", yes_or_no, "whether views choose together: yes or no"),
    ("backfit", yes_or_no, "whether coefficients are fitted anew in every step: yes or no"),
    ("effort", str, "work that --method auto spends: fast, normal or best"),
    ("relative", yes_or_no, "whether --method auto looks at ranks within the query: yes or no"),
    ("random_state", int, "seed for what is drawn at random"),
]


# ---------------------------------------------------------------- groups


def _command(commands: argparse._SubParsersAction, name: str, text: str) -> Parser:
    made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
    made.add_argument("--json", action="store_true", help="print a JSON object instead of text")
    made.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    made.add_argument("--debug", action="store_true", help="show where an error comes from")
    return made


def _reading(made: Parser) -> None:
    group = made.add_argument_group("reading", "text is LETOR (svmlight) unless a file ends in .csv, .tsv or .parquet")
    group.add_argument(
        "--input-format", choices=FORMATS, help="instead of what the name says; needed for - unless it is LETOR"
    )
    group.add_argument("--label", help="column of the label in a table (label, or y)")
    group.add_argument("--qid", help="column of the query id in a table (qid)")
    group.add_argument("--columns", type=words, help="columns of the features in a table: a,b,c or @FILE (all others)")
    group.add_argument("--missing", type=missing, default="nan", help="missing values become: nan, minimum or a number")
    group.add_argument("--zero-based", action="store_true", help="features of LETOR text are numbered from 0, not 1")
    group.add_argument("--sparse", action="store_true", help="LETOR text into sparse rows")
    group.add_argument("--skip-bad-lines", action="store_true", help="leave out unreadable lines, and say how many")


def _judging(made: Parser) -> None:
    made.add_argument("--metrics", type=words, help="instead of all: ndcg@10,map")
    made.add_argument("-k", type=integers, default=[1, 5, 10], help="cutoffs of ndcg and precision (default 1,5,10)")
    made.add_argument("--convention", choices=CONVENTIONS, help="NDCG as another tool computes it")
    made.add_argument("--relevant", type=float, default=1.0, help="labels from here on are relevant (default 1)")
    made.add_argument("--flips", type=int, default=10_000, help="of the randomisation test (default 10000)")


def _learning(made: Parser) -> None:
    group = made.add_argument_group("learning", "the parameters of the estimator, with its own defaults")
    group.add_argument("--method", choices=list(METHODS), default="rankrls", help="the estimator (default rankrls)")
    group.add_argument(
        "--scale",
        choices=SCALES,
        default="auto",
        help="columns in units of their spread, as they are, or scaled first (default auto)",
    )
    for name, kind, text in PARAMETERS:
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="V", help=text)


# ---------------------------------------------------------------- commands


def _train(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "train", "learn a model from data")
    made.add_argument("data", nargs="+", metavar="DATA", help="files of one set, - is standard input")
    made.add_argument("-o", "--output", required=True, metavar="MODEL", help="the model file, by custom *.rankrls")
    made.add_argument("--stream", action="store_true", help="read DATA, a file or a Parquet folder, in blocks")
    made.add_argument("--checkpoint", metavar="FILE", help="with --stream: where an interrupted run goes on")
    _learning(made)
    _reading(made)


def _predict(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "predict", "score rows with a model")
    made.add_argument("model", metavar="MODEL", help="a file written by train or rankrls.save")
    made.add_argument("data", metavar="DATA", help="- is standard input")
    made.add_argument("-o", "--output", default="-", metavar="SCORES", help="default -, standard output")
    made.add_argument("--format", choices=("scores", "trec", "csv", "parquet"), default="scores", help="of the output")
    made.add_argument("--tag", default="rankrls", help="name of the run in a TREC file")
    made.add_argument("--rows", type=int, default=50_000, help="rows in memory at a time; 0 is all (default 50000)")
    _reading(made)


def _evaluate(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "evaluate", "judge scores by the labels of data; of two sets of scores, which is better")
    made.add_argument("data", metavar="DATA", help="- is standard input")
    made.add_argument("scores", metavar="SCORES", help="a number per line, or a TREC run")
    made.add_argument("other", nargs="?", metavar="SCORES2", help="to be compared by a paired randomisation test")
    _judging(made)
    made.add_argument("--per-query", metavar="FILE", help="write the values of each query as CSV")
    _reading(made)


def _cv(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "cv", "the held-out score along the path of alpha")
    made.add_argument("data", nargs="+", metavar="DATA", help="files of one set, - is standard input")
    made.add_argument("--plot", metavar="FILE", help="draw the curve: .png, .svg or .pdf (needs matplotlib)")
    _learning(made)
    _reading(made)


def _report(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "report", "one HTML page of models on data: comparison, pictures, worst queries and why")
    made.add_argument("data", metavar="DATA", help="rows with labels, - is standard input")
    made.add_argument("models", nargs="+", metavar="MODEL", help="model files, or score files as evaluate takes them")
    made.add_argument("-o", "--output", required=True, metavar="FILE", help="the page, - is standard output")
    made.add_argument("--title", help="of the page")
    made.add_argument("--by", default="ndcg@10", metavar="METRIC", help="by which queries are worst (default ndcg@10)")
    made.add_argument("--worst", type=int, default=5, help="queries to show of each model (default 5)")
    made.add_argument("--top", type=int, default=10, help="places of a query to show (default 10)")
    _judging(made)
    _reading(made)


def _convert(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "convert", "between LETOR text, CSV and Parquet, by the names of the files")
    made.add_argument("data", metavar="IN", help="- is standard input")
    made.add_argument("output", metavar="OUT", help="- is standard output; .gz, .bz2, .xz and .zst compress")
    made.add_argument("--output-format", choices=FORMATS, help="instead of what the name says")
    _reading(made)


def _export(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "export", "a model for another program: weights for a search engine, or ONNX")
    made.add_argument("model", metavar="MODEL", help="a file written by train or rankrls.save")
    made.add_argument("--to", choices=TARGETS, required=True, help="the format")
    made.add_argument("-o", "--output", default="-", metavar="FILE", help="default -, standard output")
    made.add_argument("--name", default="rankrls", help="of the model in the search engine")
    made.add_argument("--features", type=words, help="names of the features: a,b,c, or @FILE with one a line")
    made.add_argument("--dtype", choices=("float64", "float32"), help="numbers of an ONNX model (default float64)")


def _fuse(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "fuse", "weights of several retrievers, from their TREC runs and judgments")
    made.add_argument("runs", nargs="+", metavar="RUN", help="TREC run files, one of each retriever")
    made.add_argument("--qrels", required=True, metavar="FILE", help="judgments: TREC qrels, or CSV query,docid,rating")
    made.add_argument("--names", type=words, help="of the retrievers: a,b,c (default: the names of the files)")
    made.add_argument("--normalise", choices=("minmax", "zscore"), default="minmax", help="scores within a query")
    made.add_argument("--scoring", default="ndcg@10", metavar="METRIC", help="to choose alpha by and to show")
    made.add_argument("--to", choices=("elasticsearch", "opensearch", "vespa", "solr"), help="print it for this engine")
    made.add_argument("-o", "--output", metavar="RUN", help="write the fused run")
    made.add_argument("--tag", default="rankrls", help="name of the fused run")


def _inspect(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "inspect", "what is in a model or data file")
    made.add_argument("data", metavar="MODEL|DATA", help="- is data on standard input")
    made.add_argument("--top", type=int, default=10, help="weights to show (default 10)")
    _reading(made)


def _workbench(commands: argparse._SubParsersAction) -> None:
    made = _command(commands, "workbench", "judge, drag and refit rankings on a local page")
    made.add_argument("data", nargs="?", metavar="DATA", help="LETOR, CSV, Parquet or a TREC run, - is standard input")
    made.add_argument("model", nargs="?", metavar="MODEL", help="a model to start from and to compare with")
    made.add_argument("--demo", action="store_true", help="built-in example data")
    made.add_argument("--port", type=int, default=0, metavar="N", help="where to listen on this machine (any free one)")
    made.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    made.add_argument("--read-only", action="store_true", help="look, but change nothing")
    made.add_argument("--journal", metavar="FILE", help="where the session is kept (DATA.workbench.jsonl)")
    made.add_argument("--qrels", metavar="FILE", help="labels from a TREC qrels file")
    made.add_argument("--runs", nargs="+", metavar="RUN", help="further TREC runs of the same queries")
    _reading(made)


def _demo(commands: argparse._SubParsersAction) -> None:
    _command(commands, "demo", "the library's main job on embedded data; writes demo-digits.png here")
