# SPDX-License-Identifier: GPL-2.0
"""arm64: QEMU's virt machine, whose PMUv3 raises overflow interrupts under TCG."""

ARCH = {
    "debian": "arm64",
    "kernel_arch": "arm64",
    "cross_compile": "aarch64-linux-gnu-",
    "multiarch": "aarch64-linux-gnu",
    "image": "arch/arm64/boot/Image",
    "console": "ttyAMA0",
    "packages": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm",
    # GICv3 carries the pseudo-NMI without which kernel samples pile up where
    # interrupts are enabled again. -icount makes the machine count instructions
    # (1 instruction = 1 ns = 1 cycle) and two runs of one command the same.
    "qemu": ["qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "max",
             "-icount", "shift=0,sleep=off"],
    "cmdline": "irqchip.gicv3_pseudo_nmi=1",
    "kconfig": """
CONFIG_64BIT=y
CONFIG_SMP=y
CONFIG_PRINTK=y
CONFIG_BINFMT_ELF=y
CONFIG_BINFMT_SCRIPT=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_TTY=y
CONFIG_SERIAL_AMBA_PL011=y
CONFIG_SERIAL_AMBA_PL011_CONSOLE=y
CONFIG_VIRTIO_CONSOLE=y
CONFIG_PROC_FS=y
CONFIG_SYSFS=y
CONFIG_DEVTMPFS=y
CONFIG_TMPFS=y
CONFIG_PERF_EVENTS=y
CONFIG_HW_PERF_EVENTS=y
CONFIG_HOTPLUG_CPU=y
CONFIG_BPF_SYSCALL=y
CONFIG_UPROBE_EVENTS=y
CONFIG_BPF_EVENTS=y
CONFIG_ARM_PMU=y
CONFIG_ARM_PMUV3=y
CONFIG_ARM_PMU_ACPI=n
CONFIG_ARM64_PSEUDO_NMI=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_NO_HZ_IDLE=y
CONFIG_PCI=y
CONFIG_PCI_HOST_GENERIC=y
CONFIG_VIRTIO_MENU=y
CONFIG_VIRTIO=y
CONFIG_VIRTIO_PCI=y
CONFIG_NET=y
CONFIG_NET_9P=y
CONFIG_NETWORK_FILESYSTEMS=y
CONFIG_NET_9P_VIRTIO=y
CONFIG_9P_FS=y
CONFIG_MODULES=y
CONFIG_MODULE_UNLOAD=y
CONFIG_FUTEX=y
CONFIG_EPOLL=y
CONFIG_SIGNALFD=y
CONFIG_TIMERFD=y
CONFIG_EVENTFD=y
CONFIG_SHMEM=y
CONFIG_AIO=y
CONFIG_ADVISE_SYSCALLS=y
CONFIG_MEMBARRIER=y
CONFIG_POSIX_TIMERS=y
CONFIG_FILE_LOCKING=y
CONFIG_MULTIUSER=y
CONFIG_KALLSYMS=y
CONFIG_KALLSYMS_ALL=y
CONFIG_FTRACE=y
CONFIG_TRACING=y
CONFIG_ENABLE_DEFAULT_TRACERS=y
CONFIG_FTRACE_SYSCALLS=y
CONFIG_DEBUG_FS=y
CONFIG_UNIX=y
CONFIG_MAGIC_SYSRQ=y
CONFIG_INET=y
""",
}
