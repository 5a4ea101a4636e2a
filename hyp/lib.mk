# SPDX-License-Identifier: GPL-2.0-only
# libfdt and zlib's inflate for the hypervisor, from the sources in the lab's cache.
#
# In:  LIBFDT_SRC, ZLIB_SRC (lab/env), OUT, CC and CFLAGS (the hypervisor's, warnings included).
# Out: LIB_OBJS to link, LIB_CFLAGS for our own files that include <libfdt.h> or <zlib.h>.
#
# -isystem: warnings about other people's headers are no use. Z_SOLO: zlib without libc, memory comes
# from the caller's zalloc. HAVE_MEMCPY, Z_U4, Z_U8: with Z_SOLO it knows no libc and no integer types,
# and would copy and sum byte by byte.

LIBFDT_NAMES := fdt fdt_addresses fdt_ro fdt_wip fdt_sw fdt_rw fdt_check
ZLIB_NAMES := inflate inftrees inffast crc32 adler32

LIB_OBJS := $(LIBFDT_NAMES:%=$(OUT)/lib/%.o) $(ZLIB_NAMES:%=$(OUT)/lib/z_%.o)
LIB_CFLAGS := -isystem hyp/foreign -isystem $(LIBFDT_SRC) -isystem $(ZLIB_SRC) -DZ_SOLO

# Their code is not ours to mend: no warnings, and paths that are the same on every machine.
LIB_BUILD_FLAGS = $(CFLAGS) $(LIB_CFLAGS) -DHAVE_MEMCPY -DZ_U4=unsigned -DZ_U8='unsigned long' \
	-include hyp/foreign/string.h -w -ffile-prefix-map=$(LIBFDT_SRC)=libfdt -ffile-prefix-map=$(ZLIB_SRC)=zlib

$(LIBFDT_NAMES:%=$(OUT)/lib/%.o): $(OUT)/lib/%.o: $(LIBFDT_SRC)/%.c hyp/lib.mk
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(CC) $(LIB_BUILD_FLAGS) -c -o $@ $<

$(ZLIB_NAMES:%=$(OUT)/lib/z_%.o): $(OUT)/lib/z_%.o: $(ZLIB_SRC)/%.c hyp/lib.mk
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(CC) $(LIB_BUILD_FLAGS) -c -o $@ $<
