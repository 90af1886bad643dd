# SPDX-License-Identifier: GPL-2.0
# Every verb of the project; `make help` lists them.

ARCH ?= arm64
SUITE ?= bookworm
WORKLOAD ?= benchmark --faults 0 1
EVENTS ?= {cycles/period=999700,alt-period=300/,instructions,page-faults}:uS
TIMEOUT ?= 600
BASE := 6.12
B := build
OUT ?= $(B)/demo

# what the user wrote is for the guest's shell: make does not expand it
override WORKLOAD := $(value WORKLOAD)
override EVENTS := $(value EVENTS)
override RUN := $(value RUN)
# of the verbs kernel and vm, said to make: not what a shell happens to have
override DEBUG := $(if $(filter kernel vm,$(MAKECMDGOALS)),$(if $(filter command,$(origin DEBUG)),$(DEBUG)))
export V WORKLOAD EVENTS RUN TIMEOUT DEBUG
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

STEP := scripts/step

ifeq ($(wildcard scripts/vm/$(ARCH).py),)
$(error no machine for ARCH=$(ARCH); there is: $(patsubst scripts/vm/%.py,%,$(wildcard scripts/vm/*.py)))
endif

PATCHES := patches/$(BASE)/series $(wildcard patches/$(BASE)/*.patch)
NEW_FILES := $(shell sed -n 's/^[0-9]*-[^ ]* //p' patches/$(BASE)/series)
MACHINE := scripts/vm/$(ARCH).py
IMAGE = $(B)/kernel/$(ARCH)$(if $(DEBUG),-debug)/.built

.PHONY: help
help: ## this list
	@echo 'Per-function hardware metrics for Linux. Verbs:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1~\2/p' Makefile | column -t -s '~' 2>/dev/null || \
	 sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  \2/p' Makefile
	@echo
	@echo 'Settings: ARCH=arm64, WORKLOAD="program args" and EVENTS="{...}:uS" (demo), RUN="command" (vm), SUITE=bookworm (fresh), BENCH="cost" (bench),'
	@echo '          LINUX=/path (a pristine $(BASE) tree), TIMEOUT=600 (seconds: demo, vm),'
	@echo '          DEBUG=1 (kernel, vm: a kernel that checks itself), V=1 (show commands)'

.PHONY: demo
demo: $(B)/perf/.built $(IMAGE) $(B)/root/$(ARCH).cpio ## the main job: record the benchmark in the emulated machine, print its table
	@scripts/demo.sh $(ARCH) $(OUT)

.PHONY: check
check: install-check check-needs ## the tests of every change; the last line counts them
	@tests/run.py $(SUITES)

.PHONY: check-all
check-all: install-all check-needs ## all tests, those that take hours too
	@tests/run.py --all $(SUITES)

.PHONY: linux
linux: $(B)/linux.built ## the prepared tree: Debian's linux-source-6.12, our files, our patches

.PHONY: perf
perf: $(B)/perf/.built ## perf for this machine, with the new terms

.PHONY: kernel
kernel: $(IMAGE) ## the kernel of an emulated machine (ARCH=arm64)

.PHONY: vm
vm: $(IMAGE) $(B)/root/$(ARCH).cpio ## boot the emulated machine, RUN='command' in it (none: a shell)
	@scripts/vm.py --arch $(ARCH) $(if $(DEBUG),--debug) --timeout $(TIMEOUT) "$$RUN"

.PHONY: series
series: $(B)/linux.built ## the mail-ready series in build/series
	@scripts/series.py mail $(B)/series --base $(BASE)
	@ls $(B)/series | sed 's|^|$(B)/series/|'

.PHONY: bench
bench: check-needs ## our measurements, as tables and JSON in build/bench (BENCH='cost resonance': some of them)
	@scripts/bench/run.py $(BENCH)

.PHONY: fresh
fresh: | install-build ## both README commands in a clean Debian root, as a newcomer (SUITE=bookworm)
	@scripts/fresh.sh $(SUITE)

.PHONY: clean
clean: ## empty build/
	@rm -rf $(B)

# What the verbs stand on. A stamp is remade when what it depends on changed.

.PHONY: check-needs
check-needs: $(B)/perf/.built $(IMAGE) $(B)/root/$(ARCH).cpio

.PHONY: always install-build install-check install-all
install-build install-check install-all: install-%:
	@scripts/install.sh build $(ARCH) $(if $(filter check all,$*),check) $(filter all,$*)

$(B)/linux.built: $(PATCHES) $(NEW_FILES) scripts/series.py $(if $(LINUX),always) | install-build
	@$(STEP) "Linux $(BASE) with the series" scripts/series.py tree $(B)/linux --base $(BASE) $(if $(LINUX),--linux $(LINUX))
	@touch $@

$(B)/perf/.built: $(B)/linux.built scripts/build.sh
	@$(STEP) "perf for this machine" scripts/build.sh perf $(B)/linux $(B)/perf
	@touch $@

$(IMAGE): $(B)/linux.built scripts/build.sh $(MACHINE) $(if $(DEBUG),scripts/vm/debug.config)
	@$(STEP) "$(if $(DEBUG),debug )kernel for $(ARCH)" scripts/build.sh kernel $(B)/linux $(@D) $(ARCH)
	@touch $@

$(B)/sysroot/$(ARCH).built: scripts/root.sh $(MACHINE) | install-build
	@$(STEP) "Debian's $(ARCH) headers and libraries" scripts/root.sh sysroot $(ARCH)
	@touch $@

$(B)/perf-$(ARCH)/.built: $(B)/linux.built $(B)/sysroot/$(ARCH).built scripts/build.sh
	@$(STEP) "perf for $(ARCH)" scripts/build.sh perf $(B)/linux $(B)/perf-$(ARCH) $(ARCH)
	@touch $@

$(B)/root/$(ARCH).cpio: $(B)/perf-$(ARCH)/.built scripts/root.sh scripts/vm/init $(MACHINE)
	@$(STEP) "root file system for $(ARCH)" scripts/root.sh guest $(ARCH)
