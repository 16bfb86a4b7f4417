# SPDX-License-Identifier: GPL-2.0
"""Parts of vulturectl in a program of their own, in which the test decides what the kernel or the guard answers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from testbed.base.places import REPO

pytestmark = pytest.mark.host

TOOL = REPO / "tools" / "vulturectl"
CC = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-w", "-ffunction-sections", "-fdata-sections"]
#: run waits for its guard's answer in poll(): the first order is answered late, the others while it waits
GUARD = """
#include <poll.h>
static int guard_poll(struct pollfd *events, nfds_t n, int ms);
#define poll guard_poll
#include "run.c"
#undef poll

static struct plan plan;
static int carried_out;
static bool late = true;

static void carry_out(void)
{
	char order;

	if (recv(plan.orders[0], &order, 1, MSG_DONTWAIT) != 1)
		return;
	carried_out++;
	if (send(plan.orders[0], &order, 1, 0) != 1)
		_exit(2);
}

static int guard_poll(struct pollfd *events, nfds_t n, int ms)
{
	if (late)
		return 0;
	if (poll(events, n, 0) == 0)
		carry_out();
	return poll(events, n, ms && 0);
}

int main(void)
{
	int waited;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, plan.orders))
		return 2;
	tell_guard(&plan, ORDER_FRONT);
	printf("%d", carried_out);
	carry_out();
	late = false;
	for (waited = 0; waited < 3; waited++) {
		tell_guard(&plan, ORDER_BACK);
		printf(" %d", carried_out);
	}
	/* a guard that was killed */
	close(plan.orders[0]);
	tell_guard(&plan, ORDER_FRONT);
	return 0;
}
"""
#: a process with a listening socket and one that is not connected yet; what each look opens, and what it starts
WATCH = """
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "watch.c"

static int opened, started;

int __real_pidfd_getfd(int pidfd, int fd, unsigned int flags);
int __wrap_pidfd_getfd(int pidfd, int fd, unsigned int flags);
int __wrap_pidfd_getfd(int pidfd, int fd, unsigned int flags)
{
	opened++;
	return __real_pidfd_getfd(pidfd, fd, flags);
}

int __wrap_vulture_start(struct vulture *v, int fd, const struct vulture_options *options);
int __wrap_vulture_start(struct vulture *v, int fd, const struct vulture_options *options)
{
	started++;
	return 0;
}

int main(void)
{
	struct watch watch = { .down = (struct vulture *)&watch };
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), i;
	socklen_t size = sizeof(at);
	struct pids pids = {};

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &size))
		return 2;
	pids_add(&pids, getpid());
	for (i = 0; i < 6; i++) {
		if (i == 3 && (connect(client, (struct sockaddr *)&at, size) ||
			       accept(listener, NULL, NULL) < 0))
			return 2;
		watch_pids(&watch, &pids);
		printf("%d/%d ", opened, started);
		opened = 0;
	}
	return !!watch.refused;
}
"""
#: of each word, whether top counts a congestion control of this name as one of the suite's
CONTROLS = """
#include "activity.c"

int main(int argc, char **argv)
{
	while (*++argv)
		printf("%d", is_background(*argv));
	return 0;
}
"""
#: there is no memory for the table of programs
NO_MEMORY = """
#include "activity.h"
static struct program *no_programs(const struct look *look, size_t *count)
{
	*count = 0;
	return NULL;
}
#define look_programs no_programs
#include "top.c"

int main(int argc, char **argv)
{
	struct look look = {};

	json = argc > 2;
	if (*argv[1] == 't')
		print_look(&look);
	else
		do_metrics(1, argv);
	return 0;
}
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the objects of vulturectl and the library; vulturectl's main() is program() there."""
    folder = tmp_path_factory.mktemp("objects")
    sources = [*TOOL.glob("*.c"), *(TOOL.parent / "libvulture").glob("*.c")]
    words = [*CC, "-Dmain=program", '-DLBE_VERSION=""', "-c"]
    words += [str(path) for path in sources if not path.name.endswith(".bpf.c")]
    subprocess.run(words, cwd=folder, check=True)
    return folder


def run(
    objects: Path, source: str, instead: str, *words: str, flags: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Link a program with all objects but the one that its source includes, without what it does not call; run it."""
    folder = objects / instead
    folder.mkdir()
    (folder / "part.c").write_text(source)
    others = [path for path in objects.glob("*.o") if path.stem != instead]
    options = [f"-I{TOOL}", "-Wl,--gc-sections", *flags]
    subprocess.run([*CC, *options, folder / "part.c", *others, "-lmnl", "-o", folder / "part"], check=True)
    return again(objects, instead, *words)


def again(objects: Path, instead: str, *words: str) -> subprocess.CompletedProcess[str]:
    part = objects / instead / "part"
    return subprocess.run(
        [part, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )


def test_an_answer_that_comes_late_is_not_that_to_the_next_order(objects: Path) -> None:
    """run goes on once the guard has carried out the order that it was told last."""
    done = run(objects, GUARD, "run")
    assert (done.returncode, done.stdout) == (0, "0 2 3 4"), done


def test_a_listening_socket_is_opened_once(objects: Path) -> None:
    """One that is not connected yet is opened in every look, so that its connection is noticed."""
    done = run(objects, WATCH, "watch", flags=("-Wl,--wrap=pidfd_getfd", "-Wl,--wrap=vulture_start"))
    assert (done.returncode, done.stdout) == (0, "2/0 1/0 1/0 2/2 0/2 0/2 "), done


def test_every_control_of_the_suite_is_shown(objects: Path) -> None:
    """All that the modules may register, also by an option; and no other."""
    text = "".join(path.read_text(encoding="utf-8") for path in REPO.glob("tcp_*/*.[ch]"))
    names = set(re.findall(r'(?:\.name\t+= |_OPS\(|LOWPRI_ROW_\w+\()"([\w.]+)"', text))
    assert len(names) >= 30 and {"lbe", "lp_ecn", "ledbatpp", "background", "lowpri1", "lowpri6.2"} < names, names
    others = ["cubic", "reno", "bbr", "vegas", "lb", "lbe2", "lpp", "lowpr", ""]
    done = run(objects, CONTROLS, "activity", *names, *others)
    assert (done.returncode, done.stdout) == (0, "1" * len(names) + "0" * len(others)), (sorted(names), done)


def test_without_memory_there_is_no_empty_table(objects: Path) -> None:
    run(objects, NO_MEMORY, "top", "top")
    for words in (("top",), ("top", "json"), ("metrics",)):
        done = again(objects, "top", *words)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr == f"vulturectl: {words[0]}: out of memory\n", done
