# SPDX-License-Identifier: GPL-2.0
"""arm64: QEMU's virt machine, whose PMUv3 raises overflow interrupts under TCG."""

ARCH = {
    "debian": "arm64",
    "suite": "bookworm",
    "kernel_arch": "arm64",
    "cross_compile": "aarch64-linux-gnu-",
    "multiarch": "aarch64-linux-gnu",
    "image": "arch/arm64/boot/Image",
    "console": "ttyAMA0",
    "packages": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm",
    # GICv3 carries the pseudo-NMI without which kernel samples pile up where
    # interrupts are enabled again. -icount makes the machine count instructions
    # (1 instruction = 1 ns = 1 cycle) and two runs of one command the same.
    "qemu": [
        "qemu-system-aarch64",
        "-M",
        "virt,gic-version=3",
        "-cpu",
        "max",
        "-icount",
        "shift=0,sleep=off",
    ],
    "cmdline": "irqchip.gicv3_pseudo_nmi=1",
    "workload": "benchmark --faults 0 1",
    "events": "{cycles/period=999700,alt-period=300/,instructions,page-faults}:uS",
    "model_workload": "benchmark --iterations 6000 0 1",
    "model_events": "{cycles/period=99700,alt-period=300/,instructions,branch-misses,"
    "cache-misses,dTLB-load-misses}:uS",
    # of a real PMU: ACCEL=kvm
    "hardware_events": "{cycles/period=999700,alt-period=300/,instructions,branch-misses,"
    "cache-misses}:uS",
    "about": """
The emulated machine takes each instruction for one cycle and one nanosecond:
cycles and instructions are exact, CPI is 1 everywhere. It has no caches and no
branch predictor, so their events are not supported. What the table shows is
that windows are attributed to the right function. A rate that differs between
the functions of the benchmark is that of page faults (PF/KI); what it really is,
and the shares, `make vm RUN='benchmark --truth --faults 0 1'` counts one
instruction at a time. Real counters need real hardware: see README.md.
""",
    "model_about": """
The core model lets instructions wait for caches, TLBs, branches and slow units,
and the emulated PMU counts why. A model's CPI is not that of a real core. What
the table shows is that a number which differs between the functions for a known
reason comes out as that number. emulator/README.md tells what the model is.
""",
    "kconfig": """
CONFIG_64BIT=y
CONFIG_SERIAL_AMBA_PL011=y
CONFIG_SERIAL_AMBA_PL011_CONSOLE=y
CONFIG_HW_PERF_EVENTS=y
CONFIG_ARM_PMU=y
CONFIG_ARM_PMUV3=y
CONFIG_ARM_PMU_ACPI=n
CONFIG_ARM64_PSEUDO_NMI=y
CONFIG_PCI_HOST_GENERIC=y
CONFIG_MITIGATE_SPECTRE_BRANCH_HISTORY=y
CONFIG_PID_IN_CONTEXTIDR=y
CONFIG_RELOCATABLE=y
CONFIG_UNMAP_KERNEL_AT_EL0=y
CONFIG_ZONE_DMA=y
CONFIG_ZONE_DMA32=y
""",
}
