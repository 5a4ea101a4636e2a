/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of the preempted flag: core/sched.c and core/sched_queue.h (enter_state, called_off, sched_kick,
 * sched_wake), core/pvlock.c, and the end of a VM in hyp/. Two CPUs, three vCPUs of one VM, that are
 * preempted, taken by the other CPU, wait, are kicked, set their record up, move and release it, go off, and
 * end with their VM, in any order. tests/model/run checks all its states, and that each of the faults that
 * are named here (FAULT_...) is found.
 *
 * The first vCPU has the record and gets the kicks: those of different vCPUs have nothing to do with each
 * other.
 *
 * One lock stands for the locks of both queues: what is checked is what happens between a CPU that holds the
 * lock and one that is outside of it, in a guest or in a call. Under the lock only the writes that others see
 * without it are steps of their own: the record and the state.
 *
 * run: -DPOLICY=0
 * run: -DPOLICY=1
 * fault: -DPOLICY=0
 */
#define CPUS  2
#define VCPUS 3
#define NONE  255

/* States of a vCPU. */
#define OFF      0
#define BLOCKED  1
#define RUNNABLE 2
#define RUNNING  3

bool locked;
byte state[VCPUS] = RUNNABLE;
bool on_cpu[VCPUS];     /* its registers are on a CPU */
bool kicked[VCPUS];
byte record[VCPUS];     /* the address in use: 0 none, else 1 or 2 */
byte word[2 * VCPUS];   /* the guest's memory: two places for each vCPU */
bool calling[VCPUS];    /* is in the call that sets its record up */
bool owed[VCPUS];       /* a kick that came in no wait, whose effect is still to come */
bool stop;              /* the VM is to end */
bool given_away;        /* and its memory belongs to somebody else */
byte writers[2 * VCPUS];

#define waits(v)    (state[v] == RUNNABLE && !on_cpu[v] && !given_away)
#define place(v, r) ((v) * 2 + (r) - 1)

inline lock()   { atomic { !locked -> locked = true } }

/* The store of a record. Nobody else is at it, and it is the guest's memory. */
inline store(v, value) {
    if
    :: record[v] != 0 ->
        atomic { writers[place(v, record[v])]++; assert(writers[place(v, record[v])] == 1); assert(!given_away) }
        atomic { word[place(v, record[v])] = value; writers[place(v, record[v])]-- }
    :: else
    fi
}

/* enter_state(): the records first. */
inline enter_state(v, to) {
    if
    :: to == RUNNING -> store(v, 0)
    :: to == BLOCKED -> store(v, POLICY)
#ifdef FAULT_no_flag_at_preemption
    :: to == RUNNABLE
#else
    :: to == RUNNABLE -> store(v, 1)
#endif
    :: to == OFF -> store(v, 1)
    fi;
    state[v] = to
}

/* What others may rely on whenever nobody is in the middle of a change. */
inline check(v) {
    assert(record[v] == 0 || calling[v] || state[v] != RUNNABLE || word[place(v, record[v])] == 1);
    assert(record[v] == 0 || calling[v] || state[v] != RUNNING || word[place(v, record[v])] == 0);
    assert(record[v] == 0 || calling[v] || state[v] != BLOCKED || word[place(v, record[v])] == POLICY)
}
inline unlock() { atomic { check(0); check(1); check(2); locked = false } }

/* Another CPU's or a guest's kick: sched_kick(), which looks first and wakes then. */
inline kick(v) {
    lock();
    if
    :: state[v] == BLOCKED ->
        unlock();
        wake(v)
    :: else ->
#ifndef FAULT_kick_only_who_waits
        kicked[v] = true;
#endif
        owed[v] = true;
        unlock()
    fi
}

inline wake(v) {
    lock();
    if
    :: state[v] == BLOCKED ->
        enter_state(v, RUNNABLE)
    :: else
    fi;
    unlock()
}

/* pvlock's use(): no lock, by the vCPU itself. */
inline set_up(v, r) {
    atomic { calling[v] = true; record[v] = r }
    store(v, 0);
    calling[v] = false
}

inline pvlock_end(v) { record[v] = 0 }

/* vm_vcpu_stopped() or CPU_OFF: the record's end comes before anybody can see that it is off. */
inline power_down(v) {
#ifndef FAULT_record_survives
    pvlock_end(v);
#endif
    skip
}

proctype cpu() {
    byte v = NONE, next = NONE;

end_loop:
    do
    :: atomic { /* idle: takes any that waits, from whichever queue */
            v == NONE && !locked && (waits(0) || waits(1) || waits(2)) -> locked = true
        }
        if
        :: waits(0) -> v = 0
        :: waits(1) -> v = 1
        :: waits(2) -> v = 2
        fi;
        on_cpu[v] = true;
        enter_state(v, RUNNING);
        unlock()
    :: v != NONE && stop -> /* an exit finds the request */
        power_down(v);
        lock(); enter_state(v, OFF); on_cpu[v] = false; unlock();
        v = NONE
    :: v != NONE && !stop ->
        /* An instruction of the guest: its own word is 0. */
        assert(record[v] == 0 || word[place(v, record[v])] == 0);
        if
        :: /* preempted: another of those that wait runs here */
            lock();
            if
            :: waits(0) -> next = 0
            :: waits(1) -> next = 1
            :: waits(2) -> next = 2
            :: else -> next = NONE
            fi;
            if
            :: next != NONE ->
#ifndef FAULT_next_runs_first
                enter_state(v, RUNNABLE);
#endif
                on_cpu[next] = true;
                enter_state(next, RUNNING);
                assert(record[v] == 0 || word[place(v, record[v])] == 1); /* before `next` runs */
#ifdef FAULT_next_runs_first
                enter_state(v, RUNNABLE);
#endif
                unlock();
                on_cpu[v] = false; /* sched_released(), outside of the lock */
                v = next
            :: else -> unlock()
            fi
        :: /* WFI */
            lock();
            if
            :: kicked[v] ->
                assert(owed[v]); /* it ends one wait, not two */
                owed[v] = false;
#ifndef FAULT_kick_ends_every_wait
                kicked[v] = false;
#endif
                unlock()
            :: !kicked[v] && stop -> unlock() /* it looks at its requests again: vcpu_switch() */
            :: else ->
                assert(!owed[v]); /* that kick would be lost */
                enter_state(v, BLOCKED);
                unlock();
                on_cpu[v] = false;
                v = NONE
            fi
        :: v == 0 && record[v] != 1 -> set_up(v, 1)
        :: v == 0 && record[v] == 1 -> set_up(v, 2)
        :: record[v] != 0 -> pvlock_end(v) /* RELEASE */
        :: v != 0 -> kick(0)
        fi
    od
}

/* The VM ends at any moment, its memory goes to somebody else, and it begins anew in other memory. */
proctype end() {
    stop = true;
    wake(0); /* vcpu_request_off() */
    wake(1);
    wake(2);
end_wait:
    atomic { state[0] == OFF && state[1] == OFF && state[2] == OFF && !locked -> given_away = true }
    lock();
    enter_state(0, RUNNABLE);
    unlock()
}

init {
    atomic { run cpu(); run cpu(); run end() }
}
