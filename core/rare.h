/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For functions that are seldom called, so that they don't get in the way of those that are. */
#ifndef CORE_RARE_H
#define CORE_RARE_H

/* Never inlined, and away from the rest of the code. */
#define RARE __attribute__((noinline, cold))

#endif
