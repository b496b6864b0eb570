"""What a public project promises: versions, packaging, and files that agree with one another."""

import ast
import re
import sys
import tomllib
from itertools import chain, pairwise
from pathlib import Path

import pytest

import rankrls

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("-", "_")


def imported():
    """Every external module that the library imports anywhere."""
    found = set()
    for path in Path(rankrls.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"rankrls", "marimo"}  # only marimo itself calls what imports it


def test_every_import_is_declared():
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = {name_of(bound) for bound in [*PROJECT["project"]["dependencies"], *chain(*extras)]}
    assert {"scikit_learn" if name == "sklearn" else name for name in imported()} <= declared


def test_every_requirement_has_a_lower_bound():
    groups = PROJECT["dependency-groups"].values()
    extras = chain(*PROJECT["project"]["optional-dependencies"].values())
    for bound in [*PROJECT["project"]["dependencies"], *extras, *chain(*groups)]:
        assert isinstance(bound, dict) or bound.startswith("rankrls[") or re.search(r">=\d", bound), bound


def test_the_extra_all_is_all():
    extras = PROJECT["project"]["optional-dependencies"]
    (whole,) = extras["all"]
    assert set(re.search(r"\[(.*)\]", whole)[1].split(",")) == set(extras) - {"all"}


def test_no_docstring_is_cut_by_quotes():
    for path in Path(rankrls.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                assert not re.search(r'\s"\n\s*"', ast.get_docstring(node) or ""), (path.name, node)


def test_the_citation_has_the_version():
    assert f"\nversion: {rankrls.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_ci_runs_the_tests_as_everyone_does():
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("not in a clone")
    assert "\nmake test\n" in script.read_text()


def indents(path):
    """Every docstring of a file that goes over several lines: where it starts, and the least indent of its lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines = [line for line in (ast.get_docstring(node, clean=False) or "").split("\n")[1:] if line.strip()]
            if lines:
                own = 0 if isinstance(node, ast.Module) else node.body[0].col_offset
                yield own, min(len(line) - len(line.lstrip()) for line in lines)


def titles(path):
    """Every underlined title of a section in docstrings of a file, with its underline."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (ast.get_docstring(node) or "").split("\n")
            yield from ((a, b) for a, b in pairwise(lines) if b.strip() and set(b.strip()) == {"-"})


def test_docstrings_are_indented_like_their_code():
    for path in [*Path(rankrls.__file__).parent.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for own, least in indents(path):
            assert least == own, (path.name, own)
        for title, line in titles(path):
            assert title == title.strip() and line == "-" * len(title), (path.name, title)
