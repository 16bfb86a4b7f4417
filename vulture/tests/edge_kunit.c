// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the right edge (edge.h): which window may go on the wire, which data
 * counts, and what kind of arrival it is.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../edge.h"

#define MSS	1448

/* One segment */

struct field_row {
	const char *name;
	enum rwnd_kind kind;
	bool retract;
	u16 own;
	u8 scale;
	u32 ack;
	s32 kept;		/* goal before, relative to ack */
	u32 want;		/* what the controller wants, bytes from ack on, of either kind */
	u16 field;		/* expected */
};

static const struct field_row field_rows[] = {
	{ "smaller than TCP's", RWND_WINDOW, false, 1000, 7, 5000, 0, 64000, 500 },
	{ "rounded up to the unit", RWND_WINDOW, false, 1000, 7, 5000, 0, 64001, 501 },
	{ "never above TCP's own", RWND_WINDOW, false, 100, 7, 5000, 0, 64000, 100 },
	{ "zero stays zero", RWND_WINDOW, false, 0, 7, 5000, 85000, 64000, 0 },
	{ "a window is never zero by ourselves", RWND_WINDOW, false, 1000, 14, 5000, 0, 1, 1 },
	{ "the edge does not go left", RWND_WINDOW, false, 1000, 7, 5000, 100000, 64000, 782 },
	{ "unless it may be retracted", RWND_WINDOW, true, 1000, 7, 5000, 100000, 64000, 500 },
	{ "to two segments at least", RWND_WINDOW, true, 1000, 0, 5000, 1000000, 1, 1000 },
	{ "TCP may take it there", RWND_WINDOW, false, 100, 7, 5000, 100000, 64000, 100 },
	{ "an edge passed by is past", RWND_WINDOW, false, 1000, 7, 5000, -4000, 64000, 500 },
	{ "the numbers wrap", RWND_WINDOW, false, 1000, 0, 0xfffffff0, 0x20, 10, 32 },
	{ "no scale", RWND_WINDOW, false, 65535, 0, 5000, 0, 2896, 2896 },
	{ "largest scale and window", RWND_WINDOW, false, 65535, 14, 0, 0, 65535U << 14, 65535 },
	{ "an edge is rounded down", RWND_EDGE, false, 1000, 7, 5000, 0, 64127, 500 },
	{ "less than a unit is nothing", RWND_EDGE, false, 1000, 11, 5000, 0, 2047, 0 },
	{ "a held edge used up is zero", RWND_EDGE, false, 1000, 7, 5000, 0, 0, 0 },
	{ "a held edge stays", RWND_EDGE, false, 1000, 7, 5000, 12800, 0, 100 },
	{ "an edge is not above TCP's", RWND_EDGE, false, 100, 7, 5000, 0, 1000000, 100 },
	{ "an edge may be retracted", RWND_EDGE, true, 1000, 7, 5000, 100000, 6400, 50 },
	{ "TCP's own is left alone", RWND_LEAVE, false, 777, 7, 5000, 100000, 0, 777 },
};

static void field_describe(const struct field_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(field, field_rows, field_describe);

static void fields(struct kunit *test)
{
	const struct field_row *row = test->param_value;
	struct rwnd_want want = {
		.kind = row->kind,
		.bytes = row->want,
		.edge_seq = row->ack + row->want,
		.retract = row->retract,
	};
	struct edge e;

	edge_init(&e, row->ack - 1000, row->kept + 1000, row->scale);
	edge_acknowledged(&e, row->ack);
	KUNIT_EXPECT_EQ(test, row->field,
			edge_field(&e, row->ack, true, row->own, &want, MSS));
	/* A duplicate acknowledgment does not retract the edge. */
	edge_init(&e, row->ack - 1000, row->kept + 1000, row->scale);
	want.retract = false;
	KUNIT_EXPECT_LE(test, min_t(u32, row->field, row->own),
			edge_field(&e, row->ack, false, row->own, &want, MSS));
}

/* A window that is to shrink, at each scale */

struct shrink_row {
	const char *name;
	u8 scale;
	u32 per_ack;		/* octets that an ACK acknowledges */
};

static const struct shrink_row shrink_rows[] = {
	{ "scale 0, two segments", 0, 2 * MSS }, { "scale 7, one segment", 7, MSS },
	{ "scale 10, one segment", 10, MSS }, { "scale 11, one segment", 11, MSS },
	{ "scale 12, two segments", 12, 2 * MSS }, { "scale 14, one segment", 14, MSS },
	{ "scale 14, one octet", 14, 1 },
};

static void shrink_describe(const struct shrink_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shrink, shrink_rows, shrink_describe);

/* From a window of 64 units to a goal of 2: as the edge does not move, 62 units of
 * acknowledgments are enough, whatever one ACK acknowledges. Each edge on the wire is
 * within a unit of the furthest.
 */
static void windows_shrink(struct kunit *test)
{
	const struct shrink_row *row = test->param_value;
	struct rwnd_want want = { .kind = RWND_WINDOW, .bytes = 2U << row->scale };
	u32 unit = 1U << row->scale, ack = 0xfff00000, acked = 0, field = 64;
	struct edge e;

	edge_init(&e, ack, 64 * unit, row->scale);
	while (acked < 62 * unit) {
		ack += row->per_ack;
		acked += row->per_ack;
		edge_acknowledged(&e, ack);
		field = edge_field(&e, ack, true, 1000, &want, MSS);
		edge_advertised(&e, ack, 1000, field, false, 1);
		KUNIT_ASSERT_TRUE(test, edge_before(e.edge_seq - unit, ack + field * unit));
	}
	KUNIT_EXPECT_LE(test, field, 3U);
}

/* Which data TCP accepts */

struct take_row {
	const char *name;
	s32 seq, bytes;		/* seq relative to the acknowledgment number */
	s32 tsval;		/* relative to the latest data in order */
	u32 after_s;		/* time since that data, s */
	bool takes;		/* expected */
};

/* The acknowledgment number is 0; 100000 octets are advertised, and TCP itself would take 200000 */
static const struct take_row take_rows[] = {
	{ "the next segment", 0, MSS, 1, 0, true },
	{ "the last that was promised", 100000 - MSS, MSS, 1, 0, true },
	{ "beyond it, but TCP takes it", 150000, MSS, 1, 0, true },
	{ "beyond TCP's window", 200000, MSS, 1, 0, false },
	{ "far to the right", 1 << 30, MSS, 1, 0, false },
	{ "far to the left", -(1 << 30), MSS, 1, 0, false },
	{ "just to the left", -MSS, MSS, 1, 0, false },
	{ "the octet of a keepalive", -1, 1, 1, 0, false },
	{ "old and new octets", -MSS, MSS + 1, 1, 0, true },
	{ "the same tick", 0, MSS, 0, 0, true },
	{ "an older timestamp", 0, MSS, -1, 0, false },
	{ "a far older one", 0, MSS, -100000, 0, false },
	{ "older after a long rest", 0, MSS, -1, 2000, true },
	{ "longer than the number space", 0, -1, 1, 0, false },
};

static void take_describe(const struct take_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(take, take_rows, take_describe);

static void takes_what_tcp_takes(struct kunit *test)
{
	const struct take_row *row = test->param_value;
	struct rwnd_want want = { .kind = RWND_WINDOW, .bytes = 100000 };
	u64 now_us = 1000000;
	u32 ack = 0xffffff00;
	struct edge e;

	edge_init(&e, ack - MSS, MSS, 0);
	KUNIT_ASSERT_TRUE(test, edge_takes(&e, now_us, ack - MSS, MSS, 5000));
	edge_seen(&e, now_us, ack - MSS, MSS, 5000);
	edge_acknowledged(&e, ack);
	e.own_bytes = 200000;
	e.goal_seq = ack + 100000;
	edge_advertised(&e, ack, 50000, edge_field(&e, ack, true, 50000, &want, MSS), false, 1);
	e.own_bytes = 200000;
	e.edge_seq = ack + 100000;
	KUNIT_EXPECT_EQ(test, row->takes,
			edge_takes(&e, now_us + row->after_s * 1000000ULL, ack + row->seq,
				   row->bytes, 5000 + row->tsval));
}

/* Kinds of arrivals (RFC 9840 section 4.3) */

struct arrival_row {
	const char *name;
	s32 seq;		/* relative to the end of the furthest data */
	s32 tsval;		/* relative to that of the furthest data */
	enum rwnd_arrival arrival;	/* expected */
};

static const struct arrival_row arrival_rows[] = {
	{ "in order", 0, 0, RWND_NEXT },
	{ "in order, later", 0, 40, RWND_NEXT },
	{ "a hole", MSS, 0, RWND_HOLE },
	{ "before it, sent after it", -2 * MSS, 1, RWND_RETRANSMITTED },
	{ "before it, sent with it", -2 * MSS, 0, RWND_REORDERED },
	{ "before it, sent before it", -2 * MSS, -3, RWND_REORDERED },
};

static void arrival_describe(const struct arrival_row *row, char *text)
{
	strscpy(text, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(arrival, arrival_rows, arrival_describe);

static void arrivals(struct kunit *test)
{
	const struct arrival_row *row = test->param_value;
	u32 ack = 0xffffff00, high = ack + 10 * MSS;
	struct edge e;

	edge_init(&e, ack, 100000, 7);
	/* The first data is no hole, whatever TCP had acknowledged when control began. */
	KUNIT_EXPECT_EQ(test, RWND_NEXT, edge_seen(&e, 1, high - MSS, MSS, 0xfffffff0));
	KUNIT_EXPECT_EQ(test, row->arrival,
			edge_seen(&e, 2, high + row->seq, MSS, 0xfffffff0 + row->tsval));
	KUNIT_EXPECT_EQ(test, row->seq < 0 ? high : high + row->seq + MSS, e.high_seq);
}

/* A second pass of a packet is distinguished from the next packet */
static void repeats_are_known(struct kunit *test)
{
	struct edge e;

	edge_init(&e, 1000, 64000, 0);
	edge_advertised(&e, 1000, 60000, 5000, false, 77);
	KUNIT_EXPECT_TRUE(test, edge_is_repeated(&e, 1000, 5000, 77));
	KUNIT_EXPECT_FALSE(test, edge_is_repeated(&e, 1000, 60000, 77));
	KUNIT_EXPECT_FALSE(test, edge_is_repeated(&e, 1000, 5000, 78));
	KUNIT_EXPECT_FALSE(test, edge_is_repeated(&e, 2000, 5000, 77));
	edge_advertised(&e, 1000, 60000, 60000, true, 77);
	KUNIT_EXPECT_FALSE(test, edge_is_repeated(&e, 1000, 60000, 77));
}

static struct kunit_case edge_cases[] = {
	KUNIT_CASE_PARAM(fields, field_gen_params),
	KUNIT_CASE_PARAM(windows_shrink, shrink_gen_params),
	KUNIT_CASE_PARAM(takes_what_tcp_takes, take_gen_params),
	KUNIT_CASE_PARAM(arrivals, arrival_gen_params),
	KUNIT_CASE(repeats_are_known),
	{}
};

static struct kunit_suite edge_suite = {
	.name = "vulture_edge",
	.test_cases = edge_cases,
};

kunit_test_suite(edge_suite);

MODULE_DESCRIPTION("KUnit tests of vulture's right edge");
MODULE_LICENSE("GPL");
