#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# First process of a distribution's kernel in QEMU, after first.sh. Runs the job
# and leaves facts on the results disk, the status last, as uml-init.sh does for
# the user-mode kernel; testbed/backends/distro.py judges.
#
# /lbe/settings sets  LBE_LIMIT_S  real seconds that the job may take
#                     LBE_SEED     passed on to the job
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8

end() { # end STATUS
	cut -d' ' -f1 /proc/uptime >/tmp/out/uptime
	dmesg >/tmp/out/dmesg
	cat /proc/sys/kernel/tainted >/tmp/out/tainted
	printf '%s\n' "$1" >/tmp/out/status
	tar -C /tmp/out -cf /dev/vdd . 2>/dev/null
	sync
	echo o >/proc/sysrq-trigger
	# The power goes when the kernel's worker has run.
	while :; do sleep 1; done
}

if [ $$ -eq 1 ]; then
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mkdir -p /dev/pts /dev/shm
	mount -t devpts pts /dev/pts
	mount -t tmpfs shm /dev/shm
	ln -sf /proc/self/fd /dev/fd
	mount -t cgroup2 cgroup /sys/fs/cgroup
	mount -t debugfs debug /sys/kernel/debug
	mount -t tracefs trace /sys/kernel/tracing
	mount -t tmpfs run /run
	mkdir -p /run/lock /run/netns
	ip link set lo up
	hostname lbe
fi
# shellcheck source=/dev/null
. /lbe/settings
export LBE_SEED LBE_OUT=/tmp/out
mkdir -p /tmp/job /tmp/out
chmod 1777 /tmp
cd /tmp/job || end "fail: cannot enter the job folder"

timeout --signal=KILL "$LBE_LIMIT_S" /bin/sh ./job.sh >/tmp/out/job.log 2>&1
code=$?
case $code in
0) end ok ;;
137) end "hang: the job did not end in $LBE_LIMIT_S s" ;;
*) end "fail: job.sh returned $code" ;;
esac
