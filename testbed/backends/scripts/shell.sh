# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What `python3 -m testbed shell` gives a person: read by bash in the guest, in real time.
# AGENT and NODES are set by testbed/commands/shell.py.

PS1='lbe# '
HISTFILE=

# A node's name runs a command on it: `snd ss -ti`.
for node in $NODES; do
	eval "$node() { ip netns exec $node \"\$@\"; }"
done

# The receiver's last counter of each flow, as Mbit/s.
rates() { # rates FILE SECONDS NAME...
	local file=$1 seconds=$2
	shift 2
	od -An -v -t u8 -w24 "$file" | awk -v s="$seconds" -v names="$*" '
		BEGIN { split(names, name, " ") }
		{ bytes[$2] = $3 }
		END { for (flow in bytes) printf "  %-12s %6.2f Mbit/s\n", name[flow], bytes[flow] * 8 / s / 1e6 }'
}

# Greedy flows, one for each congestion control named, side by side.
flows() { # flows SECONDS CC...
	local seconds=${1:-10} id=0 cc
	shift
	[ $# -gt 0 ] || set -- cubic lp
	rm -rf /tmp/flows
	mkdir /tmp/flows
	printf 'node %s\nend_s %s\nsample_ms 100\nout /tmp/flows\n' rcv "$((seconds + 1))" >/tmp/flows/rcv.plan
	printf 'node %s\nend_s %s\nsample_ms 100\nout /tmp/flows\n' snd "$seconds" >/tmp/flows/snd.plan
	for cc; do
		id=$((id + 1))
		echo "sink port=$((5000 + id)) flow=$id" >>/tmp/flows/rcv.plan
		echo "flow id=$id kind=greedy to=$RCV port=$((5000 + id)) cc=$cc start_s=0.2" >>/tmp/flows/snd.plan
	done
	ip netns exec rcv "$AGENT" run /tmp/flows/rcv.plan &
	ip netns exec snd "$AGENT" run /tmp/flows/snd.plan && wait
	rates /tmp/flows/rcv.recv "$seconds" "$@"
}

help() {
	cat <<EOT
Nodes: $NODES. You are root; nothing here touches your machine, whose files you see read-only.

  snd ip addr                    a node's name runs a command on it
  flows 10 cubic lp              greedy flows side by side for 10 s of real time, and their rates
  flows 60 cubic & snd ss -ti    look inside while they run
  rtr tc -s qdisc show dev east  the bottleneck
  rtr tc qdisc change dev east parent 1:1 handle 10: pfifo limit 200
  sysctl net.ipv4.tcp_available_congestion_control
  lsmod; dmesg                   what is loaded, what the kernel said
  help                           this again
  exit                           power off; nothing is kept
EOT
}
help
