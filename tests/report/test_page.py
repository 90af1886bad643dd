# SPDX-License-Identifier: GPL-2.0
"""The page of functions-report in headless Chromium.

It must show the values that perf prints, or that the tests calculate. Screenshots are left in
build/BASE/check/report for people to look at.
"""

import json
import re
import unittest
from pathlib import Path

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.harness import fleet, reports
from tests.harness.chromium import Browser
from tests.harness.env import TOP
from tests.harness.recording import LONG, Windows
from tests.harness.reports import DATA, NAMES, page, perf_table, random_sums

# chains, callees first: windows, cycles, instructions, page faults
CHAINS = {
    "leaf;middle;main": (100, 30000, 60000, 300),
    "other;middle;main": (50, 15000, 3000, 0),
    "middle;main": (20, 6000, 6000, 0),
    "leaf;main": (40, 12000, 6000, 80),
    "main": (10, 3000, 3000, 0),
    "0x7f00 [unknown]": (5, 1500, 0, 0),
}
MINUTES = 1

# metrics of top-down analysis, each with the level above
LEVELS = {"frontend_bound": None, "backend_bound": None, "backend_memory": "backend_bound"}


def text(value: float | None, digits: int) -> str:
    """A number as the page prints it."""
    return "–" if value is None else f"{value:.{digits}f}"


def as_shown(value: reports.Table | None, digits: int) -> str:
    """A value as the page prints it: a rough one has a ~."""
    mark = "~" if value and value.get("mark") == "rough" else ""
    return mark + text(value and value["value"], digits)


def is_weak(value: reports.Table | None) -> bool:
    return bool(value) and value.get("mark") == "weak"


def add_levels(table: reports.Table) -> reports.Table:
    """Adds metrics of top-down analysis to a table. Those of a level add up to the one above."""
    for name, above in LEVELS.items():
        column = {"name": name, "meaning": "percent of slots", "unit": "%", "role": "rate"}
        column |= {"parent": above} if above else {"divides": "slots"}
        table["columns"].append(column | {"digits": 1})
    for number, row in enumerate(table["functions"]):
        for name, value in zip(LEVELS, (5 * number % 100, 100 - 5 * number % 100, 30)):
            mark = {"mark": "weak"} if number % 7 == 0 else {}
            row["metrics"][name] = {"value": value, "low": value - 1, "high": value + 1, **mark}
    return table


class Case(unittest.TestCase):
    """Opens pages as files."""

    @classmethod
    def make_pages(cls):
        table = random_sums(DATA / "table.sums", NAMES)
        cls.table, cls.page = perf_table(table), page("table", table)
        other = random_sums(DATA / "other.sums", [*NAMES[2:], "brand_new"], seed=2)
        compared = "--single-run", "--diff", table, other
        cls.diff, cls.diff_page = perf_table(*compared), page("diff", *compared)
        # a perf that prints levels, and no call chains
        cls.levels = add_levels(perf_table(table))
        (DATA / "levels.json").write_text(json.dumps(cls.levels), encoding="utf-8")
        perf = DATA / "levels.perf"
        script = f'case "$*" in *callchain*) exit 1 ;; esac\ncat {DATA}/levels.json\n'
        perf.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
        perf.chmod(0o755)
        cls.levels_page = page("levels", "--perf", perf, table)
        recording = DATA / "timeline.data"
        functions = fleet.library(DATA / "code.so")
        fleet.Host(1, DATA / "code.so", functions, 6).write(recording, 3000)
        cls.timeline_page = page("timeline", "--interval", "5e-4", recording)
        (DATA / "chains.sums").write_text(reports.chain_sums(CHAINS), encoding="utf-8")
        cls.chains_page = page("chains", DATA / "chains.sums")

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.window()
        self.browser.cdp(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "light"}],
        )
        self.opened: list[str] = []

    def tearDown(self):
        """The console has no message, and no address was opened but the page's."""
        if self.opened:
            console, asked = self.browser.told()
            self.assertEqual(console, [])
            self.assertEqual([url for url in asked if not url.startswith("data:")], self.opened)
            self.opened = []

    def open(self, path: Path, limits: str = "") -> None:
        """Opens a page; limits: the text after the # of its address."""
        self.browser.driver.get("about:blank")  # another # alone does not load it again
        self.browser.open(path, limits)
        self.opened = [path.as_uri()]

    def cells(self, panel: str = "table") -> list[list[str]]:
        """The values of the rows that are shown, without intervals."""
        return self.browser.run(
            """const rows = document.querySelectorAll(`#${arguments[0]} .grid tbody tr.row`);
            return [...rows].map(row =>
            [...row.children].map(cell => (cell.querySelector('.value') ?? cell).textContent))""",
            panel,
        )

    def names(self) -> list[str]:
        return [row[0] for row in self.cells()]

    def header(self, name: str):
        return next(
            button
            for button in self.browser.all("#table thead button")
            if button.text.rstrip("▲▼") == name
        )

    def sorted_rows(self, name: str, up: bool) -> list[str]:
        """The expected order: undefined values last, equal ones as in perf's table."""
        rows = self.table["functions"]
        known = [row for row in rows if row["metrics"][name] is not None]
        known.sort(key=lambda row: row["metrics"][name]["value"] * (1 if up else -1))
        unknown = [row for row in rows if row["metrics"][name] is None]
        return [row["symbol"] for row in known + unknown]

    def focus(self, what: str):
        """A property of the focused element."""
        return self.browser.run(f"return document.activeElement.{what}")

    def focused(self) -> str:
        """The name in the focused row."""
        return self.browser.run(
            "return document.activeElement.parentElement.firstChild.textContent"
        )


def setUpModule() -> None:
    reports.prepare()
    Case.make_pages()


class Tables(Case):
    """The table."""

    def test_shows_perfs_values(self):
        self.open(self.page)
        self.assertIn("a weak value", self.browser.one("#table .note").text)
        expected = [
            [
                row["symbol"],
                *(
                    as_shown(row["metrics"][column["name"]], column["digits"])
                    for column in self.table["columns"]
                ),
            ]
            for row in self.table["functions"]
        ]
        self.assertEqual(self.cells(), expected)
        self.assertTrue(any("–" in row for row in expected))
        self.assertTrue(any(cell[0] == "~" for row in expected for cell in row))
        facts = self.browser.one("#facts").text
        windows = sum(row["observations"]["windows"] for row in self.table["functions"])
        self.assertIn(f"{windows:,}".replace(",", "\u202f"), facts)
        self.assertRegex(facts, r"lost records\s+0")
        self.assertIn("throttled\n3", self.browser.one(".fact.warn").text)
        self.browser.picture(DATA / "table-light.png")

    def test_unknown_counts(self):
        """A function without windows has an unknown number of instructions, which is not 0."""
        recording = Windows()
        for _ in range(30):
            recording.window(0x1000)
        recording.take(0x2000, LONG)
        self.open(page("unknown", recording.write(DATA / "unknown.data")))
        counts = self.browser.run(
            """document.querySelectorAll('#table tr.row')[1].click();
            return [...document.querySelectorAll('#table .side table:last-child tr')].map(
            row => [...row.children].map(cell => cell.textContent))"""
        )
        self.assertEqual(counts[-2:], [["cycles", str(LONG)], ["instructions", "–"]])

    def test_colours_of_rates(self):
        """The lower a value, the better it looks. A weak one has no colour."""
        self.open(self.page)
        seen: set[str] = set()
        for at, column in enumerate(self.table["columns"], 1):
            if column["role"] != "rate":
                continue
            looks = self.browser.run(
                "return [...document.querySelectorAll('#table tr.row')].map(row =>"
                " row.children[arguments[0]].className)",
                at,
            )
            values = [row["metrics"][column["name"]] for row in self.table["functions"]]
            sure = [
                (value["value"], look)
                for value, look in zip(values, looks)
                if value and value["value"] and not is_weak(value)
            ]
            colours = [look for _, look in sorted(sure)]
            self.assertEqual(colours, sorted(colours))
            seen.update(colours)
            weak = [look for value, look in zip(values, looks) if is_weak(value)]
            self.assertNotRegex(" ".join(weak), r"\bq\d")
        self.assertLessEqual({"q0", "q4"}, seen)

    def test_sorts_by_click(self):
        self.open(self.page)
        self.assertEqual(self.names(), self.sorted_rows("%CY", False))
        for name in (column["name"] for column in self.table["columns"]):
            for up in (False, True):
                self.header(name).click()
                self.assertEqual(self.names(), self.sorted_rows(name, up), (name, up))
        self.header("symbol").click()
        self.assertEqual(self.names(), sorted(NAMES, key=str.lower))

    def test_filters(self):
        self.open(self.page)
        box, every = self.browser.one("#table input[type=search]"), self.names()
        for pattern, wanted in (
            ("word", lambda name: "Word" in name),
            ("/^copy_/", lambda name: name.startswith("copy_")),
            ("/(tree|list)$/", lambda name: name.endswith(("tree", "list"))),
            ("no such name", lambda name: False),
        ):
            box.clear()
            box.send_keys(pattern)
            expected = [name for name in every if wanted(name)]
            self.assertEqual(self.names(), expected)
            self.assertEqual(
                self.browser.one("#table .shown").text, f"{len(expected)} of {len(every)} functions"
            )
        self.assertEqual(self.browser.one("#table .none").text, "No name matches.")

    def test_intervals(self):
        self.open(self.page)
        small = self.browser.one("#table small.ci")
        self.assertFalse(small.is_displayed())
        self.browser.one("#table input[type=checkbox]").click()
        self.assertTrue(small.is_displayed())
        shown = self.browser.run(
            "return [...document.querySelectorAll('#table tbody tr:first-child td')].map(cell =>"
            "[cell.querySelector('small')?.textContent ?? '', cell.title])"
        )
        row = self.table["functions"][0]
        for (interval, title), column in zip(shown, self.table["columns"]):
            value = row["metrics"][column["name"]] or {}
            ends = [value[end] for end in ("low", "high") if end in value]
            expected = " … ".join(text(end, column["digits"]) for end in ends)
            self.assertEqual(interval, expected)
            self.assertIn(expected, title)
            self.assertIn(column["meaning"], title)

    def test_keyboard_alone(self):
        self.open(self.page)
        every = self.names()
        self.browser.keys("/", "sort", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        found = self.names()
        self.assertEqual(self.focused(), found[1])
        self.browser.keys(Keys.ENTER)
        row = next(row for row in self.table["functions"] if row["symbol"] == found[1])
        detail = self.browser.one("tr.detail").text
        for event, one in row["events"].items():
            self.assertIn(f"{event} {one['value']}", detail)
        self.browser.keys(Keys.ENTER, Keys.ESCAPE, Keys.ESCAPE)
        self.assertEqual(self.browser.all("tr.detail"), [])
        self.assertEqual((self.focus("type"), self.names()), ("search", every))
        # to a header, which sorts
        for _ in range(40):
            self.browser.keys(Keys.TAB)
            if self.focus("textContent") == "CM/KI":
                break
        self.browser.keys(Keys.SPACE)
        self.assertEqual(self.names(), self.sorted_rows("CM/KI", False))
        self.browser.keys("2")
        self.assertTrue(self.browser.one("#flame").is_displayed())
        self.browser.keys(Keys.ARROW_LEFT)
        self.assertTrue(self.browser.one("#table").is_displayed())


class Topdown(Case):
    """The tree of top-down analysis."""

    def test_bars_are_percentages(self):
        self.open(self.levels_page)
        self.browser.one("#tab-topdown").click()
        first = [name for name, above in LEVELS.items() if not above]
        bars = self.browser.run(
            """return [...document.querySelectorAll('#topdown .stack')].map(bar => [
            bar.clientWidth, [...bar.children].map(one => [one.className,
            one.getBoundingClientRect().width])])"""
        )
        weak = 0
        for row, (width, parts) in zip(self.levels["functions"], bars):
            self.assertEqual(len(parts), len(first))
            for name, (look, wide) in zip(first, parts):
                value = row["metrics"][name]
                self.assertAlmostEqual(wide, value["value"] * width / 100, delta=4)
                self.assertIn(f"level{first.index(name)}", look.split())
                self.assertEqual("weak" in look.split(), is_weak(value))
                weak += is_weak(value)
        self.assertGreater(weak, 0)


class Timelines(Case):
    """The timeline."""

    def test_bars(self):
        """A bar is where its interval is, and as high as its value; a weak one is hatched."""
        self.open(self.timeline_page)
        self.browser.keys("3")
        data = json.loads(self.browser.run("return document.getElementById('data').textContent"))
        times, rows = (data["timeline"][key] for key in ("times", "rows"))
        values = [[cell and cell["metrics"]["%CY"] for cell in row] for row in rows]
        sure = [one["value"] for row in values for one in row if one and not is_weak(one)]
        begin, end = times[0][0], times[-1][1]
        drawn = self.browser.run(
            """return [...document.querySelectorAll('#timeline tr.row')].map(row =>
            [...row.children[1].querySelectorAll('path')]
            .map(path => [path.getAttribute('fill'), path.getAttribute('d')]))"""
        )
        self.assertEqual(len(drawn), len(values))
        for paths, row in zip(drawn, values):
            found = sorted(
                (float(x), float(height), fill == "url(#unsupported)")
                for fill, path in paths
                for x, height in re.findall(r"M([\d.]+) 30v-([\d.]+)", path)
            )
            expected = [(one, time[0]) for one, time in zip(row, times) if one]
            for (x, height, is_hatched), (one, time) in zip(found, expected, strict=True):
                self.assertAlmostEqual(x, 240 * (time - begin) / (end - begin), delta=0.02)
                tall = max(1, min(1, one["value"] / max(sure)) * 30)
                self.assertAlmostEqual(height, tall, delta=0.02)
                self.assertEqual(is_hatched, is_weak(one))
        self.browser.picture(DATA / "timeline-light.png")


class Flames(Case):
    """The flame graph."""

    def inclusive(self) -> dict[tuple[str, int], list[int]]:
        """Sums over the chains by their callers, outermost first, calculated here."""
        sums: dict[tuple[str, ...], list[int]] = {}
        for chain, numbers in CHAINS.items():
            frames = tuple(reversed(chain.split(";")))
            for depth in range(len(frames) + 1):
                one = sums.setdefault(frames[:depth], [0] * 4)
                sums[frames[:depth]] = [a + b for a, b in zip(one, numbers)]
        return sums

    def frames(self) -> list[tuple[str, int, float]]:
        """The label, depth and width of each frame, after animations have ended."""
        WebDriverWait(self.browser.driver, 30).until(
            lambda _driver: self.browser.run(
                "return ![...document.querySelectorAll('#flame .chart svg *')].some(element =>"
                " element.__transition)"
            )
        )
        rows = self.browser.run(
            """return [...document.querySelectorAll('#flame g.frame')].map(g => [
            g.getAttribute('aria-label'), Number(g.getAttribute('aria-level')) - 1,
            g.querySelector('rect').getBoundingClientRect().width])"""
        )
        return sorted((label, depth, width) for label, depth, width in rows)

    def check(self, event: str, place: int) -> None:
        """The frames are as wide as an event, which is at this place of CHAINS."""
        width = self.browser.run("return document.querySelector('#flame .chart').clientWidth")
        wanted, sums = [], self.inclusive()
        for chain, numbers in sums.items():
            if not numbers[place]:
                continue
            share = numbers[place] / sums[()][place]
            cpi = f"{numbers[1] / numbers[2]:.1f}" if numbers[2] else "–"
            label = (
                f"{chain[-1] if chain else 'all'}; {100 * share:.1f} % of the {event};"
                f" {numbers[place]:_} {event.split('-')[-1]}; {numbers[0]} windows; CPI {cpi}"
            )
            wanted.append((label.replace("_", "\u202f"), len(chain), share * width))
        for one, true in zip(self.frames(), sorted(wanted), strict=True):
            self.assertTrue(one[0].startswith(true[0]), (one, true))
            self.assertEqual(one[1], true[1])
            self.assertAlmostEqual(one[2], true[2], delta=0.1)

    def test_flame_graph(self):
        self.open(self.chains_page)
        self.browser.one("#tab-flame").click()
        self.assertEqual(
            self.browser.one("#flame .legend").text.split("\n")[0],
            "Width: cycles, 67\u202f500 cycles in all",
        )
        self.check("cycles", 1)
        self.browser.picture(DATA / "flame-light.png")
        for place, event in (2, "instructions"), (3, "page-faults"), (1, "cycles"):
            self.browser.run(
                """const [widths] = document.querySelectorAll('#flame select');
                widths.value = arguments[0]; widths.dispatchEvent(new Event('change'));""",
                event,
            )
            self.check(event, place)


class Changes(Case):
    """The comparison of two tables."""

    def expected(self) -> list[list[str]]:
        """The expected rows."""
        rows = []
        for row in self.diff["functions"]:
            cells = [
                row["symbol"]
                + {"both": "", "appeared": " (new)", "vanished": " (gone)"}[row["status"]]
            ]
            for column in self.diff["columns"]:
                one, digits = row["metrics"][column["name"]], column["digits"]
                if one["change"] is None:
                    both = (
                        as_shown(one[side], digits) + "?" * is_weak(one[side])
                        for side in ("before", "after")
                    )
                    cells.append(" → ".join(both))
                    continue
                change = one["change"]["value"]
                sign = "+" if change > 0 else "−" if change < 0 else "±"
                mark = "?" * (is_weak(one["before"]) or is_weak(one["after"]))
                cells.append(sign + text(abs(change), digits) + mark)
            rows.append(cells)
        return rows

    def test_values(self):
        self.open(self.diff_page)
        self.assertEqual(self.cells("diff"), self.expected())
        self.browser.picture(DATA / "diff-light.png")


class Whole(Case):
    """All views."""

    def test_accessible(self):
        """axe-core finds no fault by the rules of WCAG and of good practice."""
        axe = (TOP / "build/report/web/node_modules/axe-core/axe.min.js").read_text(
            encoding="utf-8"
        )
        for path in (
            self.page,
            self.diff_page,
            self.chains_page,
            self.levels_page,
            self.timeline_page,
        ):
            self.open(path, "CPI=%3E8&backend_bound=%3E30")
            self.browser.run(axe)
            for theme in ("light", "dark"):
                for tab in self.browser.all("[role=tab]"):
                    tab.click()
                    for row in self.browser.all("#table tbody th.name, #diff tbody th.name")[:1]:
                        if row.is_displayed():
                            row.click()
                    found = self.browser.driver.execute_async_script(
                        """const done = arguments[0];
                        axe.run().then(result => done([result.passes.length,
                            result.violations.map(rule =>
                                [rule.id, rule.help, rule.nodes[0].html])]))"""
                    )
                    self.assertEqual(found[1], [], (path.name, theme, tab.text))
                    self.assertGreater(found[0], 20)
                self.browser.one("#theme").click()
            self.tearDown()

    def test_names_stay_text(self):
        sums = random_sums(DATA / "nasty.sums", reports.NASTY)
        table, path = perf_table(sums), page("nasty", sums)
        self.open(path)
        for at in range(len(table["functions"])):
            self.browser.all("#table tbody th.name")[at].click()
        labels = [row["label"] for row in table["functions"]]
        self.assertEqual(self.names(), labels)
        self.browser.one("#tab-flame").click()
        self.browser.picture(DATA / "nasty.png")
        self.assertEqual(self.browser.run("return document.scripts.length"), 3)
        self.assertEqual(self.browser.all("body img, body b"), [])
        with self.assertRaises(NoAlertPresentException):
            _ = self.browser.driver.switch_to.alert.text
