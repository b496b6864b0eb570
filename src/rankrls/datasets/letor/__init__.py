"""LETOR text: lines of `label qid:id feature:value ... # comment`, read and written."""

from .text import dump_letor, iter_letor, load_letor, read_svmlight

__all__ = ["dump_letor", "iter_letor", "load_letor", "read_svmlight"]
