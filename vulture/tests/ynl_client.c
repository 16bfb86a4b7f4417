// SPDX-License-Identifier: GPL-2.0
/*
 * A program with the parser that the kernel's generator makes for libynl (tools/ynl).
 *
 *	ynl_client FD PSI_US	starts the control of a connected TCP socket that it inherits, with
 *				the controller paper and this option; prints what it reads back
 *
 * Return: 0, or 1 with the kernel's text on standard error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ynl.h>

#include "vulture-user.h"

static int fail(const struct ynl_sock *ys, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, ys->err.msg);
	return 1;
}

static int show_defaults(struct ynl_sock *ys)
{
	struct vulture_get_defaults_rsp *rsp = vulture_get_defaults(ys);

	if (!rsp)
		return fail(ys, "get-defaults");
	printf("controller %s\nmax-flows %u\npsi-us %u\nweight %u\nversion %s\n",
	       vulture_controller_str(rsp->options.controller), rsp->max_flows,
	       rsp->options.paper.psi_us, rsp->options.credit.weight, rsp->version);
	vulture_get_defaults_rsp_free(rsp);
	return 0;
}

static int start(struct ynl_sock *ys, unsigned int fd, unsigned int psi_us)
{
	struct vulture_start_req *req = vulture_start_req_alloc();
	struct vulture_start_rsp *rsp;

	vulture_start_req_set_fd(req, fd);
	vulture_start_req_set_options_controller(req, VULTURE_CONTROLLER_PAPER);
	vulture_start_req_set_options_paper_psi_us(req, psi_us);
	rsp = vulture_start(ys, req);
	vulture_start_req_free(req);
	if (!rsp)
		return fail(ys, "start");
	printf("count %u\n", rsp->count);
	vulture_start_rsp_free(rsp);
	return 0;
}

static int show_flow(const struct vulture_flow *flow)
{
	printf("flow %llu\nflow-psi-us %u\nphase %s\nremote-port %u\nlocal-octets %u\n",
	       (unsigned long long)flow->id, flow->options.paper.psi_us,
	       vulture_phase_str(flow->paper.phase), flow->addr.remote_port,
	       flow->addr._present.local_len);
	return 0;
}

static int show_flows(struct ynl_sock *ys)
{
	struct vulture_get_list *list = vulture_get_dump(ys);

	if (!list)
		return fail(ys, "get");
	ynl_dump_foreach(list, rsp)
		show_flow(&rsp->flow);
	vulture_get_list_free(list);
	return 0;
}

int main(int argc, char **argv)
{
	struct ynl_error error;
	struct ynl_sock *ys;
	int result;

	if (argc != 3) {
		fputs("usage: ynl_client FD PSI_US\n", stderr);
		return 2;
	}
	ys = ynl_sock_create(&ynl_vulture_family, &error);
	if (!ys) {
		fprintf(stderr, "%s\n", error.msg);
		return 1;
	}
	result = show_defaults(ys);
	if (!result)
		result = start(ys, atoi(argv[1]), atoi(argv[2]));
	if (!result)
		result = show_flows(ys);
	ynl_sock_destroy(ys);
	return result;
}
