"""The workbench: a local page for judging, dragging and exactly refitting rankings.

`documents` and `inputs` hold the rows, `state` and `history` the user's decisions, and `journal` stores these. `models`
(with `sums` and `fit`) and `quality` (with `holdout`) compute what follows from them; `session` combines all this, with
a `background` thread for slow work. A `view` is what a page shows at one moment, `api` answers a page, `server` does so
over HTTP and `widget` in notebooks; `page` is the page itself. `script` writes a session as a Python program.
"""

from ..estimators.pipelines import scaled
from .demo import demo
from .inputs import documents_of
from .opening import Workbench, open_session, workbench

__all__ = ["Workbench", "demo", "documents_of", "open_session", "scaled", "workbench"]
