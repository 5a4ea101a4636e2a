/* SPDX-License-Identifier: GPL-2.0-only */
/* libfdt includes <stdlib.h> and needs nothing of it. */
#ifndef FOREIGN_STDLIB_H
#define FOREIGN_STDLIB_H

#include <stddef.h>

#endif
