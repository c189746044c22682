"""Make the screenshots of the README's tour, from the app on the sample workspace.

    python data/make_tour.py                 # writes data/tour/*.png; needs Playwright and Chromium

Knows the pages' addresses only.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from poc.sample import ensure_sample

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "data" / "tour"
PAGES = ("data", "readiness", "subgoals", "progress", "replay", "decision")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def answering(port: int) -> None:
    """Wait until the app answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit("The app did not start within a minute.")


def settled(page: Page) -> None:
    """Wait until the app has drawn the page."""
    page.wait_for_selector("h1")
    page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')", timeout=60_000)
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')", timeout=60_000)
    page.wait_for_load_state("networkidle")
    # Figures arrive as code of their own and draw themselves a moment later.
    page.wait_for_timeout(1500)


def main() -> None:
    """Build the sample, start the app, take the pictures, end the app."""
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        workspace = Path(folder) / "sample.duckdb"
        ensure_sample(workspace)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
        environment = os.environ | {"POC_WORKSPACE": str(workspace)}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as app:
            try:
                answering(port)
                with sync_playwright() as play:
                    browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                    page = browser.new_page(viewport={"width": 1280, "height": 860})
                    for name in PAGES:
                        page.goto(f"http://127.0.0.1:{port}/{name}")
                        settled(page)
                        page.screenshot(path=TARGET / f"{name}.png")
                    browser.close()
            finally:
                app.terminate()


if __name__ == "__main__":
    main()
