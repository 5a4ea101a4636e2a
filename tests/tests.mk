# SPDX-License-Identifier: GPL-2.0-only
#
# Tests. tests/run starts them, counts, and says what failed; docs/testing.md says what there is.
#
# A unit test tests/unit/test_X.c says near its top, in comments of their own, what it is built from:
#   /* link: core/a.c hyp/b.c */   sources beside itself
#   /* libs: -lfdt */              libraries beside cmocka
#   /* arch: fake */              whose arch/ headers; arm64's if it does not say
# It is built with ASan and UBSan; one named *_threads or *_stress also with TSan.

UNIT := $(basename $(notdir $(wildcard tests/unit/test_*.c)))
UNIT_THREADS := $(filter %_threads %_stress,$(UNIT))
UNIT_PROGRAMS := $(UNIT:%=build/unit/%) $(UNIT_THREADS:%=build/unit/%-tsan)

SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
UNIT_CFLAGS := $(filter-out -O2,$(HOST_CFLAGS)) -O1 -fno-omit-frame-pointer -Itests/unit

# What test $1 says under the heading $2.
says = $(shell sed -n '1,20s|.*/\* *$2:\(.*\)\*/.*|\1|p' tests/unit/$1.c)
arch_of = $(or $(strip $(call says,$1,arch)),arm64)

# Objects of the sources $3, built with sanitizer $1 for the test's kind of arch/ headers, $2.
unit_objs = $(patsubst %.c,build/unit/$1-$2/%.o,$3)

# The program $1$2 of test $1 with sanitizer $3.
define unit_program
build/unit/$1$2: $(call unit_objs,$3,$(call arch_of,$1),tests/unit/$1.c $(call says,$1,link))
	@echo "  LD  $$@"
	$$(Q)$(HOSTCC) $(SANITIZE_$3) -o $$@ $$(filter %.o,$$^) -lcmocka -lpthread $(call says,$1,libs)
UNIT_OBJS += $(call unit_objs,$3,$(call arch_of,$1),tests/unit/$1.c $(call says,$1,link))
endef

# The rule for objects with sanitizer $1 and the headers of $2.
define unit_objects
build/unit/$1-$2/%.o: %.c Makefile tests/tests.mk
	@mkdir -p $$(@D); echo "  CC  $$@"
	$$(Q)$(HOSTCC) $(UNIT_CFLAGS) $(SANITIZE_$1) -Iarch/$2/include $(DEPENDENCIES) -c -o $$@ $$<
endef

$(foreach s,asan tsan,$(foreach a,arm64 fake,$(eval $(call unit_objects,$s,$a))))
$(foreach t,$(UNIT),$(eval $(call unit_program,$t,,asan)))
$(foreach t,$(UNIT_THREADS),$(eval $(call unit_program,$t,-tsan,tsan)))
-include $(patsubst %.o,%.d,$(sort $(UNIT_OBJS)))

.PHONY: unit test test-unit test-guest test-linux test-long run lint
unit: $(UNIT_PROGRAMS)

test: all unit fuzz-build $(BENCH_IMAGES)
	@tests/run
test-unit: all unit
	@tests/run unit
test-guest: all
	@tests/run guest
test-linux: all
	@tests/run linux
test-long: all unit fuzz-build $(BENCH_IMAGES)
	@tests/run --long
run: all
	@lab/demo/run
lint: all
	@tests/lint
