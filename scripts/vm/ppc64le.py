# SPDX-License-Identifier: GPL-2.0
"""ppc64le: QEMU's pseries machine; the PMU of its POWER10 counts cycles and instructions."""

ARCH = {
    "debian": "ppc64el",
    "suite": "bookworm",
    "kernel_arch": "powerpc",
    "cross_compile": "powerpc64le-linux-gnu-",
    "multiarch": "powerpc64le-linux-gnu",
    "image": "vmlinux",
    "console": "hvc0",
    "packages": "g++-powerpc64le-linux-gnu libc6-dev-ppc64el-cross",
    "qemu_version": "10",
    # x-vof: the default firmware, SLOF, takes longer than all the rest. cap-*: TCG lacks these
    # mitigations; QEMU does not warn of that, and Linux uses none of its own instead, which take
    # 400 cycles at each return from an interrupt.
    "qemu": [
        "qemu-system-ppc64",
        "-M",
        "pseries,x-vof=on,cap-cfpc=broken,cap-ibs=broken,cap-ccf-assist=off",
        "-cpu",
        "power10",
        "-icount",
        "shift=0,sleep=off",
    ],
    # the virtio console comes after the machine's own
    "cmdline": "output=hvc1 mitigations=off",
    "workload": "benchmark 0 1",
    # QEMU counts the kernel even with :u; without :u its functions have names in the table. The
    # first 290 cycles of a window are the return from the interrupt, so a plain period of 300 makes
    # hardly any progress.
    "events": "{cycles/period=999000,alt-period=1000/,instructions}:S",
    "about": """
In the emulated machine each instruction takes one cycle and one nanosecond. Its
events of caches, branches and TLBs count nothing. It also counts in the kernel.
Each window begins with the return from an interrupt, and some instructions of
that are not counted, so CPI is 1.1. This command counts the true shares of the
instructions, one instruction at a time:

  make vm ARCH=ppc64le RUN='benchmark --truth 0 1'

Real counters need real hardware: see HARDWARE.md.
""",
    "kconfig": """
CONFIG_PPC64=y
CONFIG_CPU_LITTLE_ENDIAN=y
CONFIG_PPC_BOOK3S_64=y
CONFIG_POWER8_CPU=y
CONFIG_ALTIVEC=y
CONFIG_VSX=y
CONFIG_PPC_64S_HASH_MMU=y
CONFIG_PPC_RADIX_MMU=y
CONFIG_PPC_RADIX_MMU_DEFAULT=y
CONFIG_PPC_POWERNV=n
CONFIG_PPC_PSERIES=y
CONFIG_PPC_SPLPAR=y
CONFIG_PPC_QUEUED_SPINLOCKS=y
CONFIG_PPC_OF_BOOT_TRAMPOLINE=y
CONFIG_PPC_4K_PAGES=y
CONFIG_HVC_CONSOLE=y
CONFIG_HVC_DRIVER=y
CONFIG_PPC_PERF_CTRS=y
# the dispatch trace log, as events
CONFIG_HV_PERF_CTRS=y
""",
}
