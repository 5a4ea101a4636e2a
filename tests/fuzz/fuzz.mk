# SPDX-License-Identifier: GPL-2.0-only
#
# libFuzzer targets: tests/fuzz/fuzz_X.c becomes build/fuzz/X, with ASan and UBSan. As in
# tests/tests.mk, its comments `link:` and `libs:` say what it is built from.
#
#   make fuzz FUZZ_SECONDS=600   runs each so long (60 when absent); ONLY=mmio: one of them. What is
#                                found lies in build/fuzz/X.crash-*, and `build/fuzz/X FILE` does it
#                                again. `make test` runs the kept inputs and two seconds more.
#
# Kept inputs are in tests/fuzz/corpus/X; new ones go to build/fuzz/X.corpus. To keep what is new:
#   build/fuzz/X -merge=1 tests/fuzz/corpus/X build/fuzz/X.corpus
# Without clang nothing is built, and the tests say so.

FUZZ_CC ?= clang
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PROGRAMS := $(FUZZ:%=build/fuzz/%)
FUZZ_SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer -Wall -Wextra -Werror -Wshadow \
	$(FUZZ_SANITIZE) -Itests/fuzz/include -I. -Iinclude -Iarch/arm64/include

fuzz_says = $(shell sed -n '1,20s|.*/\* *$2:\(.*\)\*/.*|\1|p' tests/fuzz/fuzz_$1.c)
fuzz_objs = $(patsubst %.c,build/fuzz/obj/%.o,$(patsubst build/fuzz/%,gen/%,$1))

# libfdt and zlib from the sources that the hypervisor is built from (hyp/lib.mk), with the sanitizers;
# Debian 12's own libfdt has faults that ours has not.
FUZZ_LIB_-lfdt := $(LIBFDT_NAMES:%=build/fuzz/obj/lib/%.o)
FUZZ_LIB_-lz := $(ZLIB_NAMES:%=build/fuzz/obj/lib/z_%.o)
FUZZ_LIB_CFLAGS := -isystem $(LIBFDT_SRC) -isystem $(ZLIB_SRC) -DZ_SOLO
FUZZ_LIB_BUILD = $(FUZZ_CC) -std=gnu11 -O1 -g $(FUZZ_SANITIZE) $(FUZZ_LIB_CFLAGS) -DHAVE_MEMCPY \
	-fno-sanitize=alignment -DZ_U4=unsigned -DZ_U8='unsigned long' -include string.h -w -c -o $@ $<
$(FUZZ_LIB_-lfdt): build/fuzz/obj/lib/%.o: $(LIBFDT_SRC)/%.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_LIB_BUILD)
$(FUZZ_LIB_-lz): build/fuzz/obj/lib/z_%.o: $(ZLIB_SRC)/%.c
	@mkdir -p $(@D)
	$(Q)$(FUZZ_LIB_BUILD)

define fuzz_program
build/fuzz/$1: $(call fuzz_objs,tests/fuzz/fuzz_$1.c $(call fuzz_says,$1,link)) \
		$(foreach l,$(call fuzz_says,$1,libs),$(FUZZ_LIB_$l))
	@echo "  LD  $$@"
	$$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $$@ $$^
FUZZ_OBJS += $(call fuzz_objs,tests/fuzz/fuzz_$1.c $(call fuzz_says,$1,link))
endef

build/fuzz/obj/%.o: %.c tests/fuzz/fuzz.mk
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) $(FUZZ_LIB_CFLAGS) -include tests/fuzz/no_sysreg.h -MMD -MP -c -o $@ $<

# Without the firmware call, which only an Arm machine's assembler knows.
build/fuzz/gen/host_tree.c: arch/arm64/host.c tests/fuzz/fuzz.mk
	@mkdir -p $(@D)
	$(Q)sed '/^int64_t host_psci/,$$d' $< >$@
build/fuzz/obj/gen/%.o: build/fuzz/gen/%.c
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) $(FUZZ_LIB_CFLAGS) -include tests/fuzz/no_sysreg.h -MMD -MP -c -o $@ $<
.PRECIOUS: build/fuzz/gen/%.c

$(foreach t,$(FUZZ),$(eval $(call fuzz_program,$t)))
-include $(patsubst %.o,%.d,$(sort $(FUZZ_OBJS)))

.PHONY: fuzz fuzz-build
fuzz-build: $(if $(shell command -v $(FUZZ_CC)),$(FUZZ_PROGRAMS))
fuzz: fuzz-build
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run --long -k 'fuzz/$(or $(ONLY),*)' fuzz
