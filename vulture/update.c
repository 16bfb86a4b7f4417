// SPDX-License-Identifier: GPL-2.0
/*
 * A flow's timer, and the ACKs that the module sends.
 *
 * The timer is armed for three reasons: the controller has set a time for its next call
 * (rwnd_want.wake_us), another flow of the path has set one (rwnd_wake()), or the sender
 * has used up its window while TCP delays an ACK (a kick). Each can lead to an ACK, which
 * TCP makes (__tcp_send_ack()) and whose window the hook writes like that of any other
 * segment.
 *
 * A timer that is armed or runs holds one reference to its flow, and is counted once in
 * vulture_net.timers.
 */
#include <linux/wait_bit.h>
#include <net/tcp.h>

#include "vulture.h"
#include "trace.h"

/* Time that TCP has to send the ACK before the module does, us; also the time that an
 * application has to release the socket. With half of it, the module sends ACKs that TCP would
 * have sent as well; twice as much delays the sender noticeably on paths of a few ms.
 */
#define VULTURE_KICK_US		1000
/* Longest time that a timer is armed for, us: a flow that ends while its timer runs
 * and is armed anew is freed by that time.
 */
#define VULTURE_TIMER_MAX_US	1000000

/* Drop the timer's reference. */
static void vulture_timer_put(struct vulture_flow *flow)
{
	struct vulture_net *vn = flow->vn;

	vulture_flow_put(flow);
	if (atomic_dec_and_test(&vn->timers))
		wake_up_var(&vn->timers);
}

/* Caller: holds timer_lock. */
static void vulture_timer_set(struct vulture_flow *flow, u64 at_us)
{
	if (flow->timer_ends || (flow->timer_us && flow->timer_us <= at_us))
		return;
	if (!flow->timer_held) {
		flow->timer_held = true;
		refcount_inc(&flow->refs);
		atomic_inc(&flow->vn->timers);
	}
	flow->timer_us = at_us;
	hrtimer_start(&flow->timer, ns_to_ktime(at_us * NSEC_PER_USEC), HRTIMER_MODE_ABS_SOFT);
}

/* Arm the timer for the earliest of the three times. Caller: holds flow->lock. */
void vulture_timer_arm(struct vulture_flow *flow, u64 now_us)
{
	u64 next_us = flow->want.wake_us;

	if (flow->want.update && !flow->kick_us)
		flow->kick_us = now_us;
	if (flow->kick_us && (!next_us || flow->kick_us < next_us))
		next_us = flow->kick_us;
	spin_lock(&flow->timer_lock);
	if (flow->poke_us && (!next_us || flow->poke_us < next_us))
		next_us = flow->poke_us;
	if (next_us)
		vulture_timer_set(flow, min(next_us, now_us + VULTURE_TIMER_MAX_US));
	spin_unlock(&flow->timer_lock);
}

/* Called by the controller for another flow than the one of the event; the path's lock is held. */
void rwnd_wake(void *state, u64 at_us)
{
	struct vulture_flow *flow = container_of(state, struct vulture_flow, state);

	spin_lock(&flow->timer_lock);
	if (!flow->poke_us || at_us < flow->poke_us) {
		flow->poke_us = at_us;
		vulture_timer_set(flow, at_us);
	}
	spin_unlock(&flow->timer_lock);
}

/* The tracepoint shows the flow's id; the controller only has a pointer to its own state. */
void vulture_trace_round(const void *state, const struct rwnd_round *round)
{
	trace_vulture_round(container_of(state, struct vulture_flow, state), round);
}

/* Whether the time set by rwnd_wake() has come; clears it. */
static bool vulture_timer_poked(struct vulture_flow *flow, u64 now_us)
{
	bool poked;

	spin_lock(&flow->timer_lock);
	poked = flow->poke_us && flow->poke_us <= now_us;
	if (poked)
		flow->poke_us = 0;
	spin_unlock(&flow->timer_lock);
	return poked;
}

/* The timer has expired. */
static void vulture_timer_ran(struct vulture_flow *flow)
{
	spin_lock(&flow->timer_lock);
	flow->timer_us = 0;
	spin_unlock(&flow->timer_lock);
}

/* The timer's function ends. If another CPU has armed the timer meanwhile, be it for an earlier
 * time before vulture_timer_ran(), it keeps its reference. The function does not start again while
 * it runs.
 */
static void vulture_timer_done(struct vulture_flow *flow)
{
	bool again;

	spin_lock(&flow->timer_lock);
	again = hrtimer_is_queued(&flow->timer);
	flow->timer_held = again;
	spin_unlock(&flow->timer_lock);
	if (!again)
		vulture_timer_put(flow);
}

/* From now on the timer is not armed any more. Caller: BH off. */
void vulture_timer_end(struct vulture_flow *flow)
{
	bool cancelled;

	spin_lock(&flow->timer_lock);
	flow->timer_ends = true;
	cancelled = flow->timer_held && hrtimer_try_to_cancel(&flow->timer) > 0;
	if (cancelled)
		flow->timer_held = false;
	spin_unlock(&flow->timer_lock);
	if (cancelled)
		vulture_timer_put(flow);
}

/* If TCP delays an ACK for which the sender waits, check again after VULTURE_KICK_US.
 * Caller: holds flow->lock.
 */
void vulture_flow_kick(struct vulture_flow *flow, u64 now_us)
{
	if (flow->kick_us || !edge_owes(&flow->edge))
		return;
	flow->kick_us = now_us + VULTURE_KICK_US;
	vulture_timer_arm(flow, now_us);
}

/* Send an ACK. Caller: holds the socket's lock, not the flow's. */
void vulture_send_update(struct vulture_flow *flow, struct sock *sk)
{
	spin_lock_bh(&flow->lock);
	flow->updates++;
	spin_unlock_bh(&flow->lock);
	lbe_tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt);
}

/* Do what is due when the timer has expired. Caller: holds the socket's spinlock.
 * Return: an ACK must go out.
 */
static bool vulture_flow_due(struct vulture_flow *flow, const struct sock *sk)
{
	u64 now_us = vulture_now_us();
	bool send = false, wake;

	spin_lock(&flow->lock);
	if (flow->dead)
		goto unlock;
	wake = flow->want.wake_us && flow->want.wake_us <= now_us;
	if (vulture_timer_poked(flow, now_us) || wake) {
		if (wake)
			flow->want.wake_us = 0;
		spin_lock(flow->state_lock);
		flow->controller->on_timer(flow->state, now_us, &flow->want);
		spin_unlock(flow->state_lock);
	}
	if (flow->kick_us && flow->kick_us <= now_us) {
		flow->kick_us = 0;
		/* Behind a hole data stays unacknowledged though TCP has answered it. */
		send = edge_owes(&flow->edge) && inet_csk_ack_scheduled(sk);
	}
	send |= flow->want.update;
	if (send && sock_owned_by_user(sk)) {
		send = false;
		flow->kick_us = now_us + VULTURE_KICK_US;
	} else {
		flow->want.update = false;
	}
	vulture_timer_arm(flow, now_us);
unlock:
	spin_unlock(&flow->lock);
	return send;
}

static enum hrtimer_restart vulture_timer(struct hrtimer *timer)
{
	struct vulture_flow *flow = container_of(timer, struct vulture_flow, timer);
	struct sock *sk = vulture_flow_hold_sock(flow);

	vulture_timer_ran(flow);
	if (sk) {
		bh_lock_sock(sk);
		if (vulture_flow_due(flow, sk))
			vulture_send_update(flow, sk);
		bh_unlock_sock(sk);
		sock_put(sk);
	}
	vulture_timer_done(flow);
	return HRTIMER_NORESTART;
}

void vulture_timer_init(struct vulture_flow *flow)
{
	spin_lock_init(&flow->timer_lock);
	hrtimer_setup(&flow->timer, vulture_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* Wait until no timer is armed or runs. All flows have ended, so none is armed again. May sleep. */
void vulture_timers_wait(struct vulture_net *vn)
{
	wait_var_event(&vn->timers, !atomic_read(&vn->timers));
}
