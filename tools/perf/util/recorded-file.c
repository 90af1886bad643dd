// SPDX-License-Identifier: GPL-2.0
/*
 * Decides whether a file of this machine, or its running kernel, is what was recorded. All that
 * reads files for a recording asks here: it may come from another machine, and programs may have
 * been built again since.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <sys/utsname.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "build-id.h"
#include "dso.h"
#include "dsos.h"
#include "env.h"
#include "event.h"
#include "machine.h"
#include "map.h"
#include "recorded-file.h"
#include "symbol.h"
#include "symbol_conf.h"
#include "vdso.h"

/* Programs of each architecture, whose 64-bit kernels also run 32-bit programs. */
static const struct {
	const char *arch;	/* begins what uname calls it */
	u16 machines[3];
} programs[] = {
	{ "x86_64",	{ EM_X86_64, EM_386 } },
	{ "i686",	{ EM_X86_64, EM_386 } },
	{ "aarch64",	{ EM_AARCH64, EM_ARM } },
	{ "arm64",	{ EM_AARCH64, EM_ARM } },
	{ "arm",	{ EM_ARM } },
	{ "ppc",	{ EM_PPC64, EM_PPC } },
	{ "s390",	{ EM_S390 } },
	{ "sparc",	{ EM_SPARCV9, EM_SPARC32PLUS, EM_SPARC } },
	{ "mips",	{ EM_MIPS } },
	{ "riscv",	{ EM_RISCV } },
};

static struct machine *dso__machine(struct dso *dso)
{
	struct dsos *dsos = dso__dsos(dso);

	return dsos ? container_of(dsos, struct machine, dsos) : NULL;
}

/* Returns the machine that a file is for, EM_NONE if it is no ELF file. */
static u16 read_machine(const char *path)
{
	unsigned char header[20];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is_elf = fd >= 0 && pread(fd, header, sizeof(header), 0) == sizeof(header) &&
		      !memcmp(header, ELFMAG, SELFMAG);

	if (fd >= 0)
		close(fd);
	if (!is_elf)
		return EM_NONE;
	/* e_machine is at byte 18, in the byte order of the file. */
	return header[EI_DATA] == ELFDATA2MSB ? header[18] << 8 | header[19] :
						header[19] << 8 | header[18];
}

/* Returns true if the recorded machine, as far as its architecture is known, runs such programs. */
static bool runs_programs(const struct perf_env *env, u16 e_machine)
{
	const char *arch = env ? env->arch : NULL;

	if (!arch || e_machine == EM_NONE)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (!strstarts(arch, programs[i].arch))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(programs[i].machines); j++) {
			if (e_machine == programs[i].machines[j])
				return true;
		}
		return false;
	}
	return true;
}

/* Returns true unless the recording names another host. */
static bool may_be_here(struct machine *machine)
{
	const struct perf_env *env = machine->env;
	struct utsname uts;

	return machine__is_host(machine) &&
	       (!env || !env->hostname || (!uname(&uts) && !strcmp(env->hostname, uts.nodename)));
}

/* Returns true unless the recording names another host, architecture or release of Linux. */
static bool may_run_here(struct machine *machine)
{
	const struct perf_env *env = machine->env;
	struct utsname uts;

	return may_be_here(machine) &&
	       (!env || (!uname(&uts) && (!env->arch || !strcmp(env->arch, uts.machine)) &&
			 (!env->os_release || !strcmp(env->os_release, uts.release))));
}

/*
 * Returns true if a recorded kernel is known to be the running one. The build-id tells. Without
 * one, host, release and architecture have to be those of this machine, and the kernel has to be
 * where it was: most kernels choose their address anew at each boot.
 */
bool machine__is_running(struct machine *machine)
{
	struct map *map = machine__kernel_map(machine);
	struct perf_env *env = machine->env;
	struct build_id bid = { .size = 0 };
	struct kmap *kmap;
	u64 start;

	if (!map || !machine__is_host(machine))
		return false;
	if (dso__has_build_id(map__dso(map)))
		return !sysfs__read_build_id("/sys/kernel/notes", &bid) &&
		       dso__build_id_equal(map__dso(map), &bid);

	kmap = map__kmap(map);
	return env && env->hostname && env->os_release && env->arch && may_run_here(machine) &&
	       kmap && kmap->ref_reloc_sym && kmap->ref_reloc_sym->name &&
	       !kallsyms__get_function_start("/proc/kallsyms", kmap->ref_reloc_sym->name, &start) &&
	       start == kmap->ref_reloc_sym->addr;
}

/* Returns why a file is not what was recorded, 0 if it is or nothing is known. */
static enum dso_load_errno refuse(struct dso *dso, const char *path)
{
	struct machine *machine = dso__machine(dso);
	struct build_id bid = { .size = 0 };
	u16 e_machine;

	/* Chosen by the addresses of the kernel and its modules. */
	if (dso__is_kcore(dso))
		return 0;
	if (dso__has_build_id(dso) && !symbol_conf.ignore_vmlinux_buildid) {
		if (filename__read_build_id(path, &bid) <= 0)
			return DSO_LOAD_ERRNO__CANNOT_READ_BUILDID;
		return dso__build_id_equal(dso, &bid) ? 0 : DSO_LOAD_ERRNO__MISMATCHING_BUILDID;
	}
	if (!machine)
		return 0;

	e_machine = read_machine(path);
	if (!runs_programs(machine->env, e_machine))
		return DSO_LOAD_ERRNO__OTHER_ARCH;
	/* The copy of the vdso that this kernel gives to perf. */
	if (dso__is_vdso(dso))
		return may_run_here(machine) ? 0 : DSO_LOAD_ERRNO__OTHER_KERNEL;
	/* The user has named the folder of a guest's files, too. */
	if (symbol_conf.has_symfs || !machine__is_host(machine))
		return 0;
	if (dso__is_kmod(dso))
		return machine__is_running(machine) ? 0 : DSO_LOAD_ERRNO__OTHER_KERNEL;
	/* The user has named the file of a kernel, or its build-id was compared. */
	if (dso__kernel(dso))
		return 0;
	return may_be_here(machine) ? 0 : DSO_LOAD_ERRNO__OTHER_HOST;
}

/* Returns true if a file is known not to be what was recorded; dso__load_errno(@dso) says why. */
bool dso__refuses_file(struct dso *dso, const char *path)
{
	/* Whoever opens a missing file finds that out. */
	enum dso_load_errno err = access(path, F_OK) ? 0 : refuse(dso, path);

	if (err)
		*dso__load_errno(dso) = err;
	return err;
}

/* Returns true if the file at the path of a DSO may be what was recorded. */
bool dso__has_own_file(struct dso *dso)
{
	/* The recorded file is in that folder. */
	if (*symbol_conf.symfs && !dso__kernel(dso))
		return false;
	return !dso__refuses_file(dso, dso__long_name(dso));
}

/*
 * Returns where the map of a JIT's functions is, which was at @path on the recorded machine; NULL
 * if it is not known to be here, where the process with this ID has another map.
 */
const char *dso__own_perf_map(struct dso *dso, const char *path, char *buf, size_t size)
{
	struct machine *machine = dso__machine(dso);

	if (!machine || may_run_here(machine))
		return path;
	if (symbol_conf.has_symfs) {
		__symbol__join_symfs(buf, size, path);
		return buf;
	}
	*dso__load_errno(dso) = DSO_LOAD_ERRNO__OTHER_HOST;
	return NULL;
}
