"""The pictures and tables of docs/benchmarks.md and docs/growth.md, made from benchmarks/results.

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
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.exponent import exponent

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs/benchmarks.md", ROOT / "docs/images/benchmarks.png"
GROWTH, GROWTH_PICTURE = ROOT / "docs/growth.md", ROOT / "docs/images/growth.png"
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


def cells(path: Path) -> list[list[str]]:
    """The cells of a table in Markdown, without its head."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[2:]]


def results(path: Path) -> list[Line]:
    """The lines of the table of peers."""
    return [Line(*row) for row in cells(path)]


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
    parts, models = [], {line.model for line in lines}
    names = [name for name in COLUMNS if name in models]  # RLScore is not installed everywhere
    for title, what in (
        ("Seconds to train", "seconds"),
        ("NDCG@10 of new queries", "ndcg"),
        ("Peak memory of the process, MB", "megabytes"),
    ):
        rows = [f"| {title} | " + " | ".join(f"`{name}`" for name in names) + " |", "|---" * (len(names) + 1) + "|"]
        for data in dict.fromkeys(line.data for line in lines if line.model == "RankRLS()"):
            found = {line.model: getattr(line, what) for line in lines if line.data == data}
            rows.append(f"| {data} | " + " | ".join(_short(found.get(name, "")) for name in names) + " |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _short(number: str) -> str:
    """Three significant digits, none of them after the point of a large number."""
    if not number:
        return ""
    value = float(number)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# ---------------------------------------------------------------- growth


def draw_growth(lines: list[list[str]]) -> None:
    """CPU seconds against size, a panel for each quantity that grows, with the fitted powers in the legend."""
    studies = list(dict.fromkeys(line[0] for line in lines))
    figure, axes = plt.subplots(2, -(-len(studies) // 2), figsize=(12, 6.4), squeeze=False)
    for ax in axes.flat[len(studies) :]:
        ax.set_visible(False)
    for study, ax in zip(studies, axes.flat, strict=False):
        what, fixed = study.rstrip(")").split(" (", 1)
        for fit, (sizes, seconds) in curves(lines, study).items():
            colour = "#b30000" if fit == "RankRLS()" or not fit.startswith("RankRLS") else "#f08050"
            label = f"{fit}: {exponent(sizes, seconds):.2f}"
            ax.plot(sizes, seconds, "o-", color=colour, markersize=4, label=label)
        ax.set(xscale="log", yscale="log", xlabel=what)
        ax.set_title(fixed, fontsize=10, pad=28)
        ax.xaxis.set_major_locator(LogLocator(base=10, numticks=5))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=7, loc="lower left", bbox_to_anchor=(-0.05, 0.99), borderaxespad=0)
    for ax in axes[:, 0]:
        ax.set_ylabel("CPU seconds")
    figure.tight_layout()
    figure.savefig(GROWTH_PICTURE, dpi=110)


def curves(lines: list[list[str]], study: str) -> dict[str, tuple[list[float], list[float]]]:
    """Sizes and CPU seconds of each fit in a study."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for _, fit, size, _, cpu, *_ in (line for line in lines if line[0] == study):
        sizes, seconds = found.setdefault(fit, ([], []))
        sizes.append(float(size.replace(",", "")))
        seconds.append(float(cpu))
    return found


def growth_table(lines: list[list[str]]) -> str:
    """What grows, the sizes, CPU seconds at both ends and the fitted power."""
    rows = ["| what grows | fit | from | to | CPU seconds | power |", "|---" * 6 + "|"]
    for study in dict.fromkeys(line[0] for line in lines):
        for fit, (sizes, seconds) in curves(lines, study).items():
            spent = f"{seconds[0]:.3g} to {seconds[-1]:.3g}"
            power = f"{exponent(sizes, seconds):.2f}"
            rows.append(f"| {study} | `{fit}` | {sizes[0]:,.0f} | {sizes[-1]:,.0f} | {spent} | {power} |")
    return "\n".join(rows)


def put(page: Path, text: str) -> None:
    """Write text between the markers of a page."""
    before, rest = page.read_text().split("<!-- tables -->\n")
    after = rest.split("<!-- end of tables -->")[1]
    page.write_text(f"{before}<!-- tables -->\n\n{text}\n\n<!-- end of tables -->{after}")


def main() -> None:
    lines = results(ROOT / "benchmarks/results/peers.md")
    draw(lines)
    put(PAGE, tables(lines))
    grown = cells(ROOT / "benchmarks/results/growth.md")
    draw_growth(grown)
    put(GROWTH, growth_table(grown))


if __name__ == "__main__":
    main()
