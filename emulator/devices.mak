# SPDX-License-Identifier: GPL-2.0
# The devices of the emulated machine: scripts/vm.py names them.
CONFIG_ARM_VIRT=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_SERIAL=y
CONFIG_VIRTIO_9P=y
