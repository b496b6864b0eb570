"""A headless Chromium, driven through ChromeDriver by plain HTTP; tests skip where these are not installed."""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Browser:
    """One window."""

    def __init__(self, port, folder):
        self.root = f"http://127.0.0.1:{port}"
        logs = {"browser": "ALL", "performance": "ALL"}
        options = {"args": [*FLAGS, f"--user-data-dir={folder}"], "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs}
        session = self._call("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.root += f"/session/{session}"
        self.open("about:blank", 800)
        self.console(), self.requests()  # of the page that a browser starts with

    def _call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def command(self, name, **params):
        """A command of the DevTools protocol."""
        return self._call("/goog/cdp/execute", {"cmd": name, "params": params})

    def open(self, url, width, height=900):
        """Show a page at a width."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._call("/url", {"url": url})
        end = time.monotonic() + 30
        while self.ask("document.readyState") != "complete" and time.monotonic() < end:
            time.sleep(0.05)

    def ask(self, expression):
        """The value of an expression in the page."""
        return self._call("/execute/sync", {"script": f"return {expression}", "args": []})

    def console(self):
        """What the page has written to the console since the last call."""
        return [entry["message"] for entry in self._call("/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses requested since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self._call("/se/log", {"type": "performance"})]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        """The whole page as a PNG."""
        taken = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def tab(self, handle=None):
        """Switch to a tab, or to a new one; returns the handle of the previous tab."""
        left = self._call("/window")
        self._call("/window", {"handle": handle or self._call("/window/new", {"type": "tab"})["handle"]})
        return left

    def close(self):
        self._call("", method="DELETE")


@contextlib.contextmanager
def chromium():
    """A browser; skips the test, with what is missing, if there is none."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install chromium chromium-driver")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            line = next(line for line in driver.stdout if "started successfully on port" in line)
            browser = Browser(re.search(r"port (\d+)", line)[1], folder)
            try:
                yield browser
            finally:
                browser.close()
        finally:
            driver.terminate()
            driver.wait(20)
            driver.stdout.close()
