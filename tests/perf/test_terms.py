# SPDX-License-Identifier: GPL-2.0
"""The terms of alternate periods on the command line, for every kind of event.

`perf record -vv` prints the attr of an event before it opens it: that needs neither a PMU nor a
kernel that can alternate. The PMU, its aliases and the tracepoint are in a made-up sysfs and
tracefs.
"""

import platform
import re
import shutil
import tempfile
import unittest
from itertools import permutations
from pathlib import Path

from tests.harness.env import PERF, run
from tests.harness.sysfs import ALIAS_PERIOD, make_system

PERIOD, ALTERNATE, JITTER, COUNT = 1000, 300, 4, 3
TERMS = (
    f"period={PERIOD}",
    f"alt-period={ALTERNATE}",
    f"alt-period-jitter={JITTER},alt-period-count={COUNT}",
)
# each kind of event, with {} in place of the terms; `other` is an alias with a period of its own
KINDS = {
    "hardware": "cycles/{}/",
    "legacy cache": "L1-dcache-load-misses/{}/",
    "raw": "r1a/{}/",
    "numbers": "1:2/{}/",
    "terms of a PMU": "cpu/event=0x3c,{}/",
    "alias of sysfs": "cpu/other,{}/",
    "alias of sysfs, last": "cpu/{},other/",
    "alias of sysfs by its name": "other/{}/",
    "software": "page-faults/{}/",
    "clock": "cpu-clock/{}/",
    "software PMU": "software/config=2,{}/",
    "tracepoint": "sched:sched_switch/{}/",
    "tracepoints": "sched:sched_s*/{}/",
    "breakpoint": "mem:0x1000/8:w/{}/",
    "modifiers": "cycles/{}/upp",
}
JSON = {
    "alias of JSON": "cpu/inst_retired.any,{}/",
    "alias of JSON, last": "cpu/{},inst_retired.any/",
    "alias of JSON by its name": "inst_retired.any/{}/",
}


class Terms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = Path(tempfile.mkdtemp(prefix="terms."))
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.env = make_system(folder)

    def perf(self, command: str, *words: str) -> tuple[int, str]:
        workload = ["true"] if command != "top" else []
        done = run(PERF, command, *words, *workload, env=self.env, timeout=60)
        return done.returncode, done.stdout

    def attrs(self, *options: str) -> list[tuple]:
        """The sampling of each event that perf opened or tried to open.

        It has the period, or the frequency as text; alternate period, jitter, count; and whether
        samples have periods.
        """
        _, output = self.perf("record", "-vv", "-o", "/dev/null", *options)
        blocks = [
            dict(re.findall(r"^  (.*?)  +(.*)$", block, re.M))
            for block in re.findall(r"^perf_event_attr:\n((?:  .*\n)+)", output, re.M)
        ]
        # an attr without sample_type only asks what the kernel can do
        found = [
            (
                f"{values['{ sample_period, sample_freq }']} Hz"
                if "freq" in values
                else int(values.get("{ sample_period, sample_freq }", 0)),
                int(values.get("alternative_sample_period", 0)),
                int(values.get("jitter_alternate_period", 0)),
                int(values.get("alternative_sample_count", 0)),
                "PERIOD" in values["sample_type"].split("|"),
            )
            for values in blocks
            if "sample_type" in values
        ]
        self.assertTrue(found, output)
        return found

    def attr(self, *options: str) -> tuple:
        """The sampling of the first event."""
        return self.attrs(*options)[0]

    def refused(self, message: str, *words: str) -> str:
        status, output = self.perf(*words)
        self.assertNotEqual(status, 0)
        self.assertIn(message, output)
        return output

    def test_each_kind_of_event_in_any_order_of_the_terms(self):
        for kind, event in {**KINDS, **(JSON if platform.machine() == "x86_64" else {})}.items():
            for terms in permutations(TERMS):
                with self.subTest(kind, terms=terms):
                    self.assertEqual(
                        self.attr("-e", event.format(",".join(terms))),
                        (PERIOD, ALTERNATE, JITTER, COUNT, True),
                    )

    def test_no_jitter(self):
        for kind, event in KINDS.items():
            with self.subTest(kind):
                self.assertEqual(
                    self.attr("-e", event.format(",".join(TERMS[:2]))),
                    (PERIOD, ALTERNATE, 0, 0, True),
                )

    def test_period_of_the_command_line(self):
        for kind, event in KINDS.items():
            with self.subTest(kind):
                self.assertEqual(
                    self.attr("-c", "555", "-e", event.format(TERMS[1])),
                    (555, ALTERNATE, 0, 0, True),
                )
                self.assertEqual(
                    self.attr("-c", "555", "-e", event.format(",".join(TERMS[:2]))),
                    (PERIOD, ALTERNATE, 0, 0, True),
                )

    def test_frequency(self):
        """A term, which tracepoints lack, or the command line gives it. A period has precedence."""
        for kind, event in KINDS.items():
            with self.subTest(kind):
                for terms in permutations(("freq=99", *TERMS[1:])):
                    if kind.startswith("tracepoint"):
                        break
                    self.assertEqual(
                        self.attr("-e", event.format(",".join(terms))),
                        ("99 Hz", ALTERNATE, JITTER, COUNT, True),
                    )
                self.assertEqual(
                    self.attr("-F", "99", "-e", event.format(TERMS[1])),
                    (ALIAS_PERIOD if "alias" in kind else "99 Hz", ALTERNATE, 0, 0, True),
                )
                self.assertEqual(
                    self.attr("-F", "99", "-e", event.format(",".join(TERMS[:2]))),
                    (PERIOD, ALTERNATE, 0, 0, True),
                )

    def test_without_a_period(self):
        for kind, event in KINDS.items():
            if "alias" in kind:
                continue
            # with -vv perf prints what it opens
            for quiet in ("-vv",), ("-q",):
                with self.subTest(kind):
                    output = self.refused(
                        "'alt-period' needs 'period' or 'freq', as in "
                        "'period=1000000,alt-period=300', or -c or -F",
                        "record",
                        *quiet,
                        "-o",
                        "/dev/null",
                        "-e",
                        event.format(TERMS[1]),
                    )
                    self.assertNotIn("sys_perf_event_open", output)

    def test_perf_stat_does_not_sample(self):
        for term in "alt-period=300", "alt-period-jitter=3", "alt-period-count=3":
            for kind, event in KINDS.items():
                with self.subTest(kind):
                    name = term.split("=", maxsplit=1)[0]
                    self.refused(
                        f"'{name}' is not usable in 'perf stat'",
                        "stat",
                        "-e",
                        event.format(f"period=1000,{term}"),
                    )


if __name__ == "__main__":
    unittest.main()
