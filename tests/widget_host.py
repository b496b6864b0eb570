"""A notebook in miniature: a page that shows a widget as anywidget's contract says, and a kernel that answers it.

JupyterLab, marimo, VS Code and Colab all give a widget the same: `render({ model, el })`, where `model` has get, set,
save_changes, on, off and send; messages carry JSON and binary buffers, which arrive as DataView. Scripts come from blob
addresses, under a content security policy.
"""

import base64
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' blob:; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data: blob:"
)
PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><link rel="icon" href="data:,"></head>
<body><div id="first"></div><div id="second"></div><script type="module">
const state = await (await fetch("/state")).json();
const style = document.createElement("style");
style.textContent = state._css;
document.head.append(style);
const heard = new Map();
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const model = {
  get: (key) => state[key],
  set: (key, value) => { state[key] = value; },
  save_changes: () => {},
  on: (name, listener) => heard.set(name, [...(heard.get(name) ?? []), listener]),
  off: (name, listener) => heard.set(name, (heard.get(name) ?? []).filter((one) => one !== listener)),
  send: (content, callbacks, buffers = []) =>
    void fetch("/message", { method: "POST", body: JSON.stringify({ content, buffers: buffers.map(base64) }) }),
};
window.heard = heard;
const address = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
const { default: widget } = await import(address);
window.show = async (id) => { window[`end_${id}`] = await widget.render({ model, el: document.getElementById(id) }); };
(async () => {
  for (let seen = 0; ; ) {
    const answer = await fetch(`/messages?${seen}`).catch(() => null);
    if (!answer?.ok) return;
    for (const { content, buffers } of await answer.json()) {
      seen += 1;
      const views = buffers.map((text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer));
      for (const listener of heard.get("msg:custom") ?? []) listener(content, views);
    }
  }
})();
await window.show("first");
</script></body></html>"""


class Kernel:
    """What a widget sends, in order, for a page that asks for it."""

    def __init__(self, widget):
        self.widget, self.sent, self.news = widget, [], threading.Condition()
        widget.send = self.send

    def send(self, content, buffers=None):
        texts = [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or []]
        with self.news:
            self.sent.append({"content": content, "buffers": texts})
            self.news.notify_all()

    def after(self, seen):
        with self.news:
            self.news.wait_for(lambda: len(self.sent) > seen, timeout=2)
            return self.sent[seen:]

    def hear(self, message):
        buffers = [base64.b64decode(text) for text in message["buffers"]]
        self.widget._answer(self.widget, message["content"], buffers)


def handler(kernel):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path == "/state":
                wanted = ("_esm", "_css", "modules")
                self.reply(json.dumps({key: str_or_same(getattr(kernel.widget, key)) for key in wanted}))
            elif path == "/messages":
                self.reply(json.dumps(kernel.after(int(query))))
            else:
                self.reply(PAGE, "text/html")

        def do_POST(self):
            kernel.hear(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.reply("{}")

        def reply(self, text, kind="application/json"):
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Security-Policy", POLICY)
                self.end_headers()
                self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    return Handler


def str_or_same(value):
    return value if isinstance(value, dict) else str(value)


@contextlib.contextmanager
def hosted(widget):
    """The address of a page that shows a widget."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Kernel(widget)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
