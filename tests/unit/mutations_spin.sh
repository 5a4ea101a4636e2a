#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Faults put into core/spin.[ch] and core/sched_yield.c on purpose. See mutate.bash.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/unit/mutate.bash
. tests/unit/mutate.bash
unmutated test_spin

# ---- Whom ----
mutation "whoever comes first" test_spin best_rank_wins spin.c \
	's/points > best_points/choice.best == NULL \&\& points > 1/'
mutation "spinners are like others" test_spin spinners_come_last spin.c \
	'/^static enum spin_rank rank_of/,/^}/s/if (load_relaxed(&e->wait.turn) != load_relaxed(&e->switches)) {/if (true) {/'
mutation "who waits is chosen" test_spin spinners_come_last spin.c \
	's/? SPIN_RELEASED : SPIN_WAITS/? SPIN_RELEASED : SPIN_SPUN/'
mutation "the end of a wait is not seen" test_spin spinners_come_last spin.h \
	's/!= load_relaxed(&w->value);/!= load_relaxed(\&w->value) \&\& false;/'
mutation "all bits count" test_spin spinners_come_last spin.h \
	's/(load_relaxed(word) & load_relaxed(&w->mask))/load_relaxed(word)/'
mutation "a wait outlasts its turn" test_spin a_turn_ends_a_wait spin.c \
	's/load_relaxed(&e->wait.turn) != load_relaxed(&e->switches)/load_relaxed(\&e->wait.turn) == SPIN_NO_TURN/'
mutation "affinity is forgotten" test_spin near_ones_and_affinity sched.h \
	's/ && cpu_set_has(&e->allowed, cpu);/;/'
mutation "far ones are like near ones" test_spin near_ones_and_affinity spin.c \
	's/points = 2u \* (unsigned)rank_of(e, rank) + here;/points = 2u * (unsigned)rank_of(e, rank) + !here;/'

# ---- How long, and at whose cost ----
mutation "the claim stays" test_spin the_yield_lasts sched_yield.c \
	's/^    pass_claim(stay, to);.*//'
mutation "a claim is made" test_spin the_yield_lasts sched_yield.c \
	's/^    from->vtime += to->vtime - claim;//'
mutation "others are not looked at" test_spin shares_hold sched_yield.c \
	's/if (other != NULL && before(other->vtime + stay->slice_vtime, claim_of(stay, to))) {/if (false) {/'
mutation "a yield has no limit" test_spin shares_hold sched_yield.c \
	's/before(stay->vtime + YIELD_SLICES \* stay->slice_vtime, other->vtime)/false/'
mutation "nobody is fetched" test_spin fetches_from_elsewhere sched_yield.c \
	's/got = is_listed(q, to) && /got = false \&\& /'
mutation "who runs is fetched" test_spin fetches_from_elsewhere sched_yield.c \
	's/!got && load_relaxed(&q->waiting) != 0 && spin_trylock/!got \&\& spin_trylock/' \
	's/got = is_listed(q, to) && .*/got = true;/'
plan
