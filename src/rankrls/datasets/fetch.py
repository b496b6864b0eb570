"""Public data sets: downloaded once into a data folder, or found there.

The folder is the argument `folder`, the environment variable RANKRLS_DATA, or `rankrls` in the platform's cache folder;
each data set has a folder of its own in it. Files that you put there yourself, packed or unpacked, work as well.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import check_choice
from ..system import files
from .download import DownloadError, Remote, data_home, fetched, unpacked
from .letor.text import load_letor
from .records import Documents, Fold, Ratings

Folder = str | os.PathLike | None

_GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
_MOVIELENS = {
    "100k": Remote(
        f"{_GROUPLENS}ml-100k.zip",
        "ml-100k.zip",
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "https://grouplens.org/datasets/movielens/100k/",
    ),
    "1m": Remote(
        f"{_GROUPLENS}ml-1m.zip",
        "ml-1m.zip",
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        "https://grouplens.org/datasets/movielens/1m/",
    ),
}
_EIGENTASTE = "https://eigentaste.berkeley.edu/dataset/"
_JESTER = {
    part: Remote(
        f"{_EIGENTASTE}archive/jester_dataset_1_{part}.zip", f"jester_dataset_1_{part}.zip", sha256, _EIGENTASTE
    )
    for part, sha256 in {
        1: "cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
        2: "4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b",
        3: "7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d",
    }.items()
}
_UNRATED = 99  # marks a missing rating in the Jester files

_MICROSOFT = "https://www.microsoft.com/en-us/research/project/"
_LETOR = {
    **dict.fromkeys(
        (
            *("letor2-ohsumed", "letor2-td2003", "letor2-td2004"),
            *("letor3-ohsumed", "letor3-td2003", "letor3-td2004", "letor3-np2003", "letor3-np2004"),
            *("letor3-hp2003", "letor3-hp2004", "letor4-mq2007", "letor4-mq2008"),
        ),
        f"{_MICROSOFT}letor-learning-rank-information-retrieval/",
    ),
    **dict.fromkeys(("mslr-web10k", "mslr-web30k"), f"{_MICROSOFT}mslr/"),
}
_OFFICIAL = "querylevelnorm"  # the version of LETOR that the published baselines use


def fetch_movielens(version: str = "100k", *, folder: Folder = None, download: bool = True) -> Ratings:
    """Ratings of movies from 1 to 5 stars, with the genres of the movies as features.

    The GroupLens licence allows research, forbids commercial use and redistribution, and asks for a citation.

    Parameters
    ----------
    version : {"100k", "1m"}, default="100k"
        943 users and 1,682 movies, or 6,040 users and 3,883 movies.
    folder : str or path, default=None
        The data folder; see `rankrls.datasets.fetch`.
    download : bool, default=True
        Whether to download missing files.

    Returns
    -------
    ratings : Ratings

    Examples
    --------
    With files of the same format in place of the download:

    >>> import pathlib, tempfile
    >>> from rankrls.datasets import fetch_movielens
    >>> files = {"u.data": "1\\t1\\t5\\t0", "u.item": "1|Heat (1995)|0|1", "u.genre": "Comedy|0\\nCrime|1"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder, "movielens-100k")
    ...     home.mkdir()
    ...     sizes = [(home / name).write_text(text) for name, text in files.items()]
    ...     ratings = fetch_movielens(folder=folder)
    >>> ratings.item_names, ratings.feature_names, ratings.item_features, ratings.rating
    (['Heat (1995)'], ['Comedy', 'Crime'], array([[0., 1.]]), array([5.]))
    """
    check_choice("version", version, _MOVIELENS)
    home = data_home(folder) / f"movielens-{version}"
    if version == "100k":
        place = _provided(home, "u.data*", _MOVIELENS[version], download)
        table = np.array([line.split("\t")[:3] for line in _lines(place, "u.data*")], dtype=np.int64)
        movies = [line.split("|") for line in _lines(place, "u.item*")]
        genres = [line.partition("|")[0] for line in _lines(place, "u.genre*")]
        numbers, names = [int(movie[0]) for movie in movies], [movie[1] for movie in movies]
        features = np.array([movie[-len(genres) :] for movie in movies], dtype=np.float64)
    else:
        place = _provided(home, "ratings*.dat*", _MOVIELENS[version], download)
        table = np.array([line.split("::")[:3] for line in _lines(place, "ratings*.dat*")], dtype=np.int64)
        movies = [line.split("::") for line in _lines(place, "movies.dat*")]
        numbers, names = [int(movie[0]) for movie in movies], [movie[1] for movie in movies]
        genres = sorted({genre for movie in movies for genre in movie[2].split("|")})
        features = np.array([[genre in movie[2].split("|") for genre in genres] for movie in movies], dtype=np.float64)
    items = np.full(max(numbers) + 1, -1)
    items[numbers] = np.arange(len(numbers))
    return Ratings(table[:, 0] - 1, items[table[:, 1]], table[:, 2].astype(float), names, features, genres)


def fetch_jester(parts: Any = (1, 2, 3), *, folder: Folder = None, download: bool = True) -> Ratings:
    """Ratings of 100 jokes from -10 to 10: Jester data set 1.

    Free for research that cites K. Goldberg, T. Roeder, D. Gupta, C. Perkins: Eigentaste. Information Retrieval 4,
    2001. The files are old Excel sheets, which need `pip install 'rankrls[xls]'`; files jester-data-1.csv and so on
    with the same content, put into the folder `jester`, do not.

    Parameters
    ----------
    parts : iterable of int, default=(1, 2, 3)
        Which of the three files: 24,983, 23,500 and 24,938 users.
    folder, download
        As in `fetch_movielens`.

    Returns
    -------
    ratings : Ratings

    Examples
    --------
    With a file of the same format in place of the download; 99 means "not rated":

    >>> import pathlib, tempfile
    >>> from rankrls.datasets import fetch_jester
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder, "jester")
    ...     home.mkdir()
    ...     size = (home / "jester-data-1.csv").write_text("2,7.5,99,-3\\n1,99,99,4\\n")
    ...     ratings = fetch_jester([1], folder=folder)
    >>> ratings.matrix()
    array([[ 7.5,  nan, -3. ],
           [ nan,  nan,  4. ]])
    """
    tables = []
    for part in parts:
        check_choice("each of parts", part, _JESTER)
        place = _provided(data_home(folder) / "jester", f"jester-data-{part}.*", _JESTER[part], download)
        tables.append(_sheet(_found(place, f"jester-data-{part}.*")))
    table = np.concatenate(tables)[:, 1:]
    user, item = np.nonzero(table != _UNRATED)
    return Ratings(user, item, table[user, item], [f"joke {number}" for number in range(1, table.shape[1] + 1)])


def fetch_20newsgroups(
    subset: str = "train", *, categories: list[str] | None = None, folder: Folder = None, download: bool = True
) -> Documents:
    """Posts to 20 newsgroups, by date, through scikit-learn's `fetch_20newsgroups`.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        11,314 or 7,532 posts.
    categories : list of str, default=None
        Names of newsgroups; None: all of them.
    folder, download
        As in `fetch_movielens`. An archive 20news-bydate.tar.* in the folder `20newsgroups` is used if there is one.

    Returns
    -------
    documents : Documents

    Examples
    --------
    With an archive of the same format in place of the download:

    >>> import io, pathlib, tarfile, tempfile
    >>> from rankrls.datasets import fetch_20newsgroups
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder, "20newsgroups")
    ...     home.mkdir()
    ...     with tarfile.open(home / "20news-bydate.tar.gz", "w:gz") as archive:
    ...         for group in ("rec.autos", "sci.med"):
    ...             member = tarfile.TarInfo(f"20news-bydate-train/{group}/1")
    ...             member.size = 5
    ...             archive.addfile(member, io.BytesIO(b"Hello"))
    ...     documents = fetch_20newsgroups(folder=folder)
    >>> documents.texts, documents.group.tolist()
    (['Hello', 'Hello'], ['rec.autos', 'sci.med'])
    """
    from sklearn import datasets

    check_choice("subset", subset, ("train", "test"))
    home = data_home(folder) / "20newsgroups"
    archive = next(iter(sorted(home.glob("20news-bydate*.tar.*"))), None)
    if archive is not None:
        place = unpacked(archive, home / "20news-bydate") / f"20news-bydate-{subset}"
        bunch = datasets.load_files(place, encoding="latin1", categories=categories, shuffle=False)
    else:
        try:
            bunch = datasets.fetch_20newsgroups(
                data_home=home, subset=subset, categories=categories, shuffle=False, download_if_missing=download
            )
        except OSError as error:
            raise DownloadError(
                f"20 newsgroups could not be downloaded ({error}): are you offline? Try again later, or put "
                f"20news-bydate.tar.gz from http://qwone.com/~jason/20Newsgroups/ into {home}"
            ) from None
    return Documents(list(bunch.data), np.array(bunch.target_names)[bunch.target])


def fetch_letor(
    name: str, fold: int = 1, *, variant: str | None = None, missing: str | float = "nan", folder: Folder = None
) -> Fold:
    """A fold of a LETOR or MSLR set that you have put into the data folder.

    You have to accept the licence yourself, so nothing is downloaded: if files are missing, the error says where to get
    them and where to put them.

    Parameters
    ----------
    name : str
        "letor2-ohsumed", "letor3-ohsumed", "letor4-mq2008", "mslr-web10k", ...
    fold : int, default=1
        The fold, from 1 to 5.
    variant : str, default=None
        The version, such as "Feature-null", if a set has several; None: the official one, "QueryLevelNorm".
    missing : "nan", "minimum" or float, default="nan"
        The value for NULL, as in `load_letor`.
    folder : str or path, default=None
        As in `fetch_movielens`; the files may be in any folder below folder/name, packed or not.

    Returns
    -------
    fold : Fold
        train, validation and test.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankrls.datasets import dump_letor, fetch_letor, make_search
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder, "letor4-mq2008", "Fold1")
    ...     place.mkdir(parents=True)
    ...     for n, part in enumerate(["train", "vali", "test"], start=1):
    ...         dump_letor(make_search(10 * n, random_state=n), place / f"{part}.txt")
    ...     fold = fetch_letor("letor4-mq2008", folder=folder)
    >>> len(set(fold.train.qid)), len(set(fold.validation.qid)), len(set(fold.test.qid))
    (10, 20, 30)
    """
    check_choice("name", name, _LETOR)
    home = data_home(folder) / name
    folds = _fold_folders(home, fold)
    if not folds:
        for archive in sorted(path for path in home.glob("*") if path.name.endswith(_ARCHIVES)):
            unpacked(archive, home / archive.name.partition(".")[0])
        folds = _fold_folders(home, fold)
    if not folds:
        raise DownloadError(
            f"{name} has no folder Fold{fold} below {home}. You have to accept its licence yourself, so nothing is "
            f"downloaded: get it from {_LETOR[name]}, and put the archive (.zip or .tar.*; unpack .rar yourself) or "
            f"its folders into {home}"
        )
    place = _one_of(folds, variant, home)
    parts = (load_letor(_fold_file(place, part), missing=missing) for part in ("train", "vali", "test"))
    return Fold(*parts)


_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")


def _fold_folders(home: Path, fold: int) -> list[Path]:
    return sorted(path for path in home.rglob("*") if path.is_dir() and path.name.lower() == f"fold{fold}")


def _one_of(folds: list[Path], variant: str | None, home: Path) -> Path:
    """The folder of the requested version."""
    versions = {path.relative_to(home).as_posix().lower(): path for path in folds}
    matching = [path for text, path in versions.items() if (variant or _OFFICIAL).lower() in text.split("/")]
    if variant is None and len(folds) == 1:
        return folds[0]
    if len(matching) != 1:
        found = ", ".join(path.relative_to(home).parent.as_posix() for path in folds)
        raise ValueError(f"variant={variant!r} is not one of the versions in {home}: {found}")
    return matching[0]


def _fold_file(place: Path, part: str) -> Path:
    found = [path for path in sorted(place.iterdir()) if path.name.lower().startswith(part)]
    if len(found) != 1:
        raise DownloadError(
            f"{place} must hold one file {part}*.txt, but holds {[path.name for path in found] or 'none'}"
        )
    return found[0]


def _provided(home: Path, pattern: str, remote: Remote, download: bool) -> Path:
    """The folder that holds a file, downloaded and unpacked if needed."""
    if not _matches(home, pattern):
        unpacked(fetched(remote, home, download=download), home / remote.name.removesuffix(".zip"))
    return home


def _matches(home: Path, pattern: str) -> list[Path]:
    return sorted(path for path in home.rglob(pattern) if path.is_file())


def _found(home: Path, pattern: str) -> Path:
    matches = _matches(home, pattern)
    if not matches:
        raise DownloadError(f"no file {pattern} in {home}: delete the folder and try again")
    return matches[0]


def _lines(home: Path, pattern: str) -> list[str]:
    with files.opened(_found(home, pattern)) as file:
        lines = (
            files.all_bytes(file, pattern).decode("latin-1").split("\n")
        )  # splitlines would also split at other characters
    return [line for line in map(str.strip, lines) if line]


def _sheet(path: Path) -> np.ndarray:
    """The numbers of a CSV file or an old Excel sheet."""
    if path.suffix != ".xls":
        with files.opened(path) as file:
            return np.loadtxt(file, delimiter=",")
    try:
        import xlrd
    except ImportError:
        raise ImportError(f"{path} is an old Excel sheet: pip install 'rankrls[xls]', or convert it to CSV") from None
    sheet = xlrd.open_workbook(path).sheet_by_index(0)
    return np.array([sheet.row_values(row) for row in range(sheet.nrows)], dtype=np.float64)
