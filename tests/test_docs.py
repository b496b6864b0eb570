"""What the documentation shows runs: README, pages and examples; every public name has an example and a place."""

import importlib
import inspect
import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

import rankrls
import shared
from rankrls.datasets.download import DownloadError

ROOT = Path(__file__).parent.parent
outputs = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "outputs.py")))
MODULES = [rankrls, *filter(inspect.ismodule, (getattr(rankrls, name) for name in rankrls.__all__))]
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in ("CONTRIBUTING.md",)
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
]
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "```python\n" in page.read_text()
]
MODULES += [rankrls.distributed.dask, rankrls.distributed.spark]
PUBLIC = [(module, name) for module in MODULES for name in module.__all__]


@pytest.mark.parametrize("block", BLOCKS)
def test_code_block_runs(block, capsys):
    exec(compile(block, "block", "exec"), {"__name__": "block"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs_from_top_to_bottom(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what a page writes
    if "fetch_" in page.read_text():
        use_fetched_data(monkeypatch)
    for block, output in outputs.run(page.read_text(), page.name):
        written = block["output"] or ""
        assert not outputs.differs(output, written), (
            f"this prints\n{output}\nand the page shows\n{written}\nwrite it with: python docs/outputs.py {page}"
        )


def use_fetched_data(monkeypatch):
    """Pages read what was fetched before, or skip: tests need no network."""
    fetch = importlib.import_module("rankrls.datasets.fetch")
    provided = fetch._provided

    def without_download(home, pattern, remote, download):
        try:
            return provided(home, pattern, remote, False)
        except DownloadError as error:
            pytest.skip(f"the page fetches data: {error}")

    monkeypatch.setattr(fetch, "_provided", without_download)
    if "RANKRLS_DATA" not in os.environ and shared.FOLDER.is_dir():
        monkeypatch.setenv("RANKRLS_DATA", str(shared.FOLDER))


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name)
def test_example_runs(script, capsys, monkeypatch, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script))
    pyplot.close("all")


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=[f"{module.__name__}.{name}" for module, name in PUBLIC])
def test_public_name_has_an_example_and_is_in_the_reference(module, name):
    thing = getattr(module, name)
    if not callable(thing) and not inspect.ismodule(thing):
        return  # a list of names
    assert re.search(r"^Examples\n-+\n(?s:.*)^ *>>> ", inspect.getdoc(thing) or "", re.MULTILINE), "no example"
    where = f".. module:: {thing.__name__}\n" if inspect.ismodule(thing) else f"   {name}\n"
    assert where in (ROOT / "docs" / "api.rst").read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_demo_shows_the_comparison_and_a_ranking(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from rankrls.cli import demonstration

    monkeypatch.chdir(tmp_path)
    assert demonstration.main() == 0
    printed = capsys.readouterr().out
    for words in (
        "chose alpha",
        "regression",
        "ndcg@10",
        "the ranking of query",
        "why the first is above",
        "that no model has seen",
        "after learning what makes two images the same digit",
    ):
        assert words in printed
    assert (tmp_path / "demo-digits.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["search", "genindex", "py-modindex"])
def test_no_page_has_the_name_of_a_page_that_sphinx_writes(name):
    """Sphinx would overwrite it silently."""
    assert not list((ROOT / "docs").glob(f"{name}.*"))
