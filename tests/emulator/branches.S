// SPDX-License-Identifier: GPL-2.0
// A program whose path test_brbe.py knows: a chain of calls, a loop, a branch and an indirect jump
// that random bits decide. It uses no memory.
	.text
	.balign	4096
	.globl	_start
_start:
	mov	x19, #4000
	mov	w20, #1
	mov	w21, #0xb400
	adr	x22, three
	adr	x23, left
	adr	x24, right
round:
	bl	one
	mov	x0, #7
loop:
	subs	x0, x0, #1
loop_end:
	b.ne	loop
	and	w1, w20, #1
	lsr	w20, w20, #1
random:
	cbz	w1, even
	eor	w20, w20, w21
even:
	tst	w20, #2
	csel	x25, x23, x24, eq
jump:
	br	x25
left:
	nop
left_end:
	b	join
right:
	nop
	nop
join:
	subs	x19, x19, #1
join_end:
	b.ne	round
	mov	x0, #0
	mov	x8, #93
	svc	#0
one:
	mov	x26, x30
one_call:
	bl	two
one_end:
	ret	x26
two:
	mov	x27, x30
two_call:
	blr	x22
two_end:
	ret	x27
three:
	nop
three_end:
	ret
