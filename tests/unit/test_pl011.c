/* SPDX-License-Identifier: GPL-2.0-only */
/* link: hyp/pl011.c */
/*
 * The guest's PL011 against its manual, DDI 0183G, and what drivers do with it: D01, D02, D04, D05.
 * Every access goes through rd() or wr(), which check afterwards that the line is what RIS and IMSC
 * say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/pl011.h"
#include "hyp/vm.h"

enum {
    DR = 0x00,
    ECR = 0x04,
    FR = 0x18,
    ILPR = 0x20,
    IBRD = 0x24,
    FBRD = 0x28,
    LCR_H = 0x2c,
    CR = 0x30,
    IFLS = 0x34,
    IMSC = 0x38,
    RIS = 0x3c,
    MIS = 0x40,
    ICR = 0x44,
    DMACR = 0x48
};

enum { FR_BUSY = 0x8, FR_RXFE = 0x10, FR_TXFF = 0x20, FR_RXFF = 0x40, FR_TXFE = 0x80 };
enum { RXI = 0x10, TXI = 0x20, RTI = 0x40, OEI = 0x400 };
enum { FEN = 0x10, WLEN_8 = 0x60 };

static struct vm vm;
static struct vm_config config;
static char out[200000];
static size_t out_count, console_limit; /* the console takes bytes up to this number */
static bool line;
static unsigned line_changes;

void port_relax(void) {
    fail_msg("the lock is taken twice");
}

bool console_guest_putc(struct vm *v, uint8_t byte) {
    assert_ptr_equal(v, &vm);
    assert_true(spin_is_locked(&vm.uart.lock)); /* calls for one VM must not overlap */
    if (out_count >= console_limit) {
        return false;
    }
    assert_true(out_count < sizeof(out));
    out[out_count++] = (char)byte;
    return true;
}

void arch_vm_uart_line(struct vm *v, bool level) {
    assert_ptr_equal(v, &vm);
    assert_true(spin_is_locked(&vm.uart.lock));
    assert_int_not_equal(level, line); /* only changes are told */
    line = level;
    line_changes++;
}

void panic(const char *format, ...) {
    print_error("panic: %s\n", format);
    abort();
}

/* D04, after whatever happened. */
static void check_line(void) {
    assert_int_equal(line, (vm.uart.ris & vm.uart.imsc) != 0);
    assert_false(spin_is_locked(&vm.uart.lock));
}

static uint32_t rd(uint32_t offset) {
    uint32_t value = (uint32_t)vpl011_read(&vm, offset, 4);

    check_line();
    return value;
}

static void wr(uint32_t offset, uint32_t value) {
    vpl011_write(&vm, offset, 4, value);
    check_line();
}

static bool type(uint8_t byte) {
    bool taken = vpl011_receive(&vm, byte);

    check_line();
    return taken;
}

static void room(size_t bytes) {
    console_limit = out_count + bytes;
    vpl011_tx_room(&vm);
    check_line();
}

static int setup(void **state) {
    (void)state;
    console_limit = SIZE_MAX; /* whatever the test before left behind gets out first */
    out_count = 0;
    memset(&config, 0, sizeof(config));
    strcpy(config.name, "a");
    vm.config = &config;
    vm.index = 7;
    vpl011_reset(&vm);
    check_line();
    assert_false(line);
    out_count = 0;
    line_changes = 0;
    return 0;
}

/* ---- Transmit ---- */

static void D01_unmasking_tx_with_an_empty_fifo_interrupts(void **state) {
    (void)state;
    assert_false(line);
    wr(CR, 0x301);
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, TXI);
    assert_true(line);
    wr(IMSC, 0);
    assert_false(line);
    wr(IMSC, TXI);
    assert_true(line);
}

static void D01_one_byte_at_a_time_by_interrupt(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, TXI);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(line);
        wr(ICR, TXI); /* the driver takes the interrupt away and sends one more */
        assert_false(line);
        wr(DR, 'x');
    }
    assert_true(line);
    assert_int_equal(out_count, 1000);
}

static void D01_without_fifo_too(void **state) {
    (void)state;
    wr(IMSC, TXI);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(line);
        wr(ICR, TXI);
        wr(DR, 'x');
    }
    assert_true(line);
}

/* Mask, send, unmask: as Linux does when it ran out of characters and gets new ones. */
static void D01_mask_and_unmask_around_a_byte(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    for (unsigned i = 0; i < 1000; i++) {
        wr(IMSC, TXI | RTI);
        assert_true(line);
        wr(DR, 'x');
        wr(IMSC, RTI);
        assert_false(line);
    }
}

static void D02_busy_is_never_set(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    room(3);
    for (unsigned i = 0; i < 40; i++) {
        wr(DR, 'x');
        assert_int_equal(rd(FR) & FR_BUSY, 0);
    }
}

/* earlycon and a console that takes 1000 bytes at a time: each byte waits for TXFF to go. */
static void D02_polled_output_of_100_kb(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    room(1000);
    for (unsigned i = 0; i < 100 * 1024; i++) {
        if (rd(FR) & FR_TXFF) {
            room(1000);
            assert_int_equal(rd(FR) & FR_TXFF, 0);
        }
        wr(DR, 'a' + i % 26);
    }
    room(1000);
    assert_int_equal(out_count, 100 * 1024);
    for (unsigned i = 0; i < 100 * 1024; i++) {
        assert_int_equal(out[i], 'a' + i % 26);
    }
}

/* A console that has room, but tells nobody: looking at the flags is enough. */
static void D02_polling_alone_makes_progress(void **state) {
    (void)state;
    room(0);
    wr(DR, 'x');
    assert_int_equal(rd(FR) & (FR_TXFF | FR_TXFE), FR_TXFF);
    console_limit = SIZE_MAX;
    assert_int_equal(rd(FR) & (FR_TXFF | FR_TXFE), FR_TXFE);
    assert_int_equal(out_count, 1);
}

static void full_console_fills_the_fifo(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, TXI);
    room(0);
    for (unsigned i = 1; i <= 16; i++) {
        assert_int_equal(rd(FR) & FR_TXFF, 0);
        wr(DR, 'a' + i);
        assert_int_equal(rd(FR) & FR_TXFE, 0);
        assert_int_equal(line, i <= 8); /* trigger: half full, after reset */
    }
    assert_int_equal(rd(FR) & FR_TXFF, FR_TXFF);
    wr(DR, '!'); /* a full FIFO drops it */
    room(7);
    assert_false(line);
    room(1);
    assert_true(line);
    room(100);
    assert_int_equal(rd(FR) & (FR_TXFF | FR_TXFE), FR_TXFE);
    assert_int_equal(out_count, 16);
    assert_memory_equal(out, "bcdefghijklmnopq", 16);
}

/* Linux writes half a FIFO without looking, whenever the interrupt says that it is half empty. */
static void bursts_by_interrupt_lose_nothing(void **state) {
    unsigned sent = 0;

    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, TXI);
    srand(3);
    room(0);
    while (sent < 20000) {
        while (line && sent < 20000) {
            for (unsigned i = 0; i < 8; i++, sent++) {
                wr(DR, 'a' + sent % 26);
            }
        }
        room((size_t)rand() % 30);
    }
    room(100);
    assert_int_equal(out_count, sent);
    for (unsigned i = 0; i < sent; i++) {
        assert_int_equal(out[i], 'a' + i % 26);
    }
}

static void tx_trigger_levels(void **state) {
    static const unsigned level[] = {2, 4, 8, 12, 14};

    for (unsigned select = 0; select < 5; select++) {
        setup(state);
        wr(LCR_H, FEN | WLEN_8);
        wr(IFLS, select);
        wr(IMSC, TXI);
        room(0);
        for (unsigned i = 1; i <= 16; i++) {
            wr(DR, 'x');
            assert_int_equal(line, i <= level[select]);
        }
    }
}

static void sends_while_cr_says_off(void **state) {
    (void)state;
    wr(CR, 0);
    wr(DR, 'x');
    assert_int_equal(out_count, 1);
}

static void loopback(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(CR, 0x381);
    wr(DR, 'x');
    assert_int_equal(out_count, 0);
    assert_int_equal(rd(DR), 'x');
}

/* ---- Receive ---- */

/* As QEMU: a driver that listens to RX alone hears of each byte, whatever the trigger level. */
static void receive_interrupt_at_each_level(void **state) {
    for (unsigned select = 0; select < 5; select++) {
        setup(state);
        wr(LCR_H, FEN | WLEN_8);
        wr(IFLS, select << 3);
        for (unsigned i = 1; i <= 16; i++) {
            assert_true(type((uint8_t)i));
            assert_int_equal(rd(RIS) & (RXI | RTI), RXI);
        }
        for (unsigned i = 1; i <= 16; i++) {
            assert_int_equal(rd(DR), i);
            assert_int_equal(rd(RIS) & (RXI | RTI), i == 16 ? 0 : RXI);
        }
        assert_int_equal(rd(FR) & FR_RXFE, FR_RXFE);
    }
}

static void receive_without_fifo_holds_one(void **state) {
    (void)state;
    wr(IMSC, RXI);
    assert_true(type('a'));
    assert_true(line);
    assert_int_equal(rd(FR) & (FR_RXFF | FR_RXFE), FR_RXFF);
    assert_true(type('b'));
    assert_int_equal(rd(DR), 'a');
    assert_true(line);
    assert_int_equal(rd(FR) & (FR_RXFF | FR_RXFE), FR_RXFF);
    assert_int_equal(rd(DR), 'b');
    assert_false(line);
    assert_int_equal(rd(FR) & (FR_RXFF | FR_RXFE), FR_RXFE);
}

/* A paste is longer than the FIFO, and faster than any guest. */
static void typed_bytes_wait_for_room(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, RXI);
    for (unsigned i = 0; i < 16 + VPL011_TYPED; i++) {
        assert_true(type((uint8_t)(i % 199)));
    }
    assert_false(type('!')); /* lost, and whoever types is told */
    for (unsigned i = 0; i < 16 + VPL011_TYPED; i++) {
        assert_true(line);
        assert_int_equal(rd(DR), i % 199);
    }
    assert_false(line);
    for (unsigned i = 0; i < 40; i++) {
        type('x');
    }
    vpl011_reset(&vm);
    assert_int_equal(rd(FR) & FR_RXFE, FR_RXFE);
}

static void receive_overrun_is_flagged(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, OEI);
    wr(CR, 0x381); /* looped back: what was typed waits until there is room */
    for (unsigned i = 0; i < 16; i++) {
        wr(DR, 'x');
    }
    assert_false(line);
    wr(DR, 'y');
    assert_true(line);
    assert_int_equal(rd(ECR), 8);
    assert_int_equal(rd(DR), 0x800 | 'x'); /* once, and in ECR until it is written */
    assert_int_equal(rd(DR), 'x');
    assert_int_equal(rd(ECR), 8);
    wr(ECR, 0);
    assert_int_equal(rd(ECR), 0);
    wr(ICR, OEI);
    assert_false(line);
}

/* Interrupt handlers that write all they found to ICR before they read, or after it. */
static void receive_with_clearing_drivers(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, RXI | RTI);
    for (unsigned i = 0; i < 50; i++) {
        type('a');
        type('b');
        assert_true(line);
        wr(ICR, rd(MIS));
        assert_false(line); /* D04: clearing lowers it */
        assert_int_equal(rd(DR), 'a');
        assert_true(line); /* there is more */
        assert_int_equal(rd(DR), 'b');
        assert_false(line);
        wr(ICR, 0x7ff);
        type('c'); /* after a clear the next byte interrupts again */
        wr(ICR, 0x7ff);
        assert_false(line);
        type('d');
        assert_true(line);
        rd(DR);
        rd(DR);
        assert_false(line);
    }
}

static void read_of_an_empty_fifo(void **state) {
    (void)state;
    assert_int_equal(rd(DR), 0);
    assert_int_equal(rd(FR), FR_RXFE | FR_TXFE);
}

/* ---- The line ---- */

static void D04_any_accesses_keep_the_line_right(void **state) {
    (void)state;
    srand(4);
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t offset = (uint32_t)(rand() % 20) * 4;
        switch (rand() % 4) {
        case 0:
            type((uint8_t)rand());
            break;
        case 1:
            out_count = 0;
            room((size_t)rand() % 20);
            break;
        case 2:
            wr(offset, (uint32_t)rand());
            break;
        default:
            rd(offset);
        }
    }
    assert_true(line_changes > 1000);
}

static void D04_masking_and_clearing_lower_the_line(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    type('x');
    wr(IMSC, RTI | TXI);
    assert_true(line);
    wr(ICR, RTI);
    assert_true(line);
    wr(ICR, TXI);
    assert_false(line);
    assert_int_equal(rd(MIS), 0);
}

static void D04_reset_lowers_the_line(void **state) {
    (void)state;
    wr(IMSC, TXI);
    assert_true(line);
    vpl011_reset(&vm);
    check_line();
    assert_false(line);
    assert_int_equal(rd(IMSC), 0);
}

/* ---- Registers ---- */

static void D05_values_after_reset(void **state) {
    (void)state;
    assert_int_equal(rd(CR), 0x300);
    assert_int_equal(rd(IFLS), 0x12);
    assert_int_equal(rd(FR), FR_RXFE | FR_TXFE);
    assert_int_equal(rd(IMSC) | rd(RIS) | rd(MIS) | rd(LCR_H) | rd(IBRD) | rd(FBRD) | rd(DMACR), 0);
}

static void D05_registers_read_back(void **state) {
    static const struct {
        uint32_t offset, mask;
    } registers[] = {{ILPR, 0xff}, {IBRD, 0xffff}, {FBRD, 0x3f},  {LCR_H, 0xff},
                     {CR, 0xffff}, {IFLS, 0x3f},   {IMSC, 0x7ff}, {DMACR, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
        for (uint32_t bit = 1; bit != 0; bit <<= 1) {
            wr(registers[i].offset, bit);
            assert_int_equal(rd(registers[i].offset), bit & registers[i].mask);
        }
        wr(registers[i].offset, 0);
    }
}

static void D05_primecell_ids(void **state) {
    static const uint32_t ids[] = {0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1};

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        wr(0xfe0 + 4 * i, 0xff);
        assert_int_equal(rd(0xfe0 + 4 * i), ids[i]);
    }
}

/* Linux 6.12, amba-pl011.c: probe, startup, 1 line out, 1 line in, shutdown. */
static void D05_linux_sequence(void **state) {
    (void)state;
    wr(IMSC, 0);
    wr(ICR, 0xffff);
    wr(ICR, OEI | 0x380 | RTI | RXI);
    wr(IFLS, 0x12);
    wr(CR, 0x101);
    wr(FBRD, 0);
    wr(IBRD, 1);
    wr(LCR_H, FEN | WLEN_8);
    wr(CR, 0x301);
    wr(ICR, RTI | RXI);
    for (unsigned i = 0; i < 32 && !(rd(FR) & FR_RXFE); i++) {
        rd(DR);
    }
    wr(IMSC, RTI | RXI);
    assert_false(line);
    for (const char *s = "hello"; *s != '\0'; s++) { /* start_tx: polled first */
        assert_int_equal(rd(FR) & FR_TXFF, 0);
        wr(DR, (uint32_t)*s);
    }
    wr(IMSC, RTI | RXI | TXI);
    assert_true(line);
    assert_int_equal(rd(RIS) & rd(IMSC), TXI); /* the handler: nothing more to send */
    wr(ICR, 0);
    wr(IMSC, RTI | RXI);
    assert_false(line);
    for (const char *s = "root\r"; *s != '\0'; s++) {
        type((uint8_t)*s);
        assert_true(line);
        while (!(rd(FR) & FR_RXFE)) {
            assert_int_equal(rd(DR), *s);
        }
        assert_false(line);
    }
    wr(IMSC, 0);
    wr(ICR, 0xffff);
    assert_memory_equal(out, "hello", 5);
}

static void D05_widths_and_holes(void **state) {
    (void)state;
    vpl011_write(&vm, IBRD, 2, 0x1234);
    assert_int_equal(vpl011_read(&vm, IBRD, 1), 0x34);
    assert_int_equal(vpl011_read(&vm, IBRD, 2), 0x1234);
    vpl011_write(&vm, FBRD, 8, 0x7000000015); /* FBRD and LCR_H */
    assert_int_equal(vpl011_read(&vm, FBRD, 8), 0x7000000015);
    vpl011_write(&vm, IBRD + 1, 1, 0xff);
    vpl011_write(&vm, IBRD, 3, 0xffffff);
    assert_int_equal(rd(IBRD), 0x1234);
    assert_int_equal(vpl011_read(&vm, IBRD + 2, 2), 0);
    assert_int_equal(vpl011_read(&vm, IBRD, 3), 0);
    assert_int_equal(vpl011_read(&vm, 0x1000, 4), 0);
    for (uint32_t offset = 0x4c; offset < 0xfe0; offset += 4) {
        wr(offset, 0xffffffff);
        assert_int_equal(rd(offset), 0);
    }
    vpl011_write(&vm, DR, 1, 'z');
    assert_int_equal(out[0], 'z');
}

static void change_of_fen_empties_the_receive_fifo(void **state) {
    (void)state;
    wr(LCR_H, FEN | WLEN_8);
    wr(IMSC, RXI);
    type('a');
    type('b');
    assert_true(line);
    wr(LCR_H, WLEN_8);
    assert_false(line);
    assert_int_equal(rd(FR) & FR_RXFE, FR_RXFE);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(D01_unmasking_tx_with_an_empty_fifo_interrupts),
        TEST(D01_one_byte_at_a_time_by_interrupt),
        TEST(D01_without_fifo_too),
        TEST(D01_mask_and_unmask_around_a_byte),
        TEST(D02_busy_is_never_set),
        TEST(D02_polled_output_of_100_kb),
        TEST(D02_polling_alone_makes_progress),
        TEST(full_console_fills_the_fifo),
        TEST(bursts_by_interrupt_lose_nothing),
        TEST(tx_trigger_levels),
        TEST(sends_while_cr_says_off),
        TEST(loopback),
        TEST(receive_interrupt_at_each_level),
        TEST(receive_without_fifo_holds_one),
        TEST(typed_bytes_wait_for_room),
        TEST(receive_overrun_is_flagged),
        TEST(receive_with_clearing_drivers),
        TEST(read_of_an_empty_fifo),
        TEST(D04_any_accesses_keep_the_line_right),
        TEST(D04_masking_and_clearing_lower_the_line),
        TEST(D04_reset_lowers_the_line),
        TEST(D05_values_after_reset),
        TEST(D05_registers_read_back),
        TEST(D05_primecell_ids),
        TEST(D05_linux_sequence),
        TEST(D05_widths_and_holes),
        TEST(change_of_fen_empties_the_receive_fifo),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
