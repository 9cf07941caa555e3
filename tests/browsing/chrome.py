"""A browser for the tests that need one: fixtures that the conftest of their folder imports."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "Chromium and ChromeDriver are needed: apt-get install chromium chromium-driver"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    # Not every environment whose tests load this module has selenium: that of vLLM has none.
    from selenium.webdriver import Chrome, ChromeOptions  # noqa: PLC0415
    from selenium.webdriver.chrome.service import Service  # noqa: PLC0415

    options = ChromeOptions()
    options.binary_location = chromium
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def requests_of() -> Callable[[Chrome], list[str]]:
    """What was asked of the network since the last call."""

    def read(browser: Chrome) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        # What the browser asks of itself for its first page may come late, and goes to no network.
        return [url for url in sent if not url.startswith(("file:", "data:", "chrome:", "chrome-untrusted:"))]

    return read
