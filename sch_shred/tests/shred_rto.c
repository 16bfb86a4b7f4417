// SPDX-License-Identifier: GPL-2.0
/*
 * shred_rto - another initial time-out for TCP, in all network namespaces
 *
 *   initial_ms=N   time from a SYN or SYN/ACK to the next one; 0 = the kernel's (1 s)
 *
 * The paper on SHRED has TCPs that wait 3 s for the answer to a SYN (RFC 1122,
 * section 4.2.3.1; 1 s since RFC 6298), and its Figure 8 consists of such waits. The
 * kernel's time-out is a constant that only a BPF program can change. This module
 * does the same as such a program: it changes the time-out before the timer starts.
 * For testbeds only.
 *
 * Locking: a SYN is sent under its socket's lock. A SYN/ACK's request has just been
 * created and its timer runs for 1 s: no other code writes it before that.
 */
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#define INITIAL_MS_MAX	60000U

static unsigned int initial_ms;
module_param(initial_ms, uint, 0444);
MODULE_PARM_DESC(initial_ms, "first time-out, ms, to 60000; 0 = the kernel's own");

static void shred_rto_request(struct request_sock *req, unsigned long timeout_jif)
{
	/* only before the first time-out: later ones double this value */
	if (req->num_timeout || req->timeout == timeout_jif)
		return;
	req->timeout = timeout_jif;
	mod_timer_pending(&req->rsk_timer, jiffies + timeout_jif);
}

static unsigned int shred_rto_out(void *priv, struct sk_buff *skb,
				  const struct nf_hook_state *state)
{
	unsigned long timeout_jif = msecs_to_jiffies(initial_ms);
	struct sock *sk = skb->sk;

	if (!sk)
		return NF_ACCEPT;
	/* a request is not a full socket: only its state may be read */
	if (sk->sk_state == TCP_NEW_SYN_RECV)
		shred_rto_request(inet_reqsk(sk), timeout_jif);
	else if (sk->sk_state == TCP_SYN_SENT && sk->sk_protocol == IPPROTO_TCP &&
		 !tcp_sk(sk)->total_retrans)
		inet_csk(sk)->icsk_rto = timeout_jif;	/* tcp_connect() starts it after this */
	return NF_ACCEPT;
}

static const struct nf_hook_ops shred_rto_hooks[] = {
	{ .hook = shred_rto_out, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT },
	{ .hook = shred_rto_out, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT },
};

static int __net_init shred_rto_net_init(struct net *net)
{
	return nf_register_net_hooks(net, shred_rto_hooks, ARRAY_SIZE(shred_rto_hooks));
}

static void __net_exit shred_rto_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, shred_rto_hooks, ARRAY_SIZE(shred_rto_hooks));
}

static struct pernet_operations shred_rto_net_ops = {
	.init = shred_rto_net_init,
	.exit = shred_rto_net_exit,
};

static int __init shred_rto_init(void)
{
	if (initial_ms > INITIAL_MS_MAX) {
		pr_err("shred_rto: initial_ms %u: must be 0 to %u\n", initial_ms, INITIAL_MS_MAX);
		return -ERANGE;
	}
	return initial_ms ? register_pernet_subsys(&shred_rto_net_ops) : 0;
}

static void __exit shred_rto_exit(void)
{
	if (initial_ms)
		unregister_pernet_subsys(&shred_rto_net_ops);
}

module_init(shred_rto_init);
module_exit(shred_rto_exit);

MODULE_DESCRIPTION("Another first time-out for TCP, for testbeds");
MODULE_LICENSE("GPL");
MODULE_VERSION(LBE_VERSION);
