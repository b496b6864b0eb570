"""Rock, paper, scissors after [Pahikkala13]: Table 1 and figure 2, printed as Markdown; needs no data.

See docs/reproductions/conditional.md for results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import machine
from benchmarks.papers import ranksvm
from benchmarks.papers.figures import band, finish, half_width, panels, table
from rankrls import ConditionalRankRLS
from rankrls.metrics import disagreement_error

BEATS = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])  # paper beats rock, scissors beat paper, rock beats scissors
N_PLAYERS, N_GAMES = 100, 1000
SHARPNESS = (1, 10, 100)
PAPER = {
    1: ("0.4875", "0.4868", "0.4876", "0.4880", "0.4987", "0.4891"),
    10: ("0.04172", "0.04145", "0.04519", "0.04291", "0.04535", "0.04116"),
    100: ("0.001380", "0.001366", "0.001424", "0.001354", "0.006997", "0.005824"),
}
POWERS = (-30, -20, -15, -10, -5, 0, 2, 4, 6, 10)


@dataclass(frozen=True)
class Games:
    """Training players and their games, each as two edges; test players with the true probabilities."""

    players: np.ndarray  # (players, 3) how often each plays each move
    edges: np.ndarray
    y: np.ndarray
    new: np.ndarray
    truth: np.ndarray  # of winning, less those of losing

    def error(self, W: np.ndarray) -> float:
        scores = self.new @ W @ self.new.T
        return float(disagreement_error(self.truth.ravel(), scores.ravel(), np.repeat(np.arange(N_PLAYERS), N_PLAYERS)))


def play(w: float, seed: int) -> Games:
    """Moves with probability exp(w u) / sum, u uniform; a coin decides draws, so that probabilities add up to one."""
    rng = np.random.default_rng(seed)
    u = np.exp(w * rng.uniform(size=(2, N_PLAYERS, 3)))
    players, new = u / u.sum(axis=2, keepdims=True)
    first = rng.integers(N_PLAYERS, size=N_GAMES)
    second = (first + rng.integers(1, N_PLAYERS, size=N_GAMES)) % N_PLAYERS
    chance = (1 + ((players[first] @ BEATS) * players[second]).sum(axis=1)) / 2
    y = np.where(rng.uniform(size=N_GAMES) < chance, 1.0, -1.0)
    edges = np.column_stack([np.append(first, second), np.append(second, first)])
    return Games(players, edges, np.append(y, -y), new, new @ BEATS @ new.T)


Model = Callable[[Games, float], np.ndarray]  # (3, 3) weights of the products of moves, for some regularisation


def rls(loss: str, relation: str | None) -> Model:
    def model(games: Games, alpha: float) -> np.ndarray:
        ranker = ConditionalRankRLS(alpha, loss=loss, relation=relation)
        return ranker.fit_edges(games.players, games.edges, games.y).coef_

    return model


def rank_svm(relation: str | None) -> Model:
    """alpha ||w||^2 + the mean hinge loss of pairs of edges from one player, on product features."""

    def model(games: Games, alpha: float) -> np.ndarray:
        X = np.einsum("ei,ej->eij", games.players[games.edges[:, 0]], games.players[games.edges[:, 1]])
        X = ((X - X.transpose(0, 2, 1)) / 2 if relation else X).reshape(-1, 9)
        better, worse = ranksvm.preferences(games.y, games.edges[:, 0])
        return ranksvm.hinge(X[better] - X[worse], 1 / (2 * alpha * len(better))).reshape(3, 3)

    return model


MODELS = {
    "c.reg": rls("regression", None),
    "c.reg (r)": rls("regression", "reciprocal"),
    "c.rank": rls("ranking", None),
    "c.rank (r)": rls("ranking", "reciprocal"),
    "RankSVM": rank_svm(None),
    "RankSVM (r)": rank_svm("reciprocal"),
}


def shown(errors: np.ndarray) -> str:
    return f"{np.mean(errors):.4g} ± {half_width(errors):.1g}"


Errors = dict[tuple[int, str], np.ndarray]  # (powers, repetitions) by sharpness and model


def measured(repetitions: int) -> Errors:
    """Every method with every regularisation on the same games."""
    found = {}
    for w in SHARPNESS:
        draws = [play(w, seed) for seed in range(repetitions)]
        for name, model in MODELS.items():
            found[w, name] = np.array([[games.error(model(games, 2.0**p)) for games in draws] for p in POWERS])
    return found


def tables(found: Errors) -> None:
    """Table 1, with hardly any regularisation, and figure 2 in numbers."""
    repetitions, rows = next(iter(found.values())).shape[1], []
    for w in SHARPNESS:
        rows += [[f"w{w}, paper", *PAPER[w]], [f"w{w}, ours", *(shown(found[w, name][0]) for name in MODELS)]]
    table(["data", *MODELS], rows, f"Table 1: error with alpha = 2^-30, {repetitions} repetitions:")
    rows = [[f"w{w}", name, *map(shown, errors)] for (w, name), errors in found.items()]
    head = ["data", "model", *(f"2^{p}" for p in POWERS)]
    table(head, rows, f"Figure 2: error by alpha, {repetitions} repetitions:")


def draw(found: Errors, png: Path) -> None:
    """The paper's panels: a row for each sharpness, the ordinary kernel left, the reciprocal one right."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    colours = {"c.reg": "tab:orange", "c.rank": "tab:blue", "RankSVM": "tab:green"}
    figure, axes = panels(3, 2, (7.5, 7.5), sharex=True, sharey="row")
    for (w, name), errors in found.items():
        kind, reciprocal = name.removesuffix(" (r)"), name.endswith("(r)")
        axis = axes[SHARPNESS.index(w), int(reciprocal)]
        band(axis, POWERS, errors.T, color=colours[kind], label=kind)
        axis.set_title(f"w{w}, {'reciprocal' if reciprocal else 'ordinary'} kernel", fontsize=9)
        if w > 1:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
    for axis in axes[-1]:
        axis.set_xlabel("log2 of alpha")
    for axis in axes[:, 0]:
        axis.set_ylabel("error")
    axes[0, 0].legend(frameon=False, fontsize=8)
    finish(figure, png / "games.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="not needed")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--png", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    print(machine())
    found = measured(arguments.repetitions)
    tables(found)
    if arguments.png is not None:
        draw(found, arguments.png)


if __name__ == "__main__":
    main()
