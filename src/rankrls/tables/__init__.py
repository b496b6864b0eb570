"""Tables as they come: numbers, missing values, booleans, categories, text and dates, turned into numbers."""

from .columns import ColumnMaps
from .encoder import TableEncoder

__all__ = ["ColumnMaps", "TableEncoder"]
