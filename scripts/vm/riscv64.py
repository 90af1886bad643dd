# SPDX-License-Identifier: GPL-2.0
"""riscv64: QEMU's virt machine, whose Sscofpmf PMU counts cycles, instructions and TLB misses."""

ARCH = {
    "debian": "riscv64",
    "suite": "trixie",
    "kernel_arch": "riscv",
    "cross_compile": "riscv64-linux-gnu-",
    # links the library of 16-bit atomics if the program uses them
    "compiler_options": "-pthread",
    "multiarch": "riscv64-linux-gnu",
    "image": "arch/riscv/boot/Image",
    "console": "ttyS0",
    "packages": "g++-riscv64-linux-gnu libc6-dev-riscv64-cross",
    "qemu_version": "10",
    # QEMU has many counters, but lets only one of them count an event
    "qemu": [
        "qemu-system-riscv64",
        "-M",
        "virt",
        "-cpu",
        "rv64,sscofpmf=on",
        "-icount",
        "shift=0,sleep=off",
    ],
    "cmdline": "",
    "workload": "benchmark --faults 0 1",
    "events": "{cycles/period=999700,alt-period=300/,instructions,page-faults,dTLB-load-misses}:uS",
    "about": """
In the emulated machine each instruction takes one cycle and one nanosecond, so
each function has a CPI of 1. There are no caches and no branch predictor, but
TLB misses are counted: TM/KI differs between the functions, as cache misses do
on real hardware. Each new page of dcache_miss() misses twice: when it faults,
and when the load is repeated. So its TM/KI is twice its PF/KI. The other
functions use no new pages. (A TLB event cannot be the leader: QEMU would exit.)
Real counters need real hardware: see HARDWARE.md.
""",
    "kconfig": """
CONFIG_64BIT=y
CONFIG_ARCH_RV64I=y
CONFIG_MMU=y
CONFIG_FPU=y
CONFIG_IRQ_STACKS=y
CONFIG_RISCV_ISA_C=y
CONFIG_RISCV_ISA_FALLBACK=y
CONFIG_RISCV_SBI=y
CONFIG_RISCV_SBI_V01=n
CONFIG_ARCH_VIRT=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_SERIAL_OF_PLATFORM=y
CONFIG_RISCV_PMU=y
CONFIG_RISCV_PMU_LEGACY=n
CONFIG_RISCV_PMU_SBI=y
CONFIG_PCI_HOST_GENERIC=y
CONFIG_POWER_RESET=y
CONFIG_POWER_RESET_SYSCON=y
CONFIG_POWER_RESET_SYSCON_POWEROFF=y
CONFIG_MFD_SYSCON=y
""",
}
