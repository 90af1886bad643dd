# SPDX-License-Identifier: GPL-2.0
"""The page of functions-report in headless Chromium.

Tables are made up in the form of perf functions report -j. The page must show the values that the
tests calculate. Screenshots are left in build/BASE/check/report for people to look at.
"""

import re
import unittest
from pathlib import Path

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.harness import reports
from tests.harness.chromium import Browser
from tests.harness.env import TOP, must
from tests.harness.reports import DATA, NAMES, REPORT, page

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

CLASSES = 5

# metrics of top-down analysis, each with the level above
ARM = {
    "frontend_bound": None,
    "bad_speculation": None,
    "backend_bound": None,
    "retiring": None,
    "frontend_latency": "frontend_bound",
    "frontend_bandwidth": "frontend_bound",
    "backend_core": "backend_bound",
    "backend_memory": "backend_bound",
}


def text(value: float | None, digits: int) -> str:
    """A number as the page prints it."""
    return "–" if value is None else f"{value:.{digits}f}"


def as_shown(value: reports.Table | None, digits: int) -> str:
    """A value as the page prints it: a rough one has a ~."""
    mark = "~" if value and value.get("mark") == "rough" else ""
    return mark + text(value and value["value"], digits)


def is_weak(value: reports.Table | None) -> bool:
    return bool(value) and value.get("mark") == "weak"


def setUpModule() -> None:
    reports.prepare()


class Case(unittest.TestCase):
    """Opens pages as files."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.table = reports.table(NAMES)
        cls.page = page("table", cls.table)
        cls.diff = reports.diff(cls.table, reports.table([*NAMES[2:], "brand_new"], seed=2))
        cls.diff_page = page("diff", reports.table([*NAMES[2:], "brand_new"], seed=2), cls.diff)
        cls.levels = reports.table(NAMES)
        reports.add_levels(cls.levels, ARM, weak=7)
        cls.levels_page = page("levels", cls.levels)
        cls.intervals = cls.make_intervals()
        cls.timeline_page = page("timeline", cls.table, intervals=cls.intervals)
        (DATA / "chains.sums").write_text(reports.chain_sums(CHAINS), encoding="utf-8")
        must(REPORT, "--html", DATA / "chains.html", DATA / "chains.sums")

    @classmethod
    def make_intervals(cls) -> list[reports.Table]:
        """Tables of 10 s each, with a gap; one of the two functions is missing in some of them."""
        made = []
        for number in (0, 1, 2, 3, 6, 7):
            one = reports.table(NAMES, seed=20 + number)
            for row in one["functions"]:
                row["dso"] = next(
                    whole["dso"]
                    for whole in cls.table["functions"]
                    if whole["symbol"] == row["symbol"]
                )
            if number % 2:
                one["functions"] = [row for row in one["functions"] if row["symbol"] != NAMES[3]]
            made.append({"time": [500.25 + 10 * number, 510.25 + 10 * number - 1e-9], **one})
        return made

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

    def names(self, panel: str = "table") -> list[str]:
        return [row[0] for row in self.cells(panel)]

    def header(self, name: str, panel: str = "table"):
        return next(
            button
            for button in self.browser.all(f"#{panel} thead button")
            if button.text.rstrip("▲▼") == name
        )

    def sorted_rows(self, name: str, up: bool, table: reports.Table | None = None) -> list[str]:
        """The expected order: undefined values last, equal ones as in perf's table."""
        rows = (table or self.table)["functions"]
        known = [row for row in rows if row["metrics"][name] is not None]
        known.sort(key=lambda row: row["metrics"][name]["value"] * (1 if up else -1))
        return [
            row["symbol"] for row in known + [row for row in rows if row["metrics"][name] is None]
        ]

    def focus(self, what: str):
        """A property of the focused element."""
        return self.browser.run(f"return document.activeElement.{what}")

    def focused(self) -> str:
        """The name in the focused row."""
        return self.browser.run(
            "return document.activeElement.parentElement.firstChild.textContent"
        )

    def frames(self) -> dict[str, dict]:
        """The frames of the flame graph by name, depth and place, after animations have ended."""
        WebDriverWait(self.browser.driver, 30).until(
            lambda _driver: self.browser.run(
                "return ![...document.querySelectorAll('#flame .chart svg *')].some(element =>"
                " element.__transition)"
            )
        )
        rows = self.browser.run(
            """return [...document.querySelectorAll('#flame g.frame')].map(g => [
            g.getAttribute('name'),
            g.ariaLabel ?? g.getAttribute('aria-label'), Number(g.getAttribute('aria-level')) - 1,
            g.querySelector('rect').getBoundingClientRect().width,
            g.querySelector('rect').getBoundingClientRect().left,
            g.querySelector('rect').getAttribute('fill')])"""
        )
        return {
            (name, depth, round(left)): {"says": says, "width": width, "fill": fill}
            for name, says, depth, width, left, fill in rows
        }


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
        self.browser.one("#facts summary").click()
        self.assertEqual(
            [cell.text for cell in self.browser.all("#facts tbody :is(th, td)")],
            [
                ", ".join(reports.EVENTS),
                "999\u202f700",
                "300",
                "one",
                "2^12",
                "windows",
            ],
        )
        self.browser.picture(DATA / "table-light.png")

    def test_colours_of_rates(self):
        """The best fifth of the way from the lowest value to the highest one looks best."""
        self.open(self.page)
        seen, zeros = set(), 0
        for column in self.table["columns"]:
            if column["role"] != "rate":
                continue
            name = column["name"]
            rows = self.table["functions"]
            at = 1 + self.table["columns"].index(column)
            looks = self.browser.run(
                "return [...document.querySelectorAll('#table tr.row')].map(row =>"
                " row.children[arguments[0]].className)",
                at,
            )
            printed = [
                None
                if row["metrics"][name] is None or is_weak(row["metrics"][name])
                else float(text(row["metrics"][name]["value"], column["digits"]))
                for row in rows
            ]
            sure = [value for value in printed if value is not None]
            best, most = min(sure), max(sure)
            classes = min(CLASSES, len(set(sure)))
            for value, look in zip(printed, looks):
                if value == 0:
                    self.assertEqual(look, "")
                    zeros += 1
                elif value is not None:
                    part = classes * (value - best) / (most - best)
                    place = min(int(part + 1e-6), classes - 1)
                    wanted = place * (CLASSES - 1) / (classes - 1)
                    self.assertAlmostEqual(int(look[1:]), wanted, delta=0.5)
                    seen.add(look)
        self.assertGreater(zeros, 0)
        self.assertLessEqual({"q0", "q4"}, seen)

    def test_sorts_by_click(self):
        self.open(self.page)
        self.assertEqual(
            self.header("%CY").find_element("xpath", "..").get_attribute("aria-sort"), "descending"
        )
        self.assertEqual(self.names(), self.sorted_rows("%CY", False))
        for name in (column["name"] for column in self.table["columns"]):
            for up in (False, True):
                self.header(name).click()
                self.assertEqual(self.names(), self.sorted_rows(name, up), (name, up))
                header = self.header(name).find_element("xpath", "..")
                self.assertEqual(
                    header.get_attribute("aria-sort"), "ascending" if up else "descending"
                )
                self.assertEqual(len(self.browser.all("#table th[aria-sort]")), 1)
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
        box.clear()
        box.send_keys("/(/")
        self.assertEqual(box.get_attribute("aria-invalid"), "true")
        box.send_keys(Keys.ESCAPE)
        self.assertEqual((self.names(), box.get_attribute("value")), (every, ""))
        box.send_keys("libexample")  # a DSO
        self.assertEqual(
            self.names(),
            [row["symbol"] for row in self.table["functions"] if "libexample" in row["dso"]],
        )
        # a path is no expression
        names = ["/usr/lib/libc.so.6", "/usr/lib/libstdc++.so.6"]
        self.open(page("paths", reports.table(names)))
        self.browser.one("#table input[type=search]").send_keys("/usr/lib/libstdc++")
        self.assertEqual(self.names(), names[1:])

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
        self.browser.keys("/")
        self.assertEqual(self.focus("type"), "search")
        self.browser.keys("sort", Keys.ARROW_DOWN)
        found = self.names()
        self.assertEqual(self.focused(), found[0])
        self.browser.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
        self.assertEqual(self.focused(), found[1])
        self.browser.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.focus("cellIndex"), 2)
        self.assertIn(f"{found[1]}: CPI", self.browser.one("#table .hint").text)
        self.browser.keys(Keys.ENTER)
        self.assertEqual(self.focus("parentElement.firstChild.ariaExpanded"), "true")
        row = next(row for row in self.table["functions"] if row["symbol"] == found[1])
        detail = self.browser.one("tr.detail").text
        for event, one in row["events"].items():
            self.assertIn(f"{event} {one['value']}", detail)
        self.assertIn(row["dso"], detail)
        self.browser.keys(Keys.ENTER)
        self.assertEqual(self.browser.all("tr.detail"), [])
        self.assertEqual(self.focused(), found[1])
        self.browser.run("getSelection().selectAllChildren(document.querySelector('h1'))")
        self.browser.keys(Keys.ENTER)
        self.assertEqual(len(self.browser.all("tr.detail")), 1)
        self.browser.run("getSelection().empty()")
        self.browser.keys(Keys.ENTER)
        self.browser.keys(Keys.ESCAPE, Keys.ESCAPE)
        self.assertEqual((self.focus("type"), self.names()), ("search", every))
        # to a header, which sorts
        for _ in range(40):
            self.browser.keys(Keys.TAB)
            if self.focus("textContent") == "CM/KI":
                break
        self.browser.keys(Keys.SPACE)
        self.assertEqual(self.names(), self.sorted_rows("CM/KI", False))
        self.browser.keys(Keys.ENTER)
        self.assertEqual(self.names(), self.sorted_rows("CM/KI", True))
        self.browser.keys("d")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme"), "dark")
        # neither the head nor the names cover the focused cell
        self.browser.window(500, 500)
        self.browser.keys("/", Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.END)
        for key in [Keys.ARROW_LEFT] * 5 + [Keys.ARROW_UP] * 15:
            self.browser.keys(key)
            self.assertTrue(
                self.browser.run(
                    """const cell = document.activeElement, box = cell.getBoundingClientRect();
                    return cell.contains(document.elementFromPoint(box.left + 4, box.top + 4))"""
                ),
                key,
            )
        self.browser.keys("2")
        self.assertTrue(self.browser.one("#flame").is_displayed())
        self.browser.keys(Keys.ARROW_LEFT)
        self.assertTrue(self.browser.one("#table").is_displayed())


class Topdown(Case):
    """The tree of top-down analysis."""

    def test_bars_are_percentages(self):
        self.open(self.levels_page)
        self.browser.one("#tab-topdown").click()
        first = [name for name, above in ARM.items() if not above]
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

    def bars(self, panel_column: int) -> dict[str, list[tuple[float, float, str]]]:
        """The places where the bars of each function begin, their heights, and their looks."""
        result = {}
        for name, paths in self.browser.run(
            """return [...document.querySelectorAll('#timeline tr.row')].map(row => [
            row.firstChild.textContent, [...row.children[arguments[0]].querySelectorAll('path')]
            .map(path => [path.getAttribute('fill'), path.getAttribute('d')])])""",
            panel_column,
        ):
            result[name] = sorted(
                (float(x), float(high), fill)
                for fill, path in paths
                for x, high in re.findall(r"M([\d.]+) 30v-([\d.]+)", path)
            )
        return result

    def check(self, column: int, name: str) -> set[str]:
        """Checks the bars of a metric; returns their looks."""
        found, width, high = self.bars(column), 240, 30
        sure = [
            row["metrics"][name]["value"]
            for one in self.intervals
            for row in one["functions"]
            if row["metrics"][name] is not None and not is_weak(row["metrics"][name])
        ]
        looks = set()
        for function in NAMES:
            expected = []
            for one in self.intervals:
                for row in one["functions"]:
                    value = row["metrics"][name]
                    if row["symbol"] == function and value is not None:
                        expected.append(
                            (
                                width * (one["time"][0] - 500.25) / 80,
                                max(1, min(1, value["value"] / max(sure)) * high),
                                is_weak(value),
                            )
                        )
            self.assertEqual(len(found[function]), len(expected), function)
            for (x, height, fill), (at, tall, weak) in zip(found[function], expected):
                self.assertAlmostEqual(x, at, delta=0.02)
                self.assertAlmostEqual(height, tall, delta=0.02)
                self.assertEqual(fill == "url(#unsupported)", weak)
                looks.add(fill)
        return looks

    def test_bars(self):
        self.open(self.timeline_page)
        self.browser.keys("3")
        self.assertIn("6 intervals, from 0.0 s to 80.0 s", self.browser.one("#timeline .note").text)
        self.assertEqual(self.check(1, "%CY"), {"var(--b4)", "url(#unsupported)"})
        looks = self.check(2, "CPI")
        self.assertLessEqual({f"var(--q{i})" for i in range(CLASSES)}, looks)
        self.browser.picture(DATA / "timeline-light.png")
        self.header("metric", "timeline").click()
        self.assertEqual(self.names("timeline"), self.sorted_rows("CPI", False))
        self.header("share", "timeline").click()
        self.browser.run(
            "const s = document.querySelector('#timeline select'); s.value = [...s.options].find("
            "o => /^CM/.test(o.text)).value; s.dispatchEvent(new Event('change'))"
        )
        self.check(2, "CM/KI")
        self.header("metric", "timeline").click()
        self.assertEqual(self.names("timeline"), self.sorted_rows("CM/KI", False))


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

    def check(self, event: str, place: int) -> None:
        """The frames are as wide as an event, which is at this place of CHAINS."""
        frames = self.frames()
        expected = {chain: one for chain, one in self.inclusive().items() if one[place]}
        width = self.browser.run("return document.querySelector('#flame .chart').clientWidth")
        self.assertEqual(
            sorted((name, depth) for name, depth, _ in frames),
            sorted((chain[-1] if chain else "all", len(chain)) for chain in expected),
        )
        wanted = []
        for chain, numbers in expected.items():
            share = numbers[place] / expected[()][place]
            cpi = f"{numbers[1] / numbers[2]:.1f}" if numbers[2] else "–"
            says = (
                f"{chain[-1] if chain else 'all'}; {100 * share:.1f} % of the {event};"
                f" {numbers[place]:_} {event.split('-')[-1]}; {numbers[0]} windows; CPI {cpi}"
            )
            wanted.append((says.replace("_", "\u202f"), len(chain), share * width))
        seen = sorted(
            (frame["says"], depth, frame["width"]) for (_, depth, _), frame in frames.items()
        )
        for one, true in zip(seen, sorted(wanted)):
            self.assertTrue(one[0].startswith(true[0]), (one, true))
            self.assertEqual(one[1], true[1])
            self.assertAlmostEqual(one[2], true[2], delta=0.1)

    def test_flame_graph(self):
        self.open(DATA / "chains.html")
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
                    both = (as_shown(one[side], digits) for side in ("before", "after"))
                    cells.append(" → ".join(both))
                    continue
                change = one["change"]["value"]
                sign = "+" if change > 0 else "−" if change < 0 else "±"
                cells.append(sign + text(abs(change), digits))
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
            DATA / "chains.html",
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
        table = reports.table([*reports.NASTY, ""])
        path = page("nasty", table, reports.diff(table, reports.table(list(reports.NASTY), seed=3)))
        self.open(path)
        self.browser.one("#tab-table").click()
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
