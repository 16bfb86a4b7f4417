// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of tcp_lowpri: the laws row by row, and the registered congestion
 * controls on a socket. Load tcp_lowpri first: the second part selects "background"
 * and "lowpri3.7" by name, as an application does.
 */
#include <linux/module.h>
#include <linux/pkt_sched.h>
#include <net/ip.h>

#include <lbe/kunit_flow.h>
#include <lbe/mark.h>

#include "lowpri_law.h"

/* The laws */

struct law_row {
	const char *name;
	u32 cwnd_pkts;
	u32 target_milli;	/* thousandths of a packet */
	u32 limit_pkts;
};

/*
 * Expected: the formulas of Tables 1 to 5 in double precision, at the largest
 * window of the paper's network (84 packets: 2.3 BDP of 36.7) and at 1000.
 */
static const struct law_row law_rows[] = {
	{ "lowpri1", 84, 82000, 0 },
	{ "lowpri1", 1000, 998000, 0 },
	{ "lowpri2", 84, 74835, 0 },
	{ "lowpri2", 1000, 968377, 0 },
	{ "lowpri2.1", 84, 79685, 0 },
	{ "lowpri2.1", 1000, 990228, 0 },
	{ "lowpri2.2", 84, 65378, 0 },
	{ "lowpri2.2", 1000, 904501, 0 },
	{ "lowpri2.3", 84, 80973, 0 },
	{ "lowpri2.3", 1000, 994377, 0 },
	{ "lowpri2.4", 84, 78115, 0 },
	{ "lowpri2.4", 1000, 984151, 0 },
	{ "lowpri2.5", 84, 69725, 0 },
	{ "lowpri2.5", 1000, 936904, 0 },
	{ "lowpri2.6", 84, 56253, 0 },
	{ "lowpri2.6", 1000, 822172, 0 },
	{ "lowpri3", 84, 42000, 82 },
	{ "lowpri3", 1000, 500000, 998 },
	{ "lowpri3.1", 84, 42000, 67 },
	{ "lowpri3.1", 1000, 500000, 708 },
	{ "lowpri3.2", 84, 42000, 54 },
	{ "lowpri3.2", 1000, 500000, 501 },
	{ "lowpri3.3", 84, 42000, 67 },
	{ "lowpri3.3", 1000, 500000, 708 },
	{ "lowpri3.4", 84, 63000, 43 },
	{ "lowpri3.4", 1000, 750000, 355 },
	{ "lowpri3.5", 84, 63000, 54 },
	{ "lowpri3.5", 1000, 750000, 501 },
	{ "background", 84, 63000, 67 },
	{ "background", 1000, 750000, 708 },
	{ "lowpri3.7", 84, 63000, 67 },
	{ "lowpri3.7", 1000, 750000, 708 },
	{ "lowpri4", 84, 55440, 0 },
	{ "lowpri4", 1000, 660000, 0 },
	{ "lowpri4.1", 84, 63000, 0 },
	{ "lowpri4.1", 1000, 750000, 0 },
	{ "lowpri4.2", 84, 21000, 0 },
	{ "lowpri4.2", 1000, 250000, 0 },
	{ "lowpri5", 84, 53933, 0 },
	{ "lowpri5", 1000, 501187, 0 },
	{ "lowpri5.1", 84, 43215, 0 },
	{ "lowpri5.1", 1000, 354813, 0 },
	{ "lowpri5.2", 84, 67308, 0 },
	{ "lowpri5.2", 1000, 707946, 0 },
	{ "lowpri6", 84, 75138, 0 },
	{ "lowpri6", 1000, 986184, 0 },
	{ "lowpri6.1", 84, 79569, 0 },
	{ "lowpri6.1", 1000, 993092, 0 },
	{ "lowpri6.2", 84, 70708, 0 },
	{ "lowpri6.2", 1000, 979277, 0 },
	/* Ends of the range: at least two packets; exact powers of two. */
	{ "lowpri1", 0, 2000, 0 },
	{ "lowpri1", 3, 2000, 0 },
	{ "lowpri2.6", 2, 2000, 0 },
	{ "lowpri2.6", 1048576, 1015808000, 0 },
	{ "background", 1, 2000, 1 },
	{ "background", 3, 2250, 3 },
	{ "background", 5, 3750, 5 },
	{ "background", 1048576, 786432000, 524288 },
	{ "lowpri3", 1, 2000, 0 },
	{ "lowpri5.2", 3, 2840, 0 },
	{ "lowpri5.2", 5, 4613, 0 },
	{ "lowpri5.2", 1048576, 524288000, 0 },
	{ "lowpri6.2", 5, 2000, 0 },
	{ "lowpri6.2", 1048576, 1048534411, 0 },
};

static void law_row_name(const struct law_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s at %u", row->name,
		 row->cwnd_pkts);
}

KUNIT_ARRAY_PARAM(law, law_rows, law_row_name);

static const struct lowpri_law *law_named(struct kunit *test, const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(lowpri_laws); i++)
		if (!strcmp(lowpri_laws[i].name, name))
			return &lowpri_laws[i];
	KUNIT_FAIL(test, "no law is called %s", name);
	return &lowpri_laws[0];
}

static void lowpri_test_law(struct kunit *test)
{
	const struct law_row *row = test->param_value;
	const struct lowpri_law *law = law_named(test, row->name);
	u64 got_q16 = lowpri_target_q16(law, row->cwnd_pkts);
	u64 want_q16 = div_u64(((u64)row->target_milli << 16) + 500, 1000);
	/* Error bound: rounding of the expected value, and 2^-25 of the window. */
	u64 slack_q16 = 34 + (row->cwnd_pkts >> 9);

	KUNIT_EXPECT_LE(test, got_q16, want_q16 + slack_q16);
	KUNIT_EXPECT_GE(test, got_q16 + slack_q16, want_q16);
	KUNIT_EXPECT_EQ(test, lowpri_limit_pkts(law, row->cwnd_pkts),
			row->limit_pkts);
}

/* Every row of the table occurs in law_rows; its name is short enough and unique. */
static void lowpri_test_table(struct kunit *test)
{
	int i, j;

	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(lowpri_laws), (size_t)25);
	for (i = 0; i < ARRAY_SIZE(lowpri_laws); i++) {
		bool tested = false;

		KUNIT_EXPECT_LT(test, strlen(lowpri_laws[i].name),
				(size_t)TCP_CA_NAME_MAX);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, lowpri_laws[i].name,
					    lowpri_laws[j].name);
		for (j = 0; j < ARRAY_SIZE(law_rows); j++)
			tested |= !strcmp(law_rows[j].name, lowpri_laws[i].name);
		KUNIT_EXPECT_TRUE_MSG(test, tested, "%s has no row",
				      lowpri_laws[i].name);
	}
}

struct growth_row {
	const char *name, *law;
	u32 cwnd, part_q16, acked, drop_target, ssthresh;
	u32 cwnd_after, part_after_q16, acked_after;
};

/* Expected: Section 3.6, "increase by factor for every ACK". */
static const struct growth_row growth_rows[] = {
	{ "first slow start doubles", "background",
	  10, 0, 10, LOWPRI_NO_DROP, TCP_INFINITE_SSTHRESH, 20, 0, 0 },
	{ "half a packet an ACK after a drop", "background",
	  63, 0, 6, 63, 67, 66, 0, 0 },
	{ "an odd ACK leaves half a packet", "background",
	  63, 0, 3, 63, 67, 64, 32768, 0 },
	{ "which the next one makes whole", "background",
	  64, 32768, 1, 63, 67, 65, 0, 0 },
	{ "the limit leaves the rest to linear increase", "background",
	  63, 0, 20, 63, 67, 67, 0, 12 },
	{ "the limit with a part earned", "background",
	  66, 32768, 5, 63, 67, 67, 0, 4 },
	{ "below the drop's window it doubles, above it halves its pace", "background",
	  60, 0, 7, 63, 67, 65, 0, 0 },
	{ "factor 1 doubles all the way", "lowpri3.1",
	  42, 0, 20, 42, 67, 62, 0, 0 },
	{ "a law that does not grow back doubles", "lowpri4.1",
	  10, 0, 5, 8, 20, 15, 0, 0 },
	{ "at the limit nothing happens", "background",
	  67, 0, 4, 63, 67, 67, 0, 4 },
	{ "limit below the window of the drop", "lowpri3.4",
	  63, 0, 4, 63, 63, 63, 0, 4 },
};

static void growth_row_name(const struct growth_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(growth, growth_rows, growth_row_name);

static void lowpri_test_growth(struct kunit *test)
{
	const struct growth_row *row = test->param_value;
	struct lowpri_growth g = {
		.cwnd = row->cwnd,
		.part_q16 = row->part_q16,
		.acked = row->acked,
	};

	lowpri_slow_start(law_named(test, row->law), &g, row->drop_target,
			  row->ssthresh);
	KUNIT_EXPECT_EQ(test, g.cwnd, row->cwnd_after);
	KUNIT_EXPECT_EQ(test, g.part_q16, row->part_after_q16);
	KUNIT_EXPECT_EQ(test, g.acked, row->acked_after);
}

static void lowpri_test_credit(struct kunit *test)
{
	/* 74.835 packets: 0.835 of the 74 ACKs for the next packet. */
	u64 target_q16 = lowpri_target_q16(law_named(test, "lowpri2"), 84);

	KUNIT_EXPECT_EQ(test, lowpri_credit(target_q16), 61U);
	KUNIT_EXPECT_EQ(test, lowpri_credit(63ULL << 16), 0U);
	KUNIT_EXPECT_EQ(test, lowpri_credit((2ULL << 16) | 0xffff), 1U);
}

static void lowpri_test_timeout_share(struct kunit *test)
{
	const struct lowpri_law *keeps = law_named(test, "lowpri3.7");
	const struct lowpri_law *plain = law_named(test, "background");

	KUNIT_EXPECT_EQ(test, lowpri_timeout_pkts(keeps, 84, 50), 42U);
	KUNIT_EXPECT_EQ(test, lowpri_timeout_pkts(keeps, 84, 0), 0U);
	KUNIT_EXPECT_EQ(test, lowpri_timeout_pkts(keeps, ~0U, 100), ~0U);
	KUNIT_EXPECT_EQ(test, lowpri_timeout_pkts(plain, 84, 50), 0U);
}

/* The mark's decisions */

struct mark_row {
	const char *name;
	u8 tos;
	u32 priority;
	u8 parts;
	u8 parts_left;	/* of both parts, if the mark had set both before */
};

static const struct mark_row mark_rows[] = {
	{ "nothing chosen", 0x00, 0,
	  LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY, 0 },
	{ "ECN is not a choice", 0x02, 0,
	  LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY, 0 },
	{ "priority chosen", 0x00, TC_PRIO_BULK, LBE_MARK_HAS_DSCP, 0 },
	{ "CS1 chosen", 0x20, 0, 0, 0 },
	{ "LE chosen", 0x04, 0, LBE_MARK_HAS_PRIORITY, LBE_MARK_HAS_DSCP },
	{ "our mark", 0x04, TC_PRIO_FILLER,
	  0, LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY },
	{ "our mark and ECT(0)", 0x06, TC_PRIO_FILLER,
	  0, LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY },
	{ "code point changed since", 0x20, TC_PRIO_FILLER,
	  0, LBE_MARK_HAS_PRIORITY },
};

static void mark_row_name(const struct mark_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mark, mark_rows, mark_row_name);

static void lowpri_test_mark_decision(struct kunit *test)
{
	const struct mark_row *row = test->param_value;
	u8 both = LBE_MARK_HAS_DSCP | LBE_MARK_HAS_PRIORITY;

	KUNIT_EXPECT_EQ(test, lbe_mark_parts(row->tos, row->priority), row->parts);
	KUNIT_EXPECT_EQ(test, lbe_mark_parts_left(both, row->tos, row->priority),
			row->parts_left);
}

/* The congestion controls, on a socket that is never connected */

/* A socket in linear increase at the paper's largest window. */
static void flow_open_at_84(struct kunit *test, struct flow *flow, char *name)
{
	flow_open(test, flow, name);
	tcp_snd_cwnd_set(flow->tp, 84);
	flow->tp->snd_ssthresh = 40;
	flow->tp->is_cwnd_limited = 1;
}

/* Change the window as tcp_enter_loss() does if TCP does not treat this as a new loss event. */
static void flow_timeout_again(struct flow *flow)
{
	tcp_snd_cwnd_set(flow->tp, 1);
	flow->tp->snd_cwnd_cnt = 0;
	flow_state(flow, TCP_CA_Loss);
}

/* An ACK of @pkts packets, without a sample of the round trip */
static void flow_grow(struct flow *flow, u32 pkts)
{
	flow->ops->cong_avoid(flow->sk, 0, pkts);
}

/* Section 3.6 and Figure 1 for TCP-Background, step by step. */
static void lowpri_test_drop(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 63U);
	flow_grow(&f, 2);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 64U);
	flow_grow(&f, 6);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 67U);
	/* From here on one packet for each window acknowledged. */
	flow_grow(&f, 66);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 67U);
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 68U);
}

/* The limit does not replace ssthresh before recovery has ended. */
static void lowpri_test_recovery_target(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_Recovery);
	f.ops->cwnd_event(f.sk, CA_EVENT_COMPLETE_CWR);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 63U);
}

static void lowpri_test_part_of_packet(struct kunit *test)
{
	struct flow f;

	/* 0.75 of 42 is 31.5: half of the 31 ACKs for the next packet are credited. */
	flow_open_at_84(test, &f, "background");
	tcp_snd_cwnd_set(f.tp, 42);
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 31U);
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, f.tp->snd_cwnd_cnt, 15U);
}

static void lowpri_test_no_growth_unless_limited(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	f.tp->is_cwnd_limited = 0;
	f.tp->max_packets_out = 0;
	flow_grow(&f, 10);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
}

static void lowpri_test_clamp(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	f.tp->snd_cwnd_clamp = 65;
	flow_grow(&f, 40);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 65U);
}

static void lowpri_test_timeout(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_timeout(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 1U);
	/* Doubling to 63, then half a packet for each ACK to 67. */
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 2U);
	flow_grow(&f, 61);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	flow_grow(&f, 4);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 65U);
}

static void lowpri_test_repeated_timeout_cuts(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_timeout(&f);
	flow_grow(&f, 9);
	flow_timeout(&f);
	/* 0.75 of the 10 packets that the window had reached */
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 7U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 1U);
}

/* Section 4.4: a time-out keeps part of the window, and further ones do not reduce it again. */
static void lowpri_test_timeout_kept(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "lowpri3.7");
	flow_timeout(&f);
	/* timeout_keep_percent is 75 */
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 63U);
	/* The same packet times out again: TCP does not call ssthresh. */
	flow_timeout_again(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	/* Another time-out after some progress: TCP calls ssthresh and gets the same value. */
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	flow_timeout(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 63U);
	/* The losses are repaired: the next time-out is a new loss episode. */
	flow_state(&f, TCP_CA_Open);
	tcp_snd_cwnd_set(f.tp, 40);
	flow_timeout(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 30U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 30U);
}

/* A retransmission is lost in recovery: the window before the drop is used. */
static void lowpri_test_timeout_in_recovery(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "lowpri3.7");
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_Recovery);
	tcp_snd_cwnd_set(f.tp, 50);
	flow_timeout_again(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
}

/* tcp_simple_retransmit(): TCP_CA_Loss without a loss. */
static void lowpri_test_smaller_mtu(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "lowpri3.7");
	tcp_snd_cwnd_set(f.tp, 3);
	flow_state(&f, TCP_CA_Loss);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 3U);
}

static void lowpri_test_undo(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_timeout(&f);
	flow_grow(&f, 1);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	KUNIT_EXPECT_EQ(test, f.ops->undo_cwnd(f.sk), 84U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 40U);
	/* The drop has no further effect: growth is linear from 84 on. */
	tcp_snd_cwnd_set(f.tp, 84);
	flow_state(&f, TCP_CA_Open);
	flow_grow(&f, 84);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 40U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 85U);
}

/* An undo during the slow start after an earlier drop. */
static void lowpri_test_undo_to_growth(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	flow_grow(&f, 2);
	flow_timeout(&f);
	flow_grow(&f, 1);
	tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 64U);
	flow_grow(&f, 2);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 65U);
}

/* Recovery ends with a new loss, before an ACK could raise ssthresh to the limit. That loss is
 * undone: the slow start after the first loss still follows.
 */
static void lowpri_test_undo_to_lift(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	flow_recover(&f);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 47U);
	tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 63U);
	flow_grow(&f, 2);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 67U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 64U);
}

/* An undo in the first slow start, which continues by one packet for each one acknowledged. */
static void lowpri_test_undo_to_slow_start(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	f.tp->snd_ssthresh = 200;
	f.tp->prior_cwnd = 84;
	f.tp->snd_ssthresh = f.ops->ssthresh(f.sk);
	flow_state(&f, TCP_CA_Recovery);
	tcp_snd_cwnd_set(f.tp, f.tp->snd_ssthresh);
	tcp_snd_cwnd_set(f.tp, f.ops->undo_cwnd(f.sk));
	flow_state(&f, TCP_CA_Open);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 200U);
	flow_grow(&f, 16);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 100U);
}

/* An undo of a reduction by another control: ssthresh is left to TCP. */
static void lowpri_test_undo_of_another(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	f.tp->prior_cwnd = 100;
	KUNIT_EXPECT_EQ(test, f.ops->undo_cwnd(f.sk), 100U);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 40U);
}

static void lowpri_test_idle_restart(struct kunit *test)
{
	struct flow f;

	flow_open_at_84(test, &f, "background");
	flow_recover(&f);
	/* tcp_cwnd_restart() sends the event before it sets ssthresh and window. */
	f.ops->cwnd_event(f.sk, CA_EVENT_CWND_RESTART);
	tcp_snd_cwnd_set(f.tp, 10);
	flow_grow(&f, 10);
	KUNIT_EXPECT_EQ(test, f.tp->snd_ssthresh, 63U);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(f.tp), 20U);
}

/* The fields of BBR with their meaning there: all versions of `ss` print them. */
static void lowpri_test_info(struct kunit *test)
{
	union tcp_cc_info info;
	int attr = 0;
	struct flow f;

	flow_open_at_84(test, &f, "lowpri3.7");
	KUNIT_EXPECT_EQ(test, f.ops->get_info(f.sk, 0, &attr, &info), (size_t)0);
	KUNIT_EXPECT_EQ(test, f.ops->get_info(f.sk, ~0U, &attr, &info), sizeof(info.bbr));
	KUNIT_EXPECT_EQ(test, attr, (int)INET_DIAG_BBRINFO);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_min_rtt, 0U);
	f.tp->mss_cache = 1000;
	f.tp->rate_delivered = 40;
	f.tp->rate_interval_us = 100000;
	minmax_reset(&f.tp->rtt_min, tcp_jiffies32, 105000);
	KUNIT_EXPECT_NE(test, f.ops->get_info(f.sk, ~0U, &attr, &info), (size_t)0);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_bw_lo, 400000U);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_min_rtt, 105000U);
	/* No rests; the window is 84 packets, bw times min_rtt is 42. */
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_pacing_gain, 256U);
	KUNIT_EXPECT_EQ(test, info.bbr.bbr_cwnd_gain, 512U);
}

/* Restricted, since it is more aggressive than standard TCP. */
static void lowpri_test_restricted(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "background");
	KUNIT_EXPECT_EQ(test, f.ops->flags & TCP_CONG_NON_RESTRICTED, 0U);
}

/* A loss takes a quarter of the window, with or without a queue. */
static void expect_a_quarter_less(struct kunit *test, struct flow *flow)
{
	u32 cwnd = tcp_snd_cwnd(flow->tp);

	flow_recover(flow);
	KUNIT_EXPECT_EQ(test, tcp_snd_cwnd(flow->tp), cwnd * 3 / 4);
}

static void lowpri_test_chosen_in_each_state(struct kunit *test)
{
	__flow_test_chosen_in_each_state(test, "background", expect_a_quarter_less);
	__flow_test_chosen_in_each_state(test, "lowpri3.7", expect_a_quarter_less);
}

/* The mark on a socket */

static void flow_release(struct flow *flow)
{
	lock_sock(flow->sk);
	flow->ops->release(flow->sk);
	release_sock(flow->sk);
}

static void flow_reinit(struct flow *flow)
{
	lock_sock(flow->sk);
	flow->ops->init(flow->sk);
	release_sock(flow->sk);
}

static void lowpri_test_mark_ipv4(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "background");
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x04);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_FILLER);
	/* The ECN bits belong to TCP; setting and clearing the mark does not change them. */
	inet_sk(f.sk)->tos |= INET_ECN_ECT_0;
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, INET_ECN_ECT_0);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BESTEFFORT);
	flow_reinit(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x04 | INET_ECN_ECT_0);
	/* A second release changes nothing. */
	flow_release(&f);
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, INET_ECN_ECT_0);
}

#if IS_ENABLED(CONFIG_IPV6)
static void lowpri_test_mark_ipv6(struct kunit *test)
{
	struct flow f;

	flow_open_of(test, &f, AF_INET6, "background");
	KUNIT_EXPECT_EQ(test, inet6_sk(f.sk)->tclass, 0x04);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_FILLER);
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet6_sk(f.sk)->tclass, 0);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BESTEFFORT);
	/* The same socket, connected to ::ffff:10.0.0.1, sends IPv4 packets. */
	ipv6_addr_set_v4mapped(htonl(0x0a000001), &f.sk->sk_v6_daddr);
	flow_reinit(&f);
	KUNIT_EXPECT_EQ(test, inet6_sk(f.sk)->tclass, 0);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x04);
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0);
	f.sk->sk_v6_daddr = in6addr_any;
}
#endif

static void lowpri_test_mark_own_choice(struct kunit *test)
{
	struct flow f;

	flow_open(test, &f, "background");
	/* Set while marked: IP_TOS overwrites both values, and release keeps them. */
	ip_sock_set_tos(f.sk, 0x20);
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x20);
	/* Set before init: no mark is set. */
	flow_reinit(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x20);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BESTEFFORT);
	flow_release(&f);
	/* A priority set by the application is kept; only the code point is set. */
	ip_sock_set_tos(f.sk, 0);
	f.sk->sk_priority = TC_PRIO_BULK;
	flow_reinit(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0x04);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BULK);
	flow_release(&f);
	KUNIT_EXPECT_EQ(test, inet_sk(f.sk)->tos, 0);
	KUNIT_EXPECT_EQ(test, f.sk->sk_priority, TC_PRIO_BULK);
}

static struct kunit_case lowpri_cases[] = {
	KUNIT_CASE_PARAM(lowpri_test_law, law_gen_params),
	KUNIT_CASE(lowpri_test_table),
	KUNIT_CASE_PARAM(lowpri_test_growth, growth_gen_params),
	KUNIT_CASE(lowpri_test_credit),
	KUNIT_CASE(lowpri_test_timeout_share),
	KUNIT_CASE_PARAM(lowpri_test_mark_decision, mark_gen_params),
	KUNIT_CASE(lowpri_test_drop),
	KUNIT_CASE(lowpri_test_recovery_target),
	KUNIT_CASE(lowpri_test_part_of_packet),
	KUNIT_CASE(lowpri_test_no_growth_unless_limited),
	KUNIT_CASE(lowpri_test_clamp),
	KUNIT_CASE(lowpri_test_timeout),
	KUNIT_CASE(lowpri_test_repeated_timeout_cuts),
	KUNIT_CASE(lowpri_test_timeout_kept),
	KUNIT_CASE(lowpri_test_timeout_in_recovery),
	KUNIT_CASE(lowpri_test_smaller_mtu),
	KUNIT_CASE(lowpri_test_undo),
	KUNIT_CASE(lowpri_test_undo_to_growth),
	KUNIT_CASE(lowpri_test_undo_to_lift),
	KUNIT_CASE(lowpri_test_undo_to_slow_start),
	KUNIT_CASE(lowpri_test_undo_of_another),
	KUNIT_CASE(lowpri_test_idle_restart),
	KUNIT_CASE(lowpri_test_info),
	KUNIT_CASE(lowpri_test_restricted),
	KUNIT_CASE(lowpri_test_chosen_in_each_state),
	KUNIT_CASE(lowpri_test_mark_ipv4),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(lowpri_test_mark_ipv6),
#endif
	KUNIT_CASE(lowpri_test_mark_own_choice),
	{}
};

static struct kunit_suite lowpri_suite = {
	.name = "tcp_lowpri",
	.exit = flow_close,
	.test_cases = lowpri_cases,
};

kunit_test_suite(lowpri_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of tcp_lowpri");
