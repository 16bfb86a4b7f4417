/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The answer of the suite's congestion controls to `ss -i` and TCP_CC_INFO. It may be asked
 * for without the socket's lock.
 */
#ifndef LBE_INFO_H
#define LBE_INFO_H

#include <linux/inet_diag.h>
#include <net/tcp.h>

typedef size_t lbe_get_info_fn(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);

/**
 * lbe_bbr_rate - answer `ss -i` and TCP_CC_INFO with a rate and a delay, in the fields of BBR
 * @sk: socket, perhaps without its lock
 * @own: get_info of the calling control
 * @bw: bytes a second, read from the control's private area or not
 * @base_us: least delay, us, read from the control's private area; U32_MAX = none yet
 * @ext: the extensions that are requested
 * @attr: result: the kind of @info
 * @info: result: @bw, min_rtt (0 = none yet), and 0 for the gains
 *
 * Return: size of the answer; 0 if no such answer was asked for, or if another control
 * has taken the private area.
 */
static inline size_t lbe_bbr_rate(const struct sock *sk, lbe_get_info_fn *own, u64 bw, u32 base_us,
				  u32 ext, int *attr, union tcp_cc_info *info)
{
	/* What was read is the caller's if the socket still has this control: a change sets
	 * icsk_ca_ops first. The kernel writes without a barrier, so that another architecture
	 * may still show bytes of another control here: a wrong number, but never an index.
	 */
	smp_rmb();
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops)->get_info != own)
		return 0;
	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->bbr, 0, sizeof(info->bbr));
	info->bbr.bbr_bw_lo = (u32)bw;
	info->bbr.bbr_bw_hi = (u32)(bw >> 32);
	info->bbr.bbr_min_rtt = base_us == U32_MAX ? 0 : base_us;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

/**
 * lbe_bbr_info - answer `ss -i` and TCP_CC_INFO in the fields of BBR
 * @sk: socket, perhaps without its lock
 * @own: get_info of the calling control
 * @base_us: least delay, us, read from the control's private area; U32_MAX = none yet
 * @rest_rtts: rest between windows, round trips, also read from there
 * @ext: the extensions that are requested
 * @attr: result: the kind of @info
 * @info: result
 *
 *	bw		latest delivery rate, bytes a second
 *	min_rtt		least delay, us
 *	pacing_gain	part of the time in which the flow sends: 1 / (1 + rest), in 256ths
 *	cwnd_gain	window divided by bw times min_rtt, in 256ths
 *
 * Return: as lbe_bbr_rate()
 */
static inline size_t lbe_bbr_info(const struct sock *sk, lbe_get_info_fn *own, u32 base_us,
				  u32 rest_rtts, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 interval_us = READ_ONCE(tp->rate_interval_us), bw = 0, pipe;
	size_t size;

	if (interval_us)
		bw = div64_u64((u64)READ_ONCE(tp->rate_delivered) *
			       tp->mss_cache * USEC_PER_SEC, interval_us);
	size = lbe_bbr_rate(sk, own, bw, base_us, ext, attr, info);
	if (!size)
		return 0;
	pipe = max_t(u64, div_u64(min_t(u64, bw, 1ULL << 36) *
				  min(info->bbr.bbr_min_rtt, 1U << 26), USEC_PER_SEC), 1);
	info->bbr.bbr_pacing_gain = 256 / (1 + rest_rtts);
	info->bbr.bbr_cwnd_gain = min_t(u64, U32_MAX,
					div64_u64((u64)READ_ONCE(tp->snd_cwnd) *
						  tp->mss_cache * 256, pipe));
	return size;
}

#endif /* LBE_INFO_H */
