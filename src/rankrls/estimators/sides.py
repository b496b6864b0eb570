"""The objects at either end of a relation, checked and under their kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from ..kernels import Function, Kernel, Linear, Precomputed
from ..relations import checks as relation_checks
from ..relations.relation import Domain
from ..system import memory
from ..system.frames import as_frame


@dataclass(frozen=True)
class Side:
    """The objects at one end of the edges."""

    name: str
    data: Any  # features, or a kernel matrix
    kernel: Kernel
    domain: Domain
    ids: np.ndarray
    basis: np.ndarray | None = None  # of what is left of a kernel whose negative part was dropped

    def projected(self, a: Any) -> Any:
        """Coefficients by rows of objects without their part in what was dropped: new similarities still hold it."""
        return a if self.basis is None else self.basis @ (self.basis.T @ a)

    def __len__(self) -> int:
        return len(self.domain)

    @classmethod
    def of(cls, name: str, data: Any, kernel: Kernel | None, indefinite: str, ids: np.ndarray) -> Side:
        """Objects under a kernel; a linear one of fewer features than objects needs no matrix."""
        n, d = data.shape
        if kernel is None and d < n:
            return cls(name, data, Linear(), Domain(data.toarray() if sparse.issparse(data) else data, True), ids)
        memory.check_memory(8 * 2 * n * n, f"the kernel matrix of {n} objects of {name}", "use fewer objects")
        kernel = Linear() if kernel is None else kernel.fitted(data)
        K, basis = kernel(data, data), None
        if isinstance(kernel, Precomputed | Function):
            K, basis = relation_checks.check_similarity(name, K, indefinite)
        data = K if isinstance(kernel, Precomputed) else data
        return cls(name, data, kernel, Domain(np.asarray(K, dtype=np.float64)), ids, basis)


def as_objects(Z: Any, name: str, n_features: int | None = None) -> Any:
    """Rows of features, or of similarities, as many of them as a model knows."""
    z = check_array(as_frame(Z), accept_sparse="csr", dtype=np.float64, input_name=name)
    if n_features is not None and z.shape[1] != n_features:
        raise ValueError(f"{name} has {z.shape[1]} features, but the model was fitted with {n_features}")
    return z


def ids_of(objects: Any) -> np.ndarray:
    """Index labels of a pandas data frame, else row numbers."""
    if hasattr(objects, "iloc"):
        return np.asarray(objects.index)
    return np.arange(objects.shape[0] if hasattr(objects, "shape") else len(objects))
