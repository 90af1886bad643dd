# SPDX-License-Identifier: GPL-2.0
"""How pytest runs the suites. A suite is a module, tests/SUBJECT/test_NAME.py.

A suite declares what it needs, as constants; all of them can be left out:

 SLOW = True             it runs only with --slow (`make check-all`), or if its file is named
 ON_BASES = "every"      --slow runs this slow suite on every base of Linux, not only on 6.12;
                         "newer": on every base but 6.12
 MINUTES = 4             how long it takes: a suite with none takes less than a minute
 LOCK = "trees"          never beside another suite with this lock: it checks out or commits in the
                         Linux trees, or waits for a suite that does
 ALONE = True            it measures: after all others, never beside another suite
 MACHINES = "arm64"      the emulated machines that it needs, separated by spaces; emulator for
                         the core model

They become marks for -m: slow, long, alone, machine.
"""

import fcntl
import os
from pathlib import Path

import pytest
from xdist.scheduler import LoadGroupScheduling

from tests.harness.env import BASE, BUILD, CHECK, TOP

DEFAULT = "6.12"  # base of Linux
# do not overwrite the results of `make bench`
os.environ["BENCH_OUT"] = str(CHECK / "bench")


def declared(item: pytest.Item, name: str, default):
    return getattr(item.getparent(pytest.Module).obj, name, default)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run slow suites")
    parser.addoption("--needs", action="store_true", help="print what the tests need, run none")


@pytest.hookimpl(trylast=True)  # when there is a reporter
def pytest_configure(config: pytest.Config) -> None:
    CHECK.mkdir(parents=True, exist_ok=True)
    if config.option.slow:
        os.environ["CHECK_SLOW"] = "1"  # for tests/harness/env.py
    for mark in "slow", "long", "alone", "machine":
        config.addinivalue_line("markers", f"{mark}: see tests/conftest.py")
    if config.option.needs:
        config.option.collectonly = True
        config.pluginmanager.unregister(name="terminalreporter")
    elif reporter := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(AtOnce(reporter))


class AtOnce:
    """Names a test that fails at once; pytest shows why at the end of the run."""

    def __init__(self, reporter) -> None:
        self.reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.reporter.verbosity == 0:
            self.reporter.write_line(f"\nFAILED {report.nodeid}")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives tests their marks, drops slow ones, and puts the longest suites first."""
    named = {Path(word.split("::")[0]).resolve() for word in config.args}
    minutes: dict[str, int] = {}  # of each group
    for path, item in {item.path: item for item in items}.items():
        group = declared(item, "LOCK", str(path))
        minutes[group] = minutes.get(group, 0) + declared(item, "MINUTES", 0)

    def is_wanted(item: pytest.Item) -> bool:
        if declared(item, "SLOW", False) is not True or item.path in named:
            return True
        bases = {DEFAULT: BASE == DEFAULT, "every": True, "newer": BASE != DEFAULT}
        return config.option.slow and bases[declared(item, "ON_BASES", DEFAULT)]

    def order(item: pytest.Item) -> tuple:
        group = declared(item, "LOCK", str(item.path))
        own = declared(item, "MINUTES", 0)
        return declared(item, "ALONE", False), -minutes[group], group, -own, str(item.path)

    dropped = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = sorted(filter(is_wanted, items), key=order)
    for item in items:
        length = declared(item, "MINUTES", 0)
        for mark, has in (
            ("slow", declared(item, "SLOW", False) is True),
            ("long", length),
            ("alone", declared(item, "ALONE", False)),
            ("machine", declared(item, "MACHINES", "")),
        ):
            if has:
                item.add_marker(mark)
        if lock := declared(item, "LOCK", ""):
            item.add_marker(pytest.mark.xdist_group(lock))
        if length:
            # it may wait for a kernel that another suite builds
            limit = 30 + 3 * length if not config.option.slow else 300
            item.add_marker(pytest.mark.timeout(60 * limit))


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.needs:
        words = {word for item in session.items for word in declared(item, "MACHINES", "").split()}
        words |= {"slow" for item in session.items if declared(item, "SLOW", False)}
        print(*sorted(words))


@pytest.fixture(scope="module", autouse=True)
def turn_and_machines(request: pytest.FixtureRequest):
    """Waits until this suite may run; fails if a machine has not been built."""
    missing = [
        name
        for name in getattr(request.module, "MACHINES", "").split()
        for path in (
            [TOP / "build/emulator/model.so"]
            if name == "emulator"
            else [BUILD / "kernel" / name / ".built", BUILD / "root" / f"{name}.cpio"]
        )
        if not path.exists()
    ]
    if missing:
        words = " ".join(dict.fromkeys(missing))
        pytest.fail(f"`make machines MACHINES='{words}'` builds what is missing", pytrace=False)
    with open(CHECK / "lock", "w", encoding="utf-8") as lock:
        alone = getattr(request.module, "ALONE", False)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


class Suites(LoadGroupScheduling):  # pylint: disable=abstract-method
    """A process of pytest-xdist gets a suite, or the suites of a lock, in the order of collection.

    A test that has ended its process fails, and another process runs what is left.
    """

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)  # the test itself if it has no group
        return nodeid.split("::")[0] if scope == nodeid else scope

    def _assign_work_unit(self, node) -> None:
        first = {self._split_scope(nodeid): 0 for nodeid in self.collection}  # in their order
        scope = next(scope for scope in first if scope in self.workqueue)
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node) -> None:
        # a process needs the next test to end one, and no more: another may be free earlier
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def remove_node(self, node) -> str | None:
        units = self.assigned_work.pop(node)
        left = [(unit, test) for unit in units.values() for test in unit if not unit[test]]
        if not left:
            return None
        unit, ended = left[0]
        unit[ended] = True  # xdist would run it again
        self.workqueue.update(
            {scope: unit for scope, unit in units.items() if not all(unit.values())}
        )
        for other in self.nodes:
            self._reschedule(other)
        return ended


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> Suites:
    return Suites(config, log)
