"""The tree shows the architecture: which package may import which, and that everything public is documented."""

import ast
import inspect
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rankrls
from rankrls import estimators

SOURCE = Path(rankrls.__file__).parent


@dataclass(frozen=True)
class Floor:
    """Packages and modules of one floor, from left to right: each may use those to its left."""

    rooms: tuple[str, ...]
    uses: dict[int, str]  # lower floors it may use, and why


FLOORS = [
    Floor(("system",), {}),
    Floor(("kernels", "bases", "core"), {0: "rows are worked on in threads, in memory that is used again"}),
    Floor(
        ("checks", "metrics"),
        {
            0: "frames are opened, work is shared among threads",
            1: "both think in queries; checks know the sums of a fit",
        },
    ),
    Floor(
        ("datasets",),
        {
            0: "files are written as a whole, downloads report their progress",
            1: "rows are grouped by query",
            2: "what a caller hands in is checked",
        },
    ),
    Floor(
        ("problems", "relations", "selection"),
        {
            0: "long passes use threads and report their progress",
            1: "a problem is made of preferences, features and a ridge path",
            2: "settings are chosen by a metric",
        },
    ),
    Floor(
        ("blocks",),
        {
            0: "blocks are read in threads, checkpoints are written as a whole",
            1: "sums over blocks are sums of the core",
            2: "held-out scores are judged by a metric; columns are checked as they are read",
            3: "LETOR files are read in blocks",
            4: "sums over all blocks are solved as a problem",
        },
    ),
    Floor(
        ("tables", "estimators", "auto"),
        {
            0: "frames, memory and progress",
            1: "kernels, bases and preferences are what a user sets",
            2: "input is checked here, scores are judged here",
            3: "scaling within queries is shared with the readers",
            4: "an estimator sets up a problem and stores its solution",
            5: "an estimator is fitted from files too",
        },
    ),
    Floor(
        ("export", "plotting", "distributed", "persistence", "pyterrier", "clicks", "fusion"),
        {
            0: "files are written as a whole, tasks of a cluster use one thread each",
            1: "kernels and bases are written to files; workers sum with the core",
            2: "pictures show metrics",
            3: "judgments are written as TREC text",
            4: "solutions are stored in model files",
            5: "a partition is a block",
            6: "all of them take fitted estimators",
        },
    ),
    Floor(
        ("app", "cli", "__main__"),
        {
            0: "files and progress",
            1: "options name kernels and bases",
            2: "metrics are printed, query ids checked",
            3: "data are read",
            4: "the workbench sums and solves as a fit does",
            5: "the workbench reads tables as a fit out of core does",
            6: "models are trained",
            7: "models are stored, exported and drawn",
        },
    ),
]
VAGUE = {"held", "kept", "gathered", "census", "spread", "tasks"}
BELOW_SKLEARN = {room for i in (0, 1, 2, 4, 5) for room in FLOORS[i].rooms}  # datasets fetch some of its data


def modules():
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def name_of(path):
    """The dotted name of a module, below the package's root."""
    return ".".join(part for part in path.relative_to(SOURCE).with_suffix("").parts if part != "__init__")


NAMES = {name_of(path) for path in modules()}


def module_of(name):
    """The module that a dotted name lies in: `core.ridge` for `core.ridge.primal`."""
    while name and name not in NAMES:
        name = name.rpartition(".")[0]
    return name


def imports(path):
    """Every import of a file, including deferred ones and those for type checkers: our modules and others."""
    package = path.relative_to(SOURCE).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "rankrls"):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += (node.module or "").split(".") if node.level else node.module.split(".")[1:]
            base = ".".join(part for part in base if part)
            yield from ((module_of(f"{base}.{alias.name}".strip(".")), None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield None, node.module


def place_of(module):
    """The floor of a module, and its place there."""
    room = module.split(".")[0]
    return next((i, floor.rooms.index(room)) for i, floor in enumerate(FLOORS) if room in floor.rooms)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_point_downwards(path):
    me = name_of(path)
    floor, place = place_of(me)
    for ours, other in imports(path):
        if ours:
            target, where = place_of(ours)
            same_room = ours.split(".")[0] == me.split(".")[0]
            assert same_room or target < floor or (target == floor and where < place), f"{me} imports {ours}"
            if target < floor:
                assert target in FLOORS[floor].uses, f"floor {floor} uses floor {target} ({me} imports {ours}): say why"
        elif other and me.split(".")[0] in BELOW_SKLEARN:
            assert other.split(".")[0] != "sklearn", (
                f"{me} imports {other}: scikit-learn belongs to estimators and above"
            )


def test_every_reason_is_needed():
    used = {(place_of(name_of(path))[0], place_of(ours)[0]) for path in modules() for ours, _ in imports(path) if ours}
    for i, floor in enumerate(FLOORS):
        assert {below for above, below in used if above == i and below < i} == set(floor.uses), f"floor {i}"


def test_no_package_has_a_cycle_inside():
    edges = {name_of(path): {ours for ours, _ in imports(path) if ours} - {name_of(path)} for path in modules()}
    graph = {  # a package's __init__ gathers names for users; modules inside it import one another by their own names
        me: {other for other in others if (SOURCE / other.replace(".", "/")).with_suffix(".py").exists()}
        for me, others in edges.items()
        if (SOURCE / me.replace(".", "/")).with_suffix(".py").exists()
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError, with the cycle


def test_few_files_at_the_top():
    assert len(list(SOURCE.glob("*.py"))) <= 8


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_files_and_functions_stay_small(path):
    text = path.read_text()
    assert len(text.splitlines()) <= (400 if "estimators" in path.parts else 500), "which noun is missing?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            assert node.end_lineno - body[0].lineno < 40, f"{node.name} is long: which noun is missing?"


def test_class_names_are_unique_and_plain():
    defined = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                other = defined.setdefault(node.name, name_of(path))
                assert other == name_of(path), f"{node.name} is defined in {other} and {name_of(path)}"
    assert not [name for name in defined if name.lower() in VAGUE or name.startswith(("Kept", "Gathered"))]


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_no_function_or_field_has_a_vague_name(path):
    """Fields and functions may not have names such as `kept`; local variables assigned in sight may."""
    assert path.stem not in VAGUE
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.name.strip("_") not in VAGUE, f"line {node.lineno}"
        elif isinstance(node, ast.Name | ast.Attribute | ast.arg):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else node.arg
            assert name.strip("_").lower() not in VAGUE - {"held", "kept"}, f"{name}, line {node.lineno}"


def test_the_idea_fits_in_two_short_files():
    text = [(SOURCE / "core" / name).read_text() for name in ("preferences.py", "ridge.py")]
    assert sum(len(part.splitlines()) for part in text) < 300


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


def test_no_test_patches_a_constant():
    """Tests change limits by `rankrls.system.limits.limited`, or pass in what they need."""
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("monkeypatch.setattr", "mock.patch"):
                words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
                constants = [word for word in words if word.rpartition(".")[2].isupper()]
                assert not constants, f"{path.name}, line {node.lineno}"
