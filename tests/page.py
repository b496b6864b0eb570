"""The workbench in a real browser window: pointer, keys, and what the page shows."""

import json
import time

READY = "document.querySelector('.wb')?.workbench?.curve?.done === 1 && document.querySelector('.wb-doc')"


class Page:
    """The workbench in a window."""

    def __init__(self, browser, url, width=1280, ready=READY):
        self.browser, self.url = browser, url
        browser.open("about:blank", width)  # the page before it stops asking
        browser.console(), browser.requests()
        browser.open(url, width)
        self.until(ready)

    def ask(self, expression):
        return self.browser.ask(expression)

    def until(self, expression, seconds=45):
        end = time.monotonic() + seconds
        while not self.ask(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}; console {self.browser.console()}"
            time.sleep(0.03)

    def app(self, expression):
        return self.ask(f"document.querySelector('.wb').workbench.{expression}")

    def rows(self):
        """The documents from the first place on."""
        return self.ask(
            "(() => { const app = document.querySelector('.wb').workbench;"
            " return app.documents.order.map((i) => app.list.documents[i].row); })()"
        )

    def centre(self, selector):
        self.until("document.getAnimations().every((one) => one.playState !== 'running')")  # rows have arrived
        box = self.ask(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [r.left, r.top, r.width, r.height]; })()"
        )
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def mouse(self, kind, x, y, **more):
        self.browser.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, **more)

    def click(self, selector):
        x, y = self.centre(selector)
        self.mouse("mousePressed", x, y, clickCount=1)
        self.mouse("mouseReleased", x, y, clickCount=1)

    def drag(self, start, end, steps=8):
        self.mouse("mousePressed", *start, clickCount=1)
        for i in range(1, steps + 1):
            share = i / steps
            self.mouse("mouseMoved", start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        self.mouse("mouseReleased", *end, clickCount=1)

    def press(self, key, **more):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"ArrowUp": 38, "ArrowDown": 40, "ArrowRight": 39, "Enter": 13, "Escape": 27, "Tab": 9, "F9": 120}
        code = {"windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.browser.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code, **more)
        self.browser.command("Input.dispatchKeyEvent", type="keyUp", key=key, **code, **more)

    def type_into(self, selector, value, event):
        self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            f" e.dispatchEvent(new Event({json.dumps(event)})); }})()"
        )

    def clean(self):
        """Check that the console is empty and nothing was loaded from elsewhere."""
        address = self.url.split("?")[0]
        outside = [u for u in self.browser.requests() if not u.startswith((address, "data:", "blob:", "about:"))]
        assert outside == []
        assert self.browser.console() == []
