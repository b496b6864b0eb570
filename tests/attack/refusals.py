"""The errors and advice that users are promised: only these count as an acceptable answer.

Each entry is a pattern of the message and why it may come up in a random problem. An error that is not listed is a
deviation, however sensible: either the library should have answered, or the list lacks a line.
"""

import re

DOCUMENTED = {
    # ---- nothing to learn from
    r"no comparable pair": "labels of every query are equal",
    r"is zero for every (row|pair|edge)": "all weights are zero",
    r"none of the \d+ rows is scored|no row is scored": "y is NaN everywhere, in memory and in blocks",
    r"Found array with \d+ sample\(s\)": "fewer rows than a model needs",
    r"transduction needs qid": "one query cannot be scored and unscored",
    r"is not defined in any of the": "a metric has no query to judge",
    r"less than one pair": 'weights count copies, and weighting="queries" needs more than one in a query',
    r"but the two are equal in every feature": "a pair of equal rows cannot be learned",
    r"but the opposite was given": "pairs that contradict each other",
    r"keeps no sums to add pairs to": "more features than rows: rows of weight zero are not given",
    r"contradicts Y": "a relation that is not what the parameter says",
    r"Y is zero for all": "a relation of zeros",
    r"Y is the same": "a relation without variation",
    r"no conditioning object has two edges": "nothing to rank",
    r"weights need at least two": "runs whose judged documents differ in one query only",
    r"no retriever ranks relevant documents above others": "labels that are drawn at random",
    r"have no document of a query in common": "runs that are drawn at random",
    r"columns are constant over the": "nothing varies",
    # ---- scales beyond double precision
    r"overflow|too large|beyond the range|out of range": "values whose squares are not numbers any more",
    r"underflow when they are added up": "columns in units of their spread, whose squares are zero in floating point",
    # ---- formats
    r"in the model, but .* in these rows": "a table whose columns come in another order",
    r"only under the same loss": "sums of one loss and more rows under another",
    r"would leave rounding errors": "rows to forget outweigh those that stay",
    r"these queries were never learned": "rows forgotten before have left rounding; see rankers.outweighed",
    r"a fold leaves a single row": "an item fold of nearly all the weight",
    r"Feature names must be in the same order": "a frame whose columns come in another order, as in scikit-learn",
    r"qid mixes types": "labels that cannot be sorted",
    r"needs dense rows": "a kernel of differences given sparse rows",
}

# Advice that comes as a warning with an answer, which is compared all the same. Any other warning is a deviation.
ADVICE = {
    r"the best alpha was at the end of the grid": "random grids end anywhere",
    r"columns differ in scale by a factor of": "random columns do, and the method has no scale of its own",
    r".* have no edge: they are predicted from their features alone": "edges are drawn at random",
    r"nothing was learned: on held-out": "labels of a random problem do not depend on the columns",
}


def is_documented(error):
    """True if the list above explains the message."""
    if type(error).__name__ not in ("ValueError", "TypeError", "ModelFileError", "OverflowError", "AttributeError"):
        return False
    return any(re.search(pattern, str(error)) for pattern in DOCUMENTED)
