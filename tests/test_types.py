"""The public API is typed as a user sees it: the README passes `mypy --strict`, and few parameters are `Any`."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rankrls

ROOT = Path(__file__).parent.parent
SOURCE = Path(rankrls.__file__).parent
UNTYPED = ("sklearn", "scipy", "pandas", "pyarrow")  # ship no types: the user is asked to ignore that, not us
REVEALED = {
    "RankRLS().fit([[0.0]], [1.0])": "RankRLS",
    "RankRLS().fit([[0.0]], [1.0]).predict([[0.0]])": "ndarray",
    "RankRLS().score([[0.0]], [1.0])": "float",
    "metrics.ndcg([1], [1.0])": "float",
    "rankrls.load('model.rankrls')": "Predictor",
    "rankrls.load('model.rankrls').predict([[0.0]])": "ndarray",
}


def parameters():
    """Every parameter of the library: where it is, and its annotation or None."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                for one in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                    if one.arg not in ("self", "cls"):
                        annotation = one.annotation and ast.unparse(one.annotation)
                        yield f"{path.relative_to(SOURCE)}: {node.name}({one.arg})", annotation


def checked(script, folder):
    """What mypy --strict says of a script that uses the installed package."""
    pytest.importorskip("mypy")
    (folder / "script.py").write_text(script)
    ignored = "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\n" for name in UNTYPED)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = True\nmypy_path = {SOURCE.parent}\n{ignored}")
    words = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "--follow-imports=silent", "script.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_the_readme_passes_mypy_strict_and_types_are_known(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    reveal = "".join(f"reveal_type({expression})\n" for expression in REVEALED)
    found = checked("\n".join([*blocks, "import rankrls\nfrom rankrls import RankRLS, metrics", reveal]), tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    revealed = re.findall(r'Revealed type is "(.*)"', found.stdout)
    for expression, kind, expected in zip(REVEALED, revealed, REVEALED.values(), strict=True):
        assert expected in kind and kind != "Any", f"{expression} is {kind}"


def test_few_parameters_are_any(capsys):
    known = list(parameters())
    free = [where for where, annotation in known if annotation == "Any"]
    share = len(free) / len(known)
    with capsys.disabled():
        print(f" [{share:.1%} of {len(known):,} parameters are Any]", end=" ")
    assert share < 0.05, free
