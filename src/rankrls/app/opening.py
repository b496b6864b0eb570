"""Open the workbench from Python, in a browser or in a notebook."""

from __future__ import annotations

import sys
import webbrowser
from typing import Any

from sklearn.base import BaseEstimator

from .documents import DocumentTable
from .encoding import without_encoder
from .inputs import documents_of
from .outputs import estimator
from .session import Session
from .state import State


def open_session(
    data: object, model: BaseEstimator | None = None, *, journal: object = None, read_only: bool = False
) -> Session:
    """A session without a page.

    Examples
    --------
    >>> from rankrls.app import open_session
    >>> from rankrls.datasets import make_search
    >>> session = open_session(make_search(20, random_state=0))
    >>> session.do({"do": "grade", "row": 0, "grade": 3}) > 0
    True
    >>> session.close()
    """
    encoder, rest = without_encoder(model)
    return Session(documents_of(data, encoder=encoder), rest, journal=journal, read_only=read_only)


class Workbench:
    """A running workbench: its address, its session, and the current model.

    Examples
    --------
    >>> from rankrls import workbench
    >>> from rankrls.datasets import make_search
    >>> bench = workbench(make_search(20, random_state=0), browser=False)
    >>> bench.url.startswith("http://127.0.0.1:")
    True
    >>> bench.model.predict(bench.documents.X[:3]).shape
    (3,)
    >>> bench.close()
    """

    def __init__(self, session: Session, port: int = 0):
        self.session = session
        self._server: Any = None
        self._widget: Any = None
        self._port = port

    @property
    def documents(self) -> DocumentTable:
        """The ranked documents."""
        return self.session.documents

    @property
    def state(self) -> State:
        """All decisions so far."""
        return self.session.state

    @property
    def model(self) -> Any:
        """The current model: a fitted `RankRLS`, after the scalers of the given model."""
        return estimator(self.session)

    @property
    def url(self) -> str:
        """The address of the page, including the token."""
        return self.serve().url

    def serve(self) -> Any:
        """The server, started if necessary."""
        if self._server is None:
            from .server import Server

            self._server = Server(self.session, self._port).start()
        return self._server

    def widget(self) -> Any:
        """The page as a widget for Jupyter, marimo or VS Code."""
        if self._widget is None:
            from .widget import widget

            self._widget = widget(self.session)
        return self._widget

    def close(self) -> None:
        """Stop the server and end the session; a journal keeps everything."""
        if self._server is not None:
            self._server.close()
        self.session.close()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        try:
            return self.widget()._repr_mimebundle_(**kwargs)
        except ImportError:
            return {
                "text/plain": repr(self),
                "text/html": f'<a href="{self.url}" target="_blank">Open the workbench</a>',
            }

    def _display_(self) -> Any:
        """What marimo shows if the workbench is the last expression of a cell."""
        import marimo

        return marimo.ui.anywidget(self.widget())

    def __repr__(self) -> str:
        where = "" if self._server is None else f" at {self._server.url}"
        return f"<workbench on {self.documents.name}: {len(self.documents.queries):,} queries{where}>"


def workbench(
    model_or_data: Any,
    data: object = None,
    *,
    port: int = 0,
    browser: bool | None = None,
    read_only: bool = False,
    journal: object = None,
) -> Workbench:
    """Open data, or a model and data, in the workbench.

    Parameters
    ----------
    model_or_data : data frame, RankingData, tuple (X, y, qid), path of a file, or a fitted ranker
        Rows to rank: a frame has a column "qid", optionally "label", "docid" and "title", and numeric columns as
        features. Labels may be missing. If this is a ranker, pass its data second.
    data : as above, default=None
        The data of a ranker.
    port : int, default=0
        Port to listen on; 0 takes a free port.
    browser : bool, default=None
        Whether to open a browser window; None: only outside notebooks, where the result is shown as a widget.
    read_only : bool, default=False
        Forbid changes.
    journal : path, default=None
        A file that records every action; opened again with the same data, the session resumes. None: actions are only
        in memory.

    Returns
    -------
    workbench : Workbench
        With `url`, `session`, `model` (the current model) and `close()`.

    Examples
    --------
    >>> from rankrls import RankRLS, workbench
    >>> from rankrls.datasets import make_search
    >>> data = make_search(20, random_state=0)
    >>> bench = workbench(RankRLS(1.0).fit(data.X, data.y, qid=data.qid), data, browser=False)
    >>> bench.state.alpha
    1.0
    >>> bench.close()
    """
    model = model_or_data if isinstance(model_or_data, BaseEstimator) else None
    rows = data if model is not None else model_or_data
    if model is not None and data is None:
        raise ValueError("a model alone has no documents to show: call workbench(model, data)")
    if model is None and data is not None:
        raise ValueError(f"the model comes first: workbench(model, data), got {type(model_or_data).__name__} first")
    made = Workbench(open_session(rows, model, journal=journal, read_only=read_only), port)
    if browser is None:
        browser = not _in_notebook()
    if browser:
        webbrowser.open(made.url)
    return made


def _in_notebook() -> bool:
    if "marimo" in sys.modules and sys.modules["marimo"].running_in_notebook():
        return True
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and type(running).__name__ != "TerminalInteractiveShell"
