// SPDX-License-Identifier: GPL-2.0
// A program whose operations test_spe.py knows. Each seventh load misses the caches, and one in 64
// of these the TLB: it is the first one of its page. Random bits decide a branch.
	.text
	.balign	4096
	.globl	_start
	.type	_start, @function
_start:
	ldr	x19, =ROUNDS
	ldr	x20, =cold
	ldr	x24, =hot
	mov	x21, #0
	mov	w22, #1
	mov	w23, #0xb400
round:
	bl	loads
	bl	stores
	bl	branches
	subs	x19, x19, #1
round_end:
	b.ne	round
	mov	x0, #0
	mov	x8, #93
	svc	#0
	.size	_start, . - _start

	.type	loads, @function
loads:
	ldr	x0, [x24]
	ldr	x1, [x24, #8]
	ldp	x2, x3, [x24, #16]
	ldr	d0, [x24, #32]
	ldrb	w4, [x24, #40]
	ldr	x5, [x24, #48]
miss:
	ldr	x6, [x20, x21]
	add	x21, x21, #64
	and	x21, x21, #0xfffff
	ret
	.size	loads, . - loads

	.type	stores, @function
stores:
	str	x0, [x24, #56]
	str	d0, [x24, #32]
	ret
	.size	stores, . - stores

	.type	branches, @function
branches:
	and	w1, w22, #1
	lsr	w22, w22, #1
random:
	cbz	w1, even
	eor	w22, w22, w23
even:
	cbnz	xzr, branches
	ret
	.size	branches, . - branches

	.bss
	.balign	4096
hot:
	.skip	4096
cold:
	.skip	0x100000
