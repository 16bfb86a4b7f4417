# SPDX-License-Identifier: GPL-2.0
"""What the kernel's own tcp_lp computes, restated in Python to be shown wrong beside ours.

Only its arithmetic, with the widths of its integers: u32 where it has u32, s64 where it has s64.
The text is ours; the behaviour is that of net/ipv4/tcp_lp.c in Linux 6.1 to 7.2 (all the same).
Numbers in comments are the rows of the list of 21 faults.
"""

from __future__ import annotations

U32 = 0xFFFFFFFF
TS_HZ = 1000


def u32(x: int) -> int:
    return x & U32


def s32(x: int) -> int:
    return ((x & U32) ^ 0x80000000) - 0x80000000


class InTree:
    """One flow. ack() takes what the kernel's module takes from a socket and returns the window."""

    def __init__(self, cwnd: int = 10):
        self.cwnd = cwnd
        self.sowd = 0
        self.least = U32
        self.most = 0
        self.reserve = 0
        self.hz = 0
        self.remote_ref = 0
        self.local_ref = 0
        self.last_drop = 0
        self.inference = 0
        self.valid_hz = self.valid_owd = False
        self.within_threshold = self.within_inference = False
        self.owd = 0
        self.indications = 0

    def _hz(self, tsval: int, tsecr: int) -> int:
        rhz = u32(self.hz << 6)  # 8: overflows
        if self.remote_ref and self.local_ref and tsval != self.remote_ref and tsecr != self.local_ref:
            # 6: one ACK's differences; 8: unsigned, a reordered ACK is a huge one
            m = u32(TS_HZ * u32(tsval - self.remote_ref)) // u32(tsecr - self.local_ref)
            rhz = rhz + m - (rhz >> 6) if rhz > 0 else m << 6
        self.valid_hz = (rhz >> 6) > 0
        self.remote_ref, self.local_ref = tsval, tsecr  # 9: moves with every ACK
        return u32(rhz >> 6)

    def _owd(self, tsval: int, tsecr: int) -> int:
        self.hz = self._hz(tsval, tsecr)
        owd = 0
        if self.valid_hz:
            # 1: unsigned, so never negative; 7: an integer division that is 0 or 1
            owd = u32(u32(tsval * (TS_HZ // self.hz)) - tsecr)
        self.valid_owd = owd > 0
        return owd

    def _sample(self, tsval: int, tsecr: int) -> None:
        owd = self.owd = self._owd(tsval, tsecr)
        if not (self.valid_hz and self.valid_owd):
            return
        self.least = min(self.least, owd)  # 10: from the first sample on
        if owd > self.most:  # 11: forgets one sample only
            if owd > self.reserve:
                self.most = owd if self.reserve == 0 else self.reserve
                self.reserve = owd
            else:
                self.most = owd
        if self.sowd:
            self.sowd = u32(self.sowd + owd - (self.sowd >> 3))  # 2: 29 bits are left for it
        else:
            self.sowd = u32(owd << 3)

    def threshold(self) -> int:
        return u32(self.least + u32(15 * u32(self.most - self.least)) // 100)  # 4: overflows

    def ack(self, now: int, tsval: int, tsecr: int, rtt_us: int = 1) -> int:
        """One ACK; times in ms ticks. Returns the window after it."""
        if rtt_us > 0:
            self._sample(tsval, tsecr)
        delta = u32(now - tsecr)
        if s32(delta) > 0:
            self.inference = u32(3 * delta)  # 14: moves with every ACK
        self.within_inference = bool(self.last_drop) and u32(now - self.last_drop) < self.inference
        self.within_threshold = self.sowd >> 3 < self.threshold()
        if self.within_threshold:
            return self.cwnd
        self.least = self.sowd >> 3  # 3: the congested delay
        self.most = self.reserve = u32(self.sowd) >> 2
        self.cwnd = 1 if self.within_inference else max(self.cwnd >> 1, 1)  # 13: no guard
        self.last_drop = now
        self.indications += 1
        return self.cwnd

    def may_grow(self) -> bool:
        """15: the flag is from before this ACK's own drop."""
        return not self.within_inference
