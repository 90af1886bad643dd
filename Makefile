# SPDX-License-Identifier: GPL-2.0
# Every verb of the project; `make help` lists them.

ARCH ?= arm64
SUITE ?= bookworm
TIMEOUT ?= 600
BASE ?= 6.12
# what is made for a base; build/ itself has what all bases share
B := build/$(BASE)
OUT ?= $(B)/demo

# machines that `make check` needs, and those that `make check-all` needs
CHECK_ARCHES := arm64 x86_64
ALL_ARCHES := $(CHECK_ARCHES) riscv64 ppc64le

# what the user wrote is for the guest's shell: make does not expand it
override WORKLOAD := $(value WORKLOAD)
override EVENTS := $(value EVENTS)
override RUN := $(value RUN)
# of the verbs kernel and vm, said to make: not what a shell happens to have
override DEBUG := $(if $(filter kernel vm,$(MAKECMDGOALS)),$(if $(filter command,$(origin DEBUG)),$(DEBUG)))
export V WORKLOAD EVENTS RUN TIMEOUT DEBUG BASE
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

STEP := scripts/step

ifeq ($(wildcard scripts/vm/$(ARCH).py),)
$(error no machine for ARCH=$(ARCH); there is: $(patsubst scripts/vm/%.py,%,$(wildcard scripts/vm/*.py)))
endif

# newest first
BASES := $(shell sed -n 's/^base \([^ ]*\).*/\1/p' patches/series)

ifeq ($(filter $(BASE),$(BASES)),)
$(error no series for BASE=$(BASE); there is: $(BASES))
endif

ifneq ($(filter-out small,$(CONFIG)),)
$(error CONFIG is Debian's, or small for the kernel of the emulated machine, not $(CONFIG))
endif

PATCHES := patches/series $(wildcard patches/*/*.patch patches/$(BASE)/*/*.patch)
NEW_FILES := $(shell sed -n 's/^new: //p' $(PATCHES))
# what it takes to run machines: root file system, an emulator where Debian's own is too old, kernel
GUEST = $(B)/root/$(1).cpio $(if $(shell grep qemu_version scripts/vm/$(1).py),build/qemu/$(1).built)
MACHINE = $(foreach arch,$(1),$(B)/kernel/$(arch)/.built $(call GUEST,$(arch)))
REPORT = report/functions-report --symfs $(B)/root/$(ARCH) --kallsyms $(B)/kernel/$(ARCH)/System.map
DEB = $(B)/deb/$(ARCH)
KERNEL_DEB = $(DEB)/kernel$(addprefix -,$(CONFIG)).built
KERNEL = $(B)/kernel/$(ARCH)$(if $(DEBUG),-debug)/.built

.PHONY: help
help: ## this list
	@echo 'Per-function hardware metrics for Linux. Verbs:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1~\2/p' Makefile | column -t -s '~' 2>/dev/null || \
	 sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  \2/p' Makefile
	@echo
	@echo 'Settings: ARCH=arm64 (or $(filter-out arm64,$(ALL_ARCHES))), WORKLOAD="program args" and EVENTS="{...}:uS" (demo, report), RUN="command" (vm),'
	@echo '          SUITES="lint guide" (check, check-all, fresh: tests to run), SUITE=bookworm (or trixie: fresh), BENCH="cost" (bench),'
	@echo '          CONFIG=small (deb: the kernel of the emulated machine), BASE=6.12 (or $(filter-out 6.12,$(BASES)): of Linux), LINUX=/path (a pristine tree of it), TIMEOUT=600 (seconds: demo, vm), DEBUG=1 (kernel, vm: a kernel that checks itself), V=1 (show commands)'

.PHONY: demo
demo: $(B)/perf/.built $(call MACHINE,$(ARCH)) ## the main job: record the benchmark in the emulated machine, print its table
	@scripts/demo.sh $(ARCH) $(OUT)

.PHONY: report
report: $(B)/perf/.built $(call MACHINE,$(ARCH)) build/report/template.html ## the same with call chains, and as a page for a browser: build/BASE/demo/report.html
	@scripts/demo.sh $(ARCH) $(OUT) --call-graph fp,4 --user-callchains
	@echo
	@$(STEP) "page" $(REPORT) --html $(OUT)/report.html $(OUT)/perf.data
	@echo
	@echo 'Open $(OUT)/report.html in a browser. It was made by'
	@echo
	@echo '  $(strip $(addprefix BASE=,$(filter-out 6.12,$(BASE))) $(REPORT)) --html $(OUT)/report.html $(OUT)/perf.data'

.PHONY: check
check: install-check $(B)/perf/.built build/report/template.html $(call MACHINE,$(CHECK_ARCHES)) ## the tests of every change; the last line counts them
	@tests/run.py $(SUITES)

.PHONY: check-all
check-all: install-all $(B)/perf/.built build/report/template.html $(call MACHINE,$(ALL_ARCHES)) ## all tests, those that take hours too, on each base
	@tests/run.py --all $(SUITES)
ifeq ($(BASE)$(SUITES),6.12)
	@$(MAKE) check-all BASE=$(firstword $(BASES))
endif

.PHONY: linux
linux: $(B)/linux.built ## the prepared tree: Debian's linux-source-6.12, our files, our patches

.PHONY: perf
perf: $(B)/perf/.built ## perf for this machine, with the new terms

.PHONY: kernel
kernel: $(KERNEL) ## the kernel of an emulated machine (ARCH=arm64)

.PHONY: vm
vm: $(KERNEL) $(call GUEST,$(ARCH)) ## boot the emulated machine, RUN='command' in it (none: a shell)
	@scripts/vm.py --arch $(ARCH) $(if $(DEBUG),--debug) --timeout $(TIMEOUT) "$$RUN"

.PHONY: dkms
dkms: ## the module for kernels that cannot be rebuilt, as a Debian package in build/dkms
	@scripts/debian/dkms.sh build/dkms
	@ls build/dkms/*.deb

.PHONY: series
series: $(B)/linux.built ## the mail-ready series in build/BASE/series
	@scripts/series.py mail $(B)/series --base $(BASE) $(addprefix --topic ,$(TOPIC))
	@ls -d $(B)/series/*

.PHONY: bench
bench: install-bench $(B)/perf/.built $(call MACHINE,arm64) ## the published experiment and our measurements, as tables and JSON in build/BASE/bench (BENCH='cost resonance': some of them)
	@bench/run.py $(BENCH)

.PHONY: bench-collect
bench-collect: ## the one of them for large recordings: what it costs to make a table, as ratios
	@$(MAKE) bench BENCH=collect

.PHONY: deb
deb: install-deb $(KERNEL_DEB) $(DEB)/perf.built ## Debian packages of kernel and perf for real machines: build/BASE/deb (ARCH=arm64, or x86_64)
	@ls $(B)/deb/*.deb

.PHONY: fresh
fresh: | install-fresh ## both README commands in a clean Debian root, as a newcomer (SUITE=bookworm)
	@scripts/debian/fresh.sh $(SUITE) "$(SUITES)"

.PHONY: clean
clean: ## empty build/
	@rm -rf build

# What the verbs stand on. A stamp is remade when what it depends on changed.

INSTALL_build = $(1)
INSTALL_report = report
INSTALL_check = $(sort $(1) $(CHECK_ARCHES)) report check
INSTALL_all = $(sort $(1) $(ALL_ARCHES)) report check all bench deb
INSTALL_bench = arm64 bench
INSTALL_deb = $(1) deb
INSTALL_fresh = $(1) fresh

.PHONY: always install-build install-report install-check install-all install-bench install-deb install-fresh
install-build install-report install-check install-all install-bench install-deb install-fresh: install-%:
	@scripts/debian/install.sh build $(call INSTALL_$*,$(ARCH))

# Debian 12 and 13 have Linux 6.12; the source of another is fetched
SOURCE := $(or $(LINUX),$(patsubst %,build/source/linux-source-%.tar.xz,$(filter-out 6.12,$(BASE))))

build/source/linux-source-%.tar.xz: | install-build
	@$(STEP) "Debian's source of Linux $*" scripts/debian/source.sh $* $@

$(B)/linux.built: $(PATCHES) $(NEW_FILES) scripts/series.py scripts/store.py $(if $(LINUX),always) | install-build $(if $(LINUX),,$(SOURCE))
	@$(STEP) "Linux $(BASE) with the series" scripts/series.py tree $(B)/linux --base $(BASE) $(addprefix --linux ,$(SOURCE))
	@touch $@

$(B)/perf/.built: $(B)/linux.built scripts/build.sh
	@$(STEP) "perf for this machine" scripts/build.sh perf $(B)/linux $(B)/perf
	@touch $@

WEB := build/report/web

$(WEB)/.built: report/web/package.json report/web/package-lock.json | install-report
	@rm -rf $(WEB) && mkdir -p $(WEB) && cp $^ $(WEB)/
	@$(STEP) "npm packages of the page" npm ci --prefix $(WEB) --ignore-scripts --no-audit --no-fund
	@touch $@

build/report/template.html: $(WEB)/.built report/web/build.js $(wildcard report/web/src/*)
	@rm -rf $(WEB)/src && cp -r report/web/build.js report/web/src $(WEB)/
	@$(STEP) "template of the page" sh -c 'cd $(WEB) && node build.js ../template.html'

$(KERNEL_DEB): $(B)/linux.built scripts/debian/deb.sh scripts/build.sh scripts/vm/$(ARCH).py scripts/vm/common.config
	@$(STEP) "package of the$(addprefix $() ,$(CONFIG)) kernel for $(ARCH)" scripts/debian/deb.sh kernel $(ARCH) $(CONFIG)
	@touch $@

$(DEB)/perf.built: $(B)/linux.built build/sysroot/$(ARCH).built scripts/debian/deb.sh scripts/build.sh
	@$(STEP) "package of perf for $(ARCH)" scripts/debian/deb.sh perf $(ARCH)
	@touch $@

# ... of one machine each
.SECONDARY:
OPTIONS := scripts/vm/common.config
FETCH := scripts/debian/fetch.sh scripts/debian/apt.sh

$(B)/kernel/%/.built: $(B)/linux.built scripts/build.sh scripts/vm/%.py $(OPTIONS)
	@$(STEP) "kernel for $*" scripts/build.sh kernel $(B)/linux $(@D) $*
	@touch $@

$(B)/kernel/%-debug/.built: $(B)/linux.built scripts/build.sh scripts/vm/%.py $(OPTIONS) scripts/vm/debug.config
	@$(STEP) "debug kernel for $*" env DEBUG=1 scripts/build.sh kernel $(B)/linux $(@D) $*
	@touch $@

build/sysroot/%.built: scripts/debian/root.sh $(FETCH) scripts/vm/%.py | install-build
	@$(STEP) "Debian's $* headers and libraries" scripts/debian/root.sh sysroot $*
	@touch $@

$(B)/perf-%/.built: $(B)/linux.built build/sysroot/%.built scripts/build.sh
	@$(STEP) "perf for $*" scripts/build.sh perf $(B)/linux $(B)/perf-$* $*
	@touch $@

$(B)/root/%.cpio: $(B)/perf-%/.built scripts/debian/root.sh $(FETCH) scripts/vm/init scripts/vm/%.py
	@$(STEP) "root file system for $*" scripts/debian/root.sh guest $*

build/qemu/%.built: scripts/debian/qemu.sh $(FETCH) scripts/vm/%.py | install-build
	@$(STEP) "emulator for $*" scripts/debian/qemu.sh $*
	@touch $@
