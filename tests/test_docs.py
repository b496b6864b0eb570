"""Code blocks of the README, the contribution guide and the guide run; those of a page one after the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in ("README.md", "CONTRIBUTING.md")
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_code_block_runs(block, capsys):
    exec(compile(block, "block", "exec"), {"__name__": "block"})


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_page_runs_from_top_to_bottom(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what a page writes
    names = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_demo_shows_the_comparison_and_a_ranking(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from rankrls import demo

    monkeypatch.chdir(tmp_path)
    assert demo.main() == 0
    printed = capsys.readouterr().out
    for words in (
        "chose alpha",
        "regression",
        "ndcg@10",
        "the ranking of query",
        "why the first is above",
        "digits never seen",
    ):
        assert words in printed
    assert (tmp_path / "demo-digits.png").read_bytes().startswith(b"\x89PNG")
