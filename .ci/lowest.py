"""Print the lowest versions that pyproject.toml allows, as exact requirements for pip.

Spark and PyTerrier are left out: they need Java and take minutes to install.
"""

import re
import tomllib
from itertools import chain
from pathlib import Path

LEFT_OUT = {"all", "spark", "pyterrier"}

settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
project, groups = settings["project"], settings["dependency-groups"]
extras = (bounds for name, bounds in project["optional-dependencies"].items() if name not in LEFT_OUT)
for bound in sorted({*project["dependencies"], *chain(*extras), *groups["core-test"]}):
    name, version = re.fullmatch(r"([\w.\[\]-]+)>=([\d.]+)", bound).groups()
    print(f"{name}=={version}")
