/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The law of tcp_lbe: the state that the flows of one path share, and the one rate that it sets.
 *
 * Let mu be the capacity of the path, R the rate of all its flows together, X the rate of other
 * traffic, d the forward delay of a packet, q = d - base its queueing delay, p the time of one
 * packet at mu, e the noise of the delay, and RTT the round trip with an empty forward queue. On a
 * busy link
 *
 *	dq/dt = (R + X - mu) / mu	hence	S = R' - mu dq/dt = mu - X
 *
 * S is the rate that other traffic leaves. R' is the rate at which the packets that are sampled now
 * were sent, which is R of one round trip ago. CRUISE averages R with S, and removes the difference
 * between q and its target qt = e + max(2 p, e / 4) within two round trips (within one if q is
 * above qt: the last term is then doubled). A tick is RTT / 4, but at least 8 p and 11 ms; T is
 * RTT, or a tick if that is longer. In each tick:
 *
 *	R <- 1/2 (R + S + mu (qt - q) / (2 T))	at most 1.008 mu
 *	in flight <= R (RTT + 2 e) + 2 packets
 *
 * The target keeps the link busy while the receiver delays an ACK. The bound on the data in flight
 * makes the path stop sending at once when a burst of other traffic delays its ACKs. (In this bound
 * e is the noise as measured; elsewhere it is at least LBE_PATH_ERROR_US.) In START it is 10
 * packets, and 2 R RTT more once the first delay is known.
 *
 * Giving way. If q grows by more than a jump within a round trip, or is above two jumps, other
 * traffic has begun, and the path goes to FLOOR. A jump is 2 e plus the longest of three times:
 *  - 5 p. A slow start begins with 10 packets, and half of them have to be enough to show it.
 *  - 1/2 ms, two slots of this path's own schedule, which a late timer may let go at once.
 *  - RTT / 32, which counts where a round trip holds hundreds of packets. If CRUISE begins at a
 *    rate that is too high by 1/32, the queue grows by this much before a sample shows it. But by
 *    the time the path has given way, a slow start has doubled twice or more. It must find neither
 *    a full buffer nor the delay that ends it early (HyStart: 4 to 16 ms in Linux). So this time is
 *    at most 4 ms and at most 1/16 of the longest queue met. (START meets a queue of half a BDP if
 *    the buffer holds it.)
 * The path also gives way if R is mu / 8 or less for two round trips, since other traffic then uses
 * the link. If no ACK arrives for longer than any burst of other traffic lasts, the link itself
 * stood still: packets that were sent before this ended say nothing about other traffic.
 *
 * Loss. On a path with queues loss is no sign of other traffic, since links lose packets too. But
 * an AQM drops packets while a queue stays above its target, and other flows slow down for that.
 * The lowest target in use is that of CoDel: 5 ms for 100 ms, or a packet if that takes longer. So
 * the term 2 p of qt is at most that, unless 256 packets in a row came through. And if a packet is
 * lost after the queue has been above that, and above qt and p / 2, for 100 ms, the path gives way:
 * it is the queue of other traffic, which must not pay for that of this path. A loss that comes
 * when the queue has been below that for as long as TCP takes to find a loss shows that the link
 * loses packets by chance: then this rule rests for 180 s.
 * Losses are counted over a round trip, or over as many round trips as hold more than 24 packets.
 * If more than a quarter of these is lost, and of the next count too, then a policer limits the
 * rate, or the buffer was full when the base was learnt; unless the delay shows a queue that would
 * end START, which is that of a buffer. The rate that came through is the capacity. For 180 s from
 * then on CRUISE stays 1/32 below mu, where it loses nothing on an idle link, sends no pulses, and
 * ends at the second packet that is lost of 1024. What came through in that round trip is the
 * capacity again, but at most mu, at least mu / 2, and only in the first returns: after six that
 * failed, other traffic takes the rest. If 1/32 of the round trip was lost, the 180 s begin anew. A
 * policer has no queue that pairs could meet, so that there only time decides when the next train
 * is sent: that of the strict condition (below), or the 4 s after which equal delays may be those
 * of a longer path. In START one count of heavy loss is enough if at least 1.5 times as much was
 * sent in its last round trip as came through in the one before. If no ACK ends a round trip before
 * twice its time, there was an outage in it, and it does not count.
 *
 * Trains. A train is 8 packets sent at a rate r. The delay of its packets grows by g = dq / dt:
 *
 *	any r			r / (1 + g) is the rate at which it came through
 *	r = mu, path silent	g mu is the rate of other traffic
 *	r = 1.25 mu, R near mu	r / (1 + g) is the capacity
 *	r = mu, R = rho mu	g <= 1 - rho in a shared queue that does not grow. If g is larger,
 *				other flows send more and have queues of their own (fair queueing)
 *
 * PROBE sends a train to decide whether CRUISE may begin. In CRUISE a train is called a pulse. A
 * pair is two packets, or a single one if the receiver does not delay its ACK. A return is a train
 * of PROBE and the CRUISE after it.
 *
 *	         queue              idle pairs            passed
 *	START ------------> FLOOR --------------> PROBE ----------> CRUISE
 *	  R doubles         ^ ^ ^  a pair now       |  a train         |
 *	  each RTT          | | |  and then         |                  |
 *	                    | | +-------------------+ grew, or lost    |
 *	                    | +----------------------------------------+ jump, ECN mark, fair queue,
 *	                    |                                            nothing left, silence
 *	  after each failure: more pairs are needed, and less often sent
 *	  START and CRUISE go to FLOOR for heavy loss; CRUISE to START if mu is far too low
 *
 * After CRUISE, FLOOR is silent for log2(BDP / 10 packets) + 2 round trips, as long as a slow start
 * may take, so that the slow start does not meet a queue of this path half way. Then pairs are
 * sent, less and less often, down to 2/5 % of mu. Pairs that meet no queue are evidence that the
 * link is idle; a train decides. After each failed return more such pairs are needed. From the
 * third failure on their mean delay must also be that of the idle path, since a train that meets a
 * short queue costs other flows a loss. This strict condition holds for a time that doubles with
 * each failure; after it, three pairs that met no queue are enough again.
 *
 * Slower and faster links. Where pairs meet no queue but the delay grows over trains, either the
 * link has become slower, or other flows have queues of their own. Two observations tell which:
 *  - A link slows down at once, while other flows come by slow start. If the packets that were in
 *    flight when the path gave way arrived more slowly than they were sent, for a round trip, and
 *    the first train failed at that same rate, the link is slower. A round trip must hold
 *    three times the packets of a jump and 30 more for this, and the path must have used three
 *    quarters of the link.
 *  - Otherwise trains at half the rate at which the failed one came through tell. On an idle link
 *    their delays spread no more than they did in CRUISE; beside the queue of another flow each
 *    packet waits for 0 to p more. (The time between their packets varies by half each way, since
 *    packets at equal distances may all wait for as long.) Two such trains in a row with a spread
 *    below p / 8 plus the least noise of CRUISE show that the link is slower. This is tried from
 *    the second failure on, if that noise is below p / 4. (Before the first CRUISE it is that of
 *    START.)
 * If pulses at 1.25 mu raise mu four times in a row by as much as they can, the link is much
 * faster, and START finds out how much.
 *
 * Little data. Packets that are sent when no more data waits do not let START double its rate. If
 * there are hardly any others, a queue that they meet is due to other traffic: the path gives way
 * without having learnt mu. Once pairs meet no queue, a train that is faster than many links is
 * sent. If it was clearly faster than this one, the rate at which it came through becomes mu.
 * Otherwise, or if there is too little data for a train, START begins again.
 *
 * Sending. The path has one schedule of slots, each of which lasts (bytes of a burst) / R, and the
 * flows use it in turns. Let W be the sum of the weights of all flows that have data, w' the least
 * of these weights, and L be RTT (T above), but at least 16 p. All turns together last for C, and
 * the turn of a flow of weight w for its part of that:
 *
 *	C = min(L W / w', 1 s)	turn = C w / W
 *
 * and up to twice that if it has an odd number of packets. So the least turn is L, unless the
 * others would then have to wait for more than 1 s, and n equal flows have L each, or 1 s / n. Any
 * number of flows share R by their weights, a flow that has nothing to send takes nothing, and its
 * turn passes on at once. Because all that is sent within a turn is of one flow, the flows of a
 * path together have one share where each flow has a queue of its own, and their queue shows there
 * as that of one flow does. (If the flows alternated packet by packet, n of them would have n
 * shares, none of which has a queue before R is n / (n + 1) of the link.)
 *
 * The constants are LBE_* below; train.h has those of a train, and path_send.h the schedule and its
 * own. Of a group of constants, "the first" is the one that is defined first. Pure functions: no
 * clock, no socket, no lock. The module tcp_lbe calls them.
 */
#ifndef LBE_PATH_H
#define LBE_PATH_H

#include <lbe/arith.h>
#include <lbe/slots.h>
#include <lbe/train.h>

/* The base delay is the least of this many slots, of this many seconds each. If doubled, a path
 * that has become longer goes unnoticed for twice as long, unless flat pairs show it (LBE_FLAT_US).
 */
#define LBE_PATH_SLOTS		3
#define LBE_PATH_SLOT_S		60
/* Ticks remembered: two round trips (LBE_ROUND_TICKS). Power of 2. If doubled, nothing changes but
 * how long R has to be low before the path gives way (LBE_LEAST_PART); with half, R' is unknown.
 */
#define LBE_PATH_TICKS		8
/* Least noise assumed, us: timers and interrupts of hosts. If doubled, the standing queue on fast
 * links is longer by that much.
 */
#define LBE_PATH_ERROR_US	250
/* Least capacity, bytes a second: keeps the results of divisions in range. */
#define LBE_PATH_RATE_MIN	1000
/* Longest round trip or delay, us. No network has a longer one, but the echo of a timestamp is what
 * the peer says. If doubled, START begins at half the rate where a peer claims so long a round
 * trip; the products of times and rates stay below 2^63 up to 1000 s.
 */
#define LBE_PATH_RTT_MAX_US	(64 * USEC_PER_SEC)
/* The receiver may have delayed the ACK of one packet if it comes this long after the previous ACK,
 * us, with a delay of this much above the base. It is below any delayed-ACK timer in use (40 ms in
 * Linux).
 */
#define LBE_DELACK_US		25000
/* A slot is 2^-12 s (244 us), but at least one packet, and at most what a TSO segment holds. A late
 * timer lets two slots go at once, whose queue must not count as a jump. If the time is doubled,
 * other traffic on fast links needs twice the queue before the path gives way; if halved, twice as
 * many timers run there.
 */
#define LBE_SLOT_SHIFT		12
#define LBE_SLOT_PKTS		44
/* A slot that was missed by up to this, ns, is made up for, since timers are late by that much. If
 * doubled, the burst after a rest is twice as long.
 */
#define LBE_LATE_NS		1000000U
/* Where a round trip holds hundreds of packets, the threshold of a jump is RTT divided by this: a
 * train measures what other traffic leaves only to within some percent, and what is then sent too
 * fast queues for a round trip. If doubled, returns beside
 * steady traffic end early where a round trip holds hundreds of packets; if halved, slow starts of
 * other flows meet a queue that ends them.
 */
#define LBE_JUMP_RTTS		32
/* But it is at most the longest queue met, divided by this. If doubled, less is used beside steady
 * traffic where the buffer holds a fifth of a round trip; if halved, best-effort flows that come
 * and go lose throughput there.
 */
#define LBE_JUMP_DEEP		16
/* And it is at most this, us. If doubled, best-effort flows that come and go lose a twentieth at
 * 300 ms; if halved, less is used there.
 */
#define LBE_JUMP_US		4000
/* Least queue that ends START, us. If doubled, flows that begin on fast links leave a longer queue;
 * if halved, noise of the delay ends START before the link is full.
 */
#define LBE_START_QUEUE_US	3000
/* Samples of packets that were sent when no more data waited. START needs so many in a tick, and
 * within three round trips or so long, us, to give way to a queue: in a dialogue a sample may
 * include the time that the peer takes to answer. If the number is doubled, a flow that sends
 * little gives way later; if halved, two slow answers in a row count as a queue. If the time is
 * halved, a flow of half a Mbit/s, which sends two packets in 46 ms, never gives way on a path of
 * less than 60 ms.
 */
#define LBE_TICK_LIMITED	4
#define LBE_TICK_LIMITED_US	200000
/* If no ACK arrives for longer than a round trip, than this many packets take, and than this long,
 * us, then the link itself stood still: no burst of other traffic and no delayed-ACK timer lasts
 * that long. If doubled, a path whose link stops for a quarter of a second gives way, and sends
 * next to nothing for another second; if halved, a web page that is loaded over many connections at
 * once is taken for a link that stops.
 */
#define LBE_STALL_PKTS		64
#define LBE_STALL_US		100000
/* Slots that tell whether the bottleneck is the sender's own device. If doubled, it takes twice as
 * long until this is found, and until it is forgotten.
 */
#define LBE_LOCAL_MAX		16

/* A link slows down at once. A new flow at a fair queue has sent a jump's packets when the path
 * gives way, and sends at most 10 more than that in the next round trip. The path then keeps more
 * than half of the link and an eighth (LBE_CAME_NEAR) if a round trip holds 16/7 of these packets;
 * this many times, since the jump is noticed some packets late. If doubled, slower links where a
 * round trip holds fewer packets are found by the spread of delays alone; if halved, such a new
 * flow is taken for a slower link.
 */
#define LBE_STEP_TIMES		3
/* After this many raises of mu in a row (1.25^4 = 2.4) the link has become faster; fewer may only
 * show that other traffic has left. If doubled, a link that is ten times faster is found in 16 s
 * instead of 6 s; if halved, hosts that share a link push each other away.
 */
#define LBE_RAISES		4
/* A turn lasts as long as what is sent in it takes to show, and at least this many packets, twice a
 * tick. If doubled, flows wait twice as long for their turns on slow links; if halved, several
 * flows behind a fair queue at 2 Mbit/s take more than one share.
 */
#define LBE_TURN_PKTS		(2 * LBE_TICK_PKTS)
/* And no longer than that all flows have their turn in this time, us. If doubled, flows pause for
 * twice as long; if halved, half as many flows have no more than one share of a fair queue.
 */
#define LBE_CYCLE_US		USEC_PER_SEC
/* Weight of an ordinary flow, and the greatest one. Only their ratios count: with a thousand
 * ordinary ones a flow that has a thousandth of their weight still differs from 0. A sum above the
 * third, that of 18,000 flows of the greatest weight, counts as that.
 */
#define LBE_WEIGHT		1000000U
#define LBE_WEIGHT_MAX		(1000U * LBE_WEIGHT)
#define LBE_WEIGHTS_MAX		(U64_MAX / LBE_CYCLE_US)
/* As users give it: of an ordinary flow, and the greatest one */
#define LBE_GIVEN		1000U
#define LBE_GIVEN_MAX		1000000U

/* A flow whose delay differs from those of the other flows of its path in this many comparisons
 * more than it agrees with them, over at least this time, ms, gets a path of its own. Beside
 * traffic that comes and goes, chance puts one comparison in five on the same side, and so twelve
 * in a row once in years. The time is twice what it takes to learn the peer's clock (owd.h): until
 * then the delays of a new flow include the queue of reverse traffic. If either is doubled, a peer
 * that lies is believed for twice as long; if the number is halved, chance separates flows every
 * day; if the time is, flows that start beside reverse traffic are separated.
 */
#define LBE_ODD			12
#define LBE_ODD_MS		4000

/* For this many round trips, doubled with each failure up to a limit, pairs must meet the strict
 * condition (lbe_path_strict()): 6.4 s after the third failure at 100 ms, 51 s from the sixth on. A
 * train puts eight packets in the way of other traffic. If the first is doubled, pauses of other
 * traffic that are too short for this condition stay unused for twice as long; if halved, twice as
 * many trains are sent beside a greedy flow.
 */
#define LBE_PATIENCE_RTTS	8
#define LBE_PATIENCE_MAX	6

/* If more than a quarter of more packets than this is lost, that is not by chance: at 5 % of random
 * loss, seven packets of 25 are lost once in six thousand counts. Where a round trip holds fewer,
 * several count together. If doubled, a slow policer is found after twice as many lost packets;
 * with a third of it, one in ten of the transfers that begin on a link with such loss takes it for
 * a policer, and hardly uses it for three minutes.
 */
#define LBE_LOSS_PKTS		24
/* Counts in a row with such a loss that show a policer, which drops in each round trip. When a
 * link is gone for a moment, or the clock of the sender is set back (the peer drops packets whose
 * timestamp is older than one that it has seen), only one round trip is lost. With three instead,
 * best effort at a policer waits for one round trip more; with one, each such moment costs most of
 * the link for three minutes.
 */
#define LBE_LOSS_ROUNDS		2

/* If all pairs meet the same queueing delay for this long, us, it is the delay of a longer path: a
 * cubic flow stays within two packets of its plateau for 2 (2 / 0.4)^(1/3) s = 3.4 s only. If
 * doubled, a longer route is found four seconds later; if halved, a plateau is taken for one.
 */
#define LBE_FLAT_US		(4 * USEC_PER_SEC)

/* The queue that CRUISE keeps is this many packets, and the noise. With less the link runs idle
 * while the receiver delays the ACK of every other packet. If doubled, other traffic finds a queue
 * that is longer by as much; if halved, a single flow leaves some of a slow link unused.
 */
#define LBE_TARGET_PKTS		2

/* But if one of the latest so many packets was lost, it is at most this, us, or a packet if that
 * takes longer: the target of CoDel (RFC 8289, section 4.3), which never drops the last packet. A
 * loss that comes when the queue has been longer for the third, us (CoDel's interval), may be an
 * AQM's. If the packets are doubled, hosts that share a link share less evenly, since those that
 * know the least capacity have the longest target; if halved, CoDel drops twice as many. If the
 * second is doubled, best effort behind CoDel at 1 Mbit/s loses half of the link; if halved, some
 * of such a link is unused beside steady traffic. If the third is doubled, more losses pass before
 * the path gives way; if halved, it also does so for those that follow its own pulses.
 */
#define LBE_AQM_PKTS		256
#define LBE_AQM_TARGET_US	5000
#define LBE_AQM_INTERVAL_US	100000

/* Instead of the packets, at least 1 / this of the noise: the mean delay of a tick differs from e
 * by chance, by about as much if the tick holds four bursts of a wireless link, and a delay above
 * the target counts twice. If doubled, up to an eighth of such links is unused; if halved, other
 * traffic finds a queue that is longer by as much.
 */
#define LBE_TARGET_NOISE	4

/* Packets with which a slow start begins (RFC 6928); START does so too. This is a property of the
 * other traffic: if doubled here, the threshold of a jump (half of them) lets a slow start go on
 * for a round trip more before it is noticed.
 */
#define LBE_FIRST_PKTS		10

/* Ticks of a round trip, and least number of packets in the time of a tick, in a rate that START
 * learns, and in a jump. With fewer, the mean of a tick depends on the ACKs that the receiver
 * happens to delay. If the packets are doubled, the path gives way later on slow links; if halved,
 * the noise of ticks there ends CRUISE early.
 */
#define LBE_ROUND_TICKS		4
#define LBE_TICK_PKTS		8
#define LBE_ROUND_PKTS		8
#define LBE_HIGH_PKTS		8

/* Least time of a tick, and of a round trip in which rates and losses are counted, us. A station of
 * a wireless link sends for up to 5.5 ms (IEEE 802.11, aPPDUMaxTime) and waits for as long for
 * another one: in a shorter tick the mean, the noise and the rate are those of one burst. If
 * doubled, rates on short paths follow changes in twice the time; if halved, most of a wireless
 * link with bursts of 5 ms and a round trip below 20 ms is unused.
 */
#define LBE_TICK_US		11000

/* A tick without samples counts as one of at most this length, us, in the equation: older rates
 * say nothing. If doubled, a queue that grew during a silence is spread over twice the time.
 */
#define LBE_TICK_MAX_US		USEC_PER_SEC

/* Least round trip, us: hosts take longer to process a packet. It keeps the rate of START in
 * range. If doubled, ticks within one machine are twice as long.
 */
#define LBE_PATH_RTT_MIN_US	100

/* A measured round trip counts for 1 / this, so that 16 samples replace the old value. The noise
 * of a tick counts for 1 / this: in CRUISE slowly, since a burst of other traffic raises it; in
 * START fast, since START has few ticks. If doubled, a change takes twice as long to be learnt; if
 * halved, single late samples move the target.
 */
#define LBE_RTT_GAIN		16
#define LBE_NOISE_GAIN		16
#define LBE_NOISE_GAIN_START	4

/* A delay below the base by more than this, us, is taken for a mistake until there are so many in
 * a row: the peer's clock may have been set, and a wrong base stays for minutes. If the time is
 * doubled, larger mistakes become the base; if the number is doubled, a shorter route is used that
 * many samples later.
 */
#define LBE_LOW_US		1000
#define LBE_LOWS		4

/* START: R grows by 1 / this in a tick, which doubles it in the four ticks of a round trip (1.2^4
 * = 2.07), and to at least so many packets in a round trip, more than it began with. If the first
 * is doubled, START takes twice as long; if halved, it overruns the buffer by more.
 */
#define LBE_START_STEP		5
#define LBE_START_PKTS		12

/* And START ends at a queue of this many packets, at least LBE_START_QUEUE_US: two may be its own
 * slot and a packet of the reverse direction's ACK. If doubled, the queue that it leaves on slow
 * links is twice as long; if halved, it ends before the link is full.
 */
#define LBE_START_QUEUE_PKTS	3

/* Round trips within which LBE_TICK_LIMITED samples count together. If doubled, slow answers of a
 * dialogue add up to a queue; if halved, an application that sends one packet in a round trip
 * gives way to nobody.
 */
#define LBE_TICK_LIMITED_RTTS	3

/* A measurement of mu within 1 / this of it is near: its own error is of that size, since a third
 * of a packet's time in 8 packets is noise. It then counts for 1 / the second. If the first is
 * doubled, noise replaces mu more often; if halved, changes of a fifth are learnt slowly. If the
 * second is doubled, small changes are learnt in twice the time.
 */
#define LBE_MU_NEAR		8
#define LBE_MU_GAIN		8

/* If the train is shorter than this many times the noise, noise alone is as likely as not to put a
 * measurement off by an eighth: the difference of the means of its halves, of four packets each,
 * is off by about 0.7 e, in half of its time; so that 1.4 e / time > 1/8 in 11 to 12 e. If
 * doubled, changes are learnt a pulse later on quiet links; if halved, noise raises mu.
 */
#define LBE_MU_NOISES		12

/* A raise of mu by 1 / this or more is nearly what a pulse at 5/4 can show; it has to be below 1/4
 * by the error of a measurement (LBE_MU_NEAR). If doubled, raises that noise made lead to START;
 * if halved, no raise counts and a much faster link is found 5/4 at a time.
 */
#define LBE_RAISE_PART		6

/* After a change of the link's rate: a train and the packets that were in flight agree on the new
 * capacity if they differ by less than 1 / the first; these arrived more slowly if by more than 1
 * / the second, which is more than the error of a round trip's rate. Where R was more than 1 / the
 * third below mu, other traffic was there, and they say nothing: its share of a fair queue grows as
 * it recovers from a loss. CRUISE then begins 1 / the fourth below it, to drain what the change has
 * queued. If the first is doubled, fewer slower links are found at once; if halved, a fair queue's
 * share is taken for one. The third does the same the other way round. If the fourth is doubled,
 * the queue lasts longer.
 */
#define LBE_CAME_NEAR		8
#define LBE_CAME_LESS		16
#define LBE_CAME_FULL		4
#define LBE_SLOWER_LESS		8

/* Inspection begins at this many failures (one may be chance), and its train has 32 packets, of
 * which 10 samples have to come: their mean then tells p / 8 at a noise of p / 4. A packet that
 * waits for another flow's waits p / 2 on average, four times that bound. If the number of packets
 * is doubled, each inspection costs other flows twice as much; if halved, so few samples remain
 * that beside a fair queue one in some tens looks calm. If the parts of p are doubled (half the
 * time), fewer slower links are found; if halved, fair queues are taken for them.
 */
#define LBE_INSPECT_FAILS	2
#define LBE_INSPECT_PKTS	32
#define LBE_INSPECT_SAMPLES	10
#define LBE_INSPECT_SPREAD	8
#define LBE_INSPECT_CALM	4

/* More than 1 / this of a train's or of a round trip's bytes is lost: too much for chance
 * (LBE_LOSS_PKTS). If doubled, transfers with 5 % of random loss count as policed; if halved, a
 * policer at two thirds of the rate is not found.
 */
#define LBE_LOSS_HEAVY		4

/* At a policer CRUISE stays 1 / this below mu, so that the error of mu loses nothing. If more than
 * this part of a round trip is lost, the policer is still there. If doubled, the error of mu is
 * taken for other traffic; if halved, twice as much is left unused, and a policer is forgotten
 * beside other traffic that makes this path lose little.
 */
#define LBE_POLICED_PART	32

/* What losses have told is believed for this long, us, as long as the base delay: that there is a
 * policer, or that the link loses packets by chance. If doubled, a path that was taken for policed
 * by mistake stays careful for twice as long; if halved, other traffic at a policer shares with
 * this path more often until it is found again.
 */
#define LBE_LOSSES_US		(LBE_PATH_SLOTS * LBE_PATH_SLOT_S * USEC_PER_SEC)

/* One packet lost in this many may be chance at a policer, too; the second shows other traffic. A
 * flow of Reno with one loss in 1024 packets has 39 packets in flight (1.22 times the root), which
 * fills slow links alone. CRUISE that carried so many, for at least so many round trips, has not
 * failed: the other traffic began later. If the packets are doubled, random loss of 1 in 2000 keeps
 * the path from an idle link; if halved, returns beside bursts of other traffic last longer. If the
 * round trips are halved, returns on a long path beside a greedy flow do not count as failed, since
 * its window takes so long to fill the bucket again; if doubled, traffic that comes and goes in
 * seconds counts as a failure.
 */
#define LBE_POLICED_PKTS	1024
#define LBE_POLICED_RTTS	16

/* A round trip that lasted this many times its time had an outage in it. If doubled, shorter
 * outages are taken for a policer; if halved, every late ACK hides one.
 */
#define LBE_OUTAGE_ROUNDS	2

/* CRUISE begins 1 / this below mu on an idle path, so that the error of mu does not queue before
 * the first tick corrects it. If doubled, hosts meet more of each other's queue; if halved, a few
 * percent are unused for some round trips.
 */
#define LBE_ENTRY_LESS		50

/* R is at most 1 / the first above mu: the target is held even if mu is low by as much, and a
 * queue of a round trip's 1/128 is below any jump. It is at least mu / the second, so that ticks
 * have samples. If the first is doubled, more of the link is unused after mu was learnt too low;
 * if halved, R overshoots the jump on long paths. If the second is doubled, so little is sent
 * beside others that ticks take seconds.
 */
#define LBE_CRUISE_OVER		128
#define LBE_CRUISE_LEAST	64

/* Other traffic uses nearly all of the link if R is mu / this or less, for LBE_PATH_TICKS ticks.
 * If doubled, the path stays longer beside a greedy flow that leaves it a little; if halved, it
 * gives way to steady traffic that leaves a quarter.
 */
#define LBE_LEAST_PART		8

/* Pulses come every 10 round trips and at least every second apart, after this many ticks (a round
 * trip) with a short queue. If the times are doubled, changes of the link and fair queues are
 * found later; if halved, twice as many pulses are in the way of other hosts.
 */
#define LBE_PULSE_RTTS		10
#define LBE_PULSE_GAP_US	USEC_PER_SEC
#define LBE_PULSE_TICKS		4

/* A pulse is sent at mu plus 1 / the second if R is within 1 / the first of mu: only then is
 * nearly all of its growth due to mu. A faster one makes a longer queue, of 8 packets / 4 here. If
 * the first is doubled, mu is corrected less often; if halved, other traffic lowers it. If the
 * second is doubled, raises take twice as many pulses; if halved, the queue of a pulse is twice as
 * long.
 */
#define LBE_PULSE_NEAR		10
#define LBE_PULSE_OVER		4

/* A pulse at mu. The error of its growth by noise is 5/4 e in half of its time: 1024 * 5/4 * 2. So
 * many pulses in a row that exceed it show fair queueing; one may meet a burst. If the error is
 * doubled, fair queues are found later on noisy links; if halved, noise ends CRUISE beside steady
 * traffic. If the number is doubled, each fair queue costs other flows twice as long.
 */
#define LBE_PULSE_NOISE_Q10	2560ULL
#define LBE_ISOLATED_PULSES	2

/* It raises R to what it left to this path, 1 - g, less 0.1 for its error, since R comes back to
 * the rest by itself; at most to 0.98 mu, as after a train (LBE_ENTRY_LESS); and not if g exceeds
 * 0.85, where nothing worth a burst is left. If the error is doubled, noise of the own bursts
 * holds R down for longer on fast long paths; if halved, the pulse's raise queues beside steady
 * traffic.
 */
#define LBE_PULSE_ERROR_Q10	100
#define LBE_PULSE_MOST_Q10	1000
#define LBE_PULSE_GROWTH_Q10	870

/* Ticks of CRUISE after which the noise is that of the path, not of its beginning. If doubled,
 * short periods of CRUISE say nothing about calm; if halved, the noise of START counts as calm.
 */
#define LBE_CALM_TICKS		16

/* A sample is far if it shows this many jumps; two far samples in a row end CRUISE (one may be a
 * late ACK), or four of a jump. The queue of a pulse, a quarter of 8 packets, is below two jumps.
 * If a number is doubled, the path gives way later; if halved, it does so for single late samples.
 */
#define LBE_FAR_JUMPS		2
#define LBE_FAR_SAMPLES		2
#define LBE_HIGH_SAMPLES	4

/* FLOOR is silent for this much longer than a slow start, round trips: one until the jump was
 * seen, and one for the recovery from its last loss. If doubled, pauses of other traffic stay
 * unused for longer; if halved, pairs meet the last round trip of a slow start.
 */
#define LBE_SLOW_START_MORE	2

/* A return whose CRUISE ended this soon, round trips, failed: the traffic was there before it. If
 * doubled, flows that begin by chance count as failures; if halved, a return beside an on-off flow
 * that ends at its next burst does not.
 */
#define LBE_FAIL_RTTS		3

/* Strict evidence is required from this many failures on, for up to 10 pairs, and means that the
 * delay of pairs exceeds that of the idle path by less than p / 4: beside packets of others it is
 * p / 2 on average. If the number of failures is doubled, trains cost a greedy flow more; if the
 * part is doubled (p / 8), noise hides an idle path; if halved, half of the pairs behind a queue
 * pass.
 */
#define LBE_STRICT_FAILS	3
#define LBE_STRICT_PAIRS	10
#define LBE_STRICT_EXCESS	4

/* Pairs needed otherwise: 1 + failures, between these. A single one is enough after CRUISE ended
 * for a reason if it waited for less than p / 3 and half the noise, less than behind any packet on
 * average. If they are doubled, pauses stay unused for longer; if halved, more trains meet other
 * traffic.
 */
#define LBE_PAIRS_MIN		2
#define LBE_PAIRS_MAX		3
#define LBE_PAIR_ALONE		3

/* The mean delay of pairs on the idle path: a train's counts for 1 / this. If doubled, the wrong
 * value of a first train lasts for twice as many.
 */
#define LBE_IDLE_GAIN		4

/* Time between pairs: a seventh of the time in FLOOR, so that the evidence of n pairs is lost to
 * other traffic for less than n / 7 of a pause; at least 1/4 more than a round trip, so that a
 * pair is never behind its predecessor; and in the long run mu / 250. Ten minutes of evidence from
 * one flow must not be lost for want of pairs: at most so long, us. If the seventh is doubled (a
 * fourteenth), more pairs are sent beside a greedy flow; if halved, the link is found idle later.
 * If the part of mu is doubled, half as much is sent beside a greedy flow and an idle link is found
 * later.
 */
#define LBE_PAIR_AGE		7
#define LBE_PAIR_SPARE		4
#define LBE_PAIR_BUDGET		250
#define LBE_PAIR_MAX_US		(5 * USEC_PER_SEC)

/* From this many failures on, at least 2 round trips, doubled with each failure up to 2^4. If the
 * first is doubled, more pairs are sent in the way of on-off traffic; if the exponent is doubled,
 * the last limit is LBE_PAIR_MAX_US.
 */
#define LBE_BACKOFF_FAILS	2
#define LBE_BACKOFF_MAX		4

/* Pairs that have to meet the same delay for LBE_FLAT_US. With fewer, two or three of them met a
 * plateau by chance. If doubled, a longer route is found later where pairs are rare.
 */
#define LBE_FLAT_PAIRS		8

/* No ACK for this many round trips and for so long, us, is a silence: then what CRUISE knows is
 * old. TCP's own time-out is 200 ms + RTT and doubles, so that a second has seen two of them. That
 * is also when TCP has found a loss, whose packet may be the last one of a flow's turn. If doubled,
 * a path that was cut off sends at its old rate for another second, and a link that loses packets
 * by chance is known later; if halved, a loss of one window ends CRUISE, and a drop that an AQM
 * made in a longer queue may count as one by chance.
 */
#define LBE_SILENCE_RTTS	4
#define LBE_SILENCE_US		USEC_PER_SEC

/* A train has its verdict at the latest this many round trips after its end, if no later packet
 * was acknowledged. If doubled, a lost train costs more time; if halved, one that waited in a
 * queue of a round trip counts as lost.
 */
#define LBE_VERDICT_RTTS	3

/* If a path without flows heard nothing for this long, us, its failures are forgotten. If doubled,
 * a transfer that follows another begins as carefully as that ended; if halved, connections of one
 * page forget what the one before learnt.
 */
#define LBE_FORGET_US		USEC_PER_SEC

enum lbe_state {
	LBE_START,	/* doubles its rate each round trip */
	LBE_CRUISE,	/* keeps a short queue: its target */
	LBE_FLOOR,	/* sends a pair of packets now and then */
	LBE_PROBE,	/* has sent a train and waits for its verdict */
};

enum lbe_reason {
	LBE_NEW,		/* the path is new */
	LBE_QUEUE_FOUND,	/* START has filled the link */
	LBE_QUEUE_JUMPED,	/* other traffic has begun */
	LBE_PATH_IDLE,		/* pairs met no queue */
	LBE_TRAIN_GREW,		/* a train met other traffic */
	LBE_TRAIN_PASSED,	/* a train found unused capacity */
	LBE_ISOLATED,		/* fair queueing: other flows have queues of their own */
	LBE_TRAIN_LOST,		/* too few samples of a train */
	LBE_INSPECT,		/* a train is to tell a slower link from fair queueing */
	LBE_SLOWER,		/* the link has become slower */
	LBE_FASTER,		/* the link has become much faster */
	LBE_HEAVY_LOSS,		/* more was lost than links lose: a policer, or a full buffer */
	LBE_NOTHING_LEFT,	/* other traffic uses nearly all of the link */
	LBE_SILENCE,		/* no ACK for long: idle, or an outage */
	LBE_MEASURED,		/* a train has shown the capacity */
	LBE_QUEUE_LOST,		/* a packet was lost while other traffic held a queue */
};

/* The queue in CRUISE, for what a loss means */
enum lbe_queue {
	LBE_QUEUE_SHORT,	/* no AQM drops packets of it */
	LBE_QUEUE_OWN,		/* an AQM may drop some; the path itself may have made all of it */
	LBE_QUEUE_OTHERS,	/* and other traffic has made a part of it */
};

/**
 * struct lbe_path - state of a path; all of it is written under the caller's lock of the path
 *
 * Times are us on one clock that never wraps (u64), or ns where the name says so.
 *
 * @state: enum lbe_state
 * @reason: enum lbe_reason of the latest change
 * @epoch: counts changes of state; what was granted before one is void. Only
 *	compared for equality, so that it may wrap
 * @anew_us: when all was forgotten because flows contradicted each other; 0: never
 * @since_us: beginning of @state
 * @now_us: latest time that any flow gave: CPUs may disagree by some us
 * @heard_us: time of the latest ACK
 * @timed_out: a flow had a retransmission time-out, and no ACK has arrived since
 * @mss: bytes of a full packet
 * @flows: sockets of the path, sending or not
 * @waiting: flows that wait for their turn
 * @in_flight: bytes of all flows
 * @next_ns: nothing is sent before: end of the time that the latest burst takes at the rate at
 *	which it was granted
 * @granted_ns: time of the latest grant
 * @turn_us: beginning of the present turn
 * @turn_pkts: packets granted in it
 * @turn_weight: weight of the flow that has it, or that had the latest one; not 0
 * @line_weight: sum of the weights of the flows that wait
 * @least_weight: least weight of the flows whose turns began since @least_us, and of those before
 * @least_us: beginning of the latest period of LBE_CYCLE_US in which a turn began
 * @base_age: ages @base_slot
 * @base_slot: least delays of the last minutes, us
 * @base_us: least of them; U32_MAX: none yet
 * @low_us: greatest of the latest samples in a row that were far below the base, us
 * @lows: number of these
 * @rtt_us: round trip with an empty forward queue, smoothed
 * @noise_us: mean difference between the delays and the least delay of a tick, smoothed
 * @calm_us: least @noise_us in CRUISE; U32_MAX: none yet
 * @deep_us: longest queue that lasted for a tick: the buffer holds at least that
 * @mu: capacity, bytes a second; 0: not known, in LBE_START and after it if the applications had
 *	too little data
 * @mu_far: how many measurements of @mu in a row were far off; below 0: all below @mu
 * @raises: how often in a row @mu was raised by about as much as a pulse can show
 * @policed_us: until then losses are taken for a sign of other traffic
 * @round_us: beginning of the present round trip
 * @round_bytes: delivered in it
 * @round_lost: lost in it
 * @loss_us: beginning of the round trips whose losses are counted together
 * @loss_bytes: delivered or lost in them
 * @loss_lost: of these, lost
 * @lossy: such counts in a row that lost more than by chance, up to LBE_LOSS_ROUNDS
 * @delivered: delivery rate of the round trip before, bytes a second
 * @unlost: delivered since the latest round trip with a loss, bytes; it begins at LBE_AQM_PKTS
 * @few: too few packets had arrived when START ended: those in flight tell the capacity
 * @leaving: the present round trip began when the path gave way
 * @tick_us: beginning of the present tick
 * @tick_sum: sum of its delays, us
 * @tick_n: samples in it
 * @tick_busy: of these, how many are of packets sent while more data waited
 * @tick_min: least of them, us
 * @q_us: mean queue of the latest ticks, ring
 * @r: rate of the latest ticks, bytes a second, ring
 * @ticks: index into both, modulo LBE_PATH_TICKS (a power of 2: it may wrap)
 * @high: samples in a row that show a jump
 * @high_us: time of the first of them
 * @queue: enum lbe_queue
 * @queue_us: since when
 * @chance_us: until then a loss is by chance, since one came long after LBE_QUEUE_SHORT began
 * @low_ticks: ticks in a row with a queue below the target
 * @least_ticks: ticks in a row with an eighth of the capacity or less
 * @rate: of all flows together, bytes a second
 * @pulse_us: when CRUISE began, or the latest pulse had its verdict
 * @pulsed: the rest that makes up for the latest pulse is still to come
 * @local: of the latest slots, how many found packets of this path still at the sender's own
 *	device; 0 to LBE_LOCAL_MAX
 * @isolated: pulses in a row that show fair queueing
 * @blind_us: samples of packets that were sent before do not count; in FLOOR, nothing is sent
 *	before
 * @n: pairs in a row that met next to no queue
 * @excess_us: sum of their delays above the base
 * @idle_us: mean of these on the idle path; U32_MAX: not known
 * @fails: failed returns in a row
 * @flat: pairs in a row that met the same queueing delay
 * @flat_us: when the first of them was acknowledged
 * @flat_min_us: least of these delays
 * @flat_max_us: greatest of these delays
 * @longer_us: what is added to the base if the train passes
 * @came: rate at which the packets that were in flight when the path gave way arrived, bytes a
 *	second; 0: as fast as they were sent, or not known
 * @slower: capacity that would explain the failed train, bytes a second
 * @inspect: a train at half of @slower is to follow
 * @inspected: of these trains, how many spoke for @slower
 * @prompt: the receiver acknowledges single packets at once
 * @spoke: the flow whose turn showed last; NULL: none, or it has left
 * @spoke_us: time of its first sample since another flow's
 * @spoke_delay_us: delay of that sample
 * @train: the train or pulse under way
 */
struct lbe_path {
	u8 state, reason;
	u32 epoch;
	u64 anew_us, since_us, now_us, heard_us;
	bool timed_out;
	u32 mss, flows, waiting;
	u64 in_flight, next_ns, granted_ns, turn_us, line_weight, least_us;
	u32 turn_pkts, turn_weight, least_weight[2];

	struct lbe_slots base_age;
	u32 base_slot[LBE_PATH_SLOTS];
	u32 base_us, low_us, lows;
	u32 rtt_us, noise_us, calm_us, deep_us;

	u64 mu, policed_us;
	s8 mu_far;
	u8 raises;

	u64 round_us, round_bytes, round_lost, delivered, unlost;
	u64 loss_us, loss_bytes, loss_lost;
	bool leaving, few;
	u8 lossy;

	u64 tick_us, tick_sum;
	u32 tick_n, tick_busy, tick_min;
	u32 q_us[LBE_PATH_TICKS];
	u64 r[LBE_PATH_TICKS];
	u32 ticks, low_ticks, least_ticks, high;
	u64 high_us;
	u8 queue;
	u64 queue_us, chance_us;

	u64 rate, pulse_us;
	bool pulsed;
	u8 local, isolated;

	u64 blind_us;
	u32 n, excess_us, idle_us, fails;
	u64 flat_us;
	u32 flat, flat_min_us, flat_max_us, longer_us;
	u64 came, slower;
	bool inspect, prompt;
	u8 inspected;

	struct lbe_view *spoke;
	u64 spoke_us;
	u32 spoke_delay_us;

	struct lbe_train train;
};

/**
 * struct lbe_view - what a path keeps of each of its flows: its weight, and how its delays compare
 *	with those of the other flows; written under the caller's lock of the path
 * @weight: its part of the path's rate, relative to those of the others; 1 to LBE_WEIGHT_MAX
 * @group: for the caller
 * @odd: comparisons in which its delay was longer (above 0) or shorter (below 0), less two for each
 *	one in which it was the same; LBE_ODD at most, either way
 * @turn_ms: when it was compared last; wraps after 65 s. A turn that begins that long after, to
 *	within a round trip, is not compared
 * @odd_ms: since when @odd is not 0; only differences are used: it wraps
 * @delay_us: its delay at the beginning of its latest turn
 */
struct lbe_view {
	u32 weight;
	u8 group;
	s8 odd;
	u16 turn_ms;
	u32 odd_ms;
	u32 delay_us;
};

struct lbe_path_ack {
	u64 now_us;
	u32 delay_us;	/* 0: no sample, or one that may be wrong; LBE_PATH_RTT_MAX_US at most */
	u32 rtt_us;	/* 1 to LBE_PATH_RTT_MAX_US */
	u32 acked_bytes;
	u32 lost_bytes;	/* newly declared lost */
	u32 acked_pkts;
	u32 alone_us;	/* after the ACK before, if it is that of a single packet; or 0 */
	bool marked;	/* by ECN */
	bool limited;	/* the packet was sent when the application had no more to send */
	bool small;	/* the ACK is that of a single packet, and it was not a full one */
};

/* Arithmetic */

/* The capacity, or the rate as long as the capacity is not known */
static inline u64 lbe_path_link_rate(const struct lbe_path *p)
{
	return p->mu ?: p->rate;
}

static inline u32 lbe_path_pkt_us(const struct lbe_path *p)
{
	return (u32)div64_u64((u64)p->mss * USEC_PER_SEC, max_t(u64, lbe_path_link_rate(p), 1));
}

static inline u32 lbe_path_error_us(const struct lbe_path *p)
{
	return max_t(u32, p->noise_us, LBE_PATH_ERROR_US);
}

/* The noise without other traffic: the least of CRUISE, or that of START if there was none yet */
static inline u32 lbe_path_calm_us(const struct lbe_path *p)
{
	return min(p->calm_us, lbe_path_error_us(p));
}

static inline u64 lbe_path_silence_us(const struct lbe_path *p)
{
	return max_t(u64, (u64)LBE_SILENCE_RTTS * p->rtt_us, LBE_SILENCE_US);
}

/* A longer queue is one that an AQM may shorten. */
static inline u32 lbe_path_aqm_us(const struct lbe_path *p)
{
	return max_t(u32, LBE_AQM_TARGET_US, lbe_path_pkt_us(p));
}

static inline u32 lbe_path_target_us(const struct lbe_path *p)
{
	u32 error_us = lbe_path_error_us(p);
	u32 own_us = LBE_TARGET_PKTS * lbe_path_pkt_us(p);

	if (p->unlost < (u64)LBE_AQM_PKTS * p->mss)
		own_us = min(own_us, lbe_path_aqm_us(p));
	return error_us + max(own_us, error_us / LBE_TARGET_NOISE);
}

/* The longest of three times, as the head says: half of a slow start's first packets, two slots,
 * and a part of the round trip with its two bounds. The noise counts twice: e above q now, and
 * below q a round trip ago.
 */
static inline u32 lbe_path_jump_us(const struct lbe_path *p)
{
	u32 own_us = max_t(u32, LBE_FIRST_PKTS / 2 * lbe_path_pkt_us(p),
			   2 * USEC_PER_SEC >> LBE_SLOT_SHIFT);
	u32 late_us = min(p->rtt_us / LBE_JUMP_RTTS, p->deep_us / LBE_JUMP_DEEP);

	return max(own_us, min_t(u32, late_us, LBE_JUMP_US)) + 2 * lbe_path_error_us(p);
}

static inline u32 lbe_path_tick_len_us(const struct lbe_path *p)
{
	return max3(p->rtt_us / LBE_ROUND_TICKS, LBE_TICK_PKTS * lbe_path_pkt_us(p),
		    (u32)LBE_TICK_US);
}

/* The time in which what is sent now shows: a round trip, but at least a tick. */
static inline u32 lbe_path_answer_us(const struct lbe_path *p)
{
	return max(p->rtt_us, lbe_path_tick_len_us(p));
}

/* How long all flows that have data take to have a turn each: so long that the least turn shows,
 * but at most LBE_CYCLE_US. @weights: of all of them
 */
static inline u64 lbe_path_cycle_us(const struct lbe_path *p, u64 weights)
{
	u32 shows_us = max(lbe_path_answer_us(p), LBE_TURN_PKTS * lbe_path_pkt_us(p));
	u32 least = min(p->least_weight[0], p->least_weight[1]);

	shows_us = min_t(u32, shows_us, LBE_CYCLE_US);
	return min_t(u64, max((p->waiting + 1ULL) * shows_us, div_u64(weights * shows_us, least)),
		     LBE_CYCLE_US);
}

/* How long a turn of a flow with this weight lasts while other flows wait for theirs */
static inline u32 lbe_path_part_us(const struct lbe_path *p, u32 weight)
{
	u64 weights = clamp_t(u64, p->turn_weight + p->line_weight, 1, LBE_WEIGHTS_MAX);

	return (u32)div64_u64(lbe_path_cycle_us(p, weights) * min_t(u64, weight, weights),
			      weights);
}

static inline u32 lbe_path_turn_len_us(const struct lbe_path *p)
{
	return lbe_path_part_us(p, p->turn_weight);
}

/* Are losses a sign of other traffic on this path, as at a policer, which has no queue? */
static inline bool lbe_path_policed(const struct lbe_path *p)
{
	return p->now_us < p->policed_us;
}

/* Is so much lost that it is not by chance? */
static inline bool lbe_path_heavy(u64 lost, u64 all)
{
	return lost * LBE_LOSS_HEAVY > all;
}

static inline u64 lbe_path_bdp(u64 rate, u32 us)
{
	return div_u64(rate * us, USEC_PER_SEC);
}

static inline void lbe_path_enter(struct lbe_path *p, u64 now_us, u8 state, u8 reason)
{
	p->state = state;
	p->reason = reason;
	p->since_us = now_us;
	p->epoch++;
	p->train.on = false;
	p->pulsed = false;
	p->high = 0;
	p->next_ns = 0;
	p->few = false;
}

static inline void lbe_path_next_tick(struct lbe_path *p, u64 now_us)
{
	p->tick_us = now_us;
	p->tick_n = 0;
	p->tick_busy = 0;
	p->tick_sum = 0;
	p->tick_min = U32_MAX;
}

static inline void lbe_path_next_round(struct lbe_path *p, u64 now_us)
{
	p->round_us = now_us;
	p->round_bytes = 0;
	p->round_lost = 0;
}

/* Count losses anew. */
static inline void lbe_path_next_losses(struct lbe_path *p, u64 now_us)
{
	p->loss_us = now_us;
	p->loss_bytes = 0;
	p->loss_lost = 0;
}

/* START begins as slow start does, with 10 packets a round trip. */
static inline u64 lbe_path_first_rate(const struct lbe_path *p)
{
	return div_u64((u64)LBE_FIRST_PKTS * p->mss * USEC_PER_SEC, p->rtt_us);
}

static inline void lbe_path_init(struct lbe_path *p, u64 now_us, u32 mss, u32 rtt_us)
{
	memset(p, 0, sizeof(*p));
	p->mss = mss;
	p->rtt_us = clamp_t(u32, rtt_us, LBE_PATH_RTT_MIN_US, LBE_PATH_RTT_MAX_US);
	p->rate = lbe_path_first_rate(p);
	p->base_us = U32_MAX;
	p->calm_us = U32_MAX;
	p->idle_us = U32_MAX;
	p->unlost = (u64)LBE_AQM_PKTS * mss;
	p->turn_weight = LBE_WEIGHT;
	p->least_weight[0] = LBE_WEIGHT_MAX;
	p->least_weight[1] = LBE_WEIGHT_MAX;
	lbe_slots_init(&p->base_age, p->base_slot, LBE_PATH_SLOTS,
		       (u32)div_u64(now_us, USEC_PER_SEC));
	lbe_path_next_round(p, now_us);
	lbe_path_next_tick(p, now_us);
	lbe_path_enter(p, now_us, LBE_START, LBE_NEW);
}

/* Capacity */

static inline void lbe_path_set_mu(struct lbe_path *p, u64 mu)
{
	p->mu = clamp_t(u64, mu, LBE_PATH_RATE_MIN, U32_MAX);
	p->mu_far = 0;
}

static inline u32 lbe_path_train_us(const struct lbe_path *p)
{
	return max_t(u32, LBE_TRAIN_PKTS * max_t(u32, lbe_path_pkt_us(p), p->noise_us),
		     LBE_TRAIN_US);
}

/* Take in one measurement of the capacity. One within LBE_MU_NEAR of mu is averaged with it. One
 * that is farther off counts if the one before was so too, on the same side; or if the two before
 * were, where noise alone is as likely as not to put one off by that much (LBE_MU_NOISES).
 */
static inline void lbe_path_learn_mu(struct lbe_path *p, u64 now_us, u64 mu)
{
	s64 off = (s64)mu - (s64)p->mu;
	s8 side = off > 0 ? 1 : -1;
	int need = LBE_MU_NOISES * p->noise_us > lbe_path_train_us(p) ? 2 : 1;

	if (off < (s64)(p->mu / LBE_MU_NEAR) && -off < (s64)(p->mu / LBE_MU_NEAR)) {
		p->raises = 0;
		lbe_path_set_mu(p, p->mu + div_s64(off, LBE_MU_GAIN));
	} else if (p->mu_far * side >= need) {
		/* Raised so often by nearly as much as a pulse can show: it may be far more. */
		p->raises = off >= (s64)(p->mu / LBE_RAISE_PART) ? p->raises + 1 : 0;
		lbe_path_set_mu(p, mu);
		if (p->raises >= LBE_RAISES) {
			p->raises = 0;
			lbe_path_enter(p, now_us, LBE_START, LBE_FASTER);
		}
	} else {
		p->mu_far = p->mu_far * side > 0 ? p->mu_far + side : side;
	}
}

/* Base delay */

static inline void lbe_path_base(struct lbe_path *p, u64 now_us, u32 delay_us)
{
	if (p->base_us != U32_MAX && delay_us + LBE_LOW_US < p->base_us) {
		p->low_us = p->lows ? max(p->low_us, delay_us) : delay_us;
		if (++p->lows < LBE_LOWS)
			return;
		delay_us = p->low_us;
	}
	p->lows = 0;
	p->base_us = min_t(u32, LBE_PATH_RTT_MAX_US,
			   lbe_slots_update(&p->base_age, p->base_slot, LBE_PATH_SLOT_S,
					    (u32)div_u64(now_us, USEC_PER_SEC), delay_us));
}

/* Changes of state */

static inline void lbe_path_yield(struct lbe_path *p, u64 now_us, u8 reason, u32 blind_rtts)
{
	lbe_path_enter(p, now_us, LBE_FLOOR, reason);
	p->blind_us = now_us + (u64)blind_rtts * p->rtt_us;
	p->n = 0;
	p->excess_us = 0;
	p->flat = 0;
	p->inspect = false;
}

/* Round trips that a slow start takes from 10 packets to the BDP, plus LBE_SLOW_START_MORE. */
static inline u32 lbe_path_slow_start_rtts(const struct lbe_path *p)
{
	u64 pkts = div_u64(lbe_path_bdp(lbe_path_link_rate(p), p->rtt_us), LBE_FIRST_PKTS * p->mss);
	u32 rtts = LBE_SLOW_START_MORE;

	for (; pkts > 1; pkts >>= 1)
		rtts++;
	return rtts;
}

/* Was the other traffic there before CRUISE began? At a policer this shows late, since the bucket
 * may hold tokens for many packets.
 */
static inline bool lbe_path_failed(const struct lbe_path *p, u64 now_us, u8 reason)
{
	u64 lasted_us = now_us - p->since_us;

	if (reason == LBE_HEAVY_LOSS)
		return lasted_us < max((u64)LBE_POLICED_PKTS * lbe_path_pkt_us(p),
				       (u64)LBE_POLICED_RTTS * p->rtt_us);
	return reason != LBE_QUEUE_JUMPED || lasted_us < (u64)LBE_FAIL_RTTS * p->rtt_us;
}

/* Does a round trip hold so much that a slower link can be told from a new flow at a fair queue by
 * what arrives in it?
 */
static inline bool lbe_path_steps(const struct lbe_path *p)
{
	u64 next = lbe_path_bdp(p->mu, lbe_path_jump_us(p)) + LBE_FIRST_PKTS * p->mss;

	return lbe_path_bdp(p->mu, p->rtt_us) > LBE_STEP_TIMES * next;
}

/* Give way to other traffic, and send nothing for as long as a slow start takes. If that traffic
 * did not begin just now but was there before, or if it began soon after CRUISE did, the return
 * failed.
 */
static inline void lbe_path_give_way(struct lbe_path *p, u64 now_us, u8 reason)
{
	u32 rtts = lbe_path_slow_start_rtts(p);

	if (lbe_path_failed(p, now_us, reason)) {
		p->fails++;
	} else {
		/* At a policer pairs cannot tell: the first return waits as after a failure. */
		p->fails = lbe_path_policed(p);
		/* For a round trip, what is in flight arrives at the rate that is left to it. */
		p->came = 0;
		p->leaving = lbe_path_steps(p);
		lbe_path_next_round(p, now_us);
	}
	lbe_path_yield(p, now_us, reason, rtts);
}

static inline void lbe_path_cruise(struct lbe_path *p, u64 now_us, u64 rate, u8 reason)
{
	unsigned int i;

	lbe_path_enter(p, now_us, LBE_CRUISE, reason);
	p->rate = rate;
	for (i = 0; i < LBE_PATH_TICKS; i++) {
		p->r[i] = rate;
		p->q_us[i] = lbe_path_target_us(p);
	}
	p->pulse_us = now_us;
	lbe_path_next_tick(p, now_us);
	p->ticks = 0;
	p->low_ticks = 0;
	p->least_ticks = 0;
	p->queue = LBE_QUEUE_SHORT;
	p->queue_us = now_us;
	p->isolated = 0;
}

/* A train passed although all pairs met the same queueing delay: the path has become longer. */
static inline void lbe_path_longer(struct lbe_path *p)
{
	u32 by_us = min_t(u32, p->longer_us, LBE_PATH_RTT_MAX_US - p->base_us);

	lbe_slots_raise(&p->base_age, p->base_slot, by_us);
	p->base_us += by_us;
	p->rtt_us = max(p->rtt_us, p->base_us);
	p->longer_us = 0;
}

/* The link has become slower, and is idle. */
static inline void lbe_path_slower(struct lbe_path *p, u64 now_us, u64 mu)
{
	u32 pkt_us = lbe_path_pkt_us(p);

	lbe_path_set_mu(p, mu);
	/* The delay includes the time that a packet takes on the link. */
	p->longer_us = lbe_path_pkt_us(p) - min(lbe_path_pkt_us(p), pkt_us);
	lbe_path_longer(p);
	lbe_path_cruise(p, now_us, mu - mu / LBE_SLOWER_LESS, LBE_SLOWER);
}

/* Verdicts of trains */

/* Send a train at half the rate at which the failed one came through. On an idle link its delays
 * spread as they do in CRUISE; beside the queue of another flow each packet also waits for the rest
 * of a packet from there, 0 to p.
 */
static inline void lbe_path_inspect(struct lbe_path *p, u64 now_us)
{
	u64 rate = p->slower / 2;

	lbe_path_enter(p, now_us, LBE_PROBE, LBE_INSPECT);
	lbe_train_start(&p->train, now_us, rate,
			(u32)div64_u64((u64)LBE_INSPECT_PKTS * p->mss * USEC_PER_SEC, rate));
}

static inline void lbe_path_inspect_verdict(struct lbe_path *p, u64 now_us)
{
	const struct lbe_train *t = &p->train;
	u32 spread_us = lbe_train_mean_us(t) - t->least_us;
	bool calm = lbe_train_samples(t) >= LBE_INSPECT_SAMPLES &&
		    spread_us < lbe_path_calm_us(p) + lbe_path_pkt_us(p) / LBE_INSPECT_SPREAD;

	lbe_path_yield(p, now_us, calm ? LBE_INSPECT : LBE_TRAIN_GREW, 1);
	p->inspect = calm && !p->inspected++;
	if (calm && !p->inspect)
		lbe_path_slower(p, now_us, p->slower);
}

/* A train met no other traffic: learn the delay that packets have on the idle path. */
static inline void lbe_path_learn_idle(struct lbe_path *p)
{
	const struct lbe_train *t = &p->train;
	u32 mean_us = lbe_train_mean_us(t);
	u32 idle_us = mean_us - min(mean_us, p->base_us + p->longer_us);

	p->idle_us = p->idle_us == U32_MAX ? idle_us :
		     ((LBE_IDLE_GAIN - 1) * p->idle_us + idle_us) / LBE_IDLE_GAIN;
}

/* Send a train at mu. If mu is not known, send one that is faster than most links: it comes through
 * at the capacity, less the part that other traffic takes, or at its own rate if that is less.
 */
static inline void lbe_path_probe(struct lbe_path *p, u64 now_us)
{
	u32 len_us = max_t(u32, LBE_TRAIN_PKTS * p->noise_us, LBE_TRAIN_US);

	lbe_path_enter(p, now_us, LBE_PROBE, LBE_PATH_IDLE);
	if (p->mu)
		lbe_train_start(&p->train, now_us, p->mu, lbe_path_train_us(p));
	else
		lbe_train_start(&p->train, now_us,
				div_u64((u64)LBE_TRAIN_PKTS * p->mss * USEC_PER_SEC, len_us),
				len_us);
}

/* The path is idle, its capacity is not known, and a train did not show it. */
static inline void lbe_path_start_again(struct lbe_path *p, u64 now_us)
{
	lbe_path_enter(p, now_us, LBE_START, LBE_PATH_IDLE);
	lbe_path_next_tick(p, now_us);
	p->rate = lbe_path_first_rate(p);
	p->delivered = 0;
	lbe_path_next_round(p, now_us);
	p->lossy = 0;
}

/* A train was sent to learn the capacity. It shows it only if it was clearly faster than the link,
 * and nothing was lost: otherwise, or if there was too little data for it, START learns it.
 */
static inline void lbe_path_capacity_verdict(struct lbe_path *p, u64 now_us)
{
	u32 n = p->n, excess_us = p->excess_us;
	const struct lbe_train *t = &p->train;
	bool whole = lbe_train_whole(t), told;
	s32 g;

	if (whole && (!lbe_train_samples(t) || lbe_path_heavy(t->lost_bytes, t->bytes))) {
		p->fails++;
		lbe_path_yield(p, now_us, LBE_TRAIN_LOST, 1);
		return;
	}
	told = whole && !t->lost_bytes && lbe_train_growth(t, &g);
	if (!told || g < LBE_GROWTH_FULL) {
		if (!told || g >= LBE_GROWTH_NONE)
			p->longer_us = 0;
		lbe_path_longer(p);
		lbe_path_start_again(p, now_us);
		return;
	}
	lbe_path_set_mu(p, div_u64(t->rate << 10, 1024 + g));
	lbe_path_yield(p, now_us, LBE_MEASURED, 1);
	/* The pairs so far are evidence still: the next one is enough. */
	p->n = n;
	p->excess_us = excess_us;
}

static inline void lbe_path_probe_verdict(struct lbe_path *p, u64 now_us)
{
	u64 slower, came = p->came;
	s32 g;

	if (!p->mu) {
		lbe_path_capacity_verdict(p, now_us);
		return;
	}
	if (!lbe_train_growth(&p->train, &g)) {
		p->fails += !lbe_train_limited(&p->train) &&
			    (lbe_train_whole(&p->train) || !p->train.ran_out);
		lbe_path_yield(p, now_us, LBE_TRAIN_LOST, 1);
		return;
	}
	slower = div_u64(p->mu << 10, 1024 + max(g, 0));
	/* Only the first train can agree: of several, one does by chance. */
	p->came = 0;
	if (g >= LBE_GROWTH_NONE && came > slower - slower / LBE_CAME_NEAR &&
	    came < slower + slower / LBE_CAME_NEAR) {
		lbe_path_slower(p, now_us, came);
	} else if (g > (p->longer_us ? LBE_GROWTH_NONE : LBE_GROWTH_FULL) ||
		   lbe_path_heavy(p->train.lost_bytes, p->train.bytes)) {
		p->fails++;
		lbe_path_yield(p, now_us, LBE_TRAIN_GREW, 1);
		p->slower = max_t(u64, slower, LBE_PATH_RATE_MIN);
		/* The spread to be found is about half of a packet's time: less noise is needed. */
		p->inspect = p->fails >= LBE_INSPECT_FAILS && g > LBE_GROWTH_NONE &&
			     lbe_path_calm_us(p) < lbe_path_pkt_us(p) / LBE_INSPECT_CALM;
		p->inspected = 0;
	} else if (g < LBE_GROWTH_NONE) {
		lbe_path_learn_idle(p);
		lbe_path_longer(p);
		lbe_path_cruise(p, now_us, p->mu - p->mu / LBE_ENTRY_LESS, LBE_TRAIN_PASSED);
	} else {
		lbe_path_cruise(p, now_us, p->mu * (1024 - g - LBE_GROWTH_ERROR) >> 10,
				LBE_TRAIN_PASSED);
	}
}

/* What a pulse above mu shows: the rate at which it came through, at most its own. (So a growth
 * below 0 tells no more than 0 does, and half of the divisor is low enough.)
 */
static inline u64 lbe_path_pulse_capacity(const struct lbe_train *t, s32 g)
{
	u64 c = div_u64(t->rate << 10, (u32)max_t(s32, 1024 + g, 1024 / 2));

	return min(c, t->rate);
}

/* Does a pulse at mu show that other flows have queues of their own? The queue was short before. If
 * it is shared, the rate of other traffic (g) and that of this path together fit the link, but for
 * the error of the train.
 */
static inline bool lbe_path_pulse_isolated(const struct lbe_path *p, s32 g)
{
	const struct lbe_train *t = &p->train;
	s32 share_q10 = (s32)div64_u64(p->rate << 10, p->mu);
	s32 error_q10 = max_t(s32, LBE_GROWTH_ERROR,
			      (s32)div64_u64(p->noise_us * LBE_PULSE_NOISE_Q10,
					     t->until_us - t->from_us));

	return g + share_q10 > 1024 + error_q10;
}

/* A pulse at mu in a shared queue shows what other traffic leaves: R is at least nearly that. */
static inline void lbe_path_pulse_raise(struct lbe_path *p, s32 g)
{
	s32 left_q10 = 1024 - g - LBE_PULSE_ERROR_Q10;
	u64 rate = (p->mu * (u32)clamp_t(s32, left_q10, 0, LBE_PULSE_MOST_Q10)) >> 10;

	if (g < LBE_PULSE_GROWTH_Q10)
		p->rate = max(p->rate, rate);
}

static inline void lbe_path_pulse_verdict(struct lbe_path *p, u64 now_us)
{
	const struct lbe_train *t = &p->train;
	s32 g;

	p->train.on = false;
	p->pulse_us = now_us;
	p->high = 0;
	if (lbe_train_limited(t) || !lbe_train_growth(t, &g))
		return;
	if (t->rate > p->mu) {
		lbe_path_learn_mu(p, now_us, lbe_path_pulse_capacity(t, g));
	} else if (lbe_path_pulse_isolated(p, g)) {
		if (++p->isolated >= LBE_ISOLATED_PULSES)
			lbe_path_give_way(p, now_us, LBE_ISOLATED);
	} else {
		p->isolated = 0;
		lbe_path_pulse_raise(p, g);
	}
}

static inline void lbe_path_verdict(struct lbe_path *p, u64 now_us)
{
	if (p->state == LBE_CRUISE)
		lbe_path_pulse_verdict(p, now_us);
	else if (p->reason == LBE_INSPECT)
		lbe_path_inspect_verdict(p, now_us);
	else
		lbe_path_probe_verdict(p, now_us);
}

/* START and CRUISE, tick by tick */

/* The equation of CRUISE: sets the rate that brings the queue to its target. */
static inline void lbe_path_cruise_law(struct lbe_path *p, u32 q_us, u32 dt_us)
{
	u32 back = min_t(u32, LBE_PATH_TICKS - 1, p->rtt_us / max_t(u32, dt_us, 1));
	u32 before_us = p->q_us[(p->ticks - 1) % LBE_PATH_TICKS];
	u64 sent = p->r[(p->ticks - 1 - back) % LBE_PATH_TICKS];
	s32 qt = (s32)lbe_path_target_us(p);
	s64 mu = (s64)p->mu;
	s64 spare, drain, rate;

	spare = (s64)sent - div_s64(mu * ((s32)q_us - (s32)before_us), (s32)dt_us);
	drain = div_s64(mu * (qt - (s32)q_us), 2 * (s32)lbe_path_answer_us(p));
	if ((s32)q_us > qt)
		drain *= 2;
	rate = ((s64)p->rate + spare + drain) / 2;
	p->rate = (u64)clamp_t(s64, rate, max_t(s64, mu / LBE_CRUISE_LEAST, LBE_PATH_RATE_MIN),
			       lbe_path_policed(p) ? mu - mu / LBE_POLICED_PART :
						     mu + mu / LBE_CRUISE_OVER);
	p->q_us[p->ticks % LBE_PATH_TICKS] = q_us;
	p->r[p->ticks++ % LBE_PATH_TICKS] = p->rate;
}

/* START meets a queue. If @busy, it may be that of this path. Otherwise other traffic has made it,
 * and the rate that came through is that of the applications: it does not tell the capacity.
 */
static inline void lbe_path_queue_found(struct lbe_path *p, u64 now_us, bool busy)
{
	u64 span_us = now_us - p->round_us;
	u64 rate = p->delivered;
	bool few;

	/* Or it was there when START began again. */
	if (!busy || (p->reason == LBE_PATH_IDLE && !p->delivered)) {
		lbe_path_give_way(p, now_us, LBE_QUEUE_JUMPED);
		return;
	}
	if (span_us > p->rtt_us / LBE_ROUND_TICKS)
		rate = max(rate, div64_u64(p->round_bytes * USEC_PER_SEC, span_us));
	few = max(p->round_bytes, lbe_path_bdp(p->delivered, p->rtt_us)) <
	      (u64)LBE_ROUND_PKTS * p->mss;
	lbe_path_set_mu(p, rate);
	lbe_path_yield(p, now_us, LBE_QUEUE_FOUND, 1);
	p->few = few;
	if (few)
		lbe_path_next_round(p, now_us);
}

/* Time between pulses, each of which puts a short queue in the way of other traffic. It is halved
 * while the capacity seems to rise.
 */
static inline u64 lbe_path_pulse_gap_us(const struct lbe_path *p)
{
	u64 gap_us = max_t(u64, (u64)LBE_PULSE_RTTS * p->rtt_us, LBE_PULSE_GAP_US);

	return p->raises || p->mu_far > 0 ? gap_us / 2 : gap_us;
}

/* Does other traffic use nearly all of the link? At so low a rate, no ACK may come for so long that
 * lbe_path_time() finds a silence before the next tick ends.
 */
static inline bool lbe_path_nothing_left(const struct lbe_path *p)
{
	return p->rate <= p->mu / LBE_LEAST_PART;
}

/* The queue that ends START. Packets sent at its rate may queue up behind each other; those of an
 * application that has little data do not.
 */
static inline u32 lbe_path_start_queue_us(const struct lbe_path *p, bool busy)
{
	if (busy)
		return max_t(u32, LBE_START_QUEUE_PKTS * lbe_path_pkt_us(p), LBE_START_QUEUE_US);
	return LBE_START_QUEUE_US + 2 * lbe_path_error_us(p);
}

/* START cannot measure what the link makes of its rate if there is less to send. Has it any sample
 * of a packet that was sent while more data waited?
 */
static inline bool lbe_path_tick_any(const struct lbe_path *p)
{
	return p->state != LBE_START || p->tick_busy;
}

/* And are most of the samples of such packets, so that a queue may be that of this path? */
static inline bool lbe_path_tick_most(const struct lbe_path *p)
{
	return p->state != LBE_START || 2 * p->tick_busy > p->tick_n;
}

static inline void lbe_path_tick_add(struct lbe_path *p, u32 delay_us, bool limited)
{
	p->tick_sum += delay_us;
	p->tick_n++;
	p->tick_busy += !limited;
	p->tick_min = min(p->tick_min, delay_us);
}

/* Have the samples of an application with little data come too slowly to say anything together? */
static inline bool lbe_path_tick_stale(const struct lbe_path *p, u64 now_us)
{
	u32 within_us = max_t(u32, LBE_TICK_LIMITED_RTTS * p->rtt_us, LBE_TICK_LIMITED_US);

	return !lbe_path_tick_any(p) && p->tick_n < LBE_TICK_LIMITED &&
	       now_us - p->tick_us > within_us;
}

/* Does the queue of this tick end START? */
static inline bool lbe_path_start_ends(const struct lbe_path *p, u32 least_us)
{
	bool busy = lbe_path_tick_most(p);

	return (busy || p->tick_n >= LBE_TICK_LIMITED) &&
	       least_us > lbe_path_start_queue_us(p, busy);
}

/* The noise of the delay is what its mean in a tick is above the least. */
static inline void lbe_path_learn_noise(struct lbe_path *p, u32 mean_us, int gain)
{
	if (p->tick_n > 1)
		p->noise_us += ((s32)(mean_us - p->tick_min) - (s32)p->noise_us) / gain;
}

/* START doubles R each round trip, up to 2.25 times what came through in the one before: twice,
 * and an eighth more than that, so that the error of this rate does not hold R back.
 */
static inline void lbe_path_start_law(struct lbe_path *p)
{
	p->rate = min_t(u64, p->rate + p->rate / LBE_START_STEP,
			max_t(u64, 2 * p->delivered + p->delivered / 4,
			      div_u64((u64)LBE_START_PKTS * p->mss * USEC_PER_SEC, p->rtt_us)));
}

static inline void lbe_path_start_tick(struct lbe_path *p, u64 now_us, u32 mean_us, u32 least_us)
{
	bool any = lbe_path_tick_any(p);

	if (lbe_path_start_ends(p, least_us)) {
		lbe_path_queue_found(p, now_us, lbe_path_tick_most(p));
		return;
	}
	lbe_path_learn_noise(p, mean_us, LBE_NOISE_GAIN_START);
	lbe_path_next_tick(p, now_us);
	if (any)
		lbe_path_start_law(p);
}

/* Is it time for a pulse? The queue has to be short, so that the growth over the pulse tells. */
static inline bool lbe_path_pulse_due(const struct lbe_path *p, u64 now_us)
{
	return !p->train.on && p->low_ticks >= LBE_PULSE_TICKS && !lbe_path_policed(p) &&
	       now_us - p->pulse_us > lbe_path_pulse_gap_us(p);
}

/* If R is near mu, the pulse is to correct mu; otherwise to find fair queueing. */
static inline void lbe_path_pulse(struct lbe_path *p, u64 now_us)
{
	p->pulsed = true;
	lbe_train_start(&p->train, now_us,
			p->rate > p->mu - p->mu / LBE_PULSE_NEAR ?
			p->mu + p->mu / LBE_PULSE_OVER : p->mu,
			lbe_path_train_us(p));
}

/* How long has the queue been in CRUISE, and since when? */
static inline void lbe_path_learn_queue(struct lbe_path *p, u64 now_us, u32 q_us, u32 dt_us)
{
	u32 own_us = lbe_path_target_us(p) + lbe_path_pkt_us(p) / 2;
	u32 aqm_us = lbe_path_aqm_us(p);
	u8 queue = q_us <= aqm_us ? LBE_QUEUE_SHORT :
		   q_us <= own_us ? LBE_QUEUE_OWN : LBE_QUEUE_OTHERS;

	if (queue == p->queue)
		return;
	p->queue_us = queue > p->queue ? now_us - dt_us : now_us;
	p->queue = queue;
}

static inline void lbe_path_cruise_tick(struct lbe_path *p, u64 now_us, u32 mean_us, u32 dt_us)
{
	u32 q_us = mean_us - min(mean_us, p->base_us);

	lbe_path_learn_noise(p, mean_us, LBE_NOISE_GAIN);
	lbe_path_next_tick(p, now_us);
	p->low_ticks = q_us < lbe_path_target_us(p) ? p->low_ticks + 1 : 0;
	lbe_path_learn_queue(p, now_us, q_us, dt_us);
	lbe_path_cruise_law(p, q_us, dt_us);
	if (p->ticks > LBE_CALM_TICKS)
		p->calm_us = min(p->calm_us, p->noise_us);
	p->least_ticks = lbe_path_nothing_left(p) ? p->least_ticks + 1 : 0;
	if (p->least_ticks >= LBE_PATH_TICKS)
		lbe_path_give_way(p, now_us, LBE_NOTHING_LEFT);
	else if (lbe_path_pulse_due(p, now_us))
		lbe_path_pulse(p, now_us);
}

/* End the present tick, if it is long enough and has enough samples. */
static inline void lbe_path_tick(struct lbe_path *p, u64 now_us)
{
	u32 len_us = lbe_path_tick_len_us(p);
	u32 dt_us = (u32)min_t(u64, now_us - p->tick_us, max_t(u32, len_us, LBE_TICK_MAX_US));
	u32 mean_us, least_us;

	if (lbe_path_tick_stale(p, now_us))
		lbe_path_next_tick(p, now_us);
	if (dt_us < len_us || p->tick_n < (lbe_path_tick_any(p) ? 1 : LBE_TICK_LIMITED))
		return;
	mean_us = (u32)div_u64(p->tick_sum, p->tick_n);
	least_us = p->tick_min - min(p->tick_min, p->base_us);
	if (lbe_path_tick_most(p))
		p->deep_us = max(p->deep_us, least_us);
	if (p->state == LBE_START)
		lbe_path_start_tick(p, now_us, mean_us, least_us);
	else if (p->state == LBE_CRUISE)
		lbe_path_cruise_tick(p, now_us, mean_us, dt_us);
	else
		lbe_path_next_tick(p, now_us);
}

/* Losses, and the queue of other traffic */

/* Was so much lost that it is not by chance? At a known policer CRUISE stays below its rate, so
 * that few losses show other traffic. (A policer drops bursts and aggregates first, so that TCP
 * loses far more there than the single packets of this path do.)
 */
static inline bool lbe_path_loses(const struct lbe_path *p)
{
	if (lbe_path_policed(p))
		return p->round_lost > p->mss ||
		       (p->round_lost && p->unlost < (u64)LBE_POLICED_PKTS * p->mss);
	return lbe_path_heavy(p->loss_lost, p->loss_bytes);
}

/* Count the losses of a round trip. Round trips that hold few packets count together, until there
 * are more than LBE_LOSS_PKTS, an outage, or a change of state. Return: false if there are not
 * enough packets yet, or if they meet a queue that would end START: then a buffer overflows.
 */
static inline bool lbe_path_count_losses(struct lbe_path *p, u64 all, u32 q_us, bool outage)
{
	bool policed = lbe_path_policed(p), enough;

	if (p->loss_us < p->since_us) {
		p->lossy = 0;
		lbe_path_next_losses(p, p->round_us);
	}
	p->loss_bytes += all;
	p->loss_lost += p->round_lost;
	if (!policed && q_us > lbe_path_start_queue_us(p, true))
		return false;
	enough = policed || p->loss_bytes > LBE_LOSS_PKTS * p->mss;
	if (!enough && !outage)
		return false;
	if (!enough || !lbe_path_loses(p))
		p->lossy = 0;
	else if (policed || !outage)
		p->lossy = min(p->lossy + 1, LBE_LOSS_ROUNDS);
	return true;
}

/* START found the queue before LBE_ROUND_PKTS had arrived, fewer than tell a rate. Those in flight
 * then, which were sent longer ago than that, wait at the bottleneck one behind the other: their
 * rate is the capacity.
 */
static inline void lbe_path_few_arrived(struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 span_us = max_t(u64, a->now_us - p->round_us, 1);
	bool waited = span_us <= a->rtt_us;

	if (!a->acked_bytes ||
	    (waited && p->in_flight && p->round_bytes < (u64)LBE_ROUND_PKTS * p->mss))
		return;
	p->few = false;
	if (waited)
		lbe_path_set_mu(p, min(p->mu,
				       div64_u64(p->round_bytes * USEC_PER_SEC, span_us)));
	lbe_path_next_round(p, a->now_us);
}

/* Random loss is never that heavy: this is a policer, or a buffer that was full when the base was
 * learnt. The rate that came through is the capacity. At a known policer other traffic may have
 * taken the rest of it.
 */
static inline void lbe_path_lose_much(struct lbe_path *p, const struct lbe_path_ack *a,
				      bool outage)
{
	bool policed = lbe_path_policed(p);
	u64 rate = div64_u64((p->loss_bytes - p->loss_lost) * USEC_PER_SEC,
			     a->now_us - p->loss_us);

	if (!policed)
		lbe_path_set_mu(p, rate);
	else if (!outage && p->fails < LBE_PATIENCE_MAX)
		lbe_path_set_mu(p, clamp_t(u64, rate, p->mu / 2, p->mu));
	if (!policed || p->round_lost * LBE_POLICED_PART > p->round_bytes + p->round_lost)
		p->policed_us = a->now_us + LBE_LOSSES_US;
	lbe_path_give_way(p, a->now_us, LBE_HEAVY_LOSS);
}

static inline void lbe_path_round(struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 before = p->r[p->ticks % LBE_PATH_TICKS];
	u64 span_us = a->now_us - p->round_us, all;
	u32 least_us = lbe_path_answer_us(p);
	bool policed = lbe_path_policed(p), outage, more, counted, at_once;

	p->round_bytes += a->acked_bytes;
	p->round_lost += a->lost_bytes;
	p->train.lost_bytes += a->lost_bytes;
	if (p->few) {
		lbe_path_few_arrived(p, a);
		return;
	}
	if (span_us < least_us)
		return;
	all = p->round_bytes + p->round_lost;
	outage = span_us > (u64)LBE_OUTAGE_ROUNDS * least_us;
	/* START overruns a link only if it sends much more than came through before (half as much
	 * again, of the doubling in a round trip), and if data does not run out.
	 */
	more = !a->limited && all * USEC_PER_SEC >= (p->delivered + p->delivered / 2) * span_us;
	p->delivered = div64_u64(p->round_bytes * USEC_PER_SEC, span_us);
	counted = lbe_path_count_losses(p, all, a->delay_us - min(a->delay_us, p->base_us),
					outage);
	p->unlost = p->round_lost ? 0 : p->unlost + p->round_bytes;
	at_once = policed || (p->state == LBE_START && more);
	if (counted && (p->state == LBE_START || p->state == LBE_CRUISE) && !p->high &&
	    p->lossy >= (at_once ? 1 : LBE_LOSS_ROUNDS))
		lbe_path_lose_much(p, a, outage);
	if (p->leaving && before > p->mu - p->mu / LBE_CAME_FULL &&
	    p->delivered < before - before / LBE_CAME_LESS)
		p->came = p->delivered;
	p->leaving = false;
	if (counted)
		lbe_path_next_losses(p, a->now_us);
	lbe_path_next_round(p, a->now_us);
}

/* Look for the queue of other traffic. A sample is far if it shows LBE_FAR_JUMPS; the queue of
 * this path's own pulse is never so long.
 */
static inline void lbe_path_watch(struct lbe_path *p, u64 now_us, u32 q_us, bool pulse)
{
	u32 jump_us = lbe_path_jump_us(p);
	bool far = q_us > LBE_FAR_JUMPS * jump_us;

	if (pulse && !far)
		return;
	if (!far && q_us < p->q_us[(p->ticks - LBE_ROUND_TICKS) % LBE_PATH_TICKS] + jump_us) {
		p->high = 0;
		return;
	}
	if (!p->high)
		p->high_us = now_us;
	p->high++;
	if ((far && p->high >= LBE_FAR_SAMPLES) ||
	    (p->high >= LBE_HIGH_SAMPLES &&
	     now_us - p->high_us >= LBE_HIGH_PKTS * lbe_path_pkt_us(p)))
		lbe_path_give_way(p, now_us, LBE_QUEUE_JUMPED);
}

/* Packets were lost in CRUISE. If other traffic has held a queue for so long that an AQM drops
 * packets, give way. If no AQM has had a reason to drop any since before these packets were sent,
 * the link loses packets by chance.
 */
static inline void lbe_path_lose(struct lbe_path *p, u64 now_us)
{
	u64 for_us = now_us - p->queue_us;

	if (p->train.on)
		return;
	if (p->queue == LBE_QUEUE_SHORT && for_us > lbe_path_silence_us(p))
		p->chance_us = now_us + LBE_LOSSES_US;
	else if (p->queue == LBE_QUEUE_OTHERS && for_us >= LBE_AQM_INTERVAL_US &&
		 now_us >= p->chance_us)
		lbe_path_give_way(p, now_us, LBE_QUEUE_LOST);
}

/* FLOOR */

/* Are pairs held to the strict condition? It holds after three failed returns, or after one at a
 * policer. Then more pairs are needed, and their mean delay must be that of the idle path: behind a
 * queue of other traffic each pair waits for the rest of the packet in transmission, p / 2 on
 * average. Beside traffic whose pauses are too short for that, or that uses a steady part of the
 * link, this is never met, and at a policer, which has no queue, pairs do not tell. So after
 * LBE_PATIENCE_RTTS, doubled with each failure, fewer pairs are enough.
 */
static inline bool lbe_path_strict(const struct lbe_path *p)
{
	u64 patience_us = ((u64)p->rtt_us * LBE_PATIENCE_RTTS) <<
			  min_t(u32, p->fails, LBE_PATIENCE_MAX);

	return (p->fails >= LBE_STRICT_FAILS || (p->fails && lbe_path_policed(p))) &&
	       p->now_us - p->since_us < patience_us;
}

/* Is the mean delay of the pairs that met next to no queue near that of the idle path? */
static inline bool lbe_path_pairs_near(const struct lbe_path *p)
{
	return p->idle_us == U32_MAX ||
	       p->excess_us / p->n < p->idle_us + lbe_path_pkt_us(p) / LBE_STRICT_EXCESS;
}

/* Did enough pairs in a row meet next to no queue? */
static inline bool lbe_path_looks_idle(const struct lbe_path *p)
{
	bool strict = lbe_path_strict(p);
	u32 need = strict ? 2 + 2 * min_t(u32, p->fails, LBE_STRICT_PAIRS / 2 - 1) :
			    clamp_t(u32, p->fails + 1, LBE_PAIRS_MIN, LBE_PAIRS_MAX);
	u32 pkt_us = lbe_path_pkt_us(p);

	if (strict && lbe_path_policed(p))
		return false;
	if (!p->fails && p->n == 1)
		return p->excess_us < pkt_us / LBE_PAIR_ALONE + lbe_path_error_us(p) / 2;
	return p->n >= need && (!strict || lbe_path_pairs_near(p));
}

/* Time between pairs in FLOOR */
static inline u32 lbe_path_pair_us(const struct lbe_path *p)
{
	u64 least_us = p->rtt_us + p->rtt_us / LBE_PAIR_SPARE;
	u64 budget_us = p->mu ? div64_u64((p->prompt ? 1ULL : 2ULL) * p->mss * LBE_PAIR_BUDGET *
					  USEC_PER_SEC, p->mu) : U32_MAX;
	u64 us = div_u64(p->now_us - p->since_us, LBE_PAIR_AGE);

	us = max(min(us, budget_us), least_us);
	/* pairs that have to agree follow each other at once, before a pause of others is over */
	if (p->n && p->fails >= LBE_STRICT_FAILS && !lbe_path_strict(p))
		us = least_us;
	else if (p->fails >= LBE_BACKOFF_FAILS)
		us = max(us, (u64)p->rtt_us << min_t(u32, p->fails - 1, LBE_BACKOFF_MAX));
	return (u32)min_t(u64, us, LBE_PAIR_MAX_US);
}

/* May the receiver have delayed this ACK, so that its delay tells nothing? Not if the delay is too
 * short for that, and that of a full packet: a smaller one takes less time, so that its delay may
 * be below the base of full ones. In FLOOR lbe_path_ack_prompt() decides.
 */
static inline bool lbe_path_maybe_delayed(const struct lbe_path *p, const struct lbe_path_ack *a)
{
	return a->alone_us > LBE_DELACK_US && !(p->state == LBE_FLOOR && p->prompt) &&
	       (a->small || a->delay_us - min(a->delay_us, p->base_us) > LBE_DELACK_US);
}

/* Does the receiver acknowledge single packets at once? Return: false if this ACK may have been
 * delayed, so that it tells nothing, and two packets are to be sent next time.
 */
static inline bool lbe_path_ack_prompt(struct lbe_path *p, const struct lbe_path_ack *a, u32 q_us)
{
	if (a->acked_pkts != 1)
		return true;
	p->prompt = !p->prompt || q_us <= LBE_DELACK_US;
	return p->prompt;
}

/* Count the pairs in a row that met the same delay, within twice the noise and what the time of a
 * packet adds to it.
 */
static inline void lbe_path_flat_add(struct lbe_path *p, u64 now_us, u32 q_us)
{
	u32 same_us = 2 * lbe_path_error_us(p) +
		      min_t(u32, lbe_path_pkt_us(p), 2 * LBE_PATH_ERROR_US);

	p->flat_min_us = min(q_us, p->flat_min_us);
	p->flat_max_us = max(q_us, p->flat_max_us);
	if (!p->flat++ || p->flat_max_us - p->flat_min_us > same_us) {
		p->flat = 1;
		p->flat_us = now_us;
		p->flat_min_us = q_us;
		p->flat_max_us = q_us;
	}
}

/* Count the pairs in a row that met next to no queue. */
static inline void lbe_path_idle_add(struct lbe_path *p, u32 q_us, u32 own_us)
{
	if (q_us < lbe_path_target_us(p) + lbe_path_error_us(p)) {
		p->n++;
		p->excess_us += q_us - min(q_us, own_us);
	} else {
		p->n = 0;
		p->excess_us = 0;
	}
}

/* Did all pairs meet the same delay for so long that it is that of a longer path? If it is next to
 * no queue, it must be that of the idle path, as at a policer: behind a fair queue pairs may keep
 * meeting the same phase of another flow's packets.
 */
static inline bool lbe_path_flat(const struct lbe_path *p, u64 now_us)
{
	return p->flat >= LBE_FLAT_PAIRS && now_us - p->flat_us >= LBE_FLAT_US &&
	       (!p->n || lbe_path_pairs_near(p));
}

static inline void lbe_path_evidence(struct lbe_path *p, const struct lbe_path_ack *a, u32 q_us)
{
	/* The second packet of a pair waits for the first. */
	u32 own_us = a->acked_pkts >= 2 ? lbe_path_pkt_us(p) : 0;

	if (a->now_us - a->rtt_us < p->blind_us)
		return;
	p->blind_us = a->now_us;
	if (!lbe_path_ack_prompt(p, a, q_us))
		return;
	lbe_path_flat_add(p, a->now_us, q_us);
	lbe_path_idle_add(p, q_us, own_us);
	if (lbe_path_looks_idle(p) || lbe_path_flat(p, a->now_us)) {
		p->longer_us = p->n ? 0 : p->flat_min_us - min(p->flat_min_us, own_us);
		lbe_path_probe(p, a->now_us);
	}
}

/* ACKs */

/* Did no ACK arrive for longer than a burst of other traffic lasts, while packets were in flight?
 * Then the link stood still (a station that scans or sleeps, an outage). What was sent until now
 * waited for it, and says nothing about other traffic.
 */
static inline bool lbe_path_stood_still(const struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 least_us = max3(p->rtt_us, LBE_STALL_PKTS * lbe_path_pkt_us(p), (u32)LBE_STALL_US);

	return p->state == LBE_CRUISE && p->now_us - p->heard_us > least_us &&
	       a->rtt_us > p->rtt_us + least_us;
}

/* An ACK has come: whatever else it says, the path is not silent. */
static inline void lbe_path_heard(struct lbe_path *p, const struct lbe_path_ack *a)
{
	p->now_us = max(p->now_us, a->now_us);
	if (lbe_path_stood_still(p, a))
		p->blind_us = p->now_us;
	p->heard_us = p->now_us;
	p->timed_out = false;
}

/* Before the first sample the round trip, and so the rate, may be a guess. */
static inline void lbe_path_first_sample(struct lbe_path *p, const struct lbe_path_ack *a)
{
	if (p->base_us != U32_MAX)
		return;
	p->rtt_us = clamp_t(u32, a->rtt_us, LBE_PATH_RTT_MIN_US, p->rtt_us);
	if (p->state == LBE_START)
		p->rate = max(p->rate, lbe_path_first_rate(p));
}

/* The queue that a packet met. If it was marked by ECN, other traffic has a queue, whatever the
 * delay is: it counts as far (lbe_path_watch()).
 */
static inline u32 lbe_path_queue_us(const struct lbe_path *p, const struct lbe_path_ack *a)
{
	u32 q_us = a->delay_us - min(a->delay_us, p->base_us);

	return a->marked ? max(q_us, LBE_FAR_JUMPS * lbe_path_jump_us(p) + 1) : q_us;
}

/* The round trip with an empty forward queue is what is left of this one without its queue. */
static inline void lbe_path_learn_rtt(struct lbe_path *p, const struct lbe_path_ack *a, u32 q_us)
{
	if (!a->marked && a->rtt_us > q_us)
		p->rtt_us += ((s32)(a->rtt_us - q_us) - (s32)p->rtt_us) / LBE_RTT_GAIN;
}

/* The delay that counts in a tick. In START, where an application with little data has no other
 * sign of other traffic, a mark counts as its queue.
 */
static inline u32 lbe_path_tick_delay_us(const struct lbe_path *p, const struct lbe_path_ack *a,
					 u32 q_us, bool limited)
{
	return p->state == LBE_START && limited ? p->base_us + q_us : a->delay_us;
}

/**
 * lbe_path_ack() - take in one ACK of one flow
 * @p: the path
 * @a: the ACK
 *
 * The steps, in this order, since each uses what those before it have learnt:
 *
 *	any ACK		it ends a silence; a loss in a queue; losses of the round trip
 *	a sample	d: base, q = d - base, RTT; the tick's e, q and R; the train's g
 *	by state	CRUISE: a jump of q. FLOOR: pairs as evidence
 *	at its end	the verdict of the train; then the equation of the tick
 */
static inline void lbe_path_ack(struct lbe_path *p, const struct lbe_path_ack *a)
{
	u64 sent_us = a->now_us - a->rtt_us;
	bool limited;
	u32 q_us;

	lbe_path_heard(p, a);
	if (a->lost_bytes && p->state == LBE_CRUISE)
		lbe_path_lose(p, a->now_us);
	lbe_path_round(p, a);
	if (!a->delay_us || (p->state == LBE_CRUISE && sent_us < p->blind_us))
		return;
	lbe_path_first_sample(p, a);
	lbe_path_base(p, a->now_us, a->delay_us);
	q_us = lbe_path_queue_us(p, a);
	lbe_path_learn_rtt(p, a, q_us);
	/* If another flow waits for its turn, the path sends all that it may, even if this one had
	 * no more to send, as at the beginning of each flow.
	 */
	limited = a->limited && !p->waiting;
	/* The queue that a pulse makes is no sign of other traffic. */
	if (!p->train.on || sent_us < p->train.from_us)
		lbe_path_tick_add(p, lbe_path_tick_delay_us(p, a, q_us, limited), limited);
	lbe_train_add(&p->train, sent_us, a->delay_us, limited);
	if (p->state == LBE_CRUISE)
		lbe_path_watch(p, a->now_us, q_us, p->train.on || sent_us < p->pulse_us);
	else if (p->state == LBE_FLOOR)
		lbe_path_evidence(p, a, q_us);
	if (p->train.on && sent_us > p->train.until_us)
		lbe_path_verdict(p, a->now_us);
	lbe_path_tick(p, a->now_us);
}

/* What follows from the time alone, without an ACK */
static inline void lbe_path_time(struct lbe_path *p, u64 now_us)
{
	p->now_us = max(p->now_us, now_us);
	if (p->state == LBE_CRUISE && p->now_us - p->heard_us > lbe_path_silence_us(p)) {
		if (lbe_path_nothing_left(p))
			lbe_path_give_way(p, p->now_us, LBE_NOTHING_LEFT);
		else
			lbe_path_yield(p, p->now_us, LBE_SILENCE, 0);
	}
	if (p->state == LBE_FLOOR && p->inspect && p->now_us >= p->blind_us)
		lbe_path_inspect(p, p->now_us);
	if (p->train.on && p->now_us > p->train.until_us + (u64)LBE_VERDICT_RTTS * p->rtt_us)
		lbe_path_verdict(p, p->now_us);
}

/* A flow joins. If the path had none, and had no ACK for LBE_FORGET_US, the failures of that time
 * say nothing about the present.
 */
static inline void lbe_path_join(struct lbe_path *p, u64 now_us)
{
	if (!p->flows++ && now_us - min(now_us, p->heard_us) > LBE_FORGET_US)
		p->fails = 0;
}

/* The weight of each of @flows that have a weight together, as users give it */
static inline u32 lbe_weight_each(u32 given, u32 flows)
{
	return max(given * (LBE_WEIGHT / LBE_GIVEN) / max(flows, 1U), 1U);
}

/* What a path keeps of a flow that has just joined */
static inline void lbe_view_init(struct lbe_view *v)
{
	*v = (struct lbe_view) { .weight = LBE_WEIGHT };
}

/* A flow leaves; @v is how its delays compare with others. */
static inline void lbe_path_leave(struct lbe_path *p, const struct lbe_view *v)
{
	p->flows--;
	if (p->spoke == v)
		p->spoke = NULL;
}

/* Flows that contradict each other */

/* Forget what is known of the path, since all of it may come from one flow's samples. The flows
 * stay. This is done at most once in a slot of the base: START fills queues, and a peer that lies
 * on each new connection could keep the path there.
 */
static inline void lbe_path_begin_anew(struct lbe_path *p, u64 now_us)
{
	u32 least = min(p->least_weight[0], p->least_weight[1]);
	u32 flows = p->flows, waiting = p->waiting, weight = p->turn_weight, epoch = p->epoch + 1;
	u64 in_flight = p->in_flight, line_weight = p->line_weight;

	if (p->anew_us && now_us - p->anew_us < LBE_PATH_SLOT_S * USEC_PER_SEC)
		return;

	lbe_path_init(p, now_us, p->mss, p->rtt_us);
	p->epoch = epoch;
	p->flows = flows;
	p->waiting = waiting;
	p->turn_weight = weight;
	p->line_weight = line_weight;
	p->least_weight[0] = least;
	p->in_flight = in_flight;
	p->now_us = now_us;
	p->heard_us = now_us;
	p->anew_us = now_us;
}

/* A delay was longer (@side is 1), shorter (-1) or the same (0). */
static inline void lbe_view_add(struct lbe_view *v, int side, u32 now_ms)
{
	if (!v->odd)
		v->odd_ms = now_ms;
	if (side && side * v->odd >= 0)
		v->odd = (s8)clamp(v->odd + side, -LBE_ODD, LBE_ODD);
	else
		v->odd -= (s8)clamp_t(s32, v->odd, -2, 2);
}

/**
 * lbe_path_contradicts() - does a flow meet another queue than the others of its path?
 * @p: the path
 * @v: how the flow's delays have compared so far; its address identifies the flow
 * @a: an ACK of the flow, with a delay; before lbe_path_ack()
 *
 * Flows of one path meet one queue; behind a fair queue each has its own, which is empty when its
 * turn begins. So the first delay of a turn is compared with the first one of the turn before, and
 * both flows learn from it: who only follows one that differs agrees with the one that follows. If
 * that of a flow is repeatedly longer, or repeatedly shorter, by more than twice the amount by
 * which its own has changed since its last turn, it has another route, another host behind the
 * address, or a peer that lies.
 *
 * Return: true if the flow is to get a path of its own. What is known of @p has then been
 * forgotten, unless that was done for another flow within the last minute.
 */
static inline bool lbe_path_contradicts(struct lbe_path *p, struct lbe_view *v,
					const struct lbe_path_ack *a)
{
	u64 apart_us = a->now_us - min(a->now_us, p->spoke_us);
	u32 now_ms = (u32)div_u64(a->now_us, 1000);
	s32 off_us = (s32)(a->delay_us - p->spoke_delay_us);
	s32 own_us = (s32)(a->delay_us - v->delay_us);
	s32 same_us = 2 * max(own_us, -own_us) + lbe_path_pkt_us(p) + LBE_PATH_ERROR_US;
	int side = (off_us > same_us) - (off_us < -same_us);
	struct lbe_view *other = p->spoke;
	u32 turn_us;

	if (other == v || (u16)(now_ms - v->turn_ms) * 1000U < lbe_path_answer_us(p))
		return false;
	v->turn_ms = (u16)now_ms;
	v->delay_us = a->delay_us;
	p->spoke = v;
	p->spoke_us = a->now_us;
	p->spoke_delay_us = a->delay_us;
	if (!other || p->flows < 2)
		return false;
	turn_us = p->state == LBE_FLOOR ? 2 * lbe_path_pair_us(p) :
		  lbe_path_part_us(p, other->weight);
	if (apart_us >= turn_us + p->rtt_us)
		return false;
	lbe_view_add(v, side, now_ms);
	lbe_view_add(other, -side, now_ms);
	if (max(v->odd, -v->odd) < LBE_ODD || now_ms - v->odd_ms < LBE_ODD_MS)
		return false;
	lbe_path_begin_anew(p, a->now_us);
	return true;
}

#endif /* LBE_PATH_H */
