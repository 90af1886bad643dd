# SPDX-License-Identifier: GPL-2.0
"""A page in headless Chromium, and the addresses that it asked for."""

import json
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement


class Browser:
    """One window. It reads pages from files; animations are off, so screenshots are repeatable."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(prefix="chromium-")
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        # the pages are our own, and a container or a chroot may have no sandbox
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-prefers-reduced-motion",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={self.profile.name}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.window()

    def close(self) -> None:
        self.driver.quit()
        self.profile.cleanup()

    def window(self, width: int = 1200, height: int = 800) -> None:
        """Sets the size of the page."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def open(self, page: Path, fragment: str = "") -> None:
        """Opens a page; fragment: the text after # in its address."""
        self.told()
        self.driver.get(page.as_uri() + (f"#{fragment}" if fragment else ""))

    def run(self, script: str, *arguments: Any) -> Any:
        """The result of a function body."""
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def keys(self, *keys: str) -> None:
        """Types where the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def told(self) -> tuple[list[str], list[str]]:
        """The messages of the console and the addresses asked for, since the last call."""
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return console, asked

    def picture(self, path: Path) -> None:
        """Saves a screenshot."""
        self.driver.save_screenshot(str(path))
