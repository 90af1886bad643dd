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
    "packages": "g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm",
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
    "model_workload": "benchmark --iterations 5000 0 1",
    # prime periods are in step with nothing
    "model_events": "{cycles/period=99700,alt-period=300/,instructions/period=50021/,"
    "branch-misses/period=1009/,cache-misses/period=1013/,dTLB-load-misses/period=499/}:uS",
    # of a real PMU: ACCEL=kvm
    "hardware_events": "{cycles/period=999700,alt-period=300/,instructions,branch-misses,"
    "cache-misses}:uS",
    "about": """
In the emulated machine each instruction takes one cycle and one nanosecond, so
each function has a CPI of 1. There are no caches and no branch predictor, and
their events are not supported. The table shows that windows count for the right
function: the functions differ in their page faults (PF/KI). This command counts
the true page faults and shares, one instruction at a time:

  make vm RUN='benchmark --truth --faults 0 1'

Real counters need real hardware: see HARDWARE.md.
""",
    "model_about": """
In the core model, instructions wait for caches, TLBs, branches and slow units,
and the emulated PMU counts why. The CPI is not that of a real core. The tables
show that perf finds a known difference between functions. emulator/README.md
describes the model.
""",
    "no_kernel_about": """This model leaves out the kernel, so the interrupt before each window disturbs
nothing. On a real core it does, as in make demo MODEL=small,kernel=on, whose
runs differ a little.
""",
    "kconfig": """
CONFIG_64BIT=y
CONFIG_SERIAL_AMBA_PL011=y
CONFIG_SERIAL_AMBA_PL011_CONSOLE=y
CONFIG_HW_PERF_EVENTS=y
CONFIG_ARM_PMU=y
CONFIG_ARM_PMUV3=y
CONFIG_ARM64_BRBE=y # branch records; Linux 6.12 has none
CONFIG_ARM_SPE_PMU=y
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
