/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the calls of core/ that a VMM makes return when they fail: negative, with the numbers that
 * Linux has for these (asm-generic/errno-base.h), so that a Linux host can hand them on.
 */
#ifndef CORE_PV_ERROR_H
#define CORE_PV_ERROR_H

#define PV_ENOENT 2  /* there is no such feature bitmap */
#define PV_ENXIO  6  /* there is no such attribute, or what it belongs to is not offered */
#define PV_EFAULT 14 /* the caller's pointer leads nowhere */
#define PV_EBUSY  16 /* too late: a vCPU of the VM has run */
#define PV_EEXIST 17 /* set already */
#define PV_EINVAL 22 /* not aligned, outside the VM's memory, or bits that are not known */

#endif
