# SPDX-License-Identifier: GPL-2.0-only
#
# Figures: bench/guest's guests, and bench/run, which runs them. bench/README.md says what is what.

BENCH_GUEST := build/bench/guest
BENCH_IMAGES := $(addprefix $(BENCH_GUEST)/,fixed.img sgi.img handover.img first.img deadline.img)

# Built as the test guests are, with a vector table of their own (handler.S).
BENCH_HEADERS := $(wildcard bench/guest/*.h) $(GUEST_HEADERS)
$(BENCH_GUEST)/%.o: bench/guest/%.c $(BENCH_HEADERS) bench/bench.mk
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) $(GUEST_CFLAGS) -c $< -o $@

$(BENCH_GUEST)/handler.o: bench/guest/handler.S bench/guest/bench_asm.h bench/bench.mk
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) -march=armv8-a -Iguest/lib -c $< -o $@

$(BENCH_GUEST)/%.elf: $(GUEST_BUILD)/lib/start.o $(BENCH_GUEST)/%.o $(BENCH_GUEST)/bench.o \
    $(BENCH_GUEST)/handler.o $(GUEST_LIB_OBJ) guest/lib/guest.ld
	$(Q)$(GUEST_LD) $(GUEST_LDFLAGS) $(filter %.o,$^) -o $@

# The whole image is this one file, so that its first instruction is its own.
$(BENCH_GUEST)/first.o: bench/guest/first.S bench/bench.mk
	@mkdir -p $(@D)
	$(Q)$(GUEST_CC) -march=armv8-a -c $< -o $@

$(BENCH_GUEST)/first.elf: $(BENCH_GUEST)/first.o
	$(Q)$(GUEST_LD) -Ttext=0 -e _head --build-id=none -o $@ $<

$(BENCH_GUEST)/%.img: $(BENCH_GUEST)/%.elf
	@echo "  IMG $@"
	$(Q)$(GUEST_OBJCOPY) -O binary $< $@

.PRECIOUS: $(BENCH_GUEST)/%.o $(BENCH_GUEST)/%.elf

.PHONY: bench bench-check
bench: all $(BENCH_IMAGES)
	@bench/run $(if $(ONLY),'$(ONLY)')
# Fails if a figure that is the same in every run is worse than in bench/results/arm64.json.
bench-check: all $(BENCH_IMAGES)
	@bench/run; bench/run --check
