#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Stands in for the agent where iperf3 makes the traffic: `traffic.sh --netns NODE run NODE.plan`
# runs the agent for what is left of the plan, and what NODE.iperf says
# (testbed/backends/iperf.py wrote both); every other verb is the agent's.
#
# shellcheck disable=SC2154,SC2317  # NODE.iperf sets the variables and calls the functions
#
# LBE_AGENT is the agent. Results go to $LBE_OUT: NODE.ss has a sample of all TCP
# sockets each sample_s, "t UPTIME" before it; NODE.PORT.log what iperf3 said.
set -eu

if [ "${1:-}" = --netns ] && [ "${3:-}" = run ]; then
	node=$2
	shift 2
	exec ip netns exec "$node" "$0" "$@"
fi
node=${2:-}
node=${node%.plan}
if [ "${1:-}" != run ] || [ ! -e "$node.iperf" ]; then
	exec "$LBE_AGENT" "$@"
fi

until_s() { # until_s EXPERIMENT_SECONDS: in steps of 10 ms, what /proc/uptime shows
	read -r up _ </proc/uptime
	set -- "$1" "$(awk -v zero="$zero_cs" -v at="$1" -v up="$up" 'BEGIN { print zero / 100 + at - up }')"
	case $2 in
	-*) ;;
	*) sleep "$2" ;;
	esac
}

serve() { # serve PORT
	iperf3 --server --one-off --port "$1" >"$LBE_OUT/$node.$1.log" 2>&1 &
	servers="$servers $!"
}

send() { # send PORT ADDRESS CC RATE_BPS TOS START_S STOP_S
	(
		until_s "$6"
		seconds=$(awk -v start="$6" -v stop="$7" 'BEGIN { print stop - start }')
		# Whole seconds are all that iperf3 knows: it is stopped when its time is over.
		timeout --signal=INT "$seconds" iperf3 --client "$2" --port "$1" --congestion "$3" --bitrate "$4" \
			--tos "$5" --time 86400 >"$LBE_OUT/$node.$1.log" 2>&1 || true
		# Stopped, it has no status of its own; what ended before its time went wrong.
		read -r up _ </proc/uptime
		awk -v zero="$zero_cs" -v stop="$7" -v up="$up" 'BEGIN { exit up < zero / 100 + stop - 0.5 }' || {
			echo "traffic.sh: iperf3 to port $1 ended early, at $up s" >&2
			tail -n 3 "$LBE_OUT/$node.$1.log" >&2
			exit 1
		}
	) &
	clients="$clients $!"
}

servers='' clients=''
: >"$LBE_OUT/$node.events"
# shellcheck source=/dev/null
. "./$node.iperf"
read -r up _ </proc/uptime
if [ "$((${up%.*} * 100))" -gt $((zero_cs + 100)) ]; then
	echo "traffic.sh: the set-up took longer than there was time: experiment time 0 has passed at $up s" >&2
	exit 1
fi
if [ "$agent" = 1 ]; then
	"$LBE_AGENT" run "$node.plan" &
	clients="$clients $!"
fi
(
	while :; do
		read -r up _ </proc/uptime
		echo "t $up"
		ss -tinHO
		sleep "$sample_s"
	done >"$LBE_OUT/$node.ss"
) &
sampler=$!

status=0
for client in $clients; do
	wait "$client" || status=$?
done
# the receiving side ends after the sending ones, which would see a server that goes
until_s "$end_s"
sleep 2
# shellcheck disable=SC2086  # a list of words
kill $sampler $servers 2>/dev/null || true
exit "$status"
