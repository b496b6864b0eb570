"""The workbench: a local page on which a ranking is judged, dragged about and refitted exactly.

`documents` and `inputs` hold the rows, `state` what has been decided and `journal` how that is stored; `sums`, `fit`
and `holdout` turn it into a model and its held-out quality; `session` puts these together. `api` answers a page,
`server` carries it over HTTP and `widget` into notebooks; `page` is the page itself.
"""

from .opening import Workbench, open_session, workbench

__all__ = ["Workbench", "open_session", "workbench"]
