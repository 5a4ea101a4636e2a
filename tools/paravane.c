/* SPDX-License-Identifier: GPL-2.0-only */
/* The command `paravane`: finds the subcommand; help texts. */
#include "tools/paravane.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef PARAVANE_VERSION
#define PARAVANE_VERSION "0.1"
#endif

static const char help[] =
    "usage: paravane COMMAND [options] ...\n"
    "\n"
    "Prepares and runs virtual machines under the Paravane hypervisor.\n"
    "\n"
    "commands:\n"
    "  check CONF          is this machine description right, and are its files?\n"
    "  pack CONF -o FILE   make the boot archive that the hypervisor reads\n"
    "  run CONF            run the machine in the emulator, consoles to the terminal\n"
    "  report LOG          print a table of what a run's console.log says\n"
    "  trace FILE          show a trace in a viewer, or hold it against the counters\n"
    "  top SOCKET          show the counters of a running machine, again and again\n"
    "\n"
    "options:\n"
    "  --help              this text; after a command, that command's\n"
    "  --version           the version\n"
    "\n"
    "exit codes: 0 all went well; 1 it went wrong (run: a VM crashed or did not\n"
    "power off); 2 bad usage or a bad description\n";

const char help_check[] =
    "usage: paravane check CONF\n"
    "\n"
    "Reads a machine description and looks at the files that it names. Prints one line\n"
    "for each VM and the sums; or for each fault the file, line, key, what was found\n"
    "and what was expected.\n"
    "\n"
    "File names count from the folder of CONF. A description looks like this:\n"
    "\n"
    "  [machine]               # may be left out\n"
    "  slice = 2ms             # 100us to 100ms: how long one vCPU runs at a time\n"
    "  trace = 8M              # up to 256M a CPU: trace from the start; default: none\n"
    "\n"
    "  [vm alpha]              # up to 31 of A-Z a-z 0-9 _ -; any number of VMs\n"
    "  kernel = Image          # arm64 Image, plain or gzip; else a raw binary\n"
    "  initrd = root.cpio      # may be left out\n"
    "  dtb = alpha.dtb         # may be left out: the hypervisor makes one\n"
    "  cmdline = console=ttyAMA0   # all of the line, a '#' too\n"
    "  memory = 256M           # K, M or G; a multiple of 4K from 1M to 240G\n"
    "  vcpus = 4               # 1 to 256\n"
    "  weight = 256            # share of the CPUs, 1 to 65535; this is the default\n"
    "  cpus = 0-3,6            # CPUs it may run on; default: all\n"
    "  advance_ns = -1         # timer advancement: -1 adaptive, 0 off, or ns; default: -1\n"
    "  autostart = yes         # or no, but not for all VMs; default: yes\n"
    "\n"
    "exit codes: 0 all right; 2 not\n";

const char help_pack[] =
    "usage: paravane pack CONF -o FILE\n"
    "\n"
    "Checks CONF and writes the boot archive: a newc cpio with machine.conf, in which the\n"
    "file names are those of the archive, and each file once. The same input gives the\n"
    "same bytes. FILE is replaced only when all is written. `cpio -t < FILE` lists it.\n"
    "A boot loader hands it to the hypervisor as its initrd.\n"
    "\n"
    "options:\n"
    "  -o, --output FILE   where to write\n"
    "\n"
    "exit codes: 0 written; 1 not; 2 bad usage or a bad description\n";

const char help_run[] =
    "usage: paravane run CONF [options]\n"
    "\n"
    "Packs CONF and runs it in QEMU (11.1 or later). Consoles go to the terminal, each line\n"
    "with its VM's name before it; what is typed goes to the machine; Ctrl-C ends it.\n"
    "\n"
    "options:\n"
    "  --cpus N         emulated CPUs, 1 to 128 (default 2)\n"
    "  --memory M       of the whole machine, in MiB or with suffix M or G (default: as much\n"
    "                   as the VMs and the archive need and 128M)\n"
    "  --cpu MODEL      emulated CPU (default max)\n"
    "  --mode MODE      deterministic (default): time counts instructions, every run is the\n"
    "                   same; threads: the CPUs really run at the same time\n"
    "  --log-dir D      also write D/NAME.log for each VM, D/paravane.log for the\n"
    "                   hypervisor, and everything to D/console.log; traces only\n"
    "                   to D/trace.txt\n"
    "  --timeout S      end the machine after S seconds\n"
    "  --monitor SOCKET make a unix socket: what a program sends there is typed, and it gets\n"
    "                   what the console says; for `paravane top`\n"
    "\n"
    "environment:\n"
    "  PARAVANE_QEMU    the emulator (default: the one that lab/setup has fetched, else\n"
    "                   qemu-system-aarch64 in PATH)\n"
    "  PARAVANE_IMAGE   the hypervisor (default: arm64/paravane.img beside this program)\n"
    "  TMPDIR           where the boot archive lies meanwhile (default /tmp)\n"
    "\n"
    "exit codes: 0 every VM powered off by itself; 1 one crashed or did not end, the\n"
    "hypervisor panicked, or the time was over; 2 bad usage or a bad description\n";

const char help_report[] =
    "usage: paravane report LOG\n"
    "\n"
    "Prints a table from the console.log of a run: for each VM its vCPUs, how it ended,\n"
    "the median of its hackbench runs (lines \"GUEST: hackbench SECONDS\"), its share of\n"
    "the CPU time that all VMs used, and its exits to the hypervisor by reason.\n"
    "\n"
    "exit codes: 0 printed; 1 the file holds no such lines; 2 bad usage or no such file\n";

const char help_trace[] =
    "usage: paravane trace FILE [-o TRACE.json] [--summary]\n"
    "\n"
    "Reads a trace: the trace.txt of a run with --log-dir and `trace = SIZE` in [machine],\n"
    "or the log of a serial port with a trace in it (the last one, if there are several).\n"
    "\n"
    "options:\n"
    "  -o, --output TRACE.json  write it in the format of Chrome's tracing, for\n"
    "                           ui.perfetto.dev or chrome://tracing; - is the terminal\n"
    "  --summary                print each vCPU's times as the trace has them, and as the\n"
    "                           hypervisor's counters have them\n"
    "\n"
    "exit codes: 0 all right; 1 no trace or a bad one, or (--summary) records are missing\n"
    "or the two differ by more than 0.1 % of a vCPU's time; 2 bad usage or no such file\n";

const char help_top[] =
    "usage: paravane top SOCKET [--interval S] [--once] [--vcpus]\n"
    "\n"
    "Shows what a machine does, which runs with `paravane run --monitor SOCKET`, until q or\n"
    "Ctrl-C. It asks the hypervisor's monitor, and closes that again if it was closed.\n"
    "\n"
    "options:\n"
    "  --interval S     seconds between two samples, 0.1 to 3600 (default 1)\n"
    "  --once           print one table and end\n"
    "  --vcpus          a line for each vCPU as well\n"
    "\n"
    "The columns, for the time since the last sample, by the machine's clock:\n"
    "  CPU % WAIT % BLOCK %  of a CPU's time: running, waiting for a CPU, in WFI\n"
    "  LONGEST us            the longest wait since the machine began, microseconds\n"
    "  SWITCH/s MIGR/s       turns on a CPU, and moves to another CPU\n"
    "  EXIT/s and after it   exits; by REASON=N/s(MEAN), the mean in microseconds\n"
    "\n"
    "exit codes: 0 all right; 1 the machine does not answer or has ended; 2 bad usage or\n"
    "no such socket\n";

int bad_usage(const char *command, const char *format, ...) {
    va_list args;

    if (format != NULL) {
        fprintf(stderr, "%s: ", command);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
    fprintf(stderr, "'%s --help' tells more\n", command);
    return EXIT_BAD_USAGE;
}

/* Output that could not be written must not look like success. */
static int finish(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("cannot write to standard output");
        return code == EXIT_OK ? EXIT_FAILED : code;
    }
    return code;
}

int main(int argc, char **argv) {
    static struct {
        const char *name;
        char full_name[16];
        command_fn *run;
    } commands[] = {
        {"check", "paravane check", command_check}, {"pack", "paravane pack", command_pack},
        {"run", "paravane run", command_run},       {"report", "paravane report", command_report},
        {"trace", "paravane trace", command_trace}, {"top", "paravane top", command_top},
    };
    int fd;

    /* files that are opened later must not become standard input, output or error by chance */
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
    /* a full disk or a closed pipe is an error that is reported, not the end */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        return bad_usage("paravane",
                         "a command is missing: check, pack, run, report, trace or top");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(help, stdout);
        return finish(EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("paravane " PARAVANE_VERSION);
        return finish(EXIT_OK);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            argv[1] = commands[i].full_name;
            return finish(commands[i].run(argc - 1, argv + 1));
        }
    }
    return bad_usage("paravane",
                     "found '%s', expected a command: check, pack, run, report, trace or top",
                     argv[1]);
}
