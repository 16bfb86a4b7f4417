#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# First process of the user-mode guest. machine.py writes a small script that
# sets the variables below and runs this one. It judges nothing: it leaves
# facts in the results folder, the status last.
#
#   LBE_RUN      host folder of this boot, with links job and out, and the list
#                modules (host paths, one a line)
#   LBE_FSTAB    what is mounted besides the folders: uml.fstab beside this
#   LBE_LIMIT_S  virtual seconds that the job may take
#   LBE_SEED     passed on to the job
#
# What the job sees: the network namespace that it starts in is empty but for
# lo; current folder /tmp/job (read-only), results in $LBE_OUT (/tmp/out), the
# host's root at $LBE_HOST (/tmp/host, read-only), scratch on /tmp and /run.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8

# mount(2) takes the bare path on every kernel; mount(8) from 2.39 on would use
# the newer calls, with which kernels from 6.12 on know it as hostfs= only.
export LIBMOUNT_FORCE_MOUNT2=always
hostfs() { # hostfs HOSTPATH MOUNTPOINT ro|rw
	mount -t hostfs -o "$3,$1" lbe "$2"
}

power_off() {
	cut -d' ' -f1 /proc/uptime >"$LBE_OUT/uptime"
	printf '%s\n' "$1" >"$LBE_OUT/status"
	sync
	echo o >/proc/sysrq-trigger
	# The power goes when the kernel's worker has run.
	while :; do sleep 1; done
}

mount -t proc proc /proc
mount --all --fstab "$LBE_FSTAB"
ln -s /proc/self/fd /dev/fd
mkdir -p /dev/shm /tmp/job /tmp/out /tmp/host /run/lock /run/netns
hostfs "$LBE_RUN/out" /tmp/out rw
export LBE_OUT=/tmp/out LBE_HOST=/tmp/host
hostfs / /tmp/host ro
hostfs "$LBE_RUN/job" /tmp/job ro
cd /tmp/job || power_off "fail: cannot enter the job folder"
ip link set lo up

while IFS= read -r module; do
	error=$(insmod "$LBE_HOST$module" 2>&1) || power_off "fail: $error"
done <"$LBE_HOST$LBE_RUN/modules"

# A sleep costs nothing in virtual time, so the watchdog is free.
(
	sleep "$LBE_LIMIT_S"
	for stat in /proc/[0-9]*/stat; do
		cat "$stat"
	done >"$LBE_OUT/processes" 2>/dev/null
	power_off "hang: the job did not end in $LBE_LIMIT_S s of virtual time"
) &
watchdog=$!

/bin/sh ./job.sh >"$LBE_OUT/job.log" 2>&1
code=$?
kill "$watchdog"

# Objects younger than 5 s are no leaks yet; the second scan settles the first.
leaks=/sys/kernel/debug/kmemleak
if [ -w "$leaks" ]; then
	sleep 6
	echo scan >"$leaks"
	sleep 6
	echo scan >"$leaks"
	cat "$leaks" >"$LBE_OUT/kmemleak"
fi

if [ "$code" -eq 0 ]; then
	power_off ok
fi
power_off "fail: job.sh returned $code"
