"""Query ids that are dense integers are grouped by a table, and all others by sorting, with the same result."""

import numpy as np
import pytest

from rankrls.core.queries import Queries

RNG = np.random.default_rng(0)
DENSE = {
    "far from zero": RNG.integers(10**12, 10**12 + 90, 60),
    "negative": RNG.integers(-50, 30, 60),
    "unsigned bytes": RNG.integers(0, 256, 200).astype(np.uint8),
    "the whole range of bytes": np.array([127, -128, 127, 0, -128] * 30, np.int8),
    "one id": np.full(5, 7),
    "largest unsigned": np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
    "farthest apart": np.array([-(2**63), 2**63 - 1, -(2**63)]),
}


@pytest.mark.parametrize("name", DENSE)
def test_integer_ids_are_grouped_as_strings_are(name):
    qid = DENSE[name]
    got, expected = Queries.of(qid), Queries.of(qid.astype(str))
    assert got.labels.dtype == qid.dtype
    assert np.array_equal(got.labels.astype(str), expected.labels)
    assert np.array_equal(got.codes, expected.codes)
