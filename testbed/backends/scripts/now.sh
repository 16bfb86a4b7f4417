# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Between a job's set-up and its traffic, in real time: experiment time 0 is five
# seconds from now (an emulated CPU takes two to start the nodes), whatever the set-up
# took. testbed/backends/iperf.py puts it into job.sh.
#
# Plans are on CLOCK_MONOTONIC, timed events and iperf3 go by /proc/uptime.
zero=$(python3 -c '
import time
now = time.clock_gettime_ns
zero_cs = now(time.CLOCK_BOOTTIME) // 10**7 + 500
print(zero_cs, zero_cs * 10**7 + now(time.CLOCK_MONOTONIC) - now(time.CLOCK_BOOTTIME))')
zero_cs=${zero% *}
echo "$zero_cs" >"$OUT/zero_cs"
sed -i "s/^zero_ns .*/zero_ns ${zero#* }/" ./*.plan
for file in ./*.iperf; do
	[ ! -e "$file" ] || sed -i "s/^zero_cs=[0-9]*/zero_cs=$zero_cs/" "$file"
done
# the job was written for a time 0 at 10 s
[ ! -e events.sh ] || sed -i "s/^until_cs \([0-9]*\)/until_cs \$((\1 + $((zero_cs - 1000))))/" events.sh
