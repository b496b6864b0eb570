"""What a model file can hold."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import compose, impute, model_selection, pipeline, preprocessing

from .. import auto, bases, estimators, kernels, metrics, tables
from ..core import views
from ..core.statistics import Statistics
from ..estimators.rows.training import TrainedOn
from ..problems.constrained import Preferred
from ..problems.pursuit import PursuitPath
from ..relations import kernel_sums
from ..relations.folds import RelationKFold
from ..system.items import Items
from ..tables import TableEncoder, maps

ALIGN = 64
KINDS = re.compile(r"[<|][biufcUS]\d{1,6}|<[mM]8\[\w{1,8}\]")  # dtypes that contain no objects
SPARSE = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(getattr(estimators, name) for name in estimators.__all__),
        *(kernels.Linear, kernels.Gaussian, kernels.Polynomial, kernels.Laplacian, kernels.Cosine, kernels.Precomputed),
        *(kernels.Scaled, kernel_sums.Similarity, kernel_sums.WeightedSum),
        *(kernels.Spectrum, kernels.Walks, kernels.Function, Items),
        *(bases.RandomRows, bases.KMeansCentres, bases.PivotedCholesky),
        *(views.View, views.FittedView, Statistics, Preferred, PursuitPath, RelationKFold, TrainedOn),
        *(auto.AutoRanker, auto.PairScreen, *auto.STORED, tables.ColumnMaps),
        *(TableEncoder, maps.NumberMap, maps.Quantiles, maps.Standard, maps.LevelMap, maps.TargetMap, maps.RelativeMap),
        *(pipeline.Pipeline, impute.SimpleImputer, impute.MissingIndicator),
        *(preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler),
        *(preprocessing.RobustScaler, preprocessing.Normalizer),
        *(preprocessing.QuantileTransformer, preprocessing.PowerTransformer),
        *(preprocessing.OneHotEncoder, preprocessing.FunctionTransformer),
        *(compose.ColumnTransformer, compose.make_column_selector),
        *(model_selection.GroupKFold, model_selection.StratifiedGroupKFold),
        *(model_selection.LeaveOneGroupOut, model_selection.GroupShuffleSplit),
    )
}
RENAMED = {"Part": "StackPart"}  # class names in earlier versions
BEFORE: dict[tuple[str, str], Any] = {("RankRLS", "scale"): None}  # behaviour before a parameter existed
INERT = (*CLASSES.values(), sparse.csr_array, sparse.csc_array, sparse.coo_array, np.dtype)
UFUNCS = {name: getattr(np, name) for name in ("log1p", "expm1", "log", "exp", "sqrt", "abs", "square")}
METRICS = {function.__name__: function for function, _ in metrics.METRICS.values()}

# types that `skops.io.load(path, trusted=SKOPS_TRUSTED_TYPES)` may create: classes of this library, those of
# scikit-learn that a model file can hold, sparse arrays and metrics; creating one runs only its own constructor
SKOPS_TRUSTED_TYPES = sorted(f"{thing.__module__}.{thing.__qualname__}" for thing in (*INERT, *METRICS.values()))
ROUTING = "_metadata_request"  # the attribute in which scikit-learn stores calls of set_fit_request and the like


class ModelFileError(ValueError):
    """A file that is not a model file, or is damaged or incomplete.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankrls import ModelFileError, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "notes.txt").write_text("to do")
    ...     try:
    ...         load(f"{folder}/notes.txt")
    ...     except ModelFileError as error:
    ...         print(str(error).partition("notes.txt")[2])
    5
     is not a model file of rankrls (written by rankrls.save)
    """
