"""Export models to other programs: linear ones to the formats of search engines, all of them to ONNX.

`terms` extracts what a fitted model computes; `weights` and `onnx` write it. If a format cannot express a model, an
error says why.

Examples
--------
>>> from rankrls import RankRLS, export
>>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
>>> print(export.to_svmrank(model).splitlines()[-1])
1 1:0.8 #
>>> export.to_onnx(model).graph.output[0].name
'scores'
"""

from .onnx import to_onnx
from .weights import LinearModel, linear, to_json, to_opensearch, to_solr, to_svmrank, to_vespa

__all__ = ["LinearModel", "linear", "to_json", "to_onnx", "to_opensearch", "to_solr", "to_svmrank", "to_vespa"]
