/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/config.c core/config_keys.c */
/* The parser of the machine description: what it reads, and the words of every error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/config.h"

#define MAX_VMS 8u

static struct machine_config machine;
static struct vm_config vms[MAX_VMS];
static size_t n_vms;

/*
 * Parses a copy of exactly len bytes on the heap, so that ASan sees every step outside; counting
 * and storing must agree.
 */
static bool parse_bytes(const char *text, size_t len, struct config_error *err) {
    char *copy = malloc(len + (len == 0));
    struct config_error counting_err;
    size_t counted;

    assert_non_null(copy);
    memcpy(copy, text, len);
    memset(vms, 0xa5, sizeof(vms));
    bool counting = config_parse(copy, len, &machine, NULL, 0, &counted, &counting_err);
    bool storing = config_parse(copy, len, &machine, vms, MAX_VMS, &n_vms, err);
    free(copy);
    if (counting && counted > MAX_VMS) {
        assert_false(storing);
        return false;
    }
    assert_int_equal(counting, storing);
    if (!storing) {
        assert_memory_equal(&counting_err, err, sizeof(*err));
    } else {
        assert_int_equal(counted, n_vms);
        assert_true(n_vms >= 1);
    }
    return storing;
}

static void parse(const char *text) {
    struct config_error err;
    char line[512];

    if (!parse_bytes(text, strlen(text), &err)) {
        config_format_error(&err, "machine.conf", line, sizeof(line));
        fail_msg("%s", line);
    }
}

static void expect_error(const char *text, size_t len, const char *expected) {
    struct config_error err;
    char line[512];

    assert_false(parse_bytes(text, len, &err));
    size_t n = config_format_error(&err, "m.conf", line, sizeof(line));
    assert_int_equal(n, strlen(line));
    assert_string_equal(line, expected);
}

#define REST "kernel = k\nmemory = 64M\nvcpus = 2\n"

static void every_key(void **state) {
    (void)state;
    parse("[machine]\nslice = 2ms\n[vm alpha]\nkernel = vmlinuz\ninitrd = root.cpio\ndtb = a.dtb\n"
          "cmdline = console=ttyAMA0 quiet\nmemory = 256M\nvcpus = 4\nweight = 512\n"
          "cpus = 0-3,6\nautostart = no\n");
    assert_int_equal(machine.slice_ns, 2000000);
    assert_int_equal(n_vms, 1);
    assert_string_equal(vms[0].name, "alpha");
    assert_string_equal(vms[0].kernel, "vmlinuz");
    assert_string_equal(vms[0].initrd, "root.cpio");
    assert_string_equal(vms[0].dtb, "a.dtb");
    assert_string_equal(vms[0].cmdline, "console=ttyAMA0 quiet");
    assert_int_equal(vms[0].memory, 256u << 20);
    assert_int_equal(vms[0].vcpus, 4);
    assert_int_equal(vms[0].weight, 512);
    assert_int_equal(vms[0].cpus.bits[0], 0x4f);
    assert_int_equal(vms[0].cpus.bits[1], 0);
    assert_false(vms[0].autostart);
}

static void defaults(void **state) {
    (void)state;
    parse("[vm a]\n" REST);
    assert_int_equal(machine.slice_ns, 0);
    assert_string_equal(vms[0].initrd, "");
    assert_string_equal(vms[0].dtb, "");
    assert_string_equal(vms[0].cmdline, "");
    assert_int_equal(vms[0].weight, 256);
    assert_true(vms[0].cpus.bits[0] == UINT64_MAX && vms[0].cpus.bits[1] == UINT64_MAX);
    assert_true(vms[0].autostart);
}

static void several_vms(void **state) {
    (void)state;
    parse("[vm a]\n" REST "weight = 1\n[vm b]\n" REST "[machine]\nslice = 100us\n[vm A_-9]\n" REST
          "autostart = yes\n");
    assert_int_equal(n_vms, 3);
    assert_string_equal(vms[1].name, "b");
    assert_int_equal(vms[1].weight, 256);
    assert_string_equal(vms[2].name, "A_-9");
    assert_int_equal(machine.slice_ns, 100000);
}

static void comments_and_white_space(void **state) {
    (void)state;
    parse("# whole line with kernel = x\n\t # and [vm x]\n\n  [ vm \t a ] # header\n"
          "\tkernel=a#b # not part of it\nmemory =\t1G\t# \n# done\n  vcpus = 1\t#\n");
    assert_string_equal(vms[0].name, "a");
    assert_string_equal(vms[0].kernel, "a#b");
}

static void comment_needs_white_space(void **state) {
    (void)state;
    expect_error("[vm a]\nvcpus = 1#2\n", 19,
                 "m.conf:2: [vm a] vcpus: found '1#2', expected a number from 1 to 256");
}

static void command_line_is_taken_as_it_is(void **state) {
    (void)state;
    parse("[vm a]\n" REST "cmdline =  a=b # c [vm x] = \"d\"\t\n");
    assert_string_equal(vms[0].cmdline, "a=b # c [vm x] = \"d\"");
    parse("[vm a]\n" REST "cmdline =# x\n");
    assert_string_equal(vms[0].cmdline, "# x");
    parse("[vm a]\n" REST "cmdline =\n");
    assert_string_equal(vms[0].cmdline, "");
}

static void line_ends(void **state) {
    (void)state;
    parse("\xef\xbb\xbf[vm a]\r\nkernel = k\r\nmemory = 64M\r\ncmdline = x \r\nvcpus = 2");
    assert_string_equal(vms[0].kernel, "k");
    assert_string_equal(vms[0].cmdline, "x");
    assert_int_equal(vms[0].vcpus, 2);
}

static void names_with_spaces_and_utf8(void **state) {
    (void)state;
    parse("[vm a]\nkernel = my f\xc3\xbcnf kernel\nmemory = 64M\nvcpus = 2\n");
    assert_string_equal(vms[0].kernel, "my f\xc3\xbcnf kernel");
}

static void longest_texts(void **state) {
    static char text[4096], name[CONFIG_NAME_MAX + 1], file[CONFIG_FILE_MAX + 1],
        cmdline[CONFIG_CMDLINE_MAX + 1];

    (void)state;
    memset(name, 'n', CONFIG_NAME_MAX);
    memset(file, 'f', CONFIG_FILE_MAX);
    memset(cmdline, 'c', CONFIG_CMDLINE_MAX);
    snprintf(text, sizeof(text), "[vm %s]\nkernel = %s\ncmdline = %s\nmemory = 1M\nvcpus = 1\n",
             name, file, cmdline);
    parse(text);
    assert_string_equal(vms[0].name, name);
    assert_string_equal(vms[0].kernel, file);
    assert_string_equal(vms[0].cmdline, cmdline);
}

static void too_long_texts(void **state) {
    static char text[4096], file[CONFIG_FILE_MAX + 2], cmdline[CONFIG_CMDLINE_MAX + 2];

    (void)state;
    memset(file, 'f', CONFIG_FILE_MAX + 1);
    memset(cmdline, 'c', CONFIG_CMDLINE_MAX + 1);
    snprintf(text, sizeof(text), "[vm a]\nkernel = %s\n", file);
    expect_error(text, strlen(text),
                 "m.conf:2: [vm a] kernel: found "
                 "'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff...', "
                 "expected a file name of up to 255 bytes");
    snprintf(text, sizeof(text), "[vm a]\ncmdline = %s\n", cmdline);
    expect_error(text, strlen(text),
                 "m.conf:2: [vm a] cmdline: found "
                 "'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc...', "
                 "expected at most 1023 bytes");
}

static void memory_sizes(void **state) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1M", 1u << 20},     {"1024K", 1u << 20},   {"1028K", 1028u << 10},
                {"1m", 1u << 20},     {"2g", 2ull << 30},    {"240G", 240ull << 30},
                {"0064M", 64u << 20}, {"1025M", 1025u << 20}};
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "[vm a]\nkernel = k\nvcpus = 1\nmemory = %s", good[i].text);
        parse(text);
        assert_int_equal(vms[0].memory, good[i].bytes);
    }
}

/* Each of the values is refused as the value of the key. */
static void refuse(const char *section, const char *key, const char *const values[], size_t n,
                   const char *expected) {
    char text[256], error[512];

    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key, values[i]);
        snprintf(error, sizeof(error), "m.conf:2: [%s] %s: found '%s', expected %s", section, key,
                 values[i], expected);
        expect_error(text, strlen(text), error);
    }
}
#define REFUSE(section, key, expected, ...)                                                        \
    refuse(section, key, (const char *const[]){__VA_ARGS__},                                       \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), expected)

static void bad_memory(void **state) {
    (void)state;
    REFUSE("vm a", "memory", "a number with suffix K, M or G, a multiple of 4K from 1M to 240G",
           "3", "M", "0M", "1020K", "1025K", "1026K", "241G", "240G1", "245761M", "64MB", "64MiB",
           "64 M", "-64M", "+64M", "0x40M", "1.5G", "1T", "17179869184G", "17179869185G",
           "18446744073709551615K", "18446744073709551616K", "99999999999999999999999M", "64M 64M");
}

static void bad_numbers(void **state) {
    (void)state;
    REFUSE("vm a", "vcpus", "a number from 1 to 256", "0", "257", "-1", "+1", "1x", "x", "1 1",
           "0x1", "4294967297", "18446744073709551617");
    REFUSE("vm a", "weight", "a number from 1 to 65535", "0", "65536", "4294967552", "1.0");
}

static void bad_cpus(void **state) {
    (void)state;
    REFUSE("vm a", "cpus", "CPU numbers from 0 to 127 and ranges of them, such as 0-3,6", "x",
           "128", "0-128", "3-2", "0,", ",0", "0,,1", "0-", "-0", "-", ",", "1-2-3", "0 1", "0x1",
           "0;1", "18446744073709551616", "0-18446744073709551615", "all");
}

static void good_cpus(void **state) {
    static const struct {
        const char *text;
        uint64_t low, high;
    } good[] = {{"0", 1, 0},
                {"127", 0, 1ull << 63},
                {"0-127", UINT64_MAX, UINT64_MAX},
                {"63-64", 1ull << 63, 1},
                {"1, 3 ,5 - 6", 0x6a, 0},
                {"2,2,1-3", 0xe, 0}};
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), "[vm a]\n" REST "cpus = %s", good[i].text);
        parse(text);
        assert_true(vms[0].cpus.bits[0] == good[i].low && vms[0].cpus.bits[1] == good[i].high);
    }
}

static void advances(void **state) {
    (void)state;
    REFUSE("vm a", "advance_ns", "-1 (adaptive), 0 (off) or nanoseconds up to 50000", "-2", "50001",
           "-", "--1", "- 1", "-1x", "-10", "+1", "4294967295", "18446744073709551615",
           "18446744073709551616", "adaptive", "1us");
    parse("[vm a]\n" REST "advance_ns = -1\n[vm b]\n" REST "advance_ns = 0\n[vm c]\n" REST
          "advance_ns = 50000\n[vm d]\n" REST);
    assert_int_equal(vms[0].advance_ns, -1);
    assert_int_equal(vms[1].advance_ns, 0);
    assert_int_equal(vms[2].advance_ns, 50000);
    assert_int_equal(vms[3].advance_ns, -1);
}

static void bad_words(void **state) {
    (void)state;
    REFUSE("vm a", "autostart", "yes or no", "true", "Yes", "1", "noo", "n");
    REFUSE("machine", "slice", "a number with suffix us or ms, from 100us to 100ms", "2", "2s",
           "99us", "101ms", "0ms", "ms", "2 ms", "-2ms", "1.5ms", "18446744073709551615ms");
}

static void traces(void **state) {
    (void)state;
    REFUSE("machine", "trace", "a number with suffix K, M or G, a multiple of 4K up to 256M",
           "4096", "2K", "257M", "yes", "-4K");
    parse("[vm a]\n" REST "[machine]\ntrace = 8M");
    assert_int_equal(machine.trace, 8 << 20);
    parse("[vm a]\n" REST "[machine]\ntrace = 0K");
    assert_int_equal(machine.trace, 0);
    parse("[vm a]\n" REST);
    assert_int_equal(machine.trace, 0);
}

static void good_slices(void **state) {
    (void)state;
    parse("[vm a]\n" REST "[machine]\nslice = 500us");
    assert_int_equal(machine.slice_ns, 500000);
    parse("[vm a]\n" REST "[machine]\nslice = 100ms");
    assert_int_equal(machine.slice_ns, 100000000);
    parse("[vm a]\n" REST "[machine]\n");
    assert_int_equal(machine.slice_ns, 0);
}

#define HEADER_EXPECTED                                                                            \
    "expected [machine] or [vm NAME], NAME being 1 to 31 characters of A-Z a-z 0-9 _ -"

#define VM_KEYS                                                                                    \
    "kernel, initrd, dtb, cmdline, memory, vcpus, weight, cpus, advance_ns, autostart, identity, " \
    "spin, pvtime, pvlock, pvyield, pvsched, flag_blocked"

static const struct {
    const char *text, *error;
} bad_text[] = {
    {"", "m.conf: found nothing, expected at least one [vm NAME] section"},
    {"\n# only\n", "m.conf: found nothing, expected at least one [vm NAME] section"},
    {"\xef\xbb\xbf", "m.conf: found nothing, expected at least one [vm NAME] section"},
    {"[machine]\n", "m.conf: found nothing, expected at least one [vm NAME] section"},
    {"\nkernel = k\n", "m.conf:2: found 'kernel = k', expected a section, [machine] or [vm NAME], "
                       "before any key"},
    {"kernel\n", "m.conf:1: found 'kernel', expected key = value, [machine] or [vm NAME]"},
    {"[vm a]\nkernel k\n",
     "m.conf:2: [vm a]: found 'kernel k', expected key = value, [machine] or [vm NAME]"},
    {"[vm a]\nkernel # = k\n",
     "m.conf:2: [vm a]: found 'kernel # = k', expected key = value, [machine] or [vm NAME]"},
    {"[vm a]\ncolour = red\n",
     "m.conf:2: [vm a]: found unknown key 'colour', expected one of " VM_KEYS},
    {"[vm a]\nKernel = k\n",
     "m.conf:2: [vm a]: found unknown key 'Kernel', expected one of " VM_KEYS},
    {"[vm a]\n = k\n", "m.conf:2: [vm a]: found unknown key '', expected one of " VM_KEYS},
    {"[vm a]\nslice = 1ms\n",
     "m.conf:2: [vm a]: found unknown key 'slice', expected one of " VM_KEYS},
    {"[machine]\nvcpus = 2\n", "m.conf:2: [machine]: found unknown key 'vcpus', expected one of "
                               "slice, trace, vmid_bits"},
    {"[machine]\nslice = 1s\n", "m.conf:2: [machine] slice: found '1s', expected a number with "
                                "suffix us or ms, from 100us to 100ms"},
    {"[vm a]\nkernel = k\nvcpus = 1\n\nkernel = k\n",
     "m.conf:5: [vm a] kernel: found a second kernel (the first is on line 2), expected each "
     "key "
     "once in a section"},
    {"[machine]\n[vm a]\n" REST "[machine]\n", "m.conf:6: [machine]: found a second [machine] "
                                               "(the first is on line 1), expected one such "
                                               "section"},
    {"[vm a]\n" REST "[vm b]\n" REST "[vm a ]\n" REST,
     "m.conf:9: [vm a]: found a second VM of this name (the first is on line 1), expected a "
     "name "
     "of its own for each VM"},
    {"[vm a]\n", "m.conf:1: [vm a] kernel: found nothing, expected a file name of up to 255 "
                 "bytes"},
    {"\n[vm a]\nkernel = k\nvcpus = 1\n[vm b]\n",
     "m.conf:2: [vm a] memory: found nothing, expected a number with suffix K, M or G, a "
     "multiple "
     "of 4K from 1M to 240G"},
    {"[vm a]\nkernel = k\nmemory = 64M\n[machine]\n",
     "m.conf:1: [vm a] vcpus: found nothing, expected a number from 1 to 256"},
    {"[vm a]\nkernel =\n",
     "m.conf:2: [vm a] kernel: found nothing, expected a file name of up to 255 bytes"},
    {"[vm a]\ninitrd = # none\n",
     "m.conf:2: [vm a] initrd: found nothing, expected a file name of up to 255 bytes"},
    {"[vm a]\nvcpus = \x80\xff\n",
     "m.conf:2: [vm a] vcpus: found '?\?', expected a number from 1 to 256"},
    {"[vm]\n", "m.conf:1: found '[vm]', " HEADER_EXPECTED},
    {"[vm ]\n", "m.conf:1: found '[vm ]', " HEADER_EXPECTED},
    {"[]\n", "m.conf:1: found '[]', " HEADER_EXPECTED},
    {"[\n", "m.conf:1: found '[', " HEADER_EXPECTED},
    {"[vma]\n", "m.conf:1: found '[vma]', " HEADER_EXPECTED},
    {"[VM a]\n", "m.conf:1: found '[VM a]', " HEADER_EXPECTED},
    {"[vm a b]\n", "m.conf:1: found '[vm a b]', " HEADER_EXPECTED},
    {"[vm a.b]\n", "m.conf:1: found '[vm a.b]', " HEADER_EXPECTED},
    {"[vm \xc3\xa4]\n", "m.conf:1: found '[vm ?\?]', " HEADER_EXPECTED},
    {"[vm a\n", "m.conf:1: found '[vm a', " HEADER_EXPECTED},
    {"[vm a] x\n", "m.conf:1: found '[vm a] x', " HEADER_EXPECTED},
    {"[vm a]\n" REST "[host]\n", "m.conf:5: found '[host]', " HEADER_EXPECTED},
    {"[machine x]\n", "m.conf:1: found '[machine x]', " HEADER_EXPECTED},
    {"[vm 12345678901234567890123456789012]\n",
     "m.conf:1: found '[vm 12345678901234567890123456789012]', " HEADER_EXPECTED},
    {"[vm a]\nkernel = a\rb\n", "m.conf:2: [vm a]: found a byte of value 13, expected a text "
                                "file"},
    {"# \x1b[31m\n", "m.conf:1: found a byte of value 27, expected a text file"},
    {"[vm a]\n" REST "cmdline = \x7f\n",
     "m.conf:5: [vm a]: found a byte of value 127, expected a text file"},
};

static void bad_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(bad_text) / sizeof(bad_text[0]); i++) {
        expect_error(bad_text[i].text, strlen(bad_text[i].text), bad_text[i].error);
    }
}

static void nul_bytes(void **state) {
    static const char text[] = "[vm a]\nkernel = k\0k\n";
    static const char utf16[] = "\xff\xfe[\0v\0m\0";

    (void)state;
    expect_error(text, sizeof(text) - 1,
                 "m.conf:2: [vm a]: found a byte of value 0, expected a text file");
    expect_error(utf16, sizeof(utf16) - 1,
                 "m.conf:1: found a byte of value 0, expected a text file");
}

static void too_large(void **state) {
    char *text = malloc(CONFIG_TEXT_MAX + 1);

    (void)state;
    assert_non_null(text);
    memset(text, '\n', CONFIG_TEXT_MAX + 1);
    memcpy(text, "[vm a]\n" REST, strlen("[vm a]\n" REST));
    struct config_error err;
    assert_true(parse_bytes(text, CONFIG_TEXT_MAX, &err));
    expect_error(text, CONFIG_TEXT_MAX + 1,
                 "m.conf: found 262145 bytes, expected at most 262144 bytes");
    free(text);
}

static void no_room_for_all(void **state) {
    static const char text[] = "[vm a]\n" REST "[vm b]\n" REST;
    struct config_error err;
    char line[256];

    (void)state;
    memset(vms, 0, sizeof(vms));
    assert_false(config_parse(text, strlen(text), &machine, vms, 1, &n_vms, &err));
    config_format_error(&err, "m.conf", line, sizeof(line));
    assert_string_equal(line,
                        "m.conf:5: [vm b]: found more VMs than there is room for, 1, expected "
                        "fewer VMs");
    assert_int_equal(vms[1].name[0], 0);
}

static void many_vms(void **state) {
    static char text[128000];
    struct config_error err;
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "[vm n%d]\n" REST, i);
    }
    assert_true(config_parse(text, used, &machine, NULL, 0, &n_vms, &err));
    assert_int_equal(n_vms, 2000);
}

static void lines_of_keys(void **state) {
    (void)state;
    parse("# first\n[vm a]\nmemory = 64M\n\nvcpus = 1\nkernel = k\n[vm b]\n" REST "initrd = i\n");
    assert_int_equal(vms[0].line, 2);
    assert_int_equal(config_vm_key_line(&vms[0], "memory"), 3);
    assert_int_equal(config_vm_key_line(&vms[0], "kernel"), 6);
    assert_int_equal(config_vm_key_line(&vms[0], "initrd"), 0);
    assert_int_equal(config_vm_key_line(&vms[0], "nonsense"), 0);
    assert_int_equal(vms[1].line, 7);
    assert_int_equal(config_vm_key_line(&vms[1], "kernel"), 8);
    assert_int_equal(config_vm_key_line(&vms[1], "initrd"), 11);
}

static void values_are_found_in_the_text(void **state) {
    static const char text[] = "\xef\xbb\xbf[vm a] # = x\r\n kernel =  a b # c\r\n# x = y\n"
                               "cmdline = x # y\ninitrd =\nplain\ndtb=last";
    static const char *const values[] = {NULL, "a b", NULL, "x # y", NULL, NULL, "last", NULL};
    size_t offset, len;

    (void)state;
    assert_false(config_find_value(text, strlen(text), 0, &offset, &len));
    for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        bool found = config_find_value(text, strlen(text), i + 1, &offset, &len);
        assert_int_equal(found, values[i] != NULL);
        if (values[i] != NULL) {
            assert_int_equal(len, strlen(values[i]));
            assert_memory_equal(text + offset, values[i], len);
        }
    }
}

static void error_is_cut_to_the_buffer(void **state) {
    struct config_error err;
    char line[16];

    (void)state;
    assert_false(parse_bytes("x\n", 2, &err));
    for (size_t size = 1; size <= sizeof(line); size++) {
        memset(line, 'z', sizeof(line));
        assert_int_equal(config_format_error(&err, "m.conf", line, size), size - 1);
        assert_int_equal(strlen(line), size - 1);
        assert_memory_equal(line, "m.conf:1: found 'x'", size - 1);
    }
}

static const char sample[] =
    "\xef\xbb\xbf# sample\r\n[machine]\nslice = 500us # short\n\n[vm one]\n"
    "kernel = vmlinuz\ninitrd = i\ndtb = d\ncmdline = a=b # c\nmemory = 1G\n"
    "vcpus = 256\nweight = 65535\ncpus = 0-3, 6,100-127\nautostart = no\n"
    "[vm two]\nvcpus=1\nkernel=k\nmemory=1028K";

static void truncated_at_every_byte(void **state) {
    struct config_error err;

    (void)state;
    for (size_t len = 0; len <= strlen(sample); len++) {
        if (!parse_bytes(sample, len, &err)) {
            assert_true(err.found[0] != '\0' && err.expected[0] != '\0');
        }
    }
    assert_int_equal(n_vms, 2);
}

static uint32_t random_state = 20260101;

static uint32_t random_number(uint32_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

static void a_hundred_thousand_mutations(void **state) {
    static const char likely[] = "[]=#\n\r \t,-0129KMGvm";
    struct config_error err;
    char text[2 * sizeof(sample)];
    char line[512];

    (void)state;
    for (int round = 0; round < 100000; round++) {
        size_t len = strlen(sample);

        memcpy(text, sample, len);
        for (uint32_t n = 1 + random_number(4); n > 0; n--) {
            size_t at = random_number((uint32_t)len);
            size_t some = random_number((uint32_t)(len - at)) % 40;
            switch (random_number(4)) {
            case 0:
                text[at] = (char)random_number(256);
                break;
            case 1:
                memmove(text + at, text + at + some, len - at - some);
                len -= some;
                break;
            default:
                text[at] = likely[random_number(sizeof(likely) - 1)];
                break;
            }
        }
        if (!parse_bytes(text, len, &err)) {
            size_t n = config_format_error(&err, "f", line, sizeof(line));
            for (size_t i = 0; i < n; i++) {
                assert_true(line[i] >= 0x20 && line[i] < 0x7f);
            }
            assert_true(err.line <= 30 && n > 0 && n < sizeof(line) - 1);
        } else {
            for (size_t i = 0; i < n_vms; i++) {
                assert_true(vms[i].vcpus >= 1 && vms[i].vcpus <= CONFIG_VCPUS_MAX);
                assert_true(vms[i].memory % 4096 == 0 && vms[i].memory >= CONFIG_MEMORY_MIN);
                assert_false(cpu_set_empty_below(&vms[i].cpus, CPU_SET_MAX));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key),
        cmocka_unit_test(defaults),
        cmocka_unit_test(several_vms),
        cmocka_unit_test(comments_and_white_space),
        cmocka_unit_test(comment_needs_white_space),
        cmocka_unit_test(command_line_is_taken_as_it_is),
        cmocka_unit_test(line_ends),
        cmocka_unit_test(names_with_spaces_and_utf8),
        cmocka_unit_test(longest_texts),
        cmocka_unit_test(too_long_texts),
        cmocka_unit_test(memory_sizes),
        cmocka_unit_test(bad_memory),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(bad_cpus),
        cmocka_unit_test(good_cpus),
        cmocka_unit_test(advances),
        cmocka_unit_test(bad_words),
        cmocka_unit_test(good_slices),
        cmocka_unit_test(traces),
        cmocka_unit_test(bad_texts),
        cmocka_unit_test(nul_bytes),
        cmocka_unit_test(too_large),
        cmocka_unit_test(no_room_for_all),
        cmocka_unit_test(many_vms),
        cmocka_unit_test(lines_of_keys),
        cmocka_unit_test(values_are_found_in_the_text),
        cmocka_unit_test(error_is_cut_to_the_buffer),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(a_hundred_thousand_mutations),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
