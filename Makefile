# SPDX-License-Identifier: GPL-2.0-only
#
# make run    the main job: two stock Linux VMs, four times overcommitted, and a table
# make test   unit tests, guest tests and Linux boots; ends with "N passed, N failed, N skipped"
# make lint   formatting, static analysis, header and symbol checks
# make all    the hypervisor, the paravane tool and the test guests
#
# `setup` fetches what is missing (emulator, kernels, packages) into the user's cache directory.

ARCH := arm64
OUT := build/$(ARCH)
CROSS_COMPILE ?= aarch64-linux-gnu-
CC_arm64 ?= $(CROSS_COMPILE)gcc
HOSTCC ?= gcc
LAB_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/paravane

-include $(LAB_CACHE)/env.mk

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wconversion -Wsign-conversion -Wvla -Wmissing-prototypes
REPRODUCIBLE := -ffile-prefix-map=$(CURDIR)=.

# ---- The hypervisor ----

CC = $(CC_arm64)
CFLAGS = -std=gnu11 -O2 -g $(WARNINGS) $(REPRODUCIBLE) -ffreestanding -mgeneral-regs-only \
	-march=armv8-a -mstrict-align -mno-outline-atomics -fpie -fvisibility=hidden -fno-common \
	-fno-stack-protector -fno-asynchronous-unwind-tables -ffunction-sections \
	-I. -Iinclude -Iarch/arm64/include
LDFLAGS := -pie --no-dynamic-linker -z norelro -z noexecstack -z text -z max-page-size=4096 \
	--build-id=none --gc-sections --no-warn-rwx-segments -T arch/arm64/hyp.lds

include hyp/lib.mk

HYP_SRC := $(wildcard core/*.c hyp/*.c arch/arm64/*.c)
HYP_ASM := $(wildcard arch/arm64/*.S)
HYP_OBJS := $(HYP_SRC:%.c=$(OUT)/%.o) $(HYP_ASM:%.S=$(OUT)/%.S.o)
HEADERS := $(wildcard core/*.h include/*/*.h hyp/*.h arch/arm64/*.h arch/arm64/include/arch/*.h)

.PHONY: all setup run test test-unit lint clean hyp
all: setup
	@$(MAKE) --no-print-directory hyp guest build/paravane

hyp: $(OUT)/paravane.img

setup:
	@lab/setup

$(OUT)/%.o: %.c $(HEADERS) Makefile
	@mkdir -p $(@D)
	@echo "CC $<"; $(CC) $(CFLAGS) $(LIB_CFLAGS) -c -o $@ $<

$(OUT)/%.S.o: %.S $(HEADERS) Makefile
	@mkdir -p $(@D)
	@echo "AS $<"; $(CC) $(CFLAGS) -c -o $@ $<

$(OUT)/paravane.elf: $(HYP_OBJS) $(LIB_OBJS) arch/arm64/hyp.lds
	$(CROSS_COMPILE)ld $(LDFLAGS) -o $@ $(HYP_OBJS) $(LIB_OBJS)

$(OUT)/paravane.img: $(OUT)/paravane.elf
	$(CROSS_COMPILE)objcopy -O binary $< $@
	$(CROSS_COMPILE)objdump -d $< >$(OUT)/paravane.asm

# ---- Test guests, and the tool ----

include guest/Makefile.inc

HOST_CFLAGS := -std=gnu11 -O2 -g $(WARNINGS) $(REPRODUCIBLE) -I. -Iinclude

build/paravane: $(wildcard tools/*.c tools/*.h) core/config.c core/config_keys.c core/cpio.c $(HEADERS)
	@mkdir -p $(@D)
	$(HOSTCC) $(HOST_CFLAGS) -o $@ $(wildcard tools/*.c) core/config.c core/config_keys.c core/cpio.c

clean:
	rm -rf build
