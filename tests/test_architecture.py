"""The tree shows the architecture: who may import whom, and everything public is documented."""

import ast
import inspect
from pathlib import Path

import pytest

import rankrls
from rankrls import estimators

SOURCE = Path(rankrls.__file__).parent

# lower to higher; a module imports only from lines above its own
LAYERS = [
    {"frames", "queries", "kernels", "parallel"},
    {"preferences"},
    {"census", "statistics", "metrics"},
    {"ridge"},
    {"kronecker"},
    {"bases", "features", "iterative", "validation"},
    {"atoms", "edges", "views"},
    {"problems"},
    {"coregularised", "greedy", "selection", "transduction"},
    {"conditional", "parts"},
    {"datasets"},
    {"sources"},
    {"outofcore"},
    {"estimators"},
    {"distributed", "export", "persistence", "plotting", "pyterrier"},
    {"demo"},
    {"cli"},
    {"__main__"},
]
BELOW_SKLEARN = set().union(*LAYERS[:10])


def modules():
    return sorted(SOURCE.rglob("*.py"))


def name_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """Absolute module names imported anywhere in a file, deferred imports included."""
    depth = len(path.relative_to(SOURCE).parts) - 1
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1 - depth
            if node.level == 0:
                yield node.module
            elif up == 0:  # from the package's root
                base = f"rankrls.{node.module}" if node.module else "rankrls"
                yield from ([base] if node.module else [f"rankrls.{alias.name}" for alias in node.names])


def level(module):
    return next(i for i, layer in enumerate(LAYERS) if module in layer)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    me = name_of(path)
    if me == "__init__":
        return
    for name in imports(path):
        if name.startswith("rankrls."):
            other = name.split(".")[1]
            assert level(other) < level(me) or (level(other) == level(me) and other == me) or (me == "demo"), (
                f"{me} imports {other}"
            )
        if me in BELOW_SKLEARN:
            assert not name.startswith("sklearn"), f"{me} imports {name}: scikit-learn belongs to estimators and above"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_stay_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 620, "which noun is missing?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.lineno
            assert node.end_lineno - first <= 50, f"{node.name} is long: which noun is missing?"


def public_objects():
    for name in rankrls.__all__:
        yield name, getattr(rankrls, name)
    for module in (rankrls.metrics, rankrls.kernels, rankrls.datasets, rankrls.export, rankrls.plotting):
        for name, thing in vars(module).items():
            code = inspect.isfunction(thing) or inspect.isclass(thing)
            if code and not name.startswith("_") and thing.__module__.startswith("rankrls"):
                yield f"{module.__name__}.{name}", thing


@pytest.mark.parametrize(
    ("name", "thing"), list(public_objects()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_everything_public_is_documented(name, thing):
    assert inspect.getdoc(thing), f"{name} has no docstring"
    if inspect.isclass(thing):
        for attribute, member in vars(thing).items():
            if inspect.isfunction(member) and not attribute.startswith("_"):
                assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute} has no docstring"


@pytest.mark.parametrize("name", estimators.__all__)
def test_no_catch_all_arguments(name):
    for attribute, member in vars(getattr(rankrls, name)).items():
        function = getattr(member, "fn", member)  # a method that exists only sometimes holds its function in fn
        if inspect.isfunction(function) and not attribute.startswith("set_"):
            kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, attribute
