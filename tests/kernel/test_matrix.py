# SPDX-License-Identifier: GPL-2.0
"""Every perf on every kernel: events of the series alternate, and each perf reads what all wrote.

The perfs are those of the series on both bases, and the distribution's own. The kernels are both
bases, with the series and without.
"""

import itertools
import shutil
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

from tests.harness import perfdata
from tests.harness.env import ARCH, CHECK, TOP, in_guest, machine, must

SLOW = True
MINUTES = 40
LOCK = "trees"
MACHINES = "arm64"

BASES = {base: TOP / "build" / base for base in ("6.12", "7.3")}
SERIES, PLAIN = "series", "pristine"
KERNELS = [(base, kind) for base in BASES for kind in (SERIES, PLAIN)]
DISTRIBUTION = "distribution"
PERFS = (*BASES, DISTRIBUTION)
SHARE = CHECK / "matrix"
LONG, WINDOW = 99700, 300
COMMANDS = f"""
sysctl -qw kernel.perf_event_max_sample_rate=10000000 kernel.perf_cpu_time_max_percent=0
cd /tmp
record() {{
	status=0
	$perf record -q -T -P --sample-cpu -m 16M -o $1.data -e "{{cycles/$2/,instructions,page-faults}}:uS" \\
		-- sh -c 'echo ran; exec benchmark --iterations 300 0 1' > $1.out 2>&1 || status=$?
	echo $status >> $1.out
	mv $1.* /share/$out
}}
record plain period={LONG}
record alternate period={LONG},alt-period={WINDOW}
record jitter period={LONG},alt-period={WINDOW},alt-period-jitter=5
"""
# places in an attr of the period, and of the series' fields: alternate period and jitter
PERIOD, ALTERNATE = slice(16, 24), slice(144, 156)


def image(base: str, kind: str) -> Path:
    """The image of a kernel for the emulated machine."""
    return BASES[base] / (
        "check/pristine/Image" if kind == PLAIN else f"kernel/{ARCH}/arch/arm64/boot/Image"
    )


def recorded(perf: str, base: str, kind: str) -> Path:
    """The folder of the recordings that a perf has made on a kernel."""
    return SHARE / f"{perf}-on-{base}-{kind}"


def distribution(arch: str, seen_as: str | None = None) -> str:
    """Fetches the distribution's perf for an architecture; returns the command that runs it.

    The command uses the distribution's libraries. seen_as: the path of its folder where it runs.
    """
    out = CHECK / "distribution" / arch
    must(TOP / "scripts/debian/fetch.sh", out, machine(ARCH, "suite"), arch, "linux-perf")
    there = seen_as or str(out)
    loader, *_ = out.glob("lib*/ld-linux-*.so*")
    (libc,) = out.glob("lib/*/libc.so.6")
    libraries = ":".join(f"{there}/{folder}/{libc.parent.name}" for folder in ("lib", "usr/lib"))
    return f"{there}/{loader.relative_to(out)} --library-path {libraries} {there}/usr/bin/perf"


def setUpModule() -> None:
    for base in BASES:
        env = {"BASE": base}
        must("make", "vm", "RUN=true", f"BASE={base}", env=env)
        must("make", "perf", f"BASE={base}", env=env)
        must(
            sys.executable,
            "-c",
            "from tests.harness.pristine import pristine_kernel; pristine_kernel()",
            env=env,
        )
    shutil.rmtree(SHARE, ignore_errors=True)
    commands = {
        **dict.fromkeys(BASES, "perf"),
        DISTRIBUTION: distribution(ARCH, f"/share/{DISTRIBUTION}"),
    }
    shutil.copytree(CHECK / "distribution" / ARCH, SHARE / DISTRIBUTION, symlinks=True)
    for perf, kernel in itertools.product(PERFS, KERNELS):
        out = recorded(perf, *kernel)
        out.mkdir(parents=True)
        root = BASES.get(perf, BASES["6.12"]) / "root" / f"{ARCH}.cpio"
        in_guest(
            f"perf='{commands[perf]}' out={out.name}\n{COMMANDS}",
            "--kernel",
            image(*kernel),
            "--root",
            root,
            share=SHARE,
        )


def recordings() -> Iterator[tuple[str, Path]]:
    """Each recording, and the perf that made it."""
    for perf, kernel, name in itertools.product(PERFS, KERNELS, ("plain", "alternate", "jitter")):
        recording = recorded(perf, *kernel) / f"{name}.data"
        if recording.exists() and recording.stat().st_size:
            yield perf, recording


def attr_of(path: Path) -> bytearray:
    """The leader's attr, in its own size."""
    leader = perfdata.read(path).leader()
    data = path.read_bytes()
    at = int.from_bytes(data[24:32], "little")
    return bytearray(data[at : at + leader.size])


class Recorded(unittest.TestCase):
    def said(self, where: Path, name: str) -> tuple[list[str], int]:
        """The output of perf and the program, and perf's exit status."""
        *text, status = (where / f"{name}.out").read_text().splitlines()
        return text, int(status)

    def test_series_on_series(self):
        """The event alternates, and its attr has no other field set."""
        for perf, base in itertools.product(BASES, BASES):
            where = recorded(perf, base, SERIES)
            for name, jitter in ("alternate", 0), ("jitter", 5):
                with self.subTest(f"{where.name} {name}"):
                    self.assertEqual(self.said(where, name), (["ran"], 0))
                    recording = perfdata.read(where / f"{name}.data")
                    leader = recording.leader()
                    self.assertEqual(
                        (leader.alternative_sample_period, leader.jitter_alternate_period),
                        (WINDOW, jitter),
                    )
                    periods = [sample.period for sample in recording.stream()]
                    self.assertGreater(len(periods), 200)
                    half = 1 << jitter if jitter else 0
                    # arm64's driver reloads the counter before the overflow is handled
                    for found, nominal in zip(
                        periods, itertools.chain([LONG], itertools.cycle((LONG, WINDOW)))
                    ):
                        self.assertLessEqual(abs(found - nominal), half)
                    alternate, plain = attr_of(where / f"{name}.data"), attr_of(
                        where / "plain.data"
                    )
                    for attr in alternate, plain:
                        attr[PERIOD], attr[ALTERNATE] = bytes(8), bytes(12)
                    self.assertEqual(alternate, plain)


class Reading(unittest.TestCase):
    def sums(self, perf: str, recording: Path, maker: str) -> str:
        """The sums of another perf's recording."""
        root = BASES.get(maker, BASES["6.12"])
        program = BASES[perf] / "perf/perf"
        options = "-i", recording, "--symfs", root / "root" / ARCH
        return must(program, "functions", "report", *options, "--sums", "-")

    def test_series(self):
        """Both perfs make the same sums of each recording."""
        for perf, recording in recordings():
            with self.subTest(f"{recording.parent.name} {recording.stem}"):
                first, other = (self.sums(reader, recording, perf) for reader in BASES)
                self.assertIn("dcache_miss", first)
                self.assertEqual(other, first)


if __name__ == "__main__":
    unittest.main()
