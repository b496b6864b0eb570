"""rankrls demo"""

from __future__ import annotations

import contextlib
import io
from argparse import Namespace

from . import demonstration
from .text import as_json


def run(args: Namespace) -> int:
    if not args.json:
        return demonstration.main()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = demonstration.main()
    print(as_json({"text": printed.getvalue()}))
    return code
