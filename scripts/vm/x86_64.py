# SPDX-License-Identifier: GPL-2.0
"""x86_64: QEMU's q35 machine. TCG emulates no PMU.

There are only software events, tracepoints, probes and breakpoints.
"""

ARCH = {
    "debian": "amd64",
    "suite": "bookworm",
    "kernel_arch": "x86_64",
    "cross_compile": "x86_64-linux-gnu-",
    "multiarch": "x86_64-linux-gnu",
    "image": "arch/x86/boot/bzImage",
    "console": "ttyS0",
    "packages": "g++-x86-64-linux-gnu libc6-dev-amd64-cross qemu-system-x86",
    # -icount: 1 instruction = 1 ns, so that two runs of one command are the same
    "qemu": ["qemu-system-x86_64", "-M", "q35", "-cpu", "max", "-icount", "shift=0,sleep=off"],
    "cmdline": "",
    # The CPU clock is sampled at most once in 10 us, which are 10,000 instructions here: make
    # calls ten times as long.
    "benchmark": "-DPIECES=80",
    "workload": "benchmark --iterations 500 --faults 0 1",
    "events": "{cpu-clock/period=990000,alt-period=10000/,page-faults}:uS",
    # for a real PMU: ACCEL=kvm
    "hardware_events": "{cycles/period=999700,alt-period=300/,instructions,branch-misses,"
    "cache-misses}:uS",
    "about": """
The emulated machine has no PMU, so only software events count. The leader is the
CPU clock; each instruction takes one nanosecond. The shortest window of this
clock is 10 microseconds, so the calls of this benchmark are ten times as long.
%CLK is the share of the time. For dcache_miss() it includes the time that its
page faults take in the kernel. Only dcache_miss() has page faults. This command
counts the true shares of the instructions, one instruction at a time:

  make vm ARCH=x86_64 RUN='benchmark --truth --faults 0 1'

Real counters need real hardware: see HARDWARE.md.
""",
    "kconfig": """
CONFIG_64BIT=y
CONFIG_ACPI=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_SERIAL_8250_PNP=y
CONFIG_EARLY_PRINTK=y
CONFIG_DMI=y
CONFIG_X86_PM_TIMER=y
CONFIG_ZONE_DMA=y
""",
}
