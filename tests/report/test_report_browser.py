"""The report in a real browser: drawn, silent on the network, narrow enough for a phone, whole without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from report_bench import Bench

from poc.report import build_report

pytestmark = pytest.mark.browser
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    path = which("chromium") or which("chromium-browser") or which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=_FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(decided: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_report(decided.workspace, "x1"), encoding="utf-8")
    return path


def test_figures_are_drawn_and_nothing_is_asked_of_the_network(browser: Any, file: Path) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.plot .main-svg').length >= 5")
    assert asked == [file.as_uri()]
    assert said == []
    assert page.locator(".fallback").count() == 0
    page.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_never_scrolls_sideways(browser: Any, file: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.plot .main-svg').length >= 5")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_without_scripts_the_tables_say_it_all(browser: Any, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".fallback").count() == 5
    assert "62.5%" in page.locator("table", has_text="Success per arm").inner_text()
    context.close()


def test_a_script_that_slipped_in_would_not_run(browser: Any, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "slipped.html"
    html = file.read_text(encoding="utf-8")
    path.write_text(html.replace("<main>", "<main><script>document.title = 'owned'</script>", 1), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.plot .main-svg').length >= 5")
    assert page.title() != "owned"
    page.close()
