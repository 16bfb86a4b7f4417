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
	# the namespaces are gone when the last of their sockets is; a module is free then
	while read -r module; do
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			rmmod "$module" 2>/dev/null && break
			sleep 0.5
		done
		[ ! -e "/sys/module/$module" ] || echo "$module stays loaded: something else uses it" >&2
	done <"$1/loaded"
}
