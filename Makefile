# SPDX-License-Identifier: GPL-2.0
# Every verb of the project; `make help` lists them.

ARCH ?= $(if $(filter static,$(MAKECMDGOALS)),x86_64,arm64)
SUITE ?= bookworm
TIMEOUT ?= 600
BASE ?= 6.12
# versions of Linux that there is a series for, newest first
BASES := $(shell sed -n 's/^base \([^ ]*\).*/\1/p' patches/series)
# mails are for the newest one, whatever BASE says
ifneq ($(filter series,$(MAKECMDGOALS)),)
override BASE := $(firstword $(BASES))
endif
# files made for a base; build/ itself has those that all bases share
B := build/$(BASE)
OUT ?= $(B)/demo
ACCEL ?= tcg

# Arguments of pytest, said to make: a shell may have a T of its own. Only pytest knows what
# machines these tests need, once it is installed: $(TESTS) builds them before the tests run.
override T := $(and $(filter command,$(origin T)),$(value T))
PYTEST := /usr/bin/python3 -m pytest
# three processes on two processors: many tests wait for most of the time
CHECK := $(PYTEST) -n 3 --dist loadgroup
TESTS = $(if $(T),$(MAKE) machines MACHINES="$$($(PYTEST) --needs $(1) $(T))" &&) \
	$(CHECK) $(1) $(T)
# machines that `make check` needs, and those that `make check-all` needs; emulator is QEMU with
# the core model
CHECK_ARCHES := $(if $(T),,arm64 emulator)
ALL_ARCHES := $(if $(T),,arm64 x86_64 riscv64 ppc64le emulator)
# experiments with the core model
MODELLED := cost resonance layout truth branches operations skid pictures
BENCH_ARCHES = arm64 $(if $(filter $(MODELLED),$(or $(BENCH),$(MODELLED))),emulator)

# these are for the guest's shell: make does not expand them
override WORKLOAD := $(value WORKLOAD)
override EVENTS := $(value EVENTS)
override RUN := $(value RUN)
# only for the verbs kernel and vm, and only if said to make: a shell may have a DEBUG of its own
override DEBUG := $(and $(filter kernel vm,$(MAKECMDGOALS)), \
	$(filter command,$(origin DEBUG)),$(DEBUG))
export V WORKLOAD EVENTS RUN TIMEOUT DEBUG BASE MODEL ACCEL
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

STEP := scripts/step

ifneq ($(words $(CURDIR)),1)
$(error $(CURDIR) has a blank, and Linux cannot be built in such a folder: move the clone)
endif

ARCHES := $(patsubst scripts/vm/%.py,%,$(wildcard scripts/vm/*.py))

ifeq ($(filter $(ARCH),$(ARCHES)),)
$(error no machine for ARCH=$(ARCH); there is: $(ARCHES))
endif

ifeq ($(filter $(BASE),$(BASES)),)
$(error no series for BASE=$(BASE); there is: $(BASES))
endif

ifneq ($(filter-out small,$(CONFIG)),)
$(error CONFIG=$(CONFIG): only small is known; leave it out for Debian's options)
endif

PATCHES := patches/series $(wildcard patches/*/*.patch patches/overrides/$(BASE)/*/*.patch)
NEW_FILES := $(shell sed -n 's/^new: //p' $(PATCHES))
# files that a machine needs: root file system, an emulator where Debian's own is too old, kernel
GUEST = $(B)/root/$(1).cpio \
	$(if $(shell grep qemu_version scripts/vm/$(1).py),build/qemu/$(1).built)
MACHINE = $(foreach arch,$(filter-out emulator,$(1)),\
	$(B)/kernel/$(arch)/.built $(call GUEST,$(arch))) \
	$(if $(filter emulator,$(1)),$(EMULATOR)/model.so)
# QEMU with the core model: it is built once for all bases
EMULATOR := build/emulator
# The core model is of arm64. By default, make vm and machines that KVM runs have no model.
DEMO_MODEL = $(or $(MODEL),$(if $(filter arm64-tcg,$(ARCH)-$(ACCEL)),small,none))
# kvm looks for what KVM needs, before anything is built
KVM = $(if $(filter kvm,$(ACCEL)),kvm)
WITH_MODEL = $(if $(filter-out none,$(1)),$(EMULATOR)/model.so)
REPORT = report/functions-report --symfs $(B)/root/$(ARCH) --kallsyms $(B)/kernel/$(ARCH)/System.map
# the page, and the code for profiles
REPORT_BUILT := build/report/template.html build/report/profile_pb2.py
DEB = $(B)/deb/$(ARCH)
KERNEL_DEB = $(DEB)/kernel$(addprefix -,$(CONFIG)).built
STATIC = $(B)/static/perf-functions-$(ARCH).tar.xz
KERNEL = $(B)/kernel/$(ARCH)$(if $(DEBUG),-debug)/.built

.PHONY: help
help: ## show this list
	@echo 'Per-function hardware metrics for Linux. Verbs:'
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' Makefile | \
		while read -r verb words; do printf '  make %-14s %s\n' "$$verb" "$$words"; done
	@printf '\nSettings, as in make demo ARCH=x86_64:\n'
	@sed -n 's/BASES/$(BASES)/; s/^#: /  /p' Makefile

#: ARCH=arm64          the machine to emulate or to package for; also x86_64 riscv64 ppc64le
#: BASE=6.12           the version of Linux; there is a series for: BASES
#: LINUX=/path         an unpatched tree or archive of that version, instead of Debian's source
#: WORKLOAD="program"  the program to record, with its arguments (demo, report, truth)
#: EVENTS="{...}:uS"   the events to record (demo, report, truth)
#: MODEL=large         core model: small, large, none; emulator/README.md (demo, report, truth, vm)
#: ACCEL=kvm           run the machine on this computer's own processor and PMU (demo, report, vm)
#: RUN="command"       the command to run in the machine (vm)
#: TIMEOUT=600         stop the machine after this many seconds (demo, report, truth, vm)
#: DEBUG=1             use a kernel that checks its memory, locks and arithmetic (kernel, vm)
#: T="-k diff"         run only these tests: arguments of pytest (check, check-all, fresh)
#: BENCH="cost"        run only these experiments (bench)
#: TOPIC=alternate     write only this topic (series)
#: CONFIG=small        use the kernel options of the emulated machine, not Debian's (deb)
#: SUITE=bookworm      the Debian release to start from: bookworm or trixie (fresh)
#: V=1                 show each command and its output

.PHONY: demo
demo: ## record the benchmark in the emulated machine, and print its table
demo: override MODEL := $(DEMO_MODEL)
demo: $(KVM) $(B)/perf/.built $(call MACHINE,$(ARCH)) $(call WITH_MODEL,$(DEMO_MODEL))
	@scripts/demo.sh $(ARCH) $(OUT)

.PHONY: truth
truth: ## print the true counts of each function of WORKLOAD, from the core model
truth: override MODEL := $(if $(filter none,$(DEMO_MODEL)),small,$(DEMO_MODEL))
truth: $(B)/perf/.built $(call MACHINE,$(ARCH) emulator)
	@SHOW=truth scripts/demo.sh $(ARCH) $(OUT)

.PHONY: report
report: ## like demo, with call chains and an HTML page: build/BASE/demo/report.html
report: override MODEL := $(DEMO_MODEL)
report: $(KVM) $(B)/perf/.built $(call MACHINE,$(ARCH)) $(call WITH_MODEL,$(DEMO_MODEL)) \
	$(REPORT_BUILT)
	@scripts/demo.sh $(ARCH) $(OUT) --call-graph fp,4 --user-callchains
	@echo
	@$(STEP) "page" $(REPORT) --html $(OUT)/report.html $(OUT)/perf.data
	@echo
	@echo 'Open $(OUT)/report.html in a browser. This command made it:'
	@echo
	@echo '  $(strip $(addprefix BASE=,$(filter-out 6.12,$(BASE))) $(REPORT)) --html' \
		'$(OUT)/report.html $(OUT)/perf.data'

.PHONY: lint
lint: | install-lint ## check style, code, links and figures; needs no build
	@scripts/lint

.PHONY: check
check: ## run the tests that each change has to pass; the last line counts them
check: install-check $(B)/perf/.built $(REPORT_BUILT) $(call MACHINE,$(CHECK_ARCHES))
	@$(call TESTS)

.PHONY: check-fast
check-fast: install-check $(B)/perf/.built $(REPORT_BUILT) ## run lint and the quick tests
	@$(CHECK) -m 'not (long or machine or slow)' $(T)

.PHONY: check-all
check-all: ## run all tests on each base; takes hours
check-all: install-all $(B)/perf/.built $(REPORT_BUILT) $(call MACHINE,$(ALL_ARCHES))
	@$(call TESTS,--slow)
ifeq ($(BASE)$(T),6.12)
	@for base in $(filter-out 6.12,$(BASES)); do \
		gone=$$($(MAKE) build/source/linux-source-$$base.tar.xz BASE=$$base 2>&1 | \
			sed -n 's/^source: \(Debian has no\)/\1/p'); \
		if [ "$$gone" ]; then echo "no tests of $$base: $$gone"; \
		else $(MAKE) check-all BASE=$$base LINUX=; fi || exit; \
	done
endif

.PHONY: machines
machines: ## build the emulated machines MACHINES="arm64 emulator", as tests need them
machines: install-machines $(call MACHINE,$(filter-out slow,$(MACHINES)))

.PHONY: linux
linux: $(B)/linux.built ## prepare the tree: Debian's source of Linux with our files and patches

.PHONY: perf
perf: $(B)/perf/.built ## build perf for this computer, with the new event terms

.PHONY: static
static: ## build a perf to copy to any machine (default: ARCH=x86_64): build/6.12/static
static: install-static $(STATIC)
	@ls $(STATIC)*

.PHONY: kernel
kernel: $(KERNEL) ## build the kernel of the emulated machine

.PHONY: vm
vm: ## boot the emulated machine, and run RUN='command' in it (none: a shell)
vm: $(KVM) $(KERNEL) $(call GUEST,$(ARCH)) $(call WITH_MODEL,$(MODEL))
	@scripts/vm.py --arch $(ARCH) $(if $(DEBUG),--debug) --model "$${MODEL:-none}" \
		--accel "$$ACCEL" --timeout $(TIMEOUT) "$$RUN"

.PHONY: emulator
emulator: $(EMULATOR)/model.so ## build QEMU with our patches, and the core model

.PHONY: dkms
dkms: ## build a package of the module, for kernels you cannot replace: build/dkms
	@scripts/debian/dkms.sh build/dkms
	@ls build/dkms/*.deb

.PHONY: series
series: $(B)/linux.built ## write the mails of the series, for the newest base: build/7.3/series
	@scripts/series/series.py mail $(B)/series $(addprefix --topic ,$(TOPIC))
	@ls -d $(B)/series/*

.PHONY: bench
bench: ## run the experiments: tables, and build/BASE/bench/results.json
bench: $(if $(filter branches truth operations skid,$(BENCH)),$(B)/root/arm64-programs.cpio)
bench: install-bench $(B)/perf/.built $(call MACHINE,$(BENCH_ARCHES))
	@bench/run.py $(BENCH)

.PHONY: bench-collect
bench-collect: ## run one experiment: what the table of a large recording costs
	@$(MAKE) bench BENCH=collect

.PHONY: deb
deb: ## build Debian packages of kernel and perf for real machines: build/BASE/deb
deb: install-deb $(KERNEL_DEB) $(DEB)/perf.built
	@ls $(B)/deb/*.deb

.PHONY: fresh
fresh: | install-fresh ## run the commands of README in a clean Debian, and some of HARDWARE.md
	@scripts/debian/fresh.sh $(SUITE) '$(T)'

.PHONY: clean
clean: ## empty build/
	@rm -rf --one-file-system build	# make fresh may have /dev there

# The files that the verbs need. A stamp is remade when a file that it depends on has changed.

INSTALL_lint = lint
INSTALL_build = build $(if $(filter static,$(MAKECMDGOALS)),compiler-)$(ARCH)
INSTALL_emulator = build emulator
INSTALL_report = build report
INSTALL_all = build $(ALL_ARCHES) report lint check all bench deb static
INSTALL_check = build $(sort $(ARCH) $(CHECK_ARCHES)) report lint check static
INSTALL_machines = $(if $(filter slow,$(MACHINES)),$(INSTALL_all),\
	build $(filter-out slow,$(MACHINES)))
INSTALL_bench = build $(BENCH_ARCHES) bench
INSTALL_deb = build $(ARCH) deb
INSTALL_static = $(INSTALL_build) static
INSTALL_fresh = build $(ARCH) fresh
INSTALLS := lint build emulator report check machines all bench deb static fresh
INSTALLS := $(addprefix install-,$(INSTALLS))

.PHONY: always kvm $(INSTALLS)
$(INSTALLS): install-%:
	@scripts/debian/install.sh $(INSTALL_$*)

kvm: | install-build
	@scripts/vm.py --arch $(ARCH) --accel kvm --model "$${MODEL:-none}" --check

# Debian 12 and 13 have Linux 6.12; the source of another Linux is fetched
SOURCE := $(or $(LINUX),$(patsubst %,build/source/linux-source-%.tar.xz,$(filter-out 6.12,$(BASE))))

build/source/linux-source-%.tar.xz: | install-build
	@$(STEP) "Debian's source of Linux $*" scripts/debian/source.sh $* $@

$(B)/linux.built: $(PATCHES) $(NEW_FILES) $(wildcard scripts/series/*.py)
$(B)/linux.built: $(if $(LINUX),always) | install-build $(if $(LINUX),,$(SOURCE))
	@$(STEP) "Linux $(BASE) with the series" scripts/series/series.py tree $(B)/linux \
		--base $(BASE) $(addprefix --linux ,$(SOURCE))
	@touch $@

$(B)/perf/.built: $(B)/linux.built scripts/build.sh
	@$(STEP) "perf for this machine" scripts/build.sh perf $(B)/linux $(B)/perf
	@touch $@

WEB := build/report/web

$(WEB)/.built: report/web/package.json report/web/package-lock.json | install-report
	@rm -rf $(WEB) && mkdir -p $(WEB) && cp $^ $(WEB)/
	@$(STEP) "npm packages of the page" npm ci --prefix $(WEB) --ignore-scripts --no-audit \
		--no-fund
	@touch $@

build/report/template.html: $(WEB)/.built report/web/build.js $(wildcard report/web/src/*)
	@rm -rf $(WEB)/src && cp -r report/web/build.js report/web/src $(WEB)/
	@$(STEP) "template of the page" sh -c 'cd $(WEB) && node build.js ../template.html'

PROTO := /usr/share/gocode/src/github.com/google/pprof/proto

build/report/profile_pb2.py: | install-report
	@mkdir -p $(@D)
	@$(STEP) "code for pprof's format" protoc -I $(PROTO) --python_out=$(@D) profile.proto

$(KERNEL_DEB): $(B)/linux.built scripts/debian/deb.sh scripts/build.sh
$(KERNEL_DEB): scripts/vm/$(ARCH).py scripts/vm/common.config
	@$(STEP) "package of the$(addprefix $() ,$(CONFIG)) kernel for $(ARCH)" \
		scripts/debian/deb.sh kernel $(ARCH) $(CONFIG)
	@touch $@

$(DEB)/perf.built: $(B)/linux.built build/sysroot/$(ARCH).built
$(DEB)/perf.built: scripts/debian/deb.sh scripts/build.sh
	@$(STEP) "package of perf for $(ARCH)" scripts/debian/deb.sh perf $(ARCH)
	@touch $@

$(STATIC): $(B)/linux.built build/sysroot/$(ARCH).built
$(STATIC): scripts/static.sh scripts/build.sh scripts/vm/$(ARCH).py
	@$(STEP) "static perf for $(ARCH)" scripts/static.sh $(ARCH)

# files of one machine each
.SECONDARY:
OPTIONS := scripts/vm/common.config
FETCH := scripts/debian/fetch.sh scripts/debian/apt.sh

$(B)/kernel/%/.built: $(B)/linux.built scripts/build.sh scripts/vm/%.py $(OPTIONS)
	@$(STEP) "kernel for $*" scripts/build.sh kernel $(B)/linux $(@D) $*
	@touch $@

$(B)/kernel/%-debug/.built: $(B)/linux.built scripts/build.sh scripts/vm/%.py $(OPTIONS) \
		scripts/vm/debug.config
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

$(B)/root/%-programs.cpio: $(B)/root/%.cpio scripts/debian/root.sh scripts/debian/name-functions.py
	@$(STEP) "root file system with programs for $*" scripts/debian/root.sh programs $*

build/qemu/%.built: scripts/debian/qemu.sh $(FETCH) scripts/vm/%.py | install-build
	@$(STEP) "emulator for $*" scripts/debian/qemu.sh $*
	@mkdir -p $(@D) && touch $@

# files of the emulator; fetched files are kept

$(EMULATOR)/fetched/.done: scripts/debian/emulator.sh scripts/debian/apt.sh | install-emulator
	@$(STEP) "Debian's source of QEMU" scripts/debian/emulator.sh $(@D)
	@touch $@

$(EMULATOR)/include/qemu-plugin.h: $(EMULATOR)/fetched/.done emulator/build.sh
$(EMULATOR)/include/qemu-plugin.h: emulator/devices.mak $(wildcard emulator/patches/*)
	@$(STEP) "emulator with a core model" emulator/build.sh qemu $(EMULATOR)/fetched $(EMULATOR)
	@touch $@

$(EMULATOR)/model.so: $(EMULATOR)/include/qemu-plugin.h $(wildcard emulator/model/*.[ch])
	@$(STEP) "core model" emulator/build.sh model $(EMULATOR)
