"""Encode tables with numbers, missing values, booleans, categories, text and dates as numbers."""

from .columns import ColumnMaps
from .encoder import TableEncoder
from .plain import PlainTable

__all__ = ["ColumnMaps", "PlainTable", "TableEncoder"]
