"""Public data sets on this machine, if there are any: RANKRLS_SHARED_DATA, or ../shared/data beside the clone."""

import functools
import os
import tarfile
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("RANKRLS_SHARED_DATA", Path(__file__).parents[2] / "shared/data"))
_unpacked = tempfile.TemporaryDirectory()


@functools.cache
def unpacked(name):
    """The folder of an unpacked archive `name/name.tar.xz`; skips the test if there is none."""
    archive = FOLDER / name / f"{name}.tar.xz"
    if not archive.exists():
        pytest.skip(f"no {name}: set RANKRLS_SHARED_DATA to a folder that holds {name}/{name}.tar.xz")
    target = Path(_unpacked.name) / name
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    return target


def folder(name):
    """The folder of a data set; skips the test if there is none."""
    if not (FOLDER / name).is_dir():
        pytest.skip(f"no {name}: set RANKRLS_SHARED_DATA to a folder that holds it")
    return FOLDER / name
