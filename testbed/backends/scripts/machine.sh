#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# One of three machines (testbed/backends/ssh.py sends it there and starts it, as root):
#
#   machine.sh NODE SPEED_MBIT LIMIT_S DEVICE=CARD...
#
# Each network card goes into a namespace called NODE and gets the name that the
# experiment has for it; NODE.sh, the node's part of the job, runs. At the end, however
# it comes, the card is back with its own name, address and settings.
# SPEED_MBIT 0 leaves the card's speed alone.
set -eu

cd "$(dirname "$0")"
# shellcheck source=testbed/backends/scripts/undo.sh
. ./undo.sh
node=$1 speed_mbit=$2 limit_s=$3
shift 3
LBE_OUT=$PWD/out PATH="$PWD/bin:$PATH:/usr/sbin:/sbin"
export LBE_OUT PATH
mkdir -p out

for pair; do
	card=${pair#*=}
	[ -e "/sys/class/net/$card" ] || { echo "machine.sh: $node has no card $card" >&2; exit 1; }
	if [ -n "$(ip -o address show dev "$card" scope global)" ]; then
		echo "machine.sh: $card has an address, so something uses it (this ssh connection?): take a card of its own" >&2
		exit 1
	fi
done
! ip netns list | grep -qw "$node" || { echo "machine.sh: a namespace $node is there already" >&2; exit 1; }

keep_state . out
for pair; do
	card=${pair#*=}
	cat "/sys/class/net/$card/address" >"out/address.$card"
	# what is fixed for this card is not changed, and not put back
	ethtool -k "$card" | sed -n 's/^\(tcp-segmentation-offload\|generic-segmentation-offload\|generic-receive-offload\|large-receive-offload\): \(on\|off\)$/\1 \2/p' \
		>"out/offload.$card"
done

undo() {
	for pair; do
		device=${pair%%=*} card=${pair#*=}
		ip -n "$node" link set dev "$device" down || continue
		ip -n "$node" link set dev "$device" netns $$ name "$card" || continue
		ip link set dev "$card" address "$(cat "out/address.$card")"
		while read -r feature state; do
			ethtool -K "$card" "$feature" "$state" 2>/dev/null || true
		done <"out/offload.$card"
		[ "$speed_mbit" = 0 ] || ethtool -s "$card" autoneg on || true
	done
	pids=$(ip netns pids "$node" 2>/dev/null) || true
	# shellcheck disable=SC2086  # a list of words
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
	ip netns del "$node" 2>/dev/null || true
	put_back out
}
# shellcheck disable=SC2064  # the pairs as they are now
trap "undo $*" EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ip netns add "$node"
for pair; do
	device=${pair%%=*} card=${pair#*=}
	if [ "$speed_mbit" != 0 ]; then
		ethtool -s "$card" speed "$speed_mbit" duplex full autoneg off
	fi
	for feature in tso gso gro lro; do
		ethtool -K "$card" "$feature" off 2>/dev/null || true
	done
	ip link set dev "$card" down
	ip link set dev "$card" netns "$node" name "$device"
done
status=0
timeout --signal=TERM --kill-after=5 "$limit_s" sh "./$node.sh" >"out/$node.log" 2>&1 || status=$?
case $status in
0) echo ok ;;
124 | 137) echo "hang: $node did not end in $limit_s s" ;;
*) echo "fail: $node.sh returned $status" ;;
esac >"out/$node.status"
