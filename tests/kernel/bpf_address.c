// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF program of an event reads the address of a sample that has none. Exits with 1 if it is not
 * 0, but what was left on the kernel's stack.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	/* passes samples whose address is 0, and drops others */
	struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, addr) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_2, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr bpf = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = 5,
		.license = (unsigned long)"GPL",
	};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr),
		.sample_period = 50000,
		.exclude_kernel = 1,
	};
	int fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	int size = getpagesize(), loaded = syscall(__NR_bpf, BPF_PROG_LOAD, &bpf, sizeof(bpf));
	struct perf_event_mmap_page *page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
						 MAP_SHARED, fd, 0);
	unsigned long long samples = 0;

	if (page == MAP_FAILED || ioctl(fd, PERF_EVENT_IOC_SET_BPF, loaded)) {
		perror("bpf_address");
		return 2;
	}
	for (int i = 0; i < 2000000; i++)
		asm volatile("" : "+r" (i) : : "memory");
	samples = page->data_head / sizeof(struct perf_event_header);
	printf("%llu samples without an address\n", samples);

	return samples < 20;
}
