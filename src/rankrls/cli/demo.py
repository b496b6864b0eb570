"""rankrls demo"""

from __future__ import annotations

import contextlib
import io
from argparse import Namespace

from .. import demo
from .text import as_json


def run(args: Namespace) -> int:
    if not args.json:
        return demo.main()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = demo.main()
    print(as_json({"text": printed.getvalue()}))
    return code
