"""Names that several commands choose from."""

TARGETS = ("json", "svmrank", "opensearch", "elasticsearch", "solr", "vespa", "onnx")
CONVENTIONS = ("letor", "xgboost", "lightgbm", "catboost", "sklearn", "trec")
