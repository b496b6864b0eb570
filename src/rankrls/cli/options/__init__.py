"""The options of every command, one module each. Nothing heavy is imported here, so help appears at once."""

from .learning import METHODS, PARAMETERS, SCALES
from .parser import COMMANDS, Parser, parser
from .reading import FORMATS
from .targets import CONVENTIONS, TARGETS

__all__ = ["COMMANDS", "CONVENTIONS", "FORMATS", "METHODS", "PARAMETERS", "SCALES", "TARGETS", "Parser", "parser"]
