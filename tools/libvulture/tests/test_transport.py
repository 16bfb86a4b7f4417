# SPDX-License-Identifier: GPL-2.0
"""The library's reading of an answer, in a program in which the test decides what the kernel sends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

LIBRARY = REPO / "tools" / "libvulture"
#: the kernel knows no family of that name; the read of this answer fails first, with each errno that was given
KERNEL = """
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include "vulture.h"

static char **failures;
static struct nlmsghdr asked;

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *nl, const void *request, size_t size)
{
	memcpy(&asked, request, sizeof(asked));
	return size;
}

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *nl, void *buffer, size_t size)
{
	struct nlmsghdr *nlh;
	struct nlmsgerr *error;

	if (*failures) {
		errno = atoi(*failures++);
		return -1;
	}
	nlh = mnl_nlmsg_put_header(buffer);
	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_seq = asked.nlmsg_seq;
	error = mnl_nlmsg_put_extra_header(nlh, sizeof(*error));
	error->error = -ENOENT;
	return nlh->nlmsg_len;
}

int main(int argc, char **argv)
{
	failures = argv + 1;
	if (vulture_open())
		return 2;
	printf("%d %s", errno, vulture_error(NULL));
	return 0;
}
"""


@pytest.fixture(scope="module")
def opener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transport")
    (folder / "kernel.c").write_text(KERNEL)
    words = ["cc", "-std=gnu11", "-w", f"-I{LIBRARY}", "-Wl,--wrap=mnl_socket_sendto,--wrap=mnl_socket_recvfrom"]
    subprocess.run(
        [*words, folder / "kernel.c", *LIBRARY.glob("*.c"), "-lmnl", "-o", folder / "opener"], check=True
    )
    return folder / "opener"


def test_a_signal_does_not_end_the_wait_for_an_answer(opener: Path) -> None:
    absent = "2 the kernel module vulture is not loaded (modprobe vulture)"
    for failures, said in (
        ((), absent),
        (("4",), absent),
        (("4", "4"), absent),
        (("105",), "105 no answer from the kernel: No buffer space available"),
        (("4", "105"), "105 no answer from the kernel: No buffer space available"),
    ):
        done = subprocess.run([opener, *failures], capture_output=True, text=True, check=True)
        assert done.stdout == said, (failures, done)
