"""Tables as they come: numbers, missing values, booleans, categories, text and dates, turned into numbers."""

from .encoder import TableEncoder

__all__ = ["TableEncoder"]
