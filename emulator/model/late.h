/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of a PMU that is late: where each event has happened, and what is executed then, and some
 * cycles later. It needs blocks of one instruction, and a core for each image.
 */
#ifndef MODEL_LATE_H
#define MODEL_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "truth.h"

/**
 * late_start() - log samples from now on
 * @path: the file
 *
 * Each line is one sample: thread, image, event, its mean period, where the event has happened, and
 * what is executed next at the end of the block, and 0, 10, 30 and 80 cycles later.
 *
 * Return: NULL, or what is wrong.
 */
const char *late_start(const char *path);

bool late_is_on(void);

/* @image is going to execute the instruction at @pc. */
void late_step(struct image *image, uint64_t cycles, uint64_t pc, bool begins_block);

/* An instruction has caused an event. */
void late_event(struct image *image, enum core_event event, uint64_t pc);

#endif
