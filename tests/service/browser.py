"""A real Chromium, driven through its debugging protocol: pages at a width, what they log, clicks, screenshots."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HOW_TO_GET_IT = "no Chromium is installed: apt-get install chromium, or put any Chrome into the PATH"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0")


class Page:
    """One tab. `troubles` has what the console and the security policy complained of."""

    def __init__(self, address):
        from tornado.websocket import websocket_connect

        self._loop = asyncio.new_event_loop()
        self._socket = self._run(lambda: websocket_connect(address, max_message_size=2**28))
        self._number = 0
        self.troubles = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _run(self, make):
        async def run():
            return await asyncio.wait_for(make(), 60)

        return self._loop.run_until_complete(run())

    def send(self, method, **values):
        self._number += 1
        number = self._number
        self._run(lambda: self._socket.write_message(json.dumps({"id": number, "method": method, "params": values})))
        while True:
            message = json.loads(self._run(lambda: self._socket.read_message()))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message):
        values = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            self.troubles.append(values["exceptionDetails"]["exception"].get("description", "an exception"))
        elif message["method"] == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.troubles.append(values["entry"]["text"])
        elif message["method"] == "Runtime.consoleAPICalled" and values["type"] == "error":
            self.troubles.append(str(values["args"]))
        elif message["method"] == "Page.javascriptDialogOpening":
            self.troubles.append(f"dialog: {values['message']}")

    def open(self, url, width=1400, height=900):
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        self.send("Page.navigate", url=url)
        self.wait("document.body && document.body.dataset.ready === 'yes'")

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}; {self.troubles}"
            time.sleep(0.1)

    def evaluate(self, expression):
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, selector="main"):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def screenshot(self, path):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def close(self):
        async def end():
            self._socket.close()
            await asyncio.sleep(0.05)

        self._run(end)
        self._loop.close()


@contextmanager
def browser():
    """A tab of a fresh browser."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                page = Page(_address(Path(folder) / "DevToolsActivePort"))
                yield page
                page.close()
            finally:
                process.terminate()


def _address(file):
    end = time.monotonic() + 30
    while not file.exists() or len(file.read_text().splitlines()) < 2:
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.05)
    port = file.read_text().splitlines()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
        return next(tab["webSocketDebuggerUrl"] for tab in json.load(answer) if tab["type"] == "page")
