"""The objects at each end of a relation: checked, with their ids and their kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from ... import bases
from ...checks import check_content, check_kernel_values, naming_columns
from ...core.expansion import in_precision
from ...core.features import Nystroem
from ...core.symmetric import cutoff, whitening
from ...kernels import Function, Kernel, KernelLike, Linear, Precomputed, as_kernel, compares_objects
from ...relations import checks as relation_checks
from ...relations import names
from ...relations.checks import ENCODE
from ...relations.fitting import Fitted
from ...relations.kernel_sums import WeightedSum, residual_relation, weightings
from ...relations.names import Ids
from ...relations.relation import Coefficients, Domain, EdgeSet, Pairwise, dense, known_values
from ...system import memory
from ...system.frames import as_frame
from ...system.frames import names as frame_names
from ...system.items import Items
from ...system.types import Matrix
from ..base import as_items
from .numbers import as_numbers, encoder_of, without_ids

FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Side:
    """The objects at one end of the edges."""

    name: str
    data: Any  # features, or a kernel matrix
    kernel: Kernel
    domain: Domain
    ids: Ids
    kept: np.ndarray | None = None  # basis of the positive part, if the negative part of a kernel was dropped
    feature_names: list[str] | None = None
    points: Any = None  # (r, n_features) basis points
    expansion: np.ndarray | None = None  # (r, rank) takes kernel values with the basis to features
    encoder: Any = None  # the encoder of a table
    diagonal: np.ndarray | None = None  # of the similarities that were given, if indefinite="shift" changed it

    @property
    def fit_data(self) -> Any:
        """The objects that new objects are compared with."""
        return self.data if self.points is None else self.points

    def __len__(self) -> int:
        return len(self.domain)

    @classmethod
    def of(
        cls, name: str, data: Any, kernel: Kernel | None, indefinite: str, ids: Ids, feature_names: Any = None,
        basis: Any = None, seed: int = 0,
    ) -> Side:  # fmt: skip
        """Objects with a kernel; a linear kernel on fewer features than objects needs no matrix."""
        n, d = data.shape
        columns = [str(column) for column in feature_names] if feature_names else None
        if basis is not None:
            if kernel is not None and kernel.chooses:
                raise ValueError('gamma="auto" is not available with a basis: use gamma="scale" or a number')
            if isinstance(kernel, WeightedSum):
                raise ValueError("basis= takes one kernel, not a list of them")
            if isinstance(kernel, Precomputed):
                return cls._of_values(name, data, basis, ids)
            kernel = (Linear() if kernel is None else kernel).fitted(data)
            points = bases.points(basis, data, kernel, seed, where=f"{name}: ")
            W = Nystroem(kernel, points).W
            features = np.asarray(kernel(data, points), dtype=np.float64) @ W
            return cls(name, data, kernel, Domain(features, True), ids, None, columns, points, W)
        if kernel is None and (d < n or _one_hot(data)):
            return cls(name, data, Linear(), Domain(_in_double_precision(data), True), ids, None, columns)
        memory.check_memory(8 * 2 * n * n, f"the kernel matrix of {n} objects of {name}", "use fewer objects")
        if isinstance(kernel, WeightedSum):
            kernel = kernel.cleaned(lambda K: relation_checks.check_similarity(name, K, indefinite)[0])
        kernel = Linear() if kernel is None else kernel.candidates(data)[0]
        K, kept = kernel(data, data), None
        given: np.ndarray | None = None
        if isinstance(kernel, Precomputed | Function):
            given = dense(K)
            K, kept = relation_checks.check_similarity(name, given, indefinite)
        shifted = isinstance(kernel, Precomputed) and K is not given and indefinite == "shift"
        data = K if isinstance(kernel, Precomputed) else data
        found = cls(name, data, kernel, Domain(np.asarray(K, dtype=np.float64)), ids, kept, columns)
        return replace(found, diagonal=np.diagonal(given).astype(K.dtype)) if shifted and given is not None else found

    @classmethod
    def _of_values(cls, name: str, data: Any, basis: Any, ids: Ids) -> Side:
        """Objects with kernel values (m, r) to the objects of a basis, given by row numbers."""
        rows, (n, r) = np.asarray(basis), data.shape
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"{name}: a precomputed kernel has no points to choose from: pass row numbers as basis=")
        values = np.asarray(data[:, rows] if n == r else data, dtype=np.float64)
        check_kernel_values(values, rows)
        among = (values[rows] + values[rows].T) / 2
        W = whitening(among, cutoff(len(rows)))
        kernel = Precomputed(rows if n == r else None)
        return cls(name, data, kernel, Domain(values @ W, True), ids, None, None, data[rows], W)

    def under(self, kernel: Kernel) -> Side:
        """The same objects with another kernel."""
        return replace(self, kernel=kernel, domain=Domain(np.asarray(kernel(self.data, self.data), dtype=np.float64)))


def _one_hot(data: Any) -> bool:
    """True if each object has at most one feature, such as its id."""
    return sparse.issparse(data) and data.nnz <= data.shape[0]


def _in_double_precision(data: object) -> Any:
    return sparse.csr_array(data, dtype=np.float64) if sparse.issparse(data) else np.asarray(data, dtype=np.float64)


def validated(model: BaseEstimator, X: Any) -> Any:
    """X as rows of numbers or as objects; the model stores the number of features."""
    if not isinstance(X, Items):
        with naming_columns(X, ENCODE):
            return validate_data(model, X, accept_sparse="csr", dtype=FLOATS, copy=True)
    model.n_features_in_ = 1
    vars(model).pop("feature_names_in_", None)
    return X


def as_objects(
    Z: Matrix, name: str, n_features: int | None = None, feature_names: object = None, *, copy: bool = False
) -> Any:
    """Rows of features or similarities; an error if the number or names of columns differ from the model's."""
    frame = as_frame(Z)
    relation_checks.check_feature_names(name, frame, feature_names)
    with naming_columns(frame, ENCODE):
        z = check_array(frame, accept_sparse="csr", dtype=FLOATS, input_name=name, copy=copy)
    if n_features is not None and z.shape[1] != n_features:
        raise ValueError(f"{name} has {z.shape[1]} features, but the model was fitted with {n_features}")
    return z


def sides_of(
    X: Matrix, Z: Matrix, kernels: tuple[Kernel | None, Kernel | None], indefinite: str, validate: Callable[[Any], Any],
    of_bases: tuple[Any, Any] = (None, None), seed: int = 0, encoder: BaseEstimator = None,
) -> tuple[Side, Side]:  # fmt: skip
    """Both ends of a relation; without Z, the same one twice. `validate` checks X and stores its features."""
    found: list[Side] = []
    relation_checks.check_encoder(encoder)
    for name, given, kernel, basis in zip(("X", "Z"), (X, Z), kernels, of_bases, strict=True):
        if given is None:
            break
        if compares_objects(kernel, given):
            items = as_items(given)
            data = validate(items) if name == "X" else items
            found.append(Side.of(name, data, kernel, indefinite, Ids.of(given), None, basis, seed))
            continue
        check_content(**{name: given})
        given = names.labelled(given, encoded=encoder is not None)
        ids = Ids.of_objects(given)
        ids.check_unique(name)
        objects, own = as_frame(without_ids(given) if given is ids else given), None
        if isinstance(kernel, Precomputed):
            objects = names.similarities(objects, ids.labels if ids.named else None, name)
        elif isinstance(kernel, WeightedSum) and kernel.numbered:
            objects = kernel.numbers(objects, ids, name)
        elif given is not ids:
            own = encoder_of(encoder) if frame_names(objects) else None
            objects = as_numbers(objects, own, name)
        data = validate(objects) if name == "X" else as_objects(objects, name, copy=True)
        columns = None if isinstance(kernel, Precomputed) else frame_names(objects)
        found.append(replace(Side.of(name, data, kernel, indefinite, ids, columns, basis, seed), encoder=own))
    relation_checks.check_range(found[0].domain, found[-1].domain)
    return found[0], found[-1]


def kernels_of(kernel: KernelLike | None, target_kernel: Any, Z: Matrix) -> tuple[Kernel | None, Kernel | None]:
    """The kernels of X and of Z; None is linear."""
    if Z is None and target_kernel is not None:
        raise ValueError("target_kernel is the kernel of Z: pass Z, or leave target_kernel out")
    given = (kernel, kernel if target_kernel is None else target_kernel)
    return _as_kernel(given[0]), _as_kernel(given[1])


def _as_kernel(kernel: KernelLike | None) -> Kernel | None:
    if isinstance(kernel, list | tuple):
        return WeightedSum.of(kernel)
    return None if kernel is None else as_kernel(kernel)


def variants(
    source: Side, target: Side, kernels: tuple[Kernel | None, Kernel | None], edges: EdgeSet
) -> list[tuple[Side, Side]]:
    """Both ends with every kernel that hold-out may choose; a list of kernels comes with several sets of weights.

    If both ends have gamma="auto", they use the same multiple of their median distances.
    """
    found = []
    for side, kernel, turned in zip((source, target), kernels, (False, True), strict=True):
        if isinstance(side.kernel, WeightedSum):
            R = residual_relation(edges)
            R = np.hstack([R, R.T]) if source is target else R.T if turned else R
            found.append([side.under(one) for one in weightings(side.kernel, side.data, R)])
        elif kernel is not None and kernel.chooses:
            found.append([side.under(one) for one in kernel.candidates(side.data)])
        else:
            found.append([side])
    if source is target:
        return [(side, side) for side in found[0]]
    if not all(getattr(kernel, "gamma", None) == "auto" for kernel in kernels):
        return list(product(found[0], found[1]))
    n = max(len(found[0]), len(found[1]))
    return [(found[0][min(i, len(found[0]) - 1)], found[1][min(i, len(found[1]) - 1)]) for i in range(n)]


def attributes_of(
    found: Fitted, edges: EdgeSet, relation: str | None, matrix: tuple[int, int] | None, *, turned: bool
) -> dict[str, Any]:
    """Everything a fit stores in the estimator; `edges` and `matrix` are those given to fit, not transposed."""
    source, target, loss = found.candidate.source, found.candidate.target, found.candidate.loss
    attributes = ends_of(source, target, edges, relation) | {
        "alpha_": found.alpha,
        "solver_": found.solver,
        "n_iter_": found.iterations,
        "residuals_": found.residuals,
        "intercept_": found.intercept,
        "pairwise_": weights_of(loss.pairwise, found.candidate.G),
    }
    if edges.free is not None:
        attributes["home_advantage_"] = float(found.free[0])
    if found.held_out is not None:
        attributes["alphas_"], attributes["cv_scores_"] = found.held_out.alphas, found.held_out.scores
        predictions = found.held_out.predictions
        if predictions is not None:
            attributes["_held_out"] = lambda: as_given(predictions(), edges, matrix, turned)
    if found.stop is not None:
        attributes["iterations_"] = np.arange(1, len(found.stop.scores) + 1)
        attributes["cv_scores_"] = found.stop.scores
        attributes["cv_predictions_"] = as_given(found.stop.predictions, edges, matrix, turned)
    a, pairwise = (found.a.T, loss.pairwise.T) if turned else (found.a, loss.pairwise)
    return attributes | model_of(source, target, a, pairwise)


def ends_of(source: Side, target: Side, edges: EdgeSet, relation: str | None) -> dict[str, Any]:
    """The attributes of the two ends that every model of a relation keeps."""
    attributes = {
        "n_edges_": edges.n_edges,
        "kernel_": source.kernel,
        "target_kernel_": target.kernel,
        "X_fit_": source.fit_data,
        "Z_fit_": target.fit_data,
        "source_ids_": source.ids.labels,
        "target_ids_": target.ids.labels,
        "relation_": relation,
        "_one_domain": source is target,
    }
    if source.points is not None or target.points is not None:
        attributes["source_objects_"], attributes["target_objects_"] = source.data, target.data
        for end, side in (("X_fit_", source), ("Z_fit_", target)):
            if side.points is None and side.domain.factored:
                attributes[end] = np.eye(side.domain.array.shape[1])  # so that kernel values are the features
    for of, side in (("", source), ("target_", target)):
        if side.encoder is not None:
            attributes[f"{of}encoder_"] = side.encoder
        if side.diagonal is not None:
            attributes["target_diagonal_" if of else "source_diagonal_"] = side.diagonal
        if side.ids.column is not None:
            attributes[f"{of}id_column_"] = side.ids.column
    if source.ids.named or target.ids.named:
        attributes["Y_fit_"] = known_values(edges)
    if target.feature_names is not None:
        attributes["target_feature_names_in_"] = target.feature_names
    return attributes


def model_of(
    source: Side, target: Side, a: Any, pairwise: Pairwise, own: tuple[np.ndarray, np.ndarray] | None = None
) -> dict[str, Any]:
    """The attributes of a model with coefficients (n_sources, n_targets): weights on features if these are fewer.

    Effects of single ends follow from `pairwise` unless they have coefficients of their `own`.
    """
    A, B = source.domain, target.domain
    linear = A.factored and B.factored
    effects = {}
    if own is not None or pairwise.source or pairwise.target:
        rows, columns = own or effects_of(a, pairwise)
        rows = A.array.T @ rows if A.factored and (linear or source.points is not None) else rows
        columns = B.array.T @ columns if B.factored and (linear or target.points is not None) else columns
        effects = {"source_effects_": rows, "target_effects_": columns}
    if source.points is not None or target.points is not None:
        coef = _expanded(source, target, a)
        effects = {
            name: v if side.expansion is None else side.expansion @ v
            for (name, v), side in zip(effects.items(), (source, target), strict=False)
        }
    elif linear:
        coef = a.between(A.array, B.array) if isinstance(a, Coefficients) else A.array.T @ (a @ B.array)
        few = sparse.issparse(coef) and sparse.csr_array(coef).nnz < 0.2 * coef.shape[0] * coef.shape[1]
        coef = coef if few else dense(coef)
    else:
        coef = a.toarray() if isinstance(a, Coefficients) else a
        if source.kept is not None or target.kept is not None:
            coef = dense(coef)  # excludes the dropped directions of a kernel, which new similarities still have
            coef = coef if source.kept is None else source.kept @ (source.kept.T @ coef)
            coef = coef if target.kept is None else (coef @ target.kept) @ target.kept.T
    coef = coef if pairwise.product == 1 else pairwise.product * coef
    if np.float32 == source.data.dtype == target.data.dtype:
        coef = in_precision(coef, np.float32)
        effects = {name: in_precision(v, np.float32) for name, v in effects.items()}
    expanded = source.points is not None or target.points is not None
    return {"coef_" if linear and not expanded else "dual_coef_": coef, **effects}


def weights_of(pairwise: Pairwise, G: Domain) -> dict[str, float]:
    """The weights of the product and the sum of both ends, in units of the mean of the kernel G of one end."""
    mean = float(np.mean(G.diagonal)) or 1.0
    return {"kronecker": float(pairwise.product), "sum": round(float(pairwise.target) / mean, 12)}


def effects_of(a: np.ndarray, pairwise: Pairwise) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the effects of single ends, if the kernel of pairs includes them."""
    rows, columns = (
        a.sums() if isinstance(a, Coefficients) else tuple(np.asarray(a.sum(axis=k)).ravel() for k in (1, 0))
    )
    return pairwise.source * rows, pairwise.target * columns


def _expanded(source: Side, target: Side, a: object) -> np.ndarray:
    """Coefficients of basis points, or of features at linear ends, or else of objects."""
    A, B = (side.domain.array if side.domain.factored else None for side in (source, target))
    if isinstance(a, Coefficients) and A is not None and B is not None:
        core = a.between(A, B)
    else:
        core = dense(a.toarray() if isinstance(a, Coefficients) else a)
        core = core if A is None else dense(A.T @ core)
        core = core if B is None else dense(core @ B)
    core = core if source.expansion is None else source.expansion @ core
    return core if target.expansion is None else core @ target.expansion.T


def as_given(held: np.ndarray, edges: EdgeSet, matrix: tuple[int, int] | None, turned: bool) -> np.ndarray:
    """Held-out scores in the shape in which the relation was given."""
    if held.ndim == 2:
        return held.T if turned else held
    if matrix is None:
        return held
    listed = (edges.T if turned else edges).listed()  # the order in which a transposed relation was solved
    filled = np.full(matrix, np.nan)
    if turned:
        filled.T[listed.rows, listed.columns] = held
    else:
        filled[listed.rows, listed.columns] = held
    return filled
