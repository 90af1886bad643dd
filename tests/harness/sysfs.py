# SPDX-License-Identifier: GPL-2.0
"""A made-up sysfs and tracefs: a CPU's PMU with an alias, software events, a tracepoint."""

from pathlib import Path

ALIAS_PERIOD = 77777

FILES = {
    "sys/bus/event_source/devices/cpu/type": "4",
    "sys/bus/event_source/devices/cpu/format/event": "config:0-7",
    "sys/bus/event_source/devices/cpu/format/umask": "config:8-15",
    **{
        f"sys/bus/event_source/devices/cpu/format/{name}": bits
        for name, bits in {
            "edge": "config:18",
            "any": "config:21",
            "inv": "config:23",
            "cmask": "config:24-31",
            "offcore_rsp": "config1:0-63",
            "ldlat": "config1:0-15",
            "frontend": "config1:0-23",
            "acr_mask": "config2:0-63",
        }.items()
    },
    "sys/bus/event_source/devices/cpu/events/other": f"event=0xc4,period={ALIAS_PERIOD}",
    "sys/bus/event_source/devices/software/type": "1",
    "sys/bus/event_source/devices/software/events/own": "config=2,period=5",
    "sys/bus/event_source/devices/breakpoint/type": "5",
    "sys/devices/system/cpu/online": "0",
    "tracing/events/header_page": "",
    "tracing/events/sched/sched_switch/id": "300",
    "tracing/events/sched/sched_switch/format": """name: sched_switch
ID: 300
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

print fmt: "%d", REC->common_type
""",
}


def make_system(folder: Path) -> dict[str, str]:
    """Makes the files in a folder.

    Returns an environment that makes perf read them, with a CPU that it knows.
    """
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return {
        "SYSFS_PATH": str(folder / "sys"),
        "TRACEFS_PATH": str(folder / "tracing"),
        "PERF_CPUID": "GenuineIntel-6-8C-1",
    }
