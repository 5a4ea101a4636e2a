/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of core/vmid.c: two or three CPUs, 3-bit numbers, and VMs that are entered, left, begin anew and
 * are pinned in any order, for ever. tests/model/run checks all its states, and looks again for each of
 * the faults that are named here (FAULT_...), each of which must be found.
 *
 * Of a generation matters only whether it is the present one. Two that are not count as equal, which
 * they need not be: an old id on a CPU that is behind. A CPU that is behind is marked, but while a
 * roll-over is on its way, and then only what has become old just now could count by mistake: so ids
 * that are older go. A number that is given out is not free again in the same generation, so that
 * "the first free one from the last one on" is the lowest one.
 *
 * One number is watched, any: TLBs are looked at under that one only.
 *
 * run: -DCPUS=2 -DLAST_VM=2
 * run: -DROLES -DNO_PINS
 * fault: -DCPUS=2 -DLAST_VM=2
 * fault: -DCPUS=2
 */
#ifndef CPUS
#define CPUS 3
#endif
#define NUMBERS  8
#define ALL      255
#define BIT(n)   (1 << (n))
#define NOBODY   0 /* VMs count from 1 */
#define OF_OLD   7 /* in a TLB: of a VM's earlier life */

#define VMS      3
#define PINNABLE 2 /* this one may be pinned and unpinned */

/* Who does what. ROLES: CPU 0 runs VMs 1 and 2, CPU 1 runs VM 1, and CPU 2 uses numbers up with VM 3. */
#ifdef ROLES
#define MAY_ENTER(me, v)  ((me == 0 && v < 3) || (me == 1 && v == 1) || (me == 2 && v == 3))
#define MAY_FORGET(me, v) (v == 3 && me == 2)
#else
#define MAY_ENTER(me, v)  (v <= LAST_VM)
#define MAY_FORGET(me, v) (v <= LAST_VM)
#endif
#ifndef LAST_VM
#define LAST_VM 3
#endif
/*
 * Beside number 0: as many pinned VMs that never run as the limit allows, NUMBERS - CPUS - 2, less the
 * one that is pinned in the model. FIRST_PINNED is the lowest of their numbers.
 */
#ifdef FAULT_pin_limit
#define FIRST_PINNED (CPUS + 1)
#elif defined(NO_PINS)
#define FIRST_PINNED (CPUS + 2)
#else
#define FIRST_PINNED (CPUS + 3)
#endif
#define PINNED_BEFORE (ALL - (BIT(FIRST_PINNED) - 1))

/* The allocator. */
bool locked;
byte taken, kept;
byte number[VMS + 1];  /* of a VM's id; 0: it has none */
bool old[VMS + 1];     /* its id is of an older generation */
bool pinned[VMS + 1];
byte on[CPUS];         /* cpu->active without its mark; both are one word: changed in one step */
bool rolled[CPUS];
bool behind[CPUS];     /* the CPU has not flushed since the last roll-over began */

/* The world. */
byte watched;
byte tlb[CPUS];         /* whose translations it has under the watched number */
byte inside[CPUS];      /* whose guest is running */
byte using[CPUS];       /* under which number */
byte users[VMS + 1];    /* CPUs that run it or are about to */
byte pin_number;

/* Keeps the number of a VM over a roll-over. */
inline renew(v) {
    assert(number[v] != 0);
    old[v] = false;
    taken = taken | BIT(number[v])
}

/* A new generation, CPU after CPU; the lock is held. */
inline roll_over() {
    d_step {
        taken = kept;
        for (i : 1 .. VMS) {
            number[i] = (old[i] && !pinned[i] -> 0 : number[i]);
            old[i] = true
        }
        for (i : 0 .. CPUS - 1) { behind[i] = true }
        i = 0
    }
    do
    :: i < CPUS ->
        d_step {
#ifndef FAULT_no_mark
            rolled[i] = true;
#endif
#ifndef NO_TLB
            tlb[i] = (inside[i] != NOBODY -> tlb[i] : OF_OLD); /* to be flushed before it is used */
#endif
#ifndef FAULT_active_not_kept
            if
            :: on[i] != NOBODY -> renew(on[i])
            :: else
            fi;
#endif
            i++
        }
    :: else -> break
    od;
    i = 0
}

/* The lowest free number, NUMBERS if there is none. */
inline find_free() {
    n = 0;
    do
    :: n < NUMBERS && (taken & BIT(n)) != 0 -> n++
    :: else -> break
    od
}

/* Makes the id one of this generation; there is a free number if it needs one. */
inline bring_up_to_date(v) {
    if
    :: !old[v] -> skip
    :: old[v] && pinned[v] -> renew(v)
    :: else ->
        find_free();
        assert(n < NUMBERS); /* a roll-over leaves room */
        assert(n != 0);      /* that one is the hypervisor's */
        number[v] = n;
        old[v] = false;
        taken = taken | BIT(n);
        n = 0
    fi
}

/*
 * With the lock taken, and a roll-over if that is due. What else is done with the lock held is one
 * step: of all that it changes, others without the lock see one word only.
 */
inline lock_and_roll(v, enters) {
    atomic {
        !locked;
#ifndef FAULT_no_lock
        locked = true;
#endif
        if
        :: enters -> on[me] = NOBODY; rolled[me] = false
        :: else
        fi;
        if
        :: old[v] && !pinned[v] && taken == ALL -> due = true
        :: else
        fi
    }
    if
    :: due -> due = false; roll_over()
    :: else
    fi
}

/* Has number `mine` from now on, and is in its guest at any time after that: what must hold then. */
inline in_guest(v) {
    assert(mine != 0);
    assert(mine == number[v]);
    assert(!pinned[v] || mine == pin_number);
    for (i : 0 .. CPUS - 1) {
        if
        :: inside[i] != NOBODY -> assert((inside[i] == v) == (using[i] == mine))
        :: else
        fi
    }
    i = 0;
    inside[me] = v;
    using[me] = mine;
    if
    :: mine == watched ->
        assert(tlb[me] == NOBODY || tlb[me] == v); /* nothing stale */
        tlb[me] = v
    :: else
    fi;
    mine = 0
}

inline enter_slow(v) {
    lock_and_roll(v, true);
    d_step {
        bring_up_to_date(v);
        if
        :: behind[me] ->
            behind[me] = false;
#ifndef FAULT_no_flush
            tlb[me] = NOBODY
#endif
        :: else
        fi;
        on[me] = v;
        mine = number[v];
        in_guest(v);
        locked = false
    }
}

/*
 * vm->id was read, in the step before: `mine`, and whether it is of the CPU's generation. A load of
 * cpu->active and a compare-exchange that succeeds are one step; if that fails, it is as if the mark
 * had been seen before.
 */
inline enter(v) {
    if
    :: match ->
#ifdef FAULT_no_compare
        match = !rolled[me];
        d_step {
            if
            :: match -> on[me] = v; in_guest(v)
            :: else -> mine = 0
            fi
        }
#else
        d_step {
            match = !rolled[me];
            if
            :: match -> on[me] = v; in_guest(v)
            :: else -> mine = 0
            fi
        }
#endif
    :: else
    fi;
    if
    :: match -> match = false
    :: else -> enter_slow(v)
    fi
}

/* It begins anew: what was translated for it is of old. Each CPU's word is another matter. */
inline forget(v) {
    d_step {
#ifndef FAULT_id_not_forgotten
        number[v] = 0;
        old[v] = true;
#endif
        for (i : 0 .. CPUS - 1) {
#ifndef FAULT_stays_active
            if
            :: on[i] == v -> on[i] = NOBODY
            :: else
            fi;
#endif
            if
            :: tlb[i] == v -> tlb[i] = OF_OLD
            :: else
            fi
        }
        i = 0
    }
}

proctype cpu(byte me) {
    byte v, mine, n, i;
    bool match, due;

    do
    :: atomic { /* a vCPU of v comes */
        if
        :: MAY_ENTER(me, 1) -> v = 1
        :: MAY_ENTER(me, 2) -> v = 2
        :: MAY_ENTER(me, 3) -> v = 3
        fi;
        users[v]++;
#ifdef FAULT_no_generation
        match = number[v] != 0;
#else
        match = number[v] != 0 && old[v] == behind[me] /* no id is of no generation */;
#endif
        match = match && !rolled[me]; /* if it is marked now, it stays so */
        mine = (match -> number[v] : 0)
    }
        enter(v);
        d_step { inside[me] = NOBODY; using[me] = 0; users[v]--; v = NOBODY }
    :: d_step { /* idle */
        on[me] != NOBODY -> on[me] = NOBODY;
#ifdef FAULT_leave_takes_mark
        rolled[me] = false
#endif
    }
    :: atomic {
        MAY_FORGET(me, 1) && users[1] == 0 && number[1] != 0 && !locked -> v = 1;
        forget(v);
        v = NOBODY
    }
    :: atomic {
        MAY_FORGET(me, 3) && users[3] == 0 && number[3] != 0 && !locked -> v = 3;
        forget(v);
        v = NOBODY
    }
#ifndef NO_PINS
    :: me == 0 && !pinned[PINNABLE] -> /* a device is given to that VM */
        lock_and_roll(PINNABLE, false);
        d_step {
            bring_up_to_date(PINNABLE);
            pinned[PINNABLE] = true;
            pin_number = number[PINNABLE];
#ifndef FAULT_pin_not_kept
            kept = kept | BIT(pin_number);
#endif
            locked = false
        }
    :: d_step { /* and taken again */
        me == 0 && pinned[PINNABLE] && !locked -> pinned[PINNABLE] = false;
        kept = kept & (ALL - BIT(pin_number));
        pin_number = 0
    }
#endif
    od
}

/* A device is given to a VM, and taken again. */
init {
    atomic {
        byte c;

#ifndef NO_TLB
        select(watched : 1 .. FIRST_PINNED - 1);
#endif
        kept = PINNED_BEFORE | BIT(0);
#ifdef FAULT_zero_is_free
        kept = PINNED_BEFORE;
#endif
        taken = kept;
        for (c : 0 .. CPUS - 1) {
            rolled[c] = true;
            behind[c] = true;
#ifndef NO_TLB
            tlb[c] = OF_OLD; /* what was there at start is unknown */
#endif
        }
        for (c : 0 .. VMS) { old[c] = true }
        c = 0;
        run cpu(0);
        run cpu(1);
#if CPUS > 2
        run cpu(2);
#endif
    }
}
