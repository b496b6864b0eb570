"""Looks up or reads the objects at the ends of a fitted relation, and turns them into arrays that give its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ... import checks
from ...kernels import Precomputed
from ...relations import names
from ...relations.checks import ENCODE
from ...relations.kernel_sums import WeightedSum
from ...relations.names import Ids
from ...relations.relation import dense
from ...system.frames import as_frame
from ...system.frames import names as frame_names
from ...system.items import Items
from ..base import as_items
from .rankings import are_ids, known_rows
from .sides import FLOATS, as_objects


class RelationEnds(BaseEstimator):
    """The two ends of a fitted relation, given by features or by id."""

    def _ends(self, X, Z) -> tuple[np.ndarray, np.ndarray]:
        """Arrays for X and Z whose inner products are the scores; None stands for the objects of `fit`."""
        check_is_fitted(self, "alpha_")
        x = self._objects(X, "source")
        z = x if Z is None and X is not None and self._one_domain else self._objects(Z, "target")
        if hasattr(self, "coef_"):
            W: Any = self.coef_
            left, right = x, z
        else:
            W, left, right = self.dual_coef_, self.kernel_(x, self.X_fit_), self.target_kernel_(z, self.Z_fit_)
        half = dense(left @ W)
        intercept = getattr(self, "intercept_", 0.0)
        if not hasattr(self, "source_effects_") and not intercept:
            return half, right
        right_dense = dense(right)
        of_left = np.asarray(left @ getattr(self, "source_effects_", np.zeros(W.shape[0])))[:, None] + intercept
        of_right = np.asarray(right @ getattr(self, "target_effects_", np.zeros(W.shape[1])))[:, None]
        return (
            np.hstack([half, of_left, np.ones_like(of_left)]),
            np.hstack([right_dense, np.ones_like(of_right), of_right]),
        )

    def _objects(self, objects, end: str) -> Any:
        """Features, or similarities to training objects, of the objects that a caller passes or names."""
        own: Any = self._compared_with(end)
        kernel = self.kernel_ if end == "source" else self.target_kernel_
        known = getattr(self, f"{end}_objects_", own)
        if objects is None:
            return known
        if isinstance(known, Items):
            return as_items(objects)
        checks.check_content(**{"X" if end == "source" else "Z": objects})
        objects, ids = self._labelled(objects, end), self._known_ids(end)
        if isinstance(kernel, WeightedSum) and kernel.numbered:
            by_id = are_ids(objects, ids)
            if kernel.labels is not None or not by_id:
                own = Ids(np.asarray(objects, dtype=object).ravel(), True) if by_id else Ids.of_objects(objects)
                return kernel.numbers(as_frame(objects), own, "X" if end == "source" else "Z")
        if are_ids(objects, ids):
            rows = known_rows(ids, np.atleast_1d(np.asarray(objects, dtype=object)).tolist())
            return known[rows]
        frame, encoder = as_frame(objects), getattr(self, "encoder_" if end == "source" else "target_encoder_", None)
        if encoder is not None and frame_names(frame):
            return np.asarray(encoder.transform(frame), dtype=np.float64)
        if isinstance(kernel, Precomputed):
            frame = names.similarities(frame, ids.labels if ids.named else None, "X" if end == "source" else "Z")
        if end == "source" and not isinstance(kernel, Precomputed):
            with checks.naming_columns(frame, ENCODE):
                return validate_data(self, frame, accept_sparse="csr", dtype=FLOATS, reset=False)
        feature_names = None if isinstance(kernel, Precomputed) else getattr(self, "target_feature_names_in_", None)
        found = as_objects(frame, "X" if end == "source" else "Z", own.shape[1], feature_names)
        return self._shifted(found, own, end) if hasattr(self, f"{end}_diagonal_") else found

    def _shifted(self, similarities: Any, own: np.ndarray, end: str) -> Any:
        """Rows of similarities; those of training objects with the shift of the diagonal that `fit` added."""
        given = own.copy()
        np.fill_diagonal(given, getattr(self, f"{end}_diagonal_"))
        place = {row.tobytes(): i for i, row in enumerate(given + 0.0)}  # -0.0 is 0.0
        found = np.array(dense(similarities), dtype=own.dtype) + 0.0
        for row in found:
            i = place.get(row.tobytes())
            if i is not None:
                row[i] = own[i, i]
        return found

    def _known_ids(self, end: str) -> Ids:
        labels = self.source_ids_ if end == "source" else self.target_ids_
        return Ids(labels, not names.is_range(labels), True)

    def _ids(self, objects, end: str) -> Ids:
        """The ids of the objects a caller passes."""
        if objects is None:
            return self._known_ids(end)
        known = self._known_ids(end)
        if isinstance(self._compared_with(end), Items):
            return Ids.of(objects)
        if are_ids(objects, known):
            labels = np.atleast_1d(np.asarray(objects, dtype=object))
            return Ids(labels, True, True)
        return Ids.of(as_frame(self._labelled(objects, end)))

    def _labelled(self, objects, end: str) -> Any:
        """A frame with its id column as the index."""
        of = "target_" if end == "target" and not self._one_domain else ""
        return names.labelled(
            objects,
            encoded=hasattr(self, f"{of}encoder_"),
            features=getattr(self, f"{of}feature_names_in_", ()),
            column=getattr(self, f"{of}id_column_", None),
        )

    def _compared_with(self, end: str) -> Any:
        """The objects that new objects of an end are compared with."""
        return self.X_fit_ if end == "source" else self.Z_fit_

    def _are_ids(self, objects, end: str) -> bool:
        """True if a caller names training objects by id; a list of objects of any kind never holds ids."""
        return not isinstance(self._compared_with(end), Items) and are_ids(objects, self._known_ids(end))

    def _is_one(self, objects, end: str = "source") -> bool:
        if isinstance(self._compared_with(end), Items):
            return not isinstance(objects, Items | list | np.ndarray) and not hasattr(objects, "iloc")
        return np.ndim(objects) == 0 or (
            np.ndim(objects) == 1 and not sparse.issparse(objects) and not self._are_ids(objects, end)
        )

    def _rows(self, objects, end: str = "source") -> Any:
        """One object as a table of one row, or a list of one; a row of a data frame keeps its names."""
        if isinstance(self._compared_with(end), Items):
            return [objects] if self._is_one(objects, end) else objects
        if sparse.issparse(objects) or np.ndim(objects) != 1 or self._are_ids(objects, end):
            return objects
        if hasattr(objects, "to_frame"):
            return objects.to_frame().T
        return np.asarray(objects, dtype=np.float64)[None]
