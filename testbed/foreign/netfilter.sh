#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# netfilter.sh build             in a distribution's root: compile what the scripts call, in /lbe/selftests
# netfilter.sh run [CONTROLLER]  in the guest: run the scripts, a line "RUN script" and a line "END status taken" for
#                                each; with a CONTROLLER vulture has a rule for every connection in every namespace
#
# The guest has the selftests in /lbe/selftests and the names of the scripts in the file "scripts".
set -u

tests=/lbe/selftests/net/netfilter

build() {
	local source name
	for source in "$tests"/*.c; do
		name=${source%.c}
		gcc -O2 -w -I/lbe/selftests -I/lbe/selftests/../../include -o "$name" "$source" -lmnl || rm -f "$name"
	done
	ls "$tests"
}

# The scripts make their namespaces by `ip netns add`: one in front of it on PATH adds the rules, and counts the
# connections that they have taken when the namespace goes.
wrap_ip() { # wrap_ip CONTROLLER
	mkdir -p /tmp/bin
	cat >/tmp/bin/ip <<-WRAP
		#!/bin/sh
		real=$(command -v ip)
		case "\$1 \$2" in
		"netns add")
			\$real "\$@" || exit
			for all in 0.0.0.0/0 ::/0; do
				\$real netns exec "\$3" vulturectl rule add --remote \$all -o controller=$1 >/dev/null || exit
			done
			;;
		"netns delete" | "netns del")
			\$real netns exec "\$3" vulturectl --json rule list 2>/dev/null |
				grep -o '"started":[0-9]*' | cut -d: -f2 >>/tmp/taken
			exec \$real "\$@"
			;;
		*) exec \$real "\$@" ;;
		esac
	WRAP
	chmod 755 /tmp/bin/ip
	PATH=/tmp/bin:$PATH
	export PATH
}

run() { # run [CONTROLLER]
	local script status taken
	export KSFT_MACHINE_SLOW=yes
	# what they do between two looks at a condition: an emulated CPU that counts instructions takes long to do nothing
	printf ":() {\n\tsleep 0.01\n}\n" >/tmp/wait.bash
	export BASH_ENV=/tmp/wait.bash
	if [ $# -gt 0 ]; then
		modprobe vulture || return 1
		wrap_ip "$1"
	fi
	cd "$tests" || return 1
	while read -r script; do
		: >/tmp/taken
		echo "RUN $script"
		# without arguments nft_flowtable.sh runs once more with sizes by chance
		# shellcheck disable=SC2046
		timeout --signal=KILL 600 bash "./$script" $([ "$script" != nft_flowtable.sh ] || echo -o9000) </dev/null 2>&1
		status=$?
		taken=$(paste -sd+ /tmp/taken)
		echo
		echo "END $status $((${taken:-0}))"
		pkill nf_queue
		pkill socat
	done </tmp/job/scripts
	return 0
}

case ${1:-} in
build) build ;;
run) shift; run "$@" ;;
*) echo "netfilter.sh: '${1:-}' is neither build nor run" >&2; exit 2 ;;
esac
