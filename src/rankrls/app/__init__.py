"""The workbench: a local page on which a ranking is judged, dragged about and refitted exactly.

`documents` and `inputs` hold the rows, `state` what has been decided and `journal` how that is stored; `sums`, `fit`
and `holdout` turn it into a model and its held-out quality; `session` puts these together. `api` answers a page,
`server` carries it over HTTP and `widget` into notebooks; `page` is the page itself. `script` says it all in Python.
"""

from ..estimators.pipelines import scaled
from .demo import demo
from .inputs import documents_of
from .opening import Workbench, open_session, workbench

__all__ = ["Workbench", "demo", "documents_of", "open_session", "scaled", "workbench"]
