#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# --backend host: run a job in namespaces of the running kernel, as root.
#
#   host.sh JOB OUT LIMIT_S      JOB: a job folder as testbed/backends/netns.py lays it out
#
# What the machine notices: modules that were not loaded (removed again), ceilings of
# socket buffers (host.sysctl, put back), and the load. Nodes, their names and all
# processes are in namespaces of their own, which end with this script.
set -eu

inside() { # in the new namespaces: JOB OUT
	mount --make-rprivate /
	# Names of nodes and the fixed folders of a job, seen by nobody else.
	mkdir -p /run/netns
	mount -t tmpfs none /run/netns
	mount -t tmpfs none /mnt
	mkdir /mnt/job /mnt/out
	mount --bind "$1" /mnt/job
	mount --bind "$2" /mnt/out
	mount -t tmpfs none /tmp
	mkdir /tmp/job /tmp/out
	mount --move /mnt/job /tmp/job
	mount --move /mnt/out /tmp/out
	cd /tmp/job
	export LBE_OUT=/tmp/out PATH="/tmp/job/bin:$PATH"
	exec sh ./job.sh
}

if [ "${1:-}" = --inside ]; then
	shift
	inside "$@"
fi

[ "$(id -u)" -eq 0 ] || { echo "host.sh: needs root" >&2; exit 2; }
job=$(cd "$1" && pwd -P)
mkdir -p "$2"
out=$(cd "$2" && pwd -P)
limit_s=$3
# shellcheck source=testbed/backends/scripts/undo.sh
. "$job/undo.sh"
keep_state "$job" "$out"
undo() { put_back "$out"; }
trap undo EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

status=0
timeout --signal=TERM --kill-after=5 "$limit_s" unshare --mount --pid --fork --kill-child --mount-proc \
	sh "$0" --inside "$job" "$out" >"$out/job.log" 2>&1 || status=$?
case $status in
0) echo ok ;;
124 | 137) echo "hang: the job did not end in $limit_s s" ;;
*) echo "fail: job.sh returned $status" ;;
esac >"$out/status"
cut -d' ' -f1 /proc/uptime >"$out/uptime"
