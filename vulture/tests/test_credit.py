# SPDX-License-Identifier: GPL-2.0
"""The law of credit.h: its arithmetic against an oracle in floating point, and the law in a closed loop with a link.

The loop's link has one FIFO queue with drop tail, and a sender that sends a packet the moment credit reaches it. A
sender's own window, several flows and the window's unit are not modelled here; the experiment vulture_credit of the
testbed has them.
"""

from __future__ import annotations

import ctypes
import random
import statistics
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.support import hostc

pytestmark = pytest.mark.host

FOLDER = Path(__file__).resolve().parent.parent
WRAPPER = """
#include <stdlib.h>
#include "credit.h"
#include "credit_use.h"

#define MSS	1448
#define RING	(1U << 17)

struct result { double ours_Bps, others_Bps, queue_us, mu_Bps; u32 phase, drops; };

struct packet { u64 at_us, released_us; bool ours, credit; u32 mark, bytes; };
struct fifo { struct packet at[RING]; u32 head, len; };

static void push(struct fifo *q, struct packet p) { q->at[(q->head + q->len++) % RING] = p; }
/* By its time: a packet that took long comes behind later ones. */
static void push_in_order(struct fifo *q, struct packet p)
{
	u32 i = q->head + q->len++;

	for (; i != q->head && q->at[(i - 1) % RING].at_us > p.at_us; i--)
		q->at[i % RING] = q->at[(i - 1) % RING];
	q->at[i % RING] = p;
}
static struct packet pop(struct fifo *q)
{
	struct packet p = q->at[q->head];

	q->head = (q->head + 1) % RING;
	q->len--;
	return p;
}

/* What credit.c does for one flow alone. Return: packets of credit. */
static u32 pump(struct credit_law *c, u64 now_us, s64 out)
{
	u32 n = 0;

	if (c->phase == CREDIT_FLOOR) {
		if (now_us >= c->blind_us && now_us >= c->probe_us && !out) {
			c->probe_us = now_us + credit_period_us(c, now_us);
			c->probe_us += credit_dither_us(c, (u32)(c->probe_us - now_us) / 4);
			n = 1;
		}
	} else if (c->phase == CREDIT_PROBE) {
		if (c->train_end_us && now_us >= c->train_end_us) {
			credit_judge(c, now_us);
			return 0;
		}
		while (now_us >= c->slot_us && n < c->train_pkts) {
			n++;
			if (++c->train_sent >= c->train_pkts) {
				if (!c->train_end_us)
					c->train_end_us = now_us + 2 * c->base_us + c->train_pkts * c->gap_us;
				c->slot_us = c->fails || c->kept_Bps ? c->train_end_us : c->slot_us + 4 * c->gap_us;
			} else if (c->train_sent > CREDIT_TRAIN_PRIME) {
				c->slot_us += c->gap_us;
			}
		}
	} else {
		if (c->filling && now_us - c->jumped_us > c->base_us * 5ULL / 4)
			c->filling = false;
		while (out + (s64)(n + 1) * MSS <= (s64)c->window_bytes &&
		       ((!c->filling && !credit_spreads(c)) || now_us >= c->slot_us)) {
			u64 rate_Bps = c->filling ? c->rate_Bps : credit_rate_of(c->window_bytes, c->base_us) * 5 / 4;

			n++;
			if (c->filling || credit_spreads(c))
				c->slot_us = max(c->slot_us, now_us) + MSS * 1000000ULL / rate_Bps;
		}
		if (out + (s64)(n + 1) * MSS > (s64)c->window_bytes)
			c->filling = false;
	}
	return n;
}

/* Others: a share of the link, in permille, from from_us to until_us, in bursts of so many.
 * Each packet of ours takes up to jitter_us more behind the queue. With back_us the same bursts
 * stand on the way back, so much later: credit leaves behind them. From later_us on the link has
 * later_Bps: a packet takes longer by what that is slower, or not if a shaper lets single packets
 * pass (tokens). With ack_bytes each credit is a packet of so many that waits in the same queue, as in
 * the air. Until written_us our application writes app_Bps, and credit waits for it.
 */
void loop(double Bps, u32 base_us, u32 limit, u32 others, u64 from_us, u64 until_us,
	  u64 end_us, u64 measure_us, u32 step_us, u32 burst, u32 jitter_us, u32 back_us,
	  double later_Bps, u64 later_us, u32 tokens, u32 ack_bytes, double app_Bps, u64 written_us, struct result *r)
{
	struct credit_law *c = calloc(1, sizeof(*c));
	struct fifo *sent = calloc(1, sizeof(*sent)), *queue = calloc(1, sizeof(*queue));
	struct fifo *wire = calloc(1, sizeof(*wire)), *unused = calloc(1, sizeof(*unused));
	double written = 0, link = 0, foreign = 0, queued = 0, ours = 0, theirs = 0;
	double first_Bps = Bps, slower_us = 0;
	u64 now_us, steps = 0, back_at_us = U64_MAX, way_back_us = 0;
	u32 random = 1;
	s64 out = 0;

	credit_init_law(c, 1000000);
	c->mss_bytes = MSS;
	c->flows = 1;
	c->base_us = base_us;
	c->window_bytes = 10 * MSS;
	c->random = (u32)from_us;
	*r = (struct result){ 0 };
	for (now_us = 1000000; now_us < end_us; now_us += step_us) {
		u32 n = pump(c, now_us, out), nth = c->train_sent - n;

		out += (s64)n * MSS;
		if (now_us >= later_us && later_Bps) {
			slower_us = tokens ? 0 : max(MSS * 1e6 / later_Bps - MSS * 1e6 / first_Bps, 0);
			Bps = later_Bps;
		}
		for (; n; n--, nth++) {
			u64 at_us = max(now_us, way_back_us);
			struct packet p = { at_us + base_us / 2, at_us, true, ack_bytes != 0,
					    c->phase == CREDIT_PROBE ? credit_train_mark(c, nth) : U32_MAX,
					    ack_bytes ? ack_bytes : MSS };

			push(now_us < written_us ? unused : ack_bytes ? queue : sent, p);
		}
		for (written += app_Bps * step_us / 1e6; unused->len && (written >= MSS || now_us >= written_us);
		     written -= MSS) {
			struct packet p = pop(unused);

			p.at_us = now_us + base_us / 2;
			p.released_us = now_us;
			push(sent, p);
		}
		written = min(written, 10 * MSS);
		if (now_us >= from_us && now_us < until_us)
			foreign += Bps * others / 1000 * step_us / 1e6;
		if (now_us >= back_at_us) {
			way_back_us = max(now_us, way_back_us) + burst * MSS * 1e6 / Bps;
			back_at_us = U64_MAX;
		}
		if (back_us && foreign >= burst * MSS)
			back_at_us = now_us + back_us;
		for (u32 i = foreign >= burst * MSS ? burst : 0; i; i--, foreign -= MSS) {
			if (queue->len < limit)
				push(queue, (struct packet){ .bytes = MSS });
			else
				r->drops++;
		}
		while (sent->len && sent->at[sent->head].at_us <= now_us) {
			struct packet p = pop(sent);

			if (queue->len < limit)
				push(queue, p);
			else
				out -= MSS, r->drops++;
		}
		link += Bps * step_us / 1e6;
		while (queue->len && link >= queue->at[queue->head].bytes) {
			struct packet p = pop(queue);

			link -= p.bytes;
			if (p.credit) {
				push(sent, (struct packet){ now_us + base_us / 2, p.released_us, true, false,
							    p.mark, MSS });
				continue;
			}
			random = random * 1664525 + 1013904223;
			p.at_us = now_us + base_us - base_us / 2 + (u64)slower_us +
				  (u64)(random >> 8) * jitter_us / (1 << 24);
			if (p.ours)
				push_in_order(wire, p);
			if (now_us >= measure_us)
				*(p.ours ? &ours : &theirs) += MSS;
		}
		if (!queue->len && link > MSS)
			link = MSS;
		if (now_us >= measure_us) {
			queued += queue->len;
			steps++;
		}
		while (wire->len && wire->at[wire->head].at_us <= now_us) {
			struct packet p = pop(wire);
			u32 queue_us = (u32)(now_us - p.released_us) - base_us;

			if ((s32)queue_us < 0)
				queue_us = 0;
			out -= MSS;
			if (c->phase == CREDIT_FLOOR) {
				c->bytes += MSS;
				credit_learn_probe(c, queue_us);
				if (now_us >= c->blind_us && p.released_us >= c->blind_us)
					credit_on_probe(c, now_us, queue_us);
			} else if (c->phase == CREDIT_PROBE) {
				c->bytes += MSS;
				if (p.released_us >= c->since_us && p.mark < c->train_marks)
					credit_on_train(c, p.mark, now_us - base_us, p.released_us);
				if (c->train_got == c->train_marks)
					credit_judge(c, now_us);
			} else {
				credit_on_data(c, now_us, MSS, queue_us);
			}
		}
	}
	r->ours_Bps = ours * 1e6 / (end_us - measure_us);
	r->others_Bps = theirs * 1e6 / (end_us - measure_us);
	r->queue_us = queued / steps * MSS * 1e6 / Bps;
	r->mu_Bps = c->mu_Bps;
	r->phase = c->phase;
	free(c);
	free(sent);
	free(queue);
	free(wire);
	free(unused);
}

u32 is_own(u64 bytes, u64 since_us, u64 Bps, u32 queue_us)
{
	struct credit_law c = { .bytes = bytes, .mu_Bps = Bps };

	return credit_is_own(&c, since_us, queue_us);
}

/* A queue of others that rises by a jump and a packet within a tick: 1 if the law leaves for it. */
u32 leaves(u64 ours_of_20)
{
	struct credit_law c;
	u64 now_us = 1000000, Bps = 1250000;

	credit_init_law(&c, now_us);
	c.phase = CREDIT_CRUISE;
	c.mss_bytes = MSS;
	c.base_us = 100000;
	c.mu_Bps = Bps;
	c.window_bytes = 100 * MSS;
	c.quiet_us = now_us;
	c.tick_us = now_us;
	for (int i = 0; i < 6; i++) {
		now_us += 25000;
		c.bytes += Bps * 25000 / 1000000 * ours_of_20 / 20;
		c.least_us = i < 5 ? 0 : 3 * credit_jump_us(&c);
		c.samples = CREDIT_TICK_SAMPLES;
		c.sum_us = c.samples * c.least_us;
		credit_end_tick(&c, now_us);
	}
	return c.phase == CREDIT_FLOOR;
}

/* START while nothing is known of the round trip: 60 packets at 10 Mbit/s, each of which meets 1 ms of queue more.
 * Then it is known. Return: mu when it leaves; 0 = it has left before, or does not.
 */
u64 leaves_start(void)
{
	struct credit_law c;
	u64 now_us = 1000000;

	credit_init_law(&c, now_us);
	c.mss_bytes = MSS;
	for (int i = 0; i < 140; i++) {
		now_us += MSS * 8 / 10;
		credit_on_data(&c, now_us, MSS, i < 60 ? i * 1000 : 60000);
		if (c.phase != CREDIT_START)
			return i < 60 ? 0 : c.mu_Bps;
		if (i == 59)
			c.base_us = 40000;
	}
	return 0;
}

/* mu after a tick in which 24 packets came within 20 ms, 24 of each 25 ms before; with so much noise. */
u64 capacity(u32 noise_us)
{
	struct credit_law c;

	credit_init_law(&c, 1000000);
	c.phase = CREDIT_CRUISE;
	c.mss_bytes = MSS;
	c.base_us = 100000;
	c.mu_Bps = 24 * MSS * 40;
	c.noise_us = noise_us;
	c.arrivals = 24;
	c.first_us = 2000000;
	c.latest_us = 2020000;
	c.first_bytes = MSS;
	c.bytes = 24 * MSS;
	credit_measure(&c, 2025000, 0);
	return c.mu_Bps;
}

/* CRUISE where the delay of packets swings by 20 ms in each tick, with a share of the link. Return: noise, us. */
u32 noise_beside(u64 ours_of_20)
{
	struct credit_law c;
	u64 Bps = 1250000;

	credit_init_law(&c, 1000000);
	c.phase = CREDIT_CRUISE;
	c.mss_bytes = MSS;
	c.mu_Bps = Bps;
	c.rate_Bps = Bps * ours_of_20 / 20;
	for (int i = 0; i < 200; i++) {
		c.least_us = 0;
		c.samples = CREDIT_TICK_SAMPLES;
		c.sum_us = c.samples * 10000;
		credit_learn_noise(&c);
	}
	return c.noise_us;
}

static u32 growth_of(const struct credit_law *c)
{
	struct credit_spans spans = credit_train_spans(c, c->train_marks);

	return credit_train_growth(&spans);
}

u32 growth(const s32 *arrived, const s32 *released, u32 n, u32 gap_us)
{
	struct credit_law c = { .gap_us = gap_us, .train_step = 1, .train_marks = n };

	for (u32 i = 0; i < n; i++)
		credit_on_train(&c, i, arrived[i], released[i]);
	return growth_of(&c);
}

/* A train of ten of which the marks in @mask came: 1 if too much of it was lost. */
u32 lost_much(u32 mask)
{
	struct credit_law c = { .gap_us = 180, .train_step = 1, .train_marks = 10 };

	for (u32 i = 0; i < 10; i++)
		if (mask & 1U << i)
			credit_on_train(&c, i, 180 * i, 0);
	return credit_train_lost_much(credit_train_lost(&c, c.train_high), c.train_high);
}

/* A train on an empty path of which the mark @lost does not come, and @extra packets of ours that are no marks
 * come behind the mark @behind. Return: g.
 */
u32 growth_of_our_own(u32 lost, u32 behind, u32 extra)
{
	struct credit_law c = { .mss_bytes = MSS, .gap_us = 180, .train_step = 1,
				.train_marks = CREDIT_TRAIN_PRIME + CREDIT_TRAIN_PKTS };
	u32 at_us = 0;

	for (u32 i = 0; i < c.train_marks; i++) {
		at_us += c.gap_us;
		if (i != lost) {
			c.bytes += MSS;
			credit_on_train(&c, i, at_us, c.gap_us * (i > CREDIT_TRAIN_PRIME ? i - CREDIT_TRAIN_PRIME : 0));
		}
		for (u32 n = i == behind ? extra : 0; n; n--) {
			at_us += c.gap_us;
			c.bytes += MSS;
		}
	}
	return growth_of(&c);
}

/* A train on a link of @Bps by what is known: its ten marks come at these times, the latest two of them in turn if
 * @mixed. Return: the capacity then, and what the link pauses for, us.
 */
u64 after_bunches(u64 Bps, const u32 *at_us, u32 mixed, u32 *pause_us)
{
	struct credit_law c;
	u64 now_us = 1000000;

	credit_init_law(&c, now_us);
	c.mss_bytes = MSS;
	c.base_us = 40000;
	c.mu_Bps = Bps;
	c.mu_us = now_us;
	credit_probe(&c, now_us);
	for (u32 i = 0; i < c.train_marks; i++) {
		u32 mark = mixed && i > 7 ? 17 - i : i;

		c.bytes += MSS;
		credit_on_bunch(&c, mark, now_us + at_us[i]);
		credit_on_train(&c, mark, now_us + at_us[i], now_us + mark * credit_packet_us(&c));
	}
	credit_judge(&c, now_us + 100000);
	*pause_us = c.pause_us;
	return c.mu_Bps;
}

/* A link of 10 Mbit/s that paused for 15 ms, after: 0 a minute at the floor, 1 twice the rate, 2 many trains that
 * come evenly; 3: none of these. Return: what it pauses for, us.
 */
u32 pauses_after(u32 what)
{
	struct credit_law c;
	u64 now_us = 1000000;

	credit_init_law(&c, now_us);
	c.phase = what ? CREDIT_CRUISE : CREDIT_FLOOR;
	c.mss_bytes = MSS;
	c.base_us = 40000;
	c.mu_Bps = 1250000;
	c.fast_Bps = c.mu_Bps;
	c.bunched_Bps = c.mu_Bps;
	c.bunched_us = now_us;
	c.pause_us = 15000;
	if (what == 0)
		credit_on_probe(&c, now_us + 61000000, 0);
	c.arrivals = 24;
	c.first_us = now_us;
	c.latest_us = now_us + 24 * MSS * 4 / 10;
	c.bytes = 24 * MSS;
	if (what == 1)
		credit_measure(&c, c.latest_us, 0);
	for (u32 i = 0; what == 2 && i < 200; i++)
		credit_learn_pause(&c, now_us);
	return c.pause_us;
}

/* A sender whose packets come so far apart, in turn; what it uses in a round trip after @n of them. */
u32 used(u32 base_us, u32 one_us, u32 next_us, u32 n)
{
	struct credit_use u = { 0 };
	u64 now_us = 1000000;

	for (u32 i = 0; i < n; i++) {
		credit_use_add(&u, now_us, base_us, MSS);
		now_us += i % 2 ? next_us : one_us;
	}
	return credit_use_trip(&u, MSS);
}
"""
MBIT = 1e6 / 8
PRIME = 2


class Result(ctypes.Structure):
    """The wrapper's struct result."""

    _fields_ = (
        ("ours_Bps", ctypes.c_double),
        ("others_Bps", ctypes.c_double),
        ("queue_us", ctypes.c_double),
        ("mu_Bps", ctypes.c_double),
        ("phase", ctypes.c_uint32),
        ("drops", ctypes.c_uint32),
    )


class Others(NamedTuple):
    """Other traffic: its rate in permille of the link, when it begins and ends (s), and how many packets come at once.
    """

    permille: int = 0
    from_s: float = 0
    until_s: float = 0
    burst: int = 1
    #: bursts on the way back come so much later, ms; 0 = there are none
    back_ms: float = 0


def load(folder: Path, change: tuple[str, str] | None = None) -> ctypes.CDLL:
    """Compile credit.h as a library; ``change`` plants a fault, to see that a test finds it."""
    include = FOLDER
    if change:
        include = folder / "vulture"
        include.mkdir()
        texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("credit*.h")}
        assert sum(change[0] in text for text in texts.values()) == 1, f"not in one header of credit: {change[0]!r}"
        for name, text in texts.items():
            (include / name).write_text(text.replace(*change), encoding="utf-8")
    library = hostc.load(WRAPPER, folder, include, "credit")
    library.loop.argtypes = [
        ctypes.c_double, *[ctypes.c_uint32] * 3, *[ctypes.c_uint64] * 4, *[ctypes.c_uint32] * 4,
        ctypes.c_double, ctypes.c_uint64, *[ctypes.c_uint32] * 2, ctypes.c_double, ctypes.c_uint64,
        ctypes.POINTER(Result),
    ]  # fmt: skip
    library.growth.restype = ctypes.c_uint32
    library.capacity.restype = ctypes.c_uint64
    library.leaves_start.restype = ctypes.c_uint64
    library.after_bunches.restype = ctypes.c_uint64
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return load(tmp_path_factory.mktemp("credit"))


def loop(
    library: ctypes.CDLL,
    mbit: float,
    rtt_ms: float,
    packets: int,
    others: Others,
    measure: tuple[float, float],
    jitter_ms: float = 0,
    later: tuple[float, float] = (0, 0),
    ack_bytes: int = 0,
    app: tuple[float, float] = (0, 0),
    tokens: bool = False,
) -> Result:
    result = Result()

    def us(seconds: float) -> int:
        return int(seconds * 1e6)

    library.loop(
        mbit * MBIT, us(rtt_ms / 1e3), packets, others.permille, us(others.from_s), us(others.until_s), us(measure[1]),
        us(measure[0]), max(5, min(100, int(400 / mbit))), others.burst, us(jitter_ms / 1e3),
        us(others.back_ms / 1e3), later[0] * MBIT, us(later[1]), tokens, ack_bytes, app[0] * MBIT, us(app[1]),
        ctypes.byref(result),
    )  # fmt: skip
    return result


@pytest.mark.parametrize("mbit", [1, 3, 10, 40, 200])
@pytest.mark.parametrize("rtt_ms", [6, 30, 100, 300])
def test_alone(library: ctypes.CDLL, mbit: float, rtt_ms: float) -> None:
    """A download alone fills the path, and its queue holds no more than the target and a train."""
    result = loop(library, mbit, rtt_ms, 100000, Others(), (30, 60))
    packet_us = 1448 * 8 / mbit
    assert result.ours_Bps >= 0.95 * mbit * MBIT
    assert result.queue_us <= max(6000, 5 * packet_us)


@pytest.mark.parametrize("mbit", [3, 10, 40, 200])
@pytest.mark.parametrize("rtt_ms", [30, 100, 300])
@pytest.mark.parametrize("jitter_ms", [2, 8])
def test_alone_with_jitter(library: ctypes.CDLL, mbit: float, rtt_ms: float, jitter_ms: float) -> None:
    """With jitter and reordering behind the queue the download still uses the path, and measures the right capacity."""
    result = loop(library, mbit, rtt_ms, 100000, Others(), (30, 60), jitter_ms)
    assert result.ours_Bps >= 0.9 * mbit * MBIT
    assert 0.95 * mbit * MBIT <= result.mu_Bps <= 1.15 * mbit * MBIT


@pytest.mark.parametrize(
    ("mbit", "rtt_ms", "packets"), [(10, 100, 86), (10, 100, 20), (10, 6, 20), (2, 50, 30), (100, 30, 250)]
)
def test_gives_way(library: ctypes.CDLL, mbit: float, rtt_ms: float, packets: int) -> None:
    """From 20 s on others fill the link: the download takes next to nothing within a second, and returns after they
    end."""
    others = Others(1050, 20, 40)
    during = loop(library, mbit, rtt_ms, packets, others, (21, 40))
    after = loop(library, mbit, rtt_ms, packets, others, (43, 60))
    # 0.6 % are probes; trains are the rest: a full short buffer stays flat for 8 s, as a longer route does
    assert during.ours_Bps <= 0.03 * mbit * MBIT
    assert after.ours_Bps >= 0.9 * mbit * MBIT


@pytest.mark.parametrize("permille", [200, 400, 600, 700])
def test_takes_what_is_left(library: ctypes.CDLL, permille: int) -> None:
    """Others that send at a constant rate lose nothing; the download uses most of the rest and adds little delay."""
    result = loop(library, 10, 100, 200, Others(permille, 10, 60), (30, 60))
    left = (1000 - permille) / 1000 * 10 * MBIT
    assert result.others_Bps >= 0.99 * (10 * MBIT - left)
    assert result.ours_Bps >= 0.85 * left
    assert result.queue_us <= 10000


@pytest.mark.parametrize("burst", [2, 4])
@pytest.mark.parametrize("permille", [300, 500])
def test_takes_what_bursts_leave(library: ctypes.CDLL, permille: int, burst: int) -> None:
    """Others that send a few packets at once lose nothing either."""
    result = loop(library, 10, 100, 200, Others(permille, 10, 120, burst), (60, 120))
    left = (1000 - permille) / 1000 * 10 * MBIT
    assert result.others_Bps >= 0.99 * (10 * MBIT - left)
    assert result.ours_Bps >= 0.7 * left


@pytest.mark.parametrize(("mbit", "later"), [(100, 80), (100, 10), (200, 8), (1000, 8), (10, 2)])
def test_a_path_that_became_slower_is_used(library: ctypes.CDLL, mbit: float, later: float) -> None:
    """The law believes a fall of the capacity below 3/4 after 120 s times new over old capacity. A train and a return
    take some seconds more."""
    until_s = 30 + (0 if mbit < 4 / 3 * later else 120 * later / mbit) + 12
    result = loop(library, mbit, 30, 200, Others(), (until_s, until_s + 20), later=(later, 30))
    assert result.ours_Bps >= 0.9 * later * MBIT
    assert result.mu_Bps == pytest.approx(later * MBIT, rel=0.05)


def test_a_shaper_that_became_slower_is_used_later(library: ctypes.CDLL) -> None:
    """A token bucket passes single packets as fast as before, so that 10 / 4 times as much time must pass."""
    used = [
        loop(library, 40, 30, 200, Others(), (at, at + 20), later=(10, 30), tokens=True).ours_Bps / (10 * MBIT)
        for at in (75, 30 + 75 + 12)
    ]
    assert used[0] <= 0.05
    assert used[1] >= 0.9


def test_half_of_the_path_is_not_taken_for_the_path_at_once(library: ctypes.CDLL) -> None:
    """A fair queue leaves half of the path beside one other flow. For 60 s the law takes a fall to half for that."""
    result = loop(library, 20, 30, 200, Others(), (35, 80), later=(10, 30))
    assert result.ours_Bps <= 0.05 * 10 * MBIT
    assert result.mu_Bps >= 19 * MBIT


@pytest.mark.parametrize("mbit", [2, 8, 15, 30, 60])
@pytest.mark.parametrize("rtt_ms", [6, 20, 80])
@pytest.mark.parametrize("ack_bytes", [66, 132])
def test_alone_where_acks_share_the_link(library: ctypes.CDLL, mbit: float, rtt_ms: float, ack_bytes: int) -> None:
    """If a download's own ACKs share the link, the law does not take them for other traffic, though ACKs and data wait
    for each other."""
    result = loop(library, mbit, rtt_ms, 200, Others(), (20, 80), ack_bytes=ack_bytes)
    assert result.ours_Bps * (1448 + ack_bytes) / 1448 >= 0.65 * mbit * MBIT


def test_takes_what_is_left_beside_a_busy_way_back(library: ctypes.CDLL) -> None:
    """Others send bursts of five packets both ways: in most phases of these bursts the download uses most of the rest.
    """
    left = 0.4 * 10 * MBIT
    ours = []
    for tenth in range(10):
        others = Others(600, 10, 60, 5, 0.1 + 0.965 * tenth)
        result = loop(library, 10, 100, 200, others, (20, 60))
        assert result.others_Bps >= 0.99 * (10 * MBIT - left)
        ours.append(result.ours_Bps / left)
    assert sum(share >= 0.7 for share in ours) >= 5, ours


@pytest.mark.parametrize(
    ("mbit", "rtt_ms", "packets", "permille", "burst"),
    [(10, 30, 86, 600, 8), (10, 96.5, 86, 600, 5), (40, 50, 200, 500, 16), (99.62, 100, 860, 500, 43)],
)
def test_a_period_of_others_that_divides_the_round_trip(
    library: ctypes.CDLL, mbit: float, rtt_ms: float, packets: int, permille: int, burst: int
) -> None:
    """A packet that is sent one round trip after another one meets the same part of each burst. Not all trains may meet
    that part."""
    left = (1000 - permille) / 1000 * mbit * MBIT
    ours = []
    for start in range(6):
        others = Others(permille, 10 + 0.1137 * start, 70, burst)
        result = loop(library, mbit, rtt_ms, packets, others, (30, 70))
        assert result.others_Bps >= 0.99 * (mbit * MBIT - left)
        ours.append(result.ours_Bps / left)
    assert sum(ours) / len(ours) >= 0.75, ours


def test_the_capacity_is_not_what_jitter_packs_into_a_tick(library: ctypes.CDLL) -> None:
    """If the 24 packets of a tick of 25 ms arrive within 20 ms, the rate looks a quarter too high. The noise tells that
    packets may be late."""
    link = 24 * 1448 * 40
    assert library.capacity(2000) == link
    assert library.capacity(0) >= link * 1.1


@pytest.mark.parametrize(("mbit", "rtt_ms", "packets"), [(0.1, 20, 3), (0.3, 29.3, 3), (0.5, 20, 4), (1, 10, 4)])
def test_a_guess_of_the_capacity_is_given_up_at_once(
    library: ctypes.CDLL, mbit: float, rtt_ms: float, packets: int
) -> None:
    """If the pipe and the buffer hold less than eight packets, START ends with fewer than eight packets in a round
    trip."""
    result = loop(library, mbit, rtt_ms, packets, Others(), (10, 40))
    assert result.ours_Bps >= 0.95 * mbit * MBIT
    assert result.mu_Bps == pytest.approx(mbit * MBIT, rel=0.02)


def test_the_capacity_is_none_of_a_round_trip_that_is_not_known(library: ctypes.CDLL) -> None:
    """A server behind SYN cookies has no sample of the round trip when the upload begins. Eight packets per queue delay
    are not a rate then."""
    assert library.leaves_start() == pytest.approx(10 * MBIT, rel=0.05)


def test_train_against_oracle(library: ctypes.CDLL) -> None:
    """The growth g of a train equals that in floating point, within the rounding of its means."""
    rng = random.Random(1)
    for _ in range(300):
        gap = rng.randrange(20, 20000)
        share, n = rng.random() * 1.5, 10
        released = [max(0, i - PRIME) * gap + rng.randrange(max(gap // 3, 1)) for i in range(n)]
        released.sort()
        arrived: list[int] = []
        free = 0.0
        for at in released:
            start = max(at, free)
            free = start + gap + share * (start - (arrived[-1] - gap if arrived else start)) * 0.5
            arrived.append(int(free))
        got = library.growth((ctypes.c_int32 * n)(*arrived), (ctypes.c_int32 * n)(*released), n, gap)
        span, sent = (statistics.mean(at[6:]) - statistics.mean(at[2:6]) for at in (arrived, released))
        want = max(0.0, span - 4 * gap) * 1000 / max(sent, 2 * gap, 1) if sent <= 6 * gap else 20000
        assert got == pytest.approx(min(want, 10000), abs=4000 / gap + 2)


def slots(at_once: int, each: float) -> list[float]:
    """Return the times of ten packets, in times of one packet: ``at_once`` leave together, and each takes ``each`` on
    average."""
    return [(i // at_once + 1) * at_once * each for i in range(10)]


#: five half a packet after those before, and then a pause
RADIO = [1, 1, 1, 1.5, 1.5, 1.5, 1.5, 1.5, 20, 20]


@pytest.mark.parametrize(
    ("mbit", "times", "mixed", "falls_to"),
    [
        # more than a bottleneck of that rate makes in the time: by a quarter at once
        (10, RADIO, 0, 0.75),
        # what is held behind a fair queue with others, or without, and let go at once
        (10, slots(3, 2), 0, 1), (10, slots(5, 2), 0, 1), (10, slots(3, 1), 0, 1), (10, [9, *slots(8, 2)[1:]], 0, 1),
        # the first three leave their sender together, on a link faster than is known
        (10, [1, 1.5, 1.5, 1.5, *(1.5 + 2 * i for i in range(1, 7))], 0, 1),
        # what others overtake is jitter, and a fast link's packets are taken together by the receiver
        (10, RADIO, 1, 1), (100, RADIO, 0, 1),
    ],
)  # fmt: skip
def test_a_link_that_serves_in_bunches(
    library: ctypes.CDLL, mbit: float, times: list[float], mixed: int, falls_to: float
) -> None:
    """More packets arrive at once than the known rate can carry since the last ones. The link then has the capacity
    that it shows now, and pauses."""
    packet_us = 1448 * 8 / mbit
    pause_us = ctypes.c_uint32()
    at_us = (ctypes.c_uint32 * 10)(*(round(at * packet_us) for at in times))
    left = library.after_bunches(ctypes.c_uint64(int(mbit * MBIT)), at_us, mixed, ctypes.byref(pause_us))
    if falls_to == 1:
        assert pause_us.value == 0
    else:
        assert left == pytest.approx(falls_to * mbit * MBIT, rel=0.06)
        assert pause_us.value == pytest.approx(17.5 / 2 * packet_us, rel=0.01)


def test_pauses_of_a_link_are_forgotten(library: ctypes.CDLL) -> None:
    """The pauses are forgotten after a minute, if the link turns out to be faster, and if trains no longer show them.
    """
    assert [library.pauses_after(what) for what in range(4)] == [0, 0, 0, 15000]


def test_a_train_is_read_in_the_order_of_sending(library: ctypes.CDLL) -> None:
    """Packets that overtake each other within one half of a train do not look like cross traffic."""
    sent = [1158 * max(0, i - PRIME) for i in range(10)]
    arrived = [1158 * i for i in (0, 1, 5, 2, 4, 3, 9, 6, 8, 7)]
    assert library.growth((ctypes.c_int32 * 10)(*arrived), (ctypes.c_int32 * 10)(*sent), 10, 1158) <= 2


@pytest.mark.parametrize("mbit", [10, 100, 300])
@pytest.mark.parametrize("app_mbit", [0.005, 0.05, 0.4])
def test_what_an_application_writes_is_not_the_capacity(library: ctypes.CDLL, mbit: float, app_mbit: float) -> None:
    """An application writes little while others come and go. When it writes as fast as it can, the path is used within
    seconds."""
    result = loop(library, mbit, 20, round(6 * mbit), Others(1050, 2, 4), (9, 14), app=(app_mbit, 6))
    assert result.ours_Bps >= 0.85 * mbit * MBIT
    assert result.mu_Bps <= 1.15 * mbit * MBIT


@pytest.mark.parametrize(("mbit", "rtt_ms", "app_mbit"), [(10, 100, 4), (10, 100, 7), (10, 30, 4), (100, 20, 30)])
def test_what_waits_behind_unused_credit_is_not_lost(
    library: ctypes.CDLL, mbit: float, rtt_ms: float, app_mbit: float
) -> None:
    """After others have left, an application that writes less than the path carries can send all that it writes."""
    result = loop(library, mbit, rtt_ms, 200, Others(1050, 20, 22), (30, 90), app=(app_mbit, 1000))
    assert result.ours_Bps >= 0.95 * app_mbit * MBIT


@pytest.mark.parametrize("lost", range(10))
def test_a_lost_packet_is_no_others(library: ctypes.CDLL, lost: int) -> None:
    """On an empty path the growth g of a train is nothing, whichever of its packets is lost behind the bottleneck."""
    assert library.growth_of_our_own(lost, 0, 0) <= 2


def test_a_quarter_of_a_train_is_much_to_lose_and_what_was_not_sent_is_not_lost(library: ctypes.CDLL) -> None:
    for came, lost in ((0b1111111111, 0), (0b1110111011, 0), (0b1110010011, 1), (0b0000001111, 0), (0b0001000001, 1)):
        assert library.lost_much(came) == lost, bin(came)


@pytest.mark.parametrize("behind", range(2, 9))
def test_what_rounding_releases_is_no_others(library: ctypes.CDLL, behind: int) -> None:
    """The window has a unit, so that the download's own packets can arrive between those of a train. They do not look
    like other traffic."""
    assert library.growth_of_our_own(99, behind, 1) <= 2
    assert library.growth_of_our_own(99, behind, 2) <= 2


def test_a_train_that_was_sent_at_once_says_nothing(library: ctypes.CDLL) -> None:
    """The packets of such a train leave the bottleneck one behind the other, however much others send."""
    arrived = (ctypes.c_int32 * 10)(*(1158 * i for i in range(10)))
    for gap, spoilt in ((0, True), (200, True), (400, False), (1158, False), (3000, True)):
        sent = (ctypes.c_int32 * 10)(*(gap * i for i in range(10)))
        assert (library.growth(arrived, sent, 10, 1158) == 20000) == spoilt, gap


@pytest.mark.parametrize("Bps", [125000, 1250000, 125000000])
@pytest.mark.parametrize("since_us", [1000, 50000, 10_000_000])
@pytest.mark.parametrize("queue_us", [0, 10000, 200000])
def test_a_queue_is_ours_unless_others_brought_half_of_it(
    library: ctypes.CDLL, Bps: int, since_us: int, queue_us: int
) -> None:
    allowed_us = queue_us // 2 + since_us // 12
    for others_us in (0, allowed_us - 10, allowed_us + 10, since_us):
        others_us = min(max(others_us, 0), since_us)
        ours = Bps * (since_us - others_us) / 10**6
        own = library.is_own(*map(ctypes.c_uint64, (round(ours), since_us, Bps)), ctypes.c_uint32(queue_us))
        assert bool(own) == (others_us <= allowed_us), others_us


def test_it_leaves_for_a_jump_of_others_and_not_for_its_own(library: ctypes.CDLL) -> None:
    """A slow start of others makes a queue of several packets, while only a seventh of what arrives is theirs. CRUISE
    ends then."""
    assert library.leaves(ctypes.c_uint64(8)) and not library.leaves(ctypes.c_uint64(20))
    assert library.leaves(ctypes.c_uint64(17))


def test_bursts_of_others_are_no_noise(library: ctypes.CDLL) -> None:
    """Variations of the delay count as noise if the download has the path alone, and as a queue of others if it does
    not."""
    assert 8000 <= library.noise_beside(ctypes.c_uint64(20)) <= 10000
    assert library.noise_beside(ctypes.c_uint64(10)) <= 1000


@pytest.mark.parametrize(
    ("base_ms", "one_ms", "next_ms", "packets", "used"),
    [
        # evenly: what a round trip brings, also where that is less than a packet, up to a pause of four round trips
        (100, 10, 10, 100, 10), (100, 50, 50, 40, 2), (100, 250, 250, 40, 1),
        # pairs that are far apart: one of them, and a part of both. Without pauses the present count has both
        (100, 10, 900, 41, 0.22), (100, 10, 900, 42, 1), (100, 10, 300, 42, 2),
        # the first data follows no pause, and a time-out of the sender is none
        (100, 10, 10, 1, 1), (10, 300, 300, 40, 1), (10, 301, 301, 40, 0.033),
    ],
)  # fmt: skip
def test_what_a_sender_uses(
    library: ctypes.CDLL, base_ms: int, one_ms: int, next_ms: int, packets: int, used: float
) -> None:
    got = library.used(base_ms * 1000, one_ms * 1000, next_ms * 1000, packets)
    assert got == pytest.approx(used * 1448, abs=10)


@pytest.mark.parametrize(
    "change",
    [
        # the window grows with the queue
        ("((s64)target_us - queue_us)", "((s64)queue_us - target_us)"),
        # no train ever passes
        ("if (g > credit_most_growth(c, judged", "if (g < credit_most_growth(c, judged"),
    ],
)
def test_faults_show(tmp_path: Path, change: tuple[str, str]) -> None:
    """One of the tests above sees each fault."""
    library = load(tmp_path, change)
    with pytest.raises(AssertionError):
        for mbit in (10, 40):
            test_alone(library, mbit, 100)
        test_gives_way(library, 10, 100, 86)
        test_takes_what_is_left(library, 600)
