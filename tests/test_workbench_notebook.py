"""The workbench as a widget in a real browser: by anywidget's contract, and in JupyterLab and marimo themselves."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from browser import chromium
from page import Page
from rankrls.app import demo, open_session
from widget_host import hosted

pytest.importorskip("anywidget")

from rankrls.app.widget import widget

SESSION = "window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session"
CELL = "from rankrls import workbench\nfrom rankrls.app import demo\nbench = workbench(demo())\nbench"
READY = "document.querySelector('.wb')?.workbench?.list && document.querySelector('.wb-doc .wb-grip')"


SHADOW = (  # marimo puts a widget into a shadow tree
    "(() => { const plain = document.querySelector.bind(document);"
    " const inside = () => plain('marimo-anywidget').shadowRoot;"
    " document.querySelector = (words) => plain(words) ?? inside().querySelector(words); })()"
)


@pytest.fixture(scope="module")
def browser():
    with chromium() as made:
        yield made


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@contextlib.contextmanager
def running(command, folder, address):
    """A notebook server that answers."""
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
    with open(folder / "log.txt", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 90
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
                break
            assert process.poll() is None and time.monotonic() < end, (folder / "log.txt").read_text()[-2000:]
            time.sleep(0.3)
        yield
    finally:
        process.terminate()
        process.wait(60)


def worked(page, box="document"):
    """Drag a document, rate one, undo: the messages go to the kernel and back."""
    app = f"{box}.querySelector('.wb').workbench"
    assert page.ask(f"{app}.state.queries") == 120
    page.ask("document.querySelector('.wb').scrollIntoView({block: 'start'})")
    rows = page.rows()
    page.drag(page.centre(f"[data-row='{rows[3]}'] .wb-grip"), page.centre(f"[data-row='{rows[1]}'] .wb-grip"))
    page.until(f"{app}.state.preferences.length === 1")
    page.ask(f"document.querySelector('[data-row=\"{rows[2]}\"]').focus()")
    page.press("4")
    page.until(f"{app}.state.undo === 'graded 4'")
    page.press("u")
    page.until(f"{app}.state.undo === 'preference added'")
    page.until(f"{app}.curve?.done === 1")


def test_the_contract_of_anywidget(browser):
    """What JupyterLab, marimo, VS Code and Colab have in common: two views of one widget, one of which is closed."""
    session = open_session(demo())
    with hosted(widget(session)) as address:
        page = Page(browser, address, 1440, ready=READY)
        worked(page)
        page.ask("void window.show('second')")
        second = "document.querySelector('#second .wb')?.workbench"
        page.until(f"{second}?.list")
        assert page.ask(f"{second}.state.undo") == "preference added"
        session.do({"do": "grade", "row": 0, "grade": 2})
        page.until(f"{second}.state.undo === 'graded 2' && document.querySelector('.wb').workbench.state.judged")
        page.until("document.querySelector('.wb').workbench.state.undo === 'graded 2'")
        page.ask("void window.end_first()")
        assert page.ask("document.querySelectorAll('.wb').length") == 1
        assert page.ask("window.heard.get('msg:custom').length") == 1
        page.ask(f"void {second}.do({{ do: 'undo' }})")
        page.until(f"{second}.state.undo === 'preference added'")
        page.clean()
    session.close()


def test_jupyterlab(browser, tmp_path):
    pytest.importorskip("jupyterlab")
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": CELL, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "work.ipynb").write_text(json.dumps(notebook))
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1"]
    command += ["--IdentityProvider.token=secret", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None"]
    with running(command, tmp_path, f"http://127.0.0.1:{port}/api?token=secret"):
        page = Page(
            browser,
            f"http://127.0.0.1:{port}/lab/tree/work.ipynb?token=secret",
            1440,
            ready=f"{SESSION}?.kernel?.status === 'idle'",
        )
        page.ask("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.until(READY, 90)
        worked(page)
        browser.open("about:blank", 1440)


def test_marimo(browser, tmp_path):
    pytest.importorskip("marimo")
    (tmp_path / "work.py").write_text(
        "import marimo\n\napp = marimo.App()\n\n\n@app.cell\ndef _():\n"
        "    from rankrls import workbench\n    from rankrls.app import demo\n\n"
        "    bench = workbench(demo())\n    bench\n    return\n\n\n"
        'if __name__ == "__main__":\n    app.run()\n'
    )
    port = free_port()
    command = [sys.executable, "-m", "marimo", "-q", "run", "work.py", "--headless", "--no-token", f"--port={port}"]
    with running(command, tmp_path, f"http://127.0.0.1:{port}/"):
        browser.open(f"http://127.0.0.1:{port}/", 1440)
        page = Page(browser, f"http://127.0.0.1:{port}/", 1440, ready="document.querySelector('marimo-anywidget')")
        page.until("document.querySelector('marimo-anywidget').shadowRoot", 60)
        page.ask(SHADOW)
        page.until(READY, 90)
        worked(page)
