// SPDX-License-Identifier: GPL-2.0
/* Lists the TCP sockets of this network namespace by sock_diag(7). */
#include "diag.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>
#include <time.h>

/* States of net/tcp_states.h: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING */
#define STATES	(1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11)

struct dump {
	void (*each)(const struct diag_socket *socket, void *arg);
	void *arg;
};

static void read_end(const struct inet_diag_msg *msg, const uint32_t *address, uint16_t port,
		     struct sockaddr_in6 *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct in6_addr in6;

	memset(to, 0, sizeof(*to));
	memcpy(&in6, address, sizeof(in6));
	if (msg->idiag_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&in6)) {
		to->sin6_family = AF_INET6;
		to->sin6_port = port;
		to->sin6_addr = in6;
		return;
	}
	in->sin_family = AF_INET;
	in->sin_port = port;
	memcpy(&in->sin_addr, msg->idiag_family == AF_INET ? address : address + 3,
	       sizeof(in->sin_addr));
}

/* Copy a struct of the kernel's. An older kernel's may be shorter; the rest then stays 0. */
static void copy_part(void *to, size_t room, const struct nlattr *attr)
{
	size_t length = mnl_attr_get_payload_len(attr);

	memcpy(to, mnl_attr_get_payload(attr), length < room ? length : room);
}

static void read_info(const struct nlattr *attr, struct diag_socket *socket)
{
	struct tcp_info info = {};

	copy_part(&info, sizeof(info), attr);
	socket->acked_bytes = info.tcpi_bytes_acked;
	socket->busy_us = info.tcpi_busy_time;
	socket->rwnd_us = info.tcpi_rwnd_limited;
	socket->sndbuf_us = info.tcpi_sndbuf_limited;
	socket->rtt_us = info.tcpi_rtt;
	socket->min_rtt_us = info.tcpi_min_rtt == ~0U ? 0 : info.tcpi_min_rtt;
}

static int read_socket(const struct nlmsghdr *nlh, void *arg)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	struct tcp_bbr_info bbr = {};
	struct diag_socket socket = {};
	const struct dump *dump = arg;
	const struct nlattr *attr;

	if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(*msg))
		return MNL_CB_OK;
	read_end(msg, msg->id.idiag_src, msg->id.idiag_sport, &socket.address.local.in6);
	read_end(msg, msg->id.idiag_dst, msg->id.idiag_dport, &socket.address.remote.in6);
	socket.inode = msg->idiag_inode;
	socket.uid = msg->idiag_uid;
	socket.unread_bytes = msg->idiag_rqueue;
	mnl_attr_for_each(attr, nlh, sizeof(*msg)) {
		switch (mnl_attr_get_type(attr)) {
		case INET_DIAG_INFO:
			read_info(attr, &socket);
			break;
		case INET_DIAG_CONG:
			copy_part(socket.control, sizeof(socket.control) - 1, attr);
			break;
		case INET_DIAG_BBRINFO:
			copy_part(&bbr, sizeof(bbr), attr);
			socket.path_Bps = (uint64_t)bbr.bbr_bw_hi << 32 | bbr.bbr_bw_lo;
			break;
		}
	}
	dump->each(&socket, dump->arg);
	return MNL_CB_OK;
}

static int dump_family(struct mnl_socket *nl, int family, struct dump *dump)
{
	static char buffer[32768];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	uint32_t seq = (uint32_t)time(NULL) + family;
	struct inet_diag_req_v2 *request;
	ssize_t got;
	int state = MNL_CB_OK;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = seq;
	request = mnl_nlmsg_put_extra_header(nlh, sizeof(*request));
	request->sdiag_family = (uint8_t)family;
	request->sdiag_protocol = IPPROTO_TCP;
	request->idiag_states = STATES;
	request->idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) |
			     1 << (INET_DIAG_VEGASINFO - 1);
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -1;
	while (state == MNL_CB_OK) {
		got = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));
		if (got < 0)
			return -1;
		state = mnl_cb_run(buffer, (size_t)got, seq, mnl_socket_get_portid(nl), read_socket,
				   dump);
	}
	return state < 0 ? -1 : 0;
}

int diag_each(void (*each)(const struct diag_socket *socket, void *arg), void *arg)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC);
	struct dump dump = { each, arg };
	int result = -1;

	if (!nl)
		return -1;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) >= 0 && !dump_family(nl, AF_INET, &dump))
		result = dump_family(nl, AF_INET6, &dump);
	mnl_socket_close(nl);
	return result;
}
