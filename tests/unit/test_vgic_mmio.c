/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/* The virtual GIC's registers: cases G03 G04 G14 G15 G17 G21. */
#include "tests/unit/vgic_sim.h"

#include <stdlib.h>

static struct machine m;
static struct sim cpus[256];

void port_relax(void) {
}

void vgic_notify(struct vgic_vcpu *v) {
    __atomic_store_n(&sim_of(v)->request, 1u, __ATOMIC_SEQ_CST);
}

void vgic_sync_remote(struct vgic_vcpu *v) {
    sim_sync(sim_of(v));
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    (void)v;
    (void)pintid;
}

static void boot(unsigned n) {
    machine_init(&m, cpus, n, 4);
}

/*
 * One address space for the tests: the distributor, then all redistributor frames. Without the way
 * out of and into the guest: for one that never ran.
 */
static enum vgic_mmio_result reg_off_cpu(struct sim *s, uint64_t off, unsigned width, bool write,
                                         uint64_t *value) {
    if (off < VGIC_DIST_SIZE) {
        return vgic_mmio_dist(&m.vm, &s->v, off, width, write, value);
    }
    return vgic_mmio_redist(&m.vm, &s->v, off - VGIC_DIST_SIZE, width, write, value);
}

static enum vgic_mmio_result reg(struct sim *s, uint64_t off, unsigned width, bool write,
                                 uint64_t *value) {
    enum vgic_mmio_result r;

    sim_sync(s);
    r = reg_off_cpu(s, off, width, write, value);
    sim_enter(s);
    return r;
}

static uint64_t frame(unsigned t) {
    return VGIC_DIST_SIZE + t * (uint64_t)VGIC_REDIST_SIZE;
}

/* --- G03 --- */

/* Every vCPU writes to every vCPU's frame: only that one changes. */
static void g03_remote_frame(void **state) {
    (void)state;
    for (unsigned from = 0; from < 4; from++) {
        for (unsigned to = 0; to < 4; to++) {
            boot(4);
            struct sim *s = &cpus[from];

            irq_prio(s, to, 20, 0x58);
            irq_w(s, to, 20, ISENABLE);
            gicr_w(s, to, 0x14, 0);
            for (unsigned t = 0; t < 4; t++) {
                assert_int_equal(gicr_r(s, t, 0x10000 + 0x400 + 20), t == to ? 0x58 : 0);
                assert_int_equal(gicr_r(s, t, 0x10000 + ISENABLE), t == to ? 1u << 20 : 0);
                assert_int_equal(gicr_r(s, t, 0x14), t == to ? 0 : 6);
            }
        }
    }
}

/* A route as a whole, by halves in both orders: reads back the same; the SPI arrives there. */
static void g03_split_route(void **state) {
    uint64_t off = 0x6000 + 45 * 8;
    (void)state;

    for (unsigned k = 0; k < 3; k++) {
        boot(20);
        machine_guest_setup(&m);
        struct sim *s = &cpus[0];
        uint64_t route = 0x00000102; /* 1.2: vCPU 18 */

        irq_edge(s, 0, 45, true);
        irq_w(s, 0, 45, ISENABLE);
        for (unsigned pass = 0; pass < 2; pass++) {
            uint64_t value = pass == 0 ? 0xabffffffffull : route;

            if (k == 0) {
                (void)sim_mmio(s, false, off, 8, true, value);
            } else {
                gicd_w(s, k == 1 ? off : off + 4, k == 1 ? value : value >> 32);
                gicd_w(s, k == 1 ? off + 4 : off, k == 1 ? value >> 32 : value);
            }
            assert_int_equal(sim_mmio(s, false, off, 8, false, 0), value & 0xff80ffffff);
            assert_int_equal(gicd_r(s, off), value & 0x80ffffff);
            assert_int_equal(gicd_r(s, off + 4), value >> 32);
        }
        vgic_pulse(&s->v, 45);
        for (unsigned i = 0; i < 20; i++) {
            assert_int_equal(sim_iar(&cpus[i], 1), i == 18 ? 45 : SPURIOUS);
        }
    }
}

/* --- G04 --- */

struct word {
    uint64_t off;
    uint32_t reset;
};

#define PATTERN 0xa5c3961du

/* What writing PATTERN to register `off` of an untouched machine does to register `other`. */
static uint32_t expected(uint64_t off, uint64_t other, uint32_t before) {
    static const struct {
        unsigned write, read; /* register files */
    } alias[] = {
        {IGROUP, IGROUP}, {ISENABLE, ISENABLE}, {ISENABLE, ICENABLE}, {ISPEND, ISPEND},
        {ISPEND, ICPEND}, {ISACTIVE, ISACTIVE}, {ISACTIVE, ICACTIVE},
    };
    uint64_t base = 0, o = off;

    if (off >= VGIC_DIST_SIZE) {
        base = frame((unsigned)((off - VGIC_DIST_SIZE) / VGIC_REDIST_SIZE));
        if (off - base < 0x10000) {
            return off - base == 0x14 && other == off ? 0 : before; /* WAKER; PATTERN bit 1 is 0 */
        }
        base += 0x10000;
        o = off - base;
    } else if (off == 0) {
        return other == 0 ? 0x51 : before; /* CTLR */
    }
    if (o < 0x400) {
        for (unsigned i = 0; i < sizeof(alias) / sizeof(alias[0]); i++) {
            if (o / 0x80 == alias[i].write / 0x80u && other == base + alias[i].read + o % 0x80) {
                return PATTERN;
            }
        }
        return before;
    }
    if (other != off) {
        return before;
    }
    if (o < 0x800) {
        return PATTERN & 0xf8f8f8f8u;
    }
    if (o >= 0xc00 && o < 0xd00) {
        uint32_t mask = 0xaaaaaaaau;

        if (base != 0) {
            mask = o == 0xc00 ? 0 : mask & ~(2u << (TIMER - 16) * 2); /* SGIs; linked: fixed */
        }
        return (before & ~mask) | (PATTERN & mask);
    }
    if (o >= 0x6100 && o < 0x6900) {
        return PATTERN & (o % 8 == 0 ? 0x80ffffffu : 0xffu);
    }
    return before;
}

static void g04_every_register(void **state) {
    static struct word words[4096];
    unsigned n = 0, writable = 0;
    (void)state;

    boot(3);
    for (uint64_t off = 0; off < frame(3); off += 4) {
        uint64_t value = 0;

        if (reg_off_cpu(&cpus[0], off, 4, false, &value) == VGIC_MMIO_OK) {
            words[n].off = off;
            words[n++].reset = (uint32_t)value;
        } else {
            assert_int_equal(value, 0);
        }
    }
    assert_true(n > 700 && n < 4096);
    for (unsigned i = 0; i < n; i++) {
        uint64_t value = PATTERN;

        boot(3);
        assert_int_equal(reg_off_cpu(&cpus[i % 3], words[i].off, 4, true, &value), VGIC_MMIO_OK);
        assert_int_equal(value, PATTERN);
        for (unsigned k = 0; k < n; k++) {
            value = 0;
            (void)reg_off_cpu(&cpus[0], words[k].off, 4, false, &value);
            if (value != expected(words[i].off, words[k].off, words[k].reset)) {
                fail_msg("write %llx: %llx is %llx, was %x", (unsigned long long)words[i].off,
                         (unsigned long long)words[k].off, (unsigned long long)value,
                         words[k].reset);
            }
            writable += value != words[k].reset;
        }
    }
    assert_true(writable > 600);
}

/* The clearing halves of the pairs, and the set-clear toggle of active bits. */
static void g04_set_and_clear(void **state) {
    static const unsigned pairs[] = {ISENABLE, ISPEND, ISACTIVE};
    (void)state;

    boot(2);
    for (unsigned k = 0; k < 3; k++) {
        for (unsigned bank = 0; bank < 9; bank++) {
            uint64_t base = bank == 0 ? frame(1) + 0x10000 : bank * 4u;
            uint64_t value = 0xffff0ff0;

            (void)reg(&cpus[0], base + pairs[k], 4, true, &value);
            value = 0x0f0f00f0;
            (void)reg(&cpus[0], base + pairs[k] + 0x80, 4, true, &value);
            (void)reg(&cpus[0], base + pairs[k], 4, false, &value);
            assert_int_equal(value, 0xf0f00f00);
            (void)reg(&cpus[0], base + pairs[k] + 0x80, 4, false, &value);
            assert_int_equal(value, 0xf0f00f00);
        }
    }
}

static void g04_reset_values(void **state) {
    (void)state;
    boot(2);
    struct sim *s = &cpus[0];

    assert_int_equal(gicd_r(s, 0x0), 0x50);
    assert_int_equal(gicd_r(s, 0x4), 8 | 9u << 19 | 1u << 24);
    assert_int_equal(gicd_r(s, 0xffe8) >> 4 & 0xf, 3);
    assert_int_equal(gicr_r(s, 1, 0xffe8) >> 4 & 0xf, 3);
    assert_int_equal(gicr_r(s, 1, 0x14), 6);
    assert_int_equal(gicr_r(s, 1, 0x10c00), 0xaaaaaaaa);
    assert_int_equal(gicr_r(s, 1, 0x10c04), 0);
    gicd_w(s, 0, ~0u);
    assert_int_equal(gicd_r(s, 0x0), 0x53);
    /* Priorities by byte. */
    (void)sim_mmio(s, false, 0x429, 1, true, 0xff);
    assert_int_equal(gicd_r(s, 0x428), 0xf800);
    assert_int_equal(sim_mmio(s, false, 0x429, 1, false, 0), 0xf8);
    assert_int_equal(sim_mmio(s, false, 0x428, 2, false, 0), 0); /* no 16-bit access */
}

/* --- G14 --- */

static void g14_every_offset_and_width(void **state) {
    static struct vgic_vm other, copy;
    static struct vgic_vcpu v;
    uint32_t seed = 7;
    (void)state;

    assert_true(vgic_vm_init(&other, 1, 32, 123, 5));
    assert_true(vgic_vcpu_init(&other, &v, 0, 4, true));
    copy = other;
    boot(2);
    machine_guest_setup(&m);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint64_t off = 0; off < frame(2) + 64; off++) {
            for (unsigned width = 1; width <= 8; width *= 2) {
                uint64_t value = ~0ull, past = off < VGIC_DIST_SIZE ? 0 : frame(2);
                bool bad = off % width != 0 || (past != 0 && off >= past);
                enum vgic_mmio_result r = reg(&cpus[off & 1], off, width, false, &value);

                assert_int_equal(r == VGIC_MMIO_ABORT, bad);
                assert_true(width == 8 || value >> width * 8u == 0);
                assert_true(r == VGIC_MMIO_OK || value == 0);
                seed = seed * 1664525u + 1013904223u;
                value = pass == 0 ? (uint64_t)seed << 32 | seed : ~0ull;
                r = reg(&cpus[off & 1], off, width, true, &value);
                assert_int_equal(r == VGIC_MMIO_ABORT, bad);
                for (unsigned i = 0; i < 2; i++) {
                    sim_irqs(&cpus[i]);
                }
            }
        }
    }
    uint64_t value = 1;
    assert_int_equal(vgic_mmio_dist(&m.vm, &cpus[0].v, ~0ull - 3, 4, false, &value),
                     VGIC_MMIO_ABORT);
    assert_int_equal(vgic_mmio_dist(&m.vm, &cpus[0].v, 0, 3, false, &value), VGIC_MMIO_ABORT);
    assert_int_equal(vgic_mmio_redist(&m.vm, &cpus[0].v, 1ull << 40, 4, false, &value),
                     VGIC_MMIO_ABORT);
    assert_int_equal(value, 0);
    assert_memory_equal(&copy, &other, sizeof(copy));
}

/* --- G15 --- */

static void g15_waker(void **state) {
    (void)state;
    boot(3);
    struct sim *s = &cpus[0];

    for (unsigned t = 0; t < 3; t++) {
        for (unsigned k = 0; k < 4; k++) {
            bool sleep = (k & 1) != 0;

            gicr_w(s, t, 0x14, sleep ? ~0u : ~2u);
            assert_int_equal(gicr_r(s, t, 0x14), sleep ? 6 : 0);
            for (unsigned other = t + 1; other < 3; other++) {
                assert_int_equal(gicr_r(s, other, 0x14), 6);
            }
        }
    }
}

/* --- G17 --- */

static void g17_all_ones_and_zeros(void **state) {
    static const struct {
        unsigned file, words;
        uint32_t ones, zeros;
    } t[] = {
        {IGROUP, 1, ~0u, 0}, {ICENABLE, 1, 0, 0},        {ICPEND, 1, 0, 0},
        {ICACTIVE, 1, 0, 0}, {0x400, 8, 0xf8f8f8f8u, 0}, {0xc00, 2, 0xaaaaaaaau, 0},
    };
    (void)state;

    for (unsigned live = 0; live < 2; live++) {
        boot(2);
        struct sim *s = &cpus[0];

        if (live != 0) {
            machine_guest_setup(&m);
        }
        for (unsigned k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
            for (unsigned i = 0; i < t[k].words * 9; i++) {
                uint64_t off = t[k].file + i * 4u;
                uint32_t ones = t[k].ones, zeros = t[k].zeros;

                if (i < t[k].words) {
                    off += frame(1) + 0x10000;
                    if (t[k].file == 0xc00) {
                        zeros = i == 0 ? 0xaaaaaaaau : 0;
                        ones = i == 0 ? ones : ones & ~(2u << (TIMER - 16) * 2);
                    }
                }
                for (unsigned pass = 0; pass < 2; pass++) {
                    uint64_t value = pass == 0 ? 0xffffffffu : 0;

                    assert_int_equal(reg(s, off, 4, true, &value), VGIC_MMIO_OK);
                    assert_int_equal(reg(s, off, 4, false, &value), VGIC_MMIO_OK);
                    assert_int_equal(value, pass == 0 ? ones : zeros);
                }
            }
        }
    }
}

/* --- G21 --- */

static void g21_frames_until_last(void **state) {
    static const unsigned counts[] = {1, 2, 5, 16, 17, 122, 123, 124, 200, 256};
    (void)state;

    for (unsigned k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        unsigned n = counts[k], seen = 0;
        uint64_t value = 0;

        boot(n);
        for (unsigned region = 0; region < (n > VGIC_VIRT_REGION0 ? 2 : 1); region++) {
            bool last = false;

            for (unsigned i = region * VGIC_VIRT_REGION0; !last; i++) {
                assert_int_equal(
                    vgic_mmio_redist(&m.vm, &cpus[0].v, i * 0x20000ull + 8, 8, false, &value),
                    VGIC_MMIO_OK);
                assert_int_equal(value >> 32, vgic_mpidr(i));
                assert_int_equal(value >> 8 & 0xffff, i);
                assert_int_equal(value & 0xff & ~0x10u, 0); /* no LPIs */
                assert_int_equal(gicr_r(&cpus[0], i, 8), value & 0xffffffff);
                assert_int_equal(gicr_r(&cpus[0], i, 12), value >> 32);
                last = (value & 0x10) != 0;
                seen++;
            }
        }
        assert_int_equal(seen, n);
        assert_int_equal(vgic_mmio_redist(&m.vm, &cpus[0].v, n * 0x20000ull + 8, 8, false, &value),
                         VGIC_MMIO_ABORT);
        assert_int_equal(vgic_mpidr(n - 1), ((n - 1) / 16 << 8) + (n - 1) % 16);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(g03_remote_frame),
        cmocka_unit_test(g03_split_route),
        cmocka_unit_test(g04_every_register),
        cmocka_unit_test(g04_set_and_clear),
        cmocka_unit_test(g04_reset_values),
        cmocka_unit_test(g14_every_offset_and_width),
        cmocka_unit_test(g15_waker),
        cmocka_unit_test(g17_all_ones_and_zeros),
        cmocka_unit_test(g21_frames_until_last),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
