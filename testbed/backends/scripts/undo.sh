# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# What host.sh and machine.sh share: the state that a job changes outside of its
# namespaces, kept and put back.

keep_state() { # keep_state JOB OUT
	: >"$2/loaded"
	cut -d= -f1 "$1/host.sysctl" | while read -r key; do
		printf '%s=%s\n' "$key" "$(sysctl -n "$key")"
	done >"$2/host.before"
}

put_back() { # put_back OUT
	sysctl -q -p "$1/host.before" || true
	# An orphaned socket whose peer is gone gives up after a number of tries; its module is free then.
	while read -r module; do
		waited_s=0
		until rmmod "$module" 2>/dev/null || [ "$waited_s" -ge 60 ]; do
			sleep 1
			waited_s=$((waited_s + 1))
		done
		[ ! -e "/sys/module/$module" ] || echo "$module stays loaded: something else uses it" >&2
	done <"$1/loaded"
}
