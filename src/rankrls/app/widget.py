"""The page of the workbench inside a notebook: the same ES modules, with messages instead of HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .api import Api
from .session import Session

PAGE = Path(__file__).parent / "page"


def modules() -> dict[str, str]:
    """The sources of the page's modules, by path."""
    return {path.relative_to(PAGE).as_posix(): path.read_text("utf-8") for path in sorted(PAGE.rglob("*.js"))}


def widget(session: Session) -> Any:
    """A widget for Jupyter, marimo or VS Code."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError("the workbench in a notebook needs anywidget: pip install 'rankrls[notebook]'") from None

    class WorkbenchWidget(anywidget.AnyWidget):
        """A session in a cell."""

        _esm = (PAGE / "widget.js").read_text("utf-8")
        _css = "\n".join((PAGE / name).read_text("utf-8") for name in ("vendor/uplot.css", "style.css"))
        modules = traitlets.Dict(modules()).tag(sync=True)

        def __init__(self) -> None:
            super().__init__()
            self.api = Api(session)
            self.on_msg(self._answer)
            session.listen(lambda event: self.send({"event": event}))

        def _answer(self, _: object, message: dict[str, Any], buffers: Any) -> None:
            body = bytes(buffers[0]) if buffers else json.dumps(message.get("body")).encode()
            params = {str(k): str(v) for k, v in (message.get("params") or {}).items()}
            found = self.api.answer(str(message.get("method")), str(message.get("path")), params, body)
            head = {"id": message.get("id"), "status": found.status, "kind": found.kind, "name": found.name}
            self.send(head, [found.content])

    return WorkbenchWidget()
