"""The picture and the tables of docs/benchmarks.md, from benchmarks/results/peers.md.

python -m benchmarks.plot
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs/benchmarks.md", ROOT / "docs/images/benchmarks.png"
SERIES = {  # model: colour and line
    "RankRLS()": ("#b30000", "-"),
    "RankRLS(), 500 points": ("#b30000", "--"),
    "RankRLS(alpha=1)": ("#f08050", "-"),
    "X.T @ X": ("0.3", ":"),
    "sklearn Ridge": ("0.5", "-"),
    "sklearn Nystroem + Ridge": ("0.5", "--"),
    "RLScore QueryRankRLS": ("#c9a000", "-"),
    "LightGBM": ("#1b7837", "-"),
    "XGBoost": ("#2166ac", "-"),
    "CatBoost": ("#762a83", "-"),
}
PANELS = {"linear signal": 136, "interactions": 46}
COLUMNS = [
    "RankRLS()",
    "RankRLS(), 500 points",
    "sklearn Ridge",
    "RLScore QueryRankRLS",
    "LightGBM",
    "XGBoost",
    "CatBoost",
]


@dataclass(frozen=True)
class Line:
    """One line of the table of results."""

    data: str
    model: str
    seconds: str
    cores: str
    ratio: str
    megabytes: str
    ndcg: str
    accuracy: str


def results(path: Path) -> list[Line]:
    """The lines of a table in Markdown, without its head."""
    cells = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in path.read_text().splitlines()
        if line.startswith("|")
    ]
    return [Line(*row) for row in cells[2:]]


def draw(lines: list[Line]) -> None:
    """Seconds and NDCG@10 against rows, for both kinds of signal."""
    figure, axes = plt.subplots(2, len(PANELS), figsize=(10, 7.2), sharex=True, height_ratios=(3, 2))
    for (signal, n), (above, below) in zip(PANELS.items(), axes.T, strict=True):
        _panel(above, lines, signal, n, "seconds")
        _panel(below, lines, signal, n, "ndcg")
        above.set(title=f"{signal}, {n} features", yscale="log", xscale="log")
        below.set(xlabel="rows")
    axes[0, 0].set_ylabel("seconds to train")
    axes[1, 0].set_ylabel("NDCG@10, new queries")
    handles = {text: handle for ax in axes.flat for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    order = [model for model in SERIES if model in handles]
    figure.legend([handles[model] for model in order], order, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)


def _panel(ax: Axes, lines: list[Line], signal: str, n: int, what: str) -> None:
    for model, (colour, style) in SERIES.items():
        points = {}
        for line in lines:
            size = re.fullmatch(rf"{signal}, ([\d,]+) x {n}", line.data)
            if size and line.model == model and getattr(line, what):
                points[int(size[1].replace(",", ""))] = float(getattr(line, what))
        if points:
            ax.plot(list(points), list(points.values()), style, color=colour, marker="o", markersize=4, label=model)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


def tables(lines: list[Line]) -> str:
    """Seconds, NDCG@10 and peak memory of the most used models, a line for each data set."""
    parts = []
    for title, what in (
        ("Seconds to train", "seconds"),
        ("NDCG@10 of new queries", "ndcg"),
        ("Peak memory of the process, MB", "megabytes"),
    ):
        rows = [f"| {title} | " + " | ".join(f"`{name}`" for name in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
        for data in dict.fromkeys(line.data for line in lines if line.model == "RankRLS()"):
            found = {line.model: getattr(line, what) for line in lines if line.data == data}
            rows.append(f"| {data} | " + " | ".join(_short(found.get(name, "")) for name in COLUMNS) + " |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _short(number: str) -> str:
    """Three digits, none of them after the point of a large number."""
    if not number:
        return ""
    value = float(number)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    lines = results(ROOT / "benchmarks/results/peers.md")
    draw(lines)
    before, rest = PAGE.read_text().split("<!-- tables -->\n")
    after = rest.split("<!-- end of tables -->")[1]
    PAGE.write_text(f"{before}<!-- tables -->\n\n{tables(lines)}\n\n<!-- end of tables -->{after}")


if __name__ == "__main__":
    main()
