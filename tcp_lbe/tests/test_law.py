# SPDX-License-Identifier: GPL-2.0
"""The law of lbe against floating point, over its whole range: 8 kbit/s to 30 Gbit/s, 50 us to 5 s, any noise.

The oracle is the equations at the head of include/lbe/path.h, and those of Documentation/tcp_lbe.md where the head
gives none, written down here once more without integers. All its times are in seconds, its rates in bytes a second.
The bounds of the errors are those of the integers: a time is a whole number of us, a rate of bytes a second.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tcp_lbe.tests.law_host import NO_GROWTH, WEIGHT, Law, OnePath

US = 1e-6
SIZES = (536, 1448, 8948, 65483)
#: least and greatest capacity that a path may have; a train's packets and its shortest time
MU_MIN, MU_MAX, TRAIN_PKTS, TRAIN_S, TICK_S = 1000.0, 2.0**32 - 1, 8, 0.004, 0.011
#: the target of CoDel
AQM_S = 0.005


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Law:
    return Law(tmp_path_factory.mktemp("law"))


@dataclass
class Link:
    """A path as the equations see it."""

    mss: int
    mu: float
    rtt: float
    noise: float
    deep: float
    policed: bool = False
    #: has it lost a packet of the last 256?
    lossy: bool = False

    @property
    def p(self) -> float:
        return self.mss / self.mu

    @property
    def e(self) -> float:
        return max(self.noise, 250e-6)

    @property
    def target(self) -> float:
        own = min(2 * self.p, max(AQM_S, self.p)) if self.lossy else 2 * self.p
        return self.e + max(own, self.e / 4)

    @property
    def answer(self) -> float:
        """T: a round trip or a tick, whose packets take a whole number of us each."""
        return max(self.rtt, 8 * math.floor(self.p / US) * US, TICK_S)

    @property
    def jump(self) -> float:
        return 2 * self.e + max(5 * self.p, 2 * 2**-12, min(self.rtt / 32, self.deep / 16, 0.004))

    @property
    def bdp(self) -> float:
        return self.mu * self.rtt

    @property
    def train(self) -> float:
        return max(TRAIN_PKTS * max(self.p, self.noise), TRAIN_S)

    def made(self, law: Law, state: str = "cruise", now_us: int = 0) -> OnePath:
        """The same path in the law."""
        path = OnePath(law, self.mss, round(self.rtt / US), now_us)
        path.now_us = now_us
        path.know_mu(round(self.mu))
        path.noise_us = round(self.noise / US)
        path.deep_us = round(self.deep / US)
        path.unlost = (255 if self.lossy else 256) * self.mss
        if state == "cruise":
            path.cruise(now_us, round(self.mu))
        elif state == "floor":
            path.floor_at(now_us)
        return path


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def links(count: int, seed: int = 1) -> Iterator[Link]:
    """Paths from the slowest to the fastest, as many in each octave; times are whole us, as in the law."""
    rng = random.Random(seed)
    for _ in range(count):
        yield Link(
            mss=rng.choice(SIZES),
            mu=float(round(log_uniform(rng, MU_MIN, 30e9 / 8))),
            rtt=round(log_uniform(rng, 50, 5e6)) * US,
            noise=rng.choice((0, 1, round(log_uniform(rng, 1, 1e6)))) * US,
            deep=rng.choice((0, round(log_uniform(rng, 1, 5e6)))) * US,
            lossy=rng.random() < 0.5,
        )


def rounded_down(exact_s: float, us: int, most: float) -> bool:
    """Is this number of us the time, rounded down by less than so many us?"""
    return -1e-3 <= exact_s / US - us < most + 1e-3


def test_a_capacity_has_a_least_and_a_greatest(law: Law) -> None:
    """1 kbit/s is below the least capacity of the law, 34 Gbit/s is the greatest."""
    for asked, kept in ((0, MU_MIN), (125, MU_MIN), (1000, MU_MIN), (30e9 / 8, 30e9 / 8), (1e13, MU_MAX)):
        path = OnePath(law)
        path.know_mu(int(asked))
        assert path.mu == kept


def test_times_of_a_path(law: Law) -> None:
    """p, the target e + max(2 p, e / 4), the jump, a tick (RTT / 4, 8 p or 11 ms) and a train, each rounded down.

    If one packet of the last 256 was lost, 2 p counts only up to 5 ms or p, whichever is longer.
    """
    for link in links(4000):
        path = link.made(law)
        assert rounded_down(link.p, path.pkt_us(), 1), link
        assert rounded_down(link.target, path.target_us(), 2), link
        assert rounded_down(link.jump, path.jump_us(), 5), link
        assert rounded_down(max(link.rtt / 4, 8 * link.p, TICK_S), path.tick_len_us(), 8), link
        assert rounded_down(link.train, path.train_len_us(), 8), link


def rate_by_the_equation(link: Link, rate: float, sent: float, q: float, before: float, dt: float) -> float:
    """R <- 1/2 (R + S + mu (qt - q) / (2 T)), S = R' - mu dq/dt, at most 1.008 mu; the last term doubled above qt."""
    spare = sent - link.mu * (q - before) / dt
    drain = link.mu * (link.target - q) / (2 * link.answer) * (2 if q > link.target else 1)
    most = link.mu * (1 - 1 / 32) if link.policed else link.mu * (1 + 1 / 128)
    return min(max((rate + spare + drain) / 2, link.mu / 64, MU_MIN), most)


@pytest.mark.parametrize("policed", [False, True])
def test_the_cruise_law(law: Law, policed: bool) -> None:
    """One tick from any state; R' is the rate of the tick that was under way one round trip ago."""
    rng = random.Random(2)
    for link in links(8000, 3):
        link.policed = policed
        path = link.made(law)
        path.policed_us = 10**6 * policed
        length_us = path.tick_len_us()
        dt_us = min(length_us + rng.choice((0, 1, rng.randrange(length_us + 1))), max(length_us, 10**6))
        ticks = rng.choice((8, 20, 2**32 - 3))
        path.ticks = ticks
        rates = [rng.randint(round(link.mu / 64), round(link.mu * 1.0078)) for _ in range(8)]
        queues = [rng.choice((0, path.target_us(), round(log_uniform(rng, 1, 5e6)))) for _ in range(9)]
        for back in range(8):
            path.ring(ticks - 1 - back, queues[back], rates[back])
        path.rate = rng.randint(round(link.mu / 64), round(link.mu * 1.0078))
        ago = min(round(link.rtt / US) // max(dt_us, 1), 7)
        wanted = rate_by_the_equation(link, path.rate, rates[ago], queues[8] * US, queues[0] * US, dt_us * US)
        path.law(queues[8], dt_us)
        # qt is too low by up to 2 us, which the drain may double; each of three divisions drops up to 1
        error = 2 * US * link.mu / (2 * min(link.rtt, link.answer)) + 4
        assert abs(path.rate - wanted) <= error + 1, (link, dt_us)
        assert path.ticks == (ticks + 1) % 2**32


def test_ticks_of_cruise_from_acks(law: Law) -> None:
    """Base, noise, mean queue and rate over a second of ACKs, beside lists of all that was sampled."""
    rng = random.Random(4)
    for mbit in (1, 10, 100, 1000):
        link = Link(1448, mbit * 1e6 / 8, 0.1, 0.0005, 0.1)
        path = link.made(law, now_us=5 * 10**6)
        base, now_us, tick_us, samples = 50_000, path.now_us, path.now_us, []
        path.ack(now_us, base, 100_000, 1, 0, 0)
        samples.append(base)
        rates, queues, noise, least = [path.rate] * 9, [path.target_us() * US] * 9, link.noise, base
        for _ in range(400):
            now_us += rng.randint(1500, 2500)
            delay_us = base + path.target_us() + rng.randint(0, 400) - 200
            path.ack(now_us, delay_us, 50_000 + delay_us, 1, 0, 0)
            samples.append(delay_us)
            least = min(least, delay_us)
            if now_us - tick_us < path.tick_len_us():
                continue
            mean = sum(samples) / len(samples)
            noise += (mean * US - min(samples) * US - noise) / 16
            dt = (now_us - tick_us) * US
            wanted = rate_by_the_equation(
                Link(1448, link.mu, path.rtt_us * US, noise, 0.1),
                rates[-1], rates[-1 - math.floor(path.rtt_us * US / dt)], (mean - least) * US, queues[-1], dt,
            )  # fmt: skip
            assert path.is_in("cruise") and path.base_us == least
            assert abs(path.noise_us - noise / US) <= 16, "what is less than 16 us per sample may be left"
            # the mean is rounded to 1 us, the noise is off by up to 16 us
            assert abs(path.rate - wanted) <= link.mu * US * (1 / dt + 18 / link.rtt) + 8
            rates.append(path.rate)
            queues.append((mean - least) * US)
            noise, samples, tick_us = path.noise_us * US, [], now_us


def test_the_round_trip_of_an_empty_queue_is_found(law: Law) -> None:
    """RTT is that of the samples, less their queue: within the 16 us that a smoothing by 1/16 leaves."""
    rng = random.Random(5)
    for link in links(200, 6):
        path = link.made(law)
        rtt_us, base_us, now_us = round(link.rtt / US), round(link.rtt / US / 2) + 1, 0
        path.rtt_us = 2 * rtt_us
        for _ in range(400):
            now_us += rtt_us
            queue_us = rng.choice((0, rng.randint(0, 900)))
            path.ack(now_us, base_us + queue_us, rtt_us + queue_us, 2, 0, 0)
        # the base may not be known at first
        assert abs(path.rtt_us - rtt_us) <= 16 + 900 * (path.base_us != base_us), link


def test_the_base_is_the_least_delay_of_three_minutes(law: Law) -> None:
    """It is no longer than any of the last two minutes, and as long as one of the last three; the seconds wrap once."""
    rng = random.Random(7)
    for start_s in (0, 2**32 - 200):
        path = OnePath(law, now_us=start_s * 10**6)
        samples: list[tuple[float, int]] = []
        floor_us = 40_000
        for _ in range(8000):
            now_s = samples[-1][0] + rng.choice((0.01, 0.5)) if samples else float(start_s)
            floor_us = max(20_000, floor_us + rng.randint(-40, 42))
            delay_us = floor_us + rng.randint(0, 800)
            samples.append((now_s, delay_us))
            path.ack(round(now_s * 10**6), delay_us, 2 * floor_us, 2, 0, 0)
            two_min = min(delay for at, delay in samples if now_s - at < 119)
            three_min = min(delay for at, delay in samples if now_s - at <= 181)
            assert three_min <= path.base_us <= two_min
            samples = [one for one in samples if now_s - one[0] < 200]


def test_a_far_lower_delay_becomes_the_base_after_four_in_a_row(law: Law) -> None:
    rng = random.Random(8)
    for _ in range(500):
        path, base_us = OnePath(law), rng.randint(5000, 64 * 10**6)
        path.ack(1000, base_us, 100_000, 2, 0, 0)
        in_a_row: list[int] = []
        for number in range(12):
            far = rng.random() < 0.7
            delay_us = base_us - (rng.randint(1001, 4000) if far else rng.randint(0, 999))
            path.ack(2000 + 10 * number, delay_us, 100_000, 2, 0, 0)
            in_a_row = [*in_a_row, delay_us] if far else []
            if not far:
                base_us = min(base_us, delay_us)
            elif len(in_a_row) == 4:
                base_us = min(base_us, max(in_a_row))
                in_a_row = []
                assert path.base_us == base_us
                break
            assert path.base_us == base_us


def test_start_doubles_in_a_round_trip(law: Law) -> None:
    """In four ticks, by 1.2 each, up to 2.25 times what came through, or 12 packets in a round trip."""
    for link in links(300, 9):
        path = OnePath(law, link.mss, max(round(link.rtt / US), 100))
        rtt_us = path.rtt_us
        assert abs(path.rate - 10 * link.mss / (rtt_us * US)) <= 1
        path.ack(1, rtt_us, rtt_us, 2, 0, 0)
        now_us, wanted = 1, float(path.rate)
        for tick in range(24):
            before = path.rate
            now_us += max(path.tick_len_us(), 1)
            pkts = 4 if tick < 12 else 1
            path.ack(now_us, rtt_us, rtt_us, pkts, 0, 0)
            if not path.is_in("start"):
                break
            wanted = before * 1.2
            assert path.rate <= wanted + 1 and (path.rate >= wanted - 1 or path.rate < wanted), link
            most = max(12 * link.mss / (rtt_us * US), 2.25 * 4 * link.mss / (max(rtt_us / 4, 1) * US))
            assert path.rate <= max(most, before) * 1.01 + 2


def ramp(path: OnePath, link: Link, rate: float, slope: float, rng: random.Random, noise_us: int = 0) -> float:
    """A train whose delay grows by the slope; returns its length in us. Delays and times of sending are whole us."""
    length_us = path.train_until_us - path.train_from_us
    gap_us = max(length_us / TRAIN_PKTS, 1)
    path.train_bytes = path.train_rate * length_us // 10**6 + link.mss
    base_us = 10**6 + round(abs(slope) * length_us)
    for number in range(TRAIN_PKTS + 1):
        sent_us = path.train_from_us + min(round(number * gap_us), length_us)
        at_us = sent_us - path.train_from_us
        path.add(sent_us, round(base_us + slope * at_us) + rng.randint(0, noise_us))
    return float(length_us)


def test_growth_is_the_slope_of_the_delay(law: Law) -> None:
    """g = dq / dt in units of 1/1024, to within the us to which delays are rounded."""
    rng = random.Random(10)
    for link in links(3000, 11):
        path, slope = link.made(law), rng.choice((0.0, rng.uniform(-0.9, 3), log_uniform(rng, 1e-3, 500)))
        path.start_train(rng.choice((0, 10**15)), round(link.mu), round(link.train / US))
        # a delay has 32 bits
        slope = min(slope, 2**31 / (path.train_until_us - path.train_from_us))
        length_us = ramp(path, link, link.mu, slope, rng)
        # each half's means are rounded down, and they lie half of the train apart
        error = 1 / 1024 + (2 + 2 * abs(slope)) / (length_us / 2 - 2)
        assert abs(path.growth() / 1024 - slope) <= error, (link, slope)


def test_growth_of_noisy_trains(law: Law) -> None:
    """Any number of samples at any time, beside the means of both halves. Those of no train, or the last, are none."""
    rng = random.Random(12)
    for _ in range(4000):
        path, length_us = OnePath(law), round(log_uniform(rng, 4000, 4e6))
        begin_us = rng.choice((99, 2**40))
        path.start_train(begin_us, 10**6, length_us)
        if rng.random() < 0.1:
            path.add(begin_us, 10**6)
            path.start_train(begin_us, 10**6, length_us)
        halves: list[list[tuple[int, int]]] = [[], []]
        for _ in range(rng.randint(0, 30)):
            at_us, delay_us = rng.randint(-99, length_us + 99), rng.randint(1, 2 ** rng.randint(1, 32) - 1)
            path.add(begin_us + at_us, delay_us)
            if 0 <= at_us < length_us:
                halves[2 * at_us >= length_us - length_us % 2].append((at_us, delay_us))
        growth = path.growth()
        if not all(halves):
            assert growth == NO_GROWTH
            continue
        (sent0, delay0), (sent1, delay1) = ([sum(column) / len(half) for column in zip(*half)] for half in halves)
        if growth == NO_GROWTH:
            assert sent1 - sent0 < 1
            continue
        apart = max(sent1 - sent0, 0.5)
        wanted = min(max((delay1 - delay0) / apart, -1023 / 1024), 1024)
        assert abs(growth / 1024 - wanted) <= 1 / 1024 + (1 + abs(wanted)) / apart + 1e-9


def test_a_train_is_limited_if_data_ran_out_for_more_than_half(law: Law) -> None:
    """Single packets of a flow that has little to send do not void the train of the others."""
    for samples in range(9):
        for last in range(samples + 1):
            path = OnePath(law)
            path.start_train(0, 10**6, 8000)
            for number in range(samples):
                (path.add_last if number < last else path.add)(number * 1000, 5)
            path.add_last(8000, 5)  # no packet of the train
            assert path.limited() == (2 * last > samples)


def test_a_train_that_the_own_device_slowed_is_scaled_to_its_rate(law: Law) -> None:
    """It was sent at a part f of r, and f r / (1 + g) came through: at r it would have grown by (1 + g) / f - 1."""
    rng = random.Random(13)
    for _ in range(500):
        path, part, slope = OnePath(law), rng.uniform(0.1, 1), rng.uniform(-0.5, 2)
        path.start_train(0, 10**7, 100_000)
        ramp(path, Link(1448, 1e7, 0.1, 0, 0), 1e7, slope, rng)
        path.train_throttled = 1
        path.train_bytes = round(part * 10**6)
        assert path.growth() / 1024 == pytest.approx((1 + slope) / part - 1, abs=0.01)


def test_what_a_train_of_probe_decides(law: Law) -> None:
    """g < 0.05: idle, R = 0.98 mu; g < 0.72: R = mu (0.85 - g); otherwise the return has failed."""
    rng = random.Random(14)
    for link in links(1500, 15):
        path, slope = link.made(law, "floor"), rng.choice((0.0, rng.uniform(0, 1), rng.uniform(-0.5, 3)))
        path.probe(rng.choice((0, 2**40)))
        assert path.is_in("probe") and path.train_rate == link.mu
        length_us = ramp(path, link, link.mu, slope, rng)
        error = 2 / 1024 + (2 + 2 * abs(slope)) / (length_us / 2 - 2)
        if min(abs(slope - 0.05), abs(slope - 0.72)) < error + 0.005:
            continue
        path.verdict(path.train_until_us + 1)
        if slope > 0.72:
            assert path.is_in("floor") and path.fails == 1, (link, slope)
            continue
        wanted = 0.98 if slope < 0.05 else 0.85 - slope
        assert path.is_in("cruise") and path.fails == 0
        assert abs(path.rate / link.mu - wanted) <= error + 0.001 + 2 / link.mu, (link, slope)


def test_what_a_pulse_at_mu_decides(law: Law) -> None:
    """Two with g > 1 - R / mu + max(0.15, 2.5 e / length) end CRUISE; one that shows more to be left raises R."""
    rng = random.Random(16)
    for link in links(1500, 17):
        path, share = link.made(law), rng.uniform(0.1, 0.89)
        slope = rng.uniform(0, 1.2)
        for number in range(2):
            path.rate = round(share * link.mu)
            before = path.rate
            path.start_train(10**9 + number * 10**7, round(link.mu), path.train_len_us())
            length_us = ramp(path, link, link.mu, slope, rng)
            error = 2 / 1024 + (2 + 2 * slope) / (length_us / 2 - 2) + 2 / link.mu
            limit = 1 - share + max(0.15, 2.5 * link.noise / (length_us * US))
            path.verdict(path.train_until_us + 1)
            if abs(slope - limit) <= error + 0.003:
                break
            if slope > limit:
                assert path.is_in("floor" if number else "cruise"), (link, slope)
            else:
                assert path.is_in("cruise") and path.isolated == 0
                left = (1 - slope - 0.1) * link.mu if slope < 0.85 else 0.0
                assert abs(path.rate - max(before, left)) <= (error + 0.003) * link.mu or slope >= 0.84


@dataclass
class Capacity:
    """mu by the page: a measurement within an eighth is averaged in; of others the second in a row on one side counts,
    or the third if the noise is above a twelfth of the train's duration.
    """

    link: Link
    far: list[float] = field(default_factory=list)
    raises: int = 0
    faster: bool = False

    @property
    def mu(self) -> float:
        return self.link.mu

    @mu.setter
    def mu(self, value: float) -> None:
        self.link.mu = value

    @property
    def noisy(self) -> bool:
        return 12 * self.link.noise > self.link.train

    def learn(self, measured: float) -> None:
        if abs(measured - self.mu) < self.mu / 8:
            self.mu += (measured - self.mu) / 8
            self.far, self.raises = [], 0
            return
        if self.far and (self.far[-1] > self.mu) != (measured > self.mu):
            self.far = []
        self.far.append(measured)
        if len(self.far) < (3 if self.noisy else 2):
            return
        self.raises = self.raises + 1 if measured > 7 / 6 * self.mu else 0
        self.mu, self.far = measured, []
        self.faster = self.raises == 4


def test_mu_is_learnt_from_measurements(law: Law) -> None:
    rng = random.Random(18)
    started = 0
    for link in links(600, 19):
        if not 10 * MU_MIN < link.mu < MU_MAX / 30:  # the ends of the range have a test above
            continue
        path = link.made(law)
        oracle = Capacity(link)
        up = rng.random() < 0.5
        for _ in range(40):
            measured = oracle.mu * (1.25 if up and rng.random() < 0.9 else rng.uniform(0.5, 1.25))
            edges = (7 / 8, 9 / 8, 7 / 6)
            if min(abs(measured / oracle.mu - edge) for edge in edges) < 1e-3 + 8 / oracle.mu:
                continue
            if abs(12 * link.noise - link.train) < 100 * US:
                break
            oracle.learn(round(measured))
            path.learn_mu(0, round(measured))
            assert abs(path.mu - oracle.mu) <= 2 + 1e-9 * oracle.mu, link
            assert path.is_in("start") == oracle.faster
            if oracle.faster or not 3 * MU_MIN < oracle.mu < MU_MAX / 1.3:
                started += oracle.faster
                break
            # what was far from one mu is judged again by the next: keep both the same
            oracle.mu = float(path.mu)
    assert started > 50


def test_a_pulse_above_mu_measures_the_capacity(law: Law) -> None:
    """1.25 mu / (1 + g); within an eighth of mu an eighth of the difference is taken in."""
    rng = random.Random(20)
    for link in links(800, 21):
        path, true = link.made(law), rng.uniform(0.9, 1.1)
        path.start_train(10**9, round(1.25 * link.mu), path.train_len_us())
        length_us = ramp(path, link, 1.25 * link.mu, 1.25 / true - 1, rng)
        path.verdict(path.train_until_us + 1)
        error = (2 / 1024 + 4 / (length_us / 2 - 2)) / 8 + 3 / link.mu
        assert abs(path.mu / link.mu - max(1 + (true - 1) / 8, MU_MIN / link.mu)) <= error, link


def pair_by_the_page(link: Link, floor_s: float, fails: int, prompt: bool) -> float:
    """A seventh of the time in FLOOR, at most 500 p (250 p of singles), at least 1.25 RTT; after failures more."""
    gap = max(min(floor_s / 7, (250 if prompt else 500) * link.p), 1.25 * link.rtt)
    if fails >= 2:
        gap = max(gap, link.rtt * 2 ** min(fails - 1, 4))
    return min(gap, 5.0)


def test_time_between_pairs(law: Law) -> None:
    rng = random.Random(22)
    for link in links(3000, 23):
        begin_us = rng.choice((0, 2**50))
        path = link.made(law, "floor", begin_us)
        floor_us = rng.choice((round(log_uniform(rng, 1, 1e10)), 2**32 + rng.randrange(1000)))
        prompt = rng.random() < 0.5
        fails = rng.choice((0, 1, 2, 3, 5, 9, 2**31))
        path.now_us, path.fails, path.prompt = begin_us + floor_us, fails, int(prompt)
        wanted = pair_by_the_page(link, floor_us * US, fails, prompt)
        assert abs(path.pair_us() - wanted / US) <= 2, link
        # a slot of FLOOR is that time, dithered by up to an eighth either way
        slots_ns = [path.slot_ns(1, dither) for dither in range(0, 256, 5)]
        assert min(slots_ns) >= path.pair_us() * 1000 * 7 / 8 and max(slots_ns) <= path.pair_us() * 1000 * 9 / 8
        assert sum(slots_ns) / len(slots_ns) == pytest.approx(path.pair_us() * 1000, rel=0.002)


def test_the_strict_condition_has_an_end(law: Law) -> None:
    """From the third failure on, for 8 round trips, doubled with each failure up to 512."""
    for link in links(500, 24):
        for fails in (0, 1, 2, 3, 4, 6, 7, 100, 2**32 - 1):
            path = link.made(law, "floor")
            path.fails = fails
            patience_us = 8 * round(link.rtt / US) * min(2**fails if fails < 20 else 2**20, 64)
            for now_us in (0, patience_us - 1, patience_us, 2 * patience_us):
                path.now_us = now_us
                assert path.strict() == (fails >= 3 and now_us < patience_us)


def test_silence_after_giving_way(law: Law) -> None:
    """log2(BDP / 10 packets) + 2 round trips, rounded down; at least 2."""
    for link in links(4000, 25):
        path = link.made(law)
        exact = math.log2(max(link.bdp / (10 * link.mss), 1))
        wanted = math.floor(exact) + 2
        # the BDP is rounded down to a whole number of ten packets
        assert path.slow_start_rtts() in {wanted, math.floor(max(exact - 1e-6 - 1 / link.mss, 0)) + 2}, link
        path.give_way(10**7)
        assert path.is_in("floor") and path.silent_us() == 10**7 + path.slow_start_rtts() * path.rtt_us


def test_bytes_in_flight(law: Law) -> None:
    """R (RTT + 2 e) + 2 packets, or one slot if it holds more; e as measured.

    In START twice R RTT and 10 packets, but only these 10 before the first delay is known.
    """
    rng = random.Random(26)
    for link in links(4000, 27):
        path = link.made(law)
        path.rate = rng.randint(round(link.mu / 64), round(link.mu))
        burst = rng.choice((1, 2, 3, 44)) * link.mss
        bound = path.rate * (link.rtt + 2 * link.noise)
        assert abs(path.cap(burst) - bound - max(2 * link.mss, burst)) <= 1, link
        path.start_train(path.now_us, round(1.25 * link.mu), path.train_len_us())
        pulse = path.train_rate * path.train_len_us() * US
        assert abs(path.cap(burst) - bound - max(2 * link.mss, burst) - pulse) <= 2, link
        path.timed_out = 1
        assert path.cap(burst) == 0
        path.timed_out, path.state = 0, 0
        path.base_us = 2**32 - 1
        assert path.cap(burst) == 10 * link.mss
        path.base_us = rng.randrange(10**6)
        assert abs(path.cap(burst) - 2 * path.rate * link.rtt - 10 * link.mss) <= 1
        path.state = 2
        assert path.cap(burst) == 2**64 - 1, "FLOOR is bounded by its pairs"


def test_a_slot_takes_what_its_bytes_take_at_the_rate(law: Law) -> None:
    """At most a TSO segment, 2^-12 s long, at least a packet; two if 10 ms apart, or if a turn has no more than one."""
    rng = random.Random(28)
    for link in links(4000, 29):
        path = link.made(law)
        path.rate = rng.randint(max(round(link.mu / 64), 1000), round(link.mu))
        waiting = rng.choice((0, 1, 15, 63, 9_999))
        path.let_wait(waiting)
        pkts = min(max(math.floor(path.rate * 2**-12 / link.mss), 1), 44)
        apart = link.mss / path.rate
        limit = min(0.01, path.turn_len_us() * US) if waiting else 0.01
        if pkts == 1 and apart > limit:
            pkts = 2
        assert path.burst_pkts() == pkts or abs(apart - limit) < 1e-6 or path.rate % (link.mss << 12) < 1 << 12, link
        wanted_ns = path.burst_pkts() * link.mss / path.rate * 1e9
        assert 0 <= wanted_ns - path.slot_ns(path.burst_pkts() * link.mss, 7) < 1 + 1e-9 * wanted_ns, link


def test_a_late_timer_costs_no_rate(law: Law) -> None:
    """A slot that was missed by up to 1 ms, and by up to its length, is made up for; before 1 ms nothing is."""
    rng = random.Random(30)
    for _ in range(5000):
        now_ns = rng.choice((0, 10**5, 10**6, rng.randrange(2**63)))
        slot_ns = rng.choice((0, 1, rng.randrange(10**7), 2**32 + rng.randrange(10**6), 2**64 - 1))
        assert now_ns - law.late_ns(now_ns, slot_ns) == min(slot_ns, 10**6, now_ns)


def test_the_slots_follow_at_the_rate(law: Law) -> None:
    """Whoever sends in a slot that has come, up to 1 ms and half of a slot late: the sum is R."""
    rng = random.Random(31)
    for link in links(200, 32):
        path = link.made(law)
        start_ns = now_ns = rng.choice((10**9, 2**62))
        path.next_ns = now_ns
        size = path.burst_pkts() * link.mss
        slot_ns = path.slot_ns(size, 0)
        for _ in range(400):
            now_ns = path.due_ns() + rng.randrange(min(10**6, slot_ns // 2) + 1)
            path.sent(now_ns, slot_ns, size)
        rate = 400 * size / ((now_ns - start_ns) / 1e9 or 1)
        assert rate == pytest.approx(path.rate, rel=1 / slot_ns + 0.01), link


def test_turns_are_long_enough_to_show_and_short_enough_to_wait_for(law: Law) -> None:
    """A round trip, 11 ms, or 16 packets' time, but 1 s at most for all flows that have data; a train is not cut."""
    rng = random.Random(35)
    for link in links(2000, 36):
        path = link.made(law)
        waiting = rng.choice((1, 3, 15, 63, 9_999))
        path.let_wait(waiting)
        shows_us = max(path.rtt_us, 11_000, 16 * path.pkt_us())
        length_us = path.turn_len_us()
        assert length_us == min(shows_us, 10**6 // (waiting + 1)), link
        path.turn_us = path.now_us
        path.turn_pkts = 2
        path.next_ns = (path.now_us + length_us) * 1000
        path.now_us += length_us - 1
        assert not path.turn_over()
        path.now_us += 1
        assert path.turn_over()
        path.start_train(path.now_us, round(link.mu), 5000)
        assert not path.turn_over(), "a train is of one flow"
        path.now_us += 5000
        assert path.turn_over()


def test_turns_are_in_proportion_to_weights(law: Law) -> None:
    """C = min(L W / w', 1 s), and a turn is C w / W: the least one is L unless that takes all of them beyond 1 s."""
    rng = random.Random(40)
    for link in links(1000, 41):
        path = link.made(law, now_us=10**9)
        weights = [law.weight_each(rng.choice((1, 200, 1000, 3000, 10**6)), rng.choice((1, 1, 3, 50)))]
        weights += [rng.choice((weights[0], WEIGHT, rng.randint(1, 10**9))) for _ in range(rng.choice((0, 1, 4, 99)))]
        for weight in weights:  # each has a turn, and waits for the next
            path.turn_weighing(weight)
            path.wait_weighing(weight)
        path.wait_end_weighing(weights[-1])
        shows = max(path.rtt_us, 11_000, 16 * path.pkt_us()) * US
        cycle = min(shows * sum(weights) / min(weights), 1.0)
        parts = [path.part_us(weight) for weight in weights]
        for weight, part in zip(weights, parts, strict=True):
            assert rounded_down(cycle * weight / sum(weights), part, 2), (link, weights)
        assert sum(parts) <= 10**6, "no flow pauses for more than a second"
        assert cycle == 1.0 or min(parts) >= math.floor(shows / US + 1e-3) - 1
        assert path.turn_len_us() == parts[-1]


def test_equal_weights_have_the_turns_of_flows_without(law: Law) -> None:
    """To the us, whatever the weight is: that of each, or of none, is the same as that of all."""
    rng = random.Random(42)
    for link in links(1000, 43):
        ordinary, path = link.made(law, now_us=10**9), link.made(law, now_us=10**9)
        flows, weight = rng.choice((1, 2, 7, 90, 4000)), rng.choice((1, 7, WEIGHT, 10**9))
        ordinary.let_wait(flows - 1)
        path.turn_weighing(weight)
        path.waiting, path.line_weight = flows - 1, (flows - 1) * weight
        shows_us = max(path.rtt_us, 11_000, 16 * path.pkt_us())
        assert path.turn_len_us() == ordinary.turn_len_us() == min(shows_us, 10**6 // flows), link


def test_the_least_weight_is_that_of_the_last_seconds(law: Law) -> None:
    """Turns are longer while a flow of little weight has some, and for up to two seconds more."""
    path = Link(1448, 1.25e6, 0.1, 0.001, 0.1).made(law, now_us=10**9)
    path.turn_weighing(WEIGHT // 4)
    path.turn_weighing(WEIGHT)
    path.let_wait(1)
    assert path.turn_len_us() == 400_000
    for later_us, length_us in ((999_999, 400_000), (1_000_002, 400_000), (2_000_003, 100_000)):
        path.now_us = 10**9 + later_us
        path.turn_weighing(WEIGHT)
        assert path.turn_len_us() == length_us, later_us


def test_a_weight_for_several_flows_is_divided(law: Law) -> None:
    """1000 is the weight of an ordinary flow; no part of it is 0."""
    assert law.weight_each(1000, 0) == law.weight_each(1000, 1) == WEIGHT
    assert law.weight_each(1, 1) == WEIGHT // 1000 and law.weight_each(10**6, 1) == 1000 * WEIGHT
    assert law.weight_each(200, 16) == WEIGHT // 5 // 16
    assert law.weight_each(1, 5000) == 1


def test_a_rest_makes_up_for_a_pulse(law: Law) -> None:
    """The rest takes as long as the bytes that the pulse sent beyond R take at R."""
    rng = random.Random(33)
    for link in links(2000, 34):
        path = link.made(law, now_us=10**9)
        path.rate = rng.randint(max(round(link.mu / 64), 1000), round(link.mu))
        length_us = path.train_len_us()
        path.start_train(10**9, round(1.25 * link.mu), length_us)
        path.pulsed = 1
        now_ns = (10**9 + length_us) * 1000
        path.rest(now_ns - 1000)
        assert path.due_ns() <= now_ns, "the pulse goes on"
        path.now_us = 10**9 + length_us
        rest = length_us * US * (path.train_rate - path.rate) / path.rate
        path.rest(now_ns)
        first_ns = path.due_ns()
        assert (first_ns - now_ns) / 1e9 == pytest.approx(rest, abs=2e-6), link
        path.rest(now_ns)
        assert path.due_ns() == first_ns, "one pulse has one rest"


@pytest.mark.parametrize(
    ("part", "marked", "samples"), [(2.01, False, 2), (0.0, True, 2), (1.9, False, 4), (0.7, False, 0)]
)
def test_the_queue_that_is_other_traffic(law: Law, part: float, marked: bool, samples: int) -> None:
    """Two samples above 2 j, or four over 8 p above j plus the queue of a round trip ago; a mark is above 2 j."""
    judged = 0
    for link in links(2000, 36):
        path, base_us, now_us = link.made(law, now_us=10**9), 10**6, 10**9
        path.pulse_us = 0  # no packet was sent before CRUISE began
        path.ack(now_us, base_us, path.rtt_us, 2, 0, 0)
        queue = part * link.jump + 6 * US * (part > 2)
        # the queue of a round trip ago is the target
        if samples == 4 and queue < link.target + link.jump + 6 * US:
            continue
        if 8 * link.p > 60:  # the base is forgotten before the fourth sample
            continue
        judged += 1
        for number in range(1, 9):
            # all at once, but for the fourth
            now_us += 8 * path.pkt_us() + 1 if number == 4 else 0
            path.ack(now_us, base_us + round(queue / US), path.rtt_us + round(queue / US), 2, 0, marked)
            assert path.is_in("floor") == (0 < samples <= number), (link, number)
            if path.is_in("floor"):
                break
    assert judged > 100


@pytest.mark.parametrize("lost_pct", [0, 10, 24, 26, 60, 100])
def test_two_round_trips_of_heavy_loss_are_a_policer(law: Law, lost_pct: int) -> None:
    """More than a quarter, of more than 24 packets, in two round trips in a row; what came through becomes mu."""
    rng = random.Random(37)
    for link in links(400, 38):
        if link.rtt < 0.0002:
            continue
        for pkts in (20, 100):
            path = link.made(law, now_us=10**9)
            base_us, now_us = 10**6, 10**9
            path.ack(now_us, base_us, base_us + 5, 0, 0, 0)
            for number in range(3):
                path.rtt_us = round(link.rtt / US)
                round_us = max(path.rtt_us, 8 * path.pkt_us(), round(TICK_S / US)) + rng.randint(0, 5)
                now_us += round_us
                came = pkts * (100 - lost_pct) // 100
                path.heard_us = now_us
                path.ack(now_us, 0, 1, came, pkts - came, 0)
                heavy = lost_pct > 25 and pkts > 24
                if not heavy or number < 1:
                    assert path.is_in("cruise"), (link, number)
                    continue
                assert path.is_in("floor") and path.policed_us == now_us + 180 * 10**6
                wanted = min(max(came * link.mss / (round_us * US), MU_MIN), MU_MAX)
                assert path.mu == pytest.approx(wanted, rel=0.02, abs=2), link
                break


def test_flows_that_contradict_each_other(law: Law) -> None:
    """Compared once a round trip, 12 times more against than for, over 4 s; the clock in ms wraps in 49 days."""
    rng = random.Random(39)
    for start_us in (10**6, 2**32 * 1000 - 2 * 10**6, 10**15):
        for apart_us, odd in ((0, False), (1000, False), (30_000, True), (-30_000, True)):
            path = Link(1448, 1.25e6, 0.1, 0.001, 0.1).made(law, now_us=start_us)
            path.flows = 2
            views = [path.view(), path.view()]
            split_us, now_us = 0, start_us
            for number in range(1200):
                now_us += 5000
                delay_us = 60_000 + (apart_us if number % 2 else 0) + rng.randint(0, 50)
                if path.contradicts(views[number % 2], now_us, delay_us):
                    split_us = now_us
                    break
            assert bool(split_us) == odd, (start_us, apart_us)
            assert not odd or 4 * 10**6 <= split_us - start_us < 5 * 10**6
