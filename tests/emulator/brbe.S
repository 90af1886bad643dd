// SPDX-License-Identifier: GPL-2.0
// Uses the registers of branch records without an operating system, for test_brbe.py: writes each
// value as a line of 16 hexadecimal digits to the serial line. dump writes all records.
	.set	UART, 0x09000000
	.set	ALL, 0x3f << 17			// BRBFCR_EL1: all kinds of branches
	.set	PAUSED, 1 << 7
	.set	ENI, 1 << 16			// ... except these
	.set	CALLS, 1 << 21
	.set	BOTH, 3				// BRBCR_EL1: user and kernel
	.set	COSTS, 3 << 3			// cycles and mispredicts
	.set	FREEZE, 1 << 8
	.set	EXCEPTIONS, 3 << 22

	.macro	print value
	mov	x0, \value
	bl	put
	.endm

	.macro	start brbcr, brbfcr
	.inst	0xd509729f			// brb iall
	ldr	x0, =(\brbcr)
	msr	S2_1_C9_C0_0, x0
	ldr	x0, =(\brbfcr)
	isb
	msr	S2_1_C9_C0_1, x0
	isb
	.endm

	.text
	.globl	_start
_start:
	adr	x0, vectors
	msr	vbar_el1, x0
	mov	x0, #1				// with kernel=on, the model follows exceptions from
	msr	contextidr_el1, x0		// the first return to a thread on
	svc	#0
	mrs	x1, S2_1_C9_C2_0		// BRBIDR0_EL1
	print	x1

	// records that software injects
	mov	x19, #0
inject:
	add	x19, x19, #1
	mov	x0, #3
	msr	S2_1_C9_C1_0, x0
	msr	S2_1_C9_C1_1, x19
	lsl	x0, x19, #8
	msr	S2_1_C9_C1_2, x0
	.inst	0xd50972bf			// brb inj
	cmp	x19, #70
	b.ne	inject
	bl	dump

	start	BOTH | COSTS, ALL
	bl	branches
	bl	dump
	start	BOTH, CALLS
	bl	branches
	bl	dump
	start	BOTH | COSTS, ALL | ENI
	bl	branches
	bl	dump
	start	BOTH | COSTS | EXCEPTIONS, ALL
	svc	#0
after_svc:
	b	. + 4
	bl	dump

	// the third branch overflows
	mov	x0, #0x21			// BR_RETIRED
	msr	pmevtyper0_el0, x0
	mov	w0, #-3
	msr	pmevcntr0_el0, x0
	mov	x0, #1
	msr	pmcntenset_el0, x0
	start	BOTH | FREEZE, ALL
	msr	pmcr_el0, x0
	mov	x0, #1
	msr	pmcr_el0, x0
	isb
one:	b	two
two:	b	three
three:	b	four
four:	b	five
five:	b	six
six:	msr	pmcr_el0, xzr
	mrs	x1, S2_1_C9_C0_1
	print	x1
	mrs	x1, S2_1_C9_C0_2		// BRBTS_EL1
	print	x1
	bl	dump

	mov	x0, #0x84000000			// PSCI SYSTEM_OFF
	add	x0, x0, #8
	hvc	#0
	b	.

branches:
	mov	x1, #0
first:	b	second
	nop
second:	cbz	x1, third
	nop
third:	nop
	cbnz	x1, first
	adr	x2, fourth
jump:	br	x2
	nop
fourth:	mov	x3, x30
call:	bl	leaf
	adr	x2, leaf
call_2:	blr	x2
	nop
	mov	x30, x3
last:	ret
leaf:	nop
leaf_end:
	ret

dump:
	mov	x20, x30
	mov	x21, #0
bank:
	orr	x0, x21, #PAUSED
	msr	S2_1_C9_C0_1, x0
	isb
	.set	n, 0
	.rept	32
	.set	part, 0
	.rept	3
	.inst	0xd5318000 | (n & 15) << 8 | (n / 16 * 4 + part) << 5
	bl	put
	.set	part, part + 1
	.endr
	.set	n, n + 1
	.endr
	mov	x0, #1 << 28
	cmp	x21, x0
	mov	x21, x0
	b.ne	bank
	ret	x20

put:
	mov	x9, #UART
	mov	x10, #60
digit:
	lsr	x11, x0, x10
	and	x11, x11, #15
	cmp	x11, #10
	add	x12, x11, #'0'
	add	x13, x11, #'a' - 10
	csel	x11, x12, x13, lo
	str	w11, [x9]
	subs	x10, x10, #4
	b.pl	digit
	mov	x11, #'\n'
	str	w11, [x9]
	ret

	.balign	2048
vectors:
	.skip	0x200
vector:
	nop
back:	eret
	.ltorg
