"""The whole path in a real browser, on a fresh workspace, with a file that the test uploads.

Screenshots of every page are left in tests/artifacts for people to look at.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from poc import api
from poc.sample import data_dir

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "tests" / "artifacts"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
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
PHONE = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36"
)
PAGES = ("start", "data", "readiness", "subgoals", "progress", "replay", "decision")
LAST = {
    "start": "[data-testid=stMain] [data-testid=stPageLink]",
    "data": "[data-testid=stDataFrame]",
    "readiness": "[data-testid=stDataFrame]",
    "subgoals": "textarea",
    "progress": "[data-testid=stPlotlyChart]",
    "replay": "[data-testid=stExpander]",
    "decision": "[data-testid=stExpander]",
}
"""Something near the end of each page: when it is there, the page is."""
PATIENCE_MS = 60_000

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="no Chromium on this machine"),
]
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("walk")


@pytest.fixture(scope="module")
def address(folder):
    """The app as a person starts it, on a workspace that is not there yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"POC_WORKSPACE": str(folder / "team.duckdb")}
    environment.pop("OPENAI_API_KEY", None)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    log = (folder / "app.log").open("wb")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log) as app:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(f"{url}/_stcore/health", app)
            yield url
        finally:
            app.terminate()
            log.close()


def _wait_for(url: str, app: subprocess.Popen) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(600):
        try:
            opener.open(url, timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            try:
                app.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail("the app ended before it answered")
    pytest.fail("the app did not answer")


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """Somebody at the app, who notes every complaint of the browser and every request that leaves the machine."""

    def __init__(self, browser, address: str, *, width: int, language: str) -> None:
        self.address = address
        self.width = width
        self.language = language
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        phone = {"user_agent": PHONE, "is_mobile": True, "has_touch": True} if width < 600 else {}
        context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True, **phone)
        context.set_default_timeout(PATIENCE_MS)
        self.page = context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message) -> None:
        # Streamlit looks for its server below the page's own path first, and finds it at the root.
        probing = "/_stcore/" in (message.location or {}).get("url", "")
        if message.type == "error" and not probing:
            self.complaints.append(f"{message.text} ({message.location})")

    def _request(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:", self.address.replace("http", "ws"))):
            self.strangers.append(request.url)

    def go(self, name: str) -> None:
        self.page.goto(f"{self.address}/{'' if name == 'start' else name}?lang={self.language}")
        self.settled()

    def turn_to(self, name: str) -> None:
        """By the menu, as people do: the page is not loaded anew."""
        if self.width < 600:
            self.page.get_by_test_id("stExpandSidebarButton").click()
        link = self.page.locator("[data-testid=stSidebarNav] a").nth(PAGES.index(name))
        title = link.inner_text().split("\n")[-1].strip()
        link.click()
        self.page.locator("h1", has_text=title).wait_for()
        self.settled()

    def settled(self) -> None:
        """Wait until the page has been drawn to its end."""
        self.page.wait_for_selector("h1")
        script = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState"
        stale = "document.querySelectorAll('[data-testid=stSkeleton], [data-stale=true]').length"
        try:
            self.page.wait_for_function(f"{script} === 'notRunning' && {stale} === 0")
        except playwright.TimeoutError:
            pytest.fail(f"the page does not come to rest: {self.page.evaluate(f'[{script}, {stale}]')}")
        assert not self.page.get_by_text("failed unexpectedly").count()

    def press(self, label: str) -> None:
        self.page.get_by_test_id("stMain").get_by_role("button", name=label, exact=True).click()

    def fill(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Enter")

    def see(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()

    def picture(self, name: str) -> None:
        """The whole page, not only what fits the window."""
        self.settled()
        measure = "document.querySelector('[data-testid=stMain]').scrollHeight"
        height = min(self.page.evaluate(measure) + 60, 7000)
        self.page.set_viewport_size({"width": self.width, "height": max(height, 900)})
        self.page.wait_for_function("document.fonts.status === 'loaded'")
        self.settled()
        ARTIFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=ARTIFACTS / f"{name}-{self.language}-{self.width}.png")
        self.page.set_viewport_size({"width": self.width, "height": 900})

    def content(self) -> None:
        assert self.complaints == []
        assert self.strangers == []


@pytest.fixture(scope="module")
def walked(chromium, address, folder) -> Visitor:
    """From nothing to a verdict, by hand."""
    log = folder / "calls.jsonl"
    lines = (data_dir() / "logs" / "orders.jsonl").read_text(encoding="utf-8").splitlines()
    log.write_text("\n".join(line for line in lines if '"category": "cancel"' in line) + "\nnot a record\n")
    visitor = Visitor(chromium, address, width=1440, language="en")
    page = visitor.page

    visitor.go("data")
    visitor.press("Create it here")
    page.get_by_role("tab", name="Import").click()
    page.locator("input[type=file]").first.set_input_files(log)
    visitor.see("calls.jsonl")
    visitor.settled()
    visitor.picture("import")
    visitor.press("Import")
    visitor.see("Import finished")
    visitor.see("1 rejected")

    page.get_by_role("link", name="Continue to Readiness").click()
    visitor.see("What the logs have")

    page.get_by_role("link", name="Subgoals").first.click()
    visitor.see("No subgoal sets yet")
    editor = page.locator("textarea").first
    editor.fill("category: cancel\nsubgoal: []\n")
    editor.blur()
    visitor.see("Unknown key 'subgoal'")
    editor.fill((data_dir() / "subgoals" / "cancel.yaml").read_text(encoding="utf-8"))
    editor.blur()
    visitor.see("Valid: category cancel")
    visitor.press("Store and score")
    visitor.see("How often each subgoal was achieved")

    page.get_by_role("link", name="Progress", exact=True).first.click()
    visitor.see("Final progress against the outcome")

    page.get_by_role("link", name="Replay", exact=True).first.click()
    page.get_by_text("Closed loop: run each task anew").click()
    visitor.fill("Environment (module:Class or file.py:Class)", "poc.sample.world:World")
    visitor.fill("Repeats", "9")
    visitor.settled()
    visitor.picture("plan")
    visitor.press("Estimate and preview")
    visitor.see("Before anything is spent")
    visitor.see("Calls stay on this machine")
    page.get_by_text("Preview of one request, redacted").click()
    visitor.picture("preview")
    visitor.press("Start")
    visitor.see("s left")
    page.reload()
    visitor.see("s left")
    visitor.press("Stop")
    visitor.see("it can be resumed")
    visitor.picture("stopped")
    visitor.press("Resume")
    page.get_by_text("Finished", exact=True).wait_for()

    page.get_by_role("link", name="See the decision").click()
    visitor.press("Decide")
    visitor.see("this is not evidence")
    return visitor


def test_the_whole_path_leads_to_a_verdict(walked, folder):
    with walked.page.expect_download() as waiting:
        walked.press("Download the report (English)")
    report = folder / "report.html"
    waiting.value.save_as(report)
    text = report.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert "simulated" in text.lower()
    walked.content()


@pytest.mark.parametrize(("width", "language"), [(1440, "en"), (390, "ja")])
def test_every_page_fits_the_screen(walked, chromium, address, width, language):
    visitor = Visitor(chromium, address, width=width, language=language)
    visitor.go("start")
    for name in PAGES:
        if name != "start":
            visitor.turn_to(name)
        visitor.page.locator(LAST[name]).last.wait_for(state="attached")
        visitor.settled()
        for area in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
            assert visitor.page.evaluate(f"{area}.scrollWidth") <= width
        visitor.picture(name)
    visitor.content()


def test_a_replay_that_was_stopped_is_paid_once(walked, folder):
    jobs = [json.loads(file.read_text()) for file in (folder / "team.duckdb.files" / "jobs").glob("*/job.json")]
    assert sum(job["verb"] == "replay run" for job in jobs) == 2
    workspace = api.open(folder / "team.duckdb", create=False)
    experiment_id = api.latest_experiment(workspace)
    planned = len(api.load_experiment(workspace, experiment_id).plan.trials())
    trials = api.frames.trials(workspace, experiment_id)
    assert len(trials) == planned
    assert trials["trial_id"].is_unique
