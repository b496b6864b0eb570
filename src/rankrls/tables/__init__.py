"""Tables as they come: numbers, missing values, booleans, categories, text and dates, turned into numbers."""

from .columns import ColumnMaps
from .encoder import TableEncoder
from .plain import PlainTable

__all__ = ["ColumnMaps", "PlainTable", "TableEncoder"]
