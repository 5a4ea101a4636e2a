# SPDX-License-Identifier: GPL-2.0-only
#
# This file builds; tests/tests.mk tests. `make help` lists what there is to make.
#
# Whatever is made, lab/setup runs first (it makes the included env.mk): it fetches what is missing
# on this machine and in the user's cache folder, and takes no time once all is there. Make then
# starts anew with what env.mk says.

COMPILER := gcc
CROSS_COMPILE ?= aarch64-linux-gnu-
HOSTCC ?= gcc
JOBS ?= $(shell nproc)
V ?=

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/paravane
Q := $(if $(V),,@)
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

.PHONY: all help setup hyp guest clean force
all: hyp guest build/paravane

help:
	@sed -n 's/^## \?//p' Makefile

## make run          the main job: two stock Linux VMs on two CPUs, four times overcommitted, and a table
## make test         all tests but the long ones; ends with "N passed, N failed, N skipped"
## make test-unit    only those on this machine;  make test-guest: only bare-metal guests
## make test-linux   only boots of stock kernels; make test-long:  every kernel, CPU and vCPU count
## make fuzz         the fuzz targets, a minute each (clang); tests/fuzz/fuzz.mk
## make bench        figures, against the targets: bench/README.md;  ONLY='fixed.sgi*' for some of them
## make bench-check  and fails if one is worse than in bench/results
## make lint         formatting, static analysis, headers that stand alone, licences
## make              the hypervisor, the paravane tool and the test guests
## make hyp          only the hypervisor: build/arm64/paravane.img
## make guest        only the bare-metal test guests: build/guest/*.img
## make setup        only fetch what is missing; lab/setup --refresh fetches newer versions
## make clean        remove build/
##
## COMPILER=clang    the hypervisor with clang, to build/arm64-clang
## JOBS=N            at a time, to build and to test (default: as many as there are CPUs)
## V=1               show the commands

ifeq ($(filter clean help setup,$(MAKECMDGOALS)),)
include $(CACHE)/env.mk
endif
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif

$(CACHE)/env.mk: force
	@lab/setup
setup:
	@lab/setup
force:

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wconversion -Wsign-conversion -Wvla -Wmissing-prototypes
# The same sources give the same bytes, wherever they lie.
REPRODUCIBLE := -ffile-prefix-map=$(CURDIR)=.
# Every object file comes with a list of the headers that it was made from.
DEPENDENCIES = -MMD -MP

# ---- The hypervisor ----

# gcc optimizes the hypervisor as a whole: calls from file to file are a seventh of a short exit, and
# -O3 takes another twentieth for 20 KiB. Clang would need a linker of its own for that.
ifeq ($(COMPILER),clang)
OUT := build/arm64-clang
CC := clang --target=aarch64-linux-gnu
HYP_LD = $(CROSS_COMPILE)ld $(LDFLAGS)
else
OUT := build/arm64
CC := $(CROSS_COMPILE)gcc
LTO := -O3 -flto -flto-partition=none
HYP_LD = $(CC) $(CFLAGS) $(LTO) -nostdlib -Wl,$(subst $(space),$(comma),$(LDFLAGS))
endif
comma := ,
space := $(subst ,, )
CFLAGS := -std=gnu11 -O2 -g $(WARNINGS) $(REPRODUCIBLE) -ffreestanding -mgeneral-regs-only \
	-march=armv8-a -mstrict-align -mno-outline-atomics -fpie -fvisibility=hidden -fno-common \
	-fno-stack-protector -fno-asynchronous-unwind-tables -ffunction-sections \
	-I. -Iinclude -Iarch/arm64/include
LDFLAGS := -pie --no-dynamic-linker -z norelro -z noexecstack -z text -z max-page-size=4096 \
	--build-id=none --gc-sections --no-warn-rwx-segments -Tarch/arm64/hyp.lds

include hyp/lib.mk

HYP_OBJS := $(patsubst %,$(OUT)/%.o,$(basename $(wildcard core/*.c hyp/*.c arch/arm64/*.c)) \
	$(wildcard arch/arm64/*.S))

hyp: $(OUT)/paravane.img

$(OUT)/%.o: %.c
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(CC) $(CFLAGS) $(LTO) $(LIB_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

$(OUT)/%.S.o: %.S
	@mkdir -p $(@D); echo "  AS  $@"
	$(Q)$(CC) $(CFLAGS) $(DEPENDENCIES) -c -o $@ $<

$(OUT)/paravane.elf: $(HYP_OBJS) $(LIB_OBJS) arch/arm64/hyp.lds
	@echo "  LD  $@"
	$(Q)$(HYP_LD) -o $@ $(HYP_OBJS) $(LIB_OBJS)

$(OUT)/paravane.img: $(OUT)/paravane.elf
	@echo "  IMG $@"
	$(Q)$(CROSS_COMPILE)objcopy -O binary $< $@
	$(Q)$(CROSS_COMPILE)objdump -d $< >$(OUT)/paravane.asm

# A file that is gone, or flags that have changed, must show in what was built before.
$(HYP_OBJS) $(LIB_OBJS): Makefile hyp/lib.mk
$(OUT)/paravane.elf: $(OUT)/objects
$(OUT)/objects: force
	@mkdir -p $(@D); echo "$(HYP_OBJS)" | cmp -s - $@ || echo "$(HYP_OBJS)" >$@

# ---- Test guests ----

include guest/Makefile.inc

# ---- The tool ----

HOST_CFLAGS := -std=gnu11 -O2 -g $(WARNINGS) $(REPRODUCIBLE) -I. -Iinclude
TOOL_OBJS := $(patsubst %.c,build/tool/%.o,$(wildcard tools/*.c) core/config.c core/config_keys.c core/cpio.c)

build/tool/%.o: %.c Makefile
	@mkdir -p $(@D); echo "  CC  $@"
	$(Q)$(HOSTCC) $(HOST_CFLAGS) $(DEPENDENCIES) -c -o $@ $<

build/paravane: $(TOOL_OBJS)
	@echo "  LD  $@"
	$(Q)$(HOSTCC) -o $@ $^

-include $(patsubst %.o,%.d,$(HYP_OBJS) $(TOOL_OBJS))

# ---- Figures ----

include bench/bench.mk

# ---- Tests, and the main job ----

include tests/tests.mk
include tests/fuzz/fuzz.mk

clean:
	rm -rf build
