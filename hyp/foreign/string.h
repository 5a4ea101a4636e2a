/* SPDX-License-Identifier: GPL-2.0-only */
/* What libfdt and zlib get as <string.h>. */
#ifndef FOREIGN_STRING_H
#define FOREIGN_STRING_H

#include "hyp/string.h"

#endif
