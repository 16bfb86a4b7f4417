# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# systemd.sh [TEST...]
#
# In the guest of test_proof.py, as root under systemd: every way in which a unit, a job or a user's session gets into
# the background and out of it. Prints "ok NAME" or "not ok NAME", and what went before it.

SERVER=10.9.0.2
CONF=/etc/lbe/background.conf

set_up() {
	ip netns add right
	ip link add v0 type veth peer name v0 netns right
	ip address add 10.9.0.1/24 dev v0
	ip link set v0 up
	ip -n right address add $SERVER/24 dev v0
	ip -n right link set v0 up
	tc -n right qdisc add dev v0 root netem rate 20mbit
	for port in 5201 5202 5203 5204; do nsenter --net=/run/netns/right iperf3 -s -D -p $port; done
	nsenter --net=/run/netns/right python3 -m http.server 5205 >/dev/null 2>&1 &
	for name in mirror:5201 other:5202; do
		printf '[Service]\nExecStart=/usr/bin/iperf3 -c %s -R -t 600 -p %s\n' $SERVER "${name#*:}" \
			>"/etc/systemd/system/${name%:*}.service"
	done
	useradd -m -s /bin/bash alice
	echo 'alice ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/alice
	# a connection's control when connect() has returned
	cat >/tmp/first.py <<-END
		import socket
		s = socket.create_connection(("$SERVER", 5205))
		print("control", s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), "tos", s.getsockopt(0, 1))
	END
	chmod 644 /tmp/first.py
	mkdir -p /etc/lbe/jobs
	systemctl daemon-reload
	modprobe vulture
	modprobe tcp_lbe
}

down() { vulturectl list | grep -q "$SERVER:$1"; }
up() { ss -tinHO dst "$SERVER:$1" | grep -q ' lbe '; }
# set -e takes no notice of "!"
no() { if "$@"; then echo "unexpected: $*"; return 1; fi; }
both() { sleep 2; down "$1"; up "$1"; } # until iperf3 has its connections
neither() { sleep 2; no down "$1"; no up "$1"; ss -tnHO dst "$SERVER:$1" | grep -q .; }
rule_of_cgroup() { vulturectl rule list | grep cgroup; }
slice_of() { systemctl show -p Slice --value "$1"; }
# A login: its cgroup is root's, not the user's.
in_a_session() { systemd-run -q --pipe --wait -p User=alice -p PAMName=su-l -- "$@"; }
by_alice() { runuser -u alice -- env XDG_RUNTIME_DIR="/run/user/$(id -u alice)" "$@"; }

test_the_service_applies_the_file() {
	printf 'unit mirror.service\nremote-port 5202\nremote-port 5203 up\nremote-port 5204 down\n' >$CONF
	systemctl start vulturectl.service
	[ "$(vulturectl showconf | wc -l)" = 4 ]
	systemctl start mirror.service other.service
	[ "$(slice_of mirror.service)" = background.slice ]
	both 5201
	both 5202 # whichever cgroup it is in
	systemctl stop other.service
	for port in 5203 5204; do iperf3 -c $SERVER -R -t 8 -p $port >/dev/null 2>&1 & done
	sleep 3
	up 5203
	no down 5203
	down 5204
	no up 5204
	wait
	printf 'unit mirror.service\n' >$CONF
	systemctl reload vulturectl.service
	systemctl start other.service
	neither 5202
	down 5201
	systemctl stop vulturectl.service mirror.service other.service
	[ -z "$(vulturectl showconf)" ]
	no rule_of_cgroup
	systemctl start mirror.service
	neither 5201
	systemctl stop mirror.service
}

test_units_of_a_weight_have_a_slice() {
	printf 'unit mirror.service weight 20\n' >$CONF
	systemctl start vulturectl.service # it is not ordered before every unit
	systemctl start mirror.service
	[ "$(slice_of mirror.service)" = background_20.slice ]
	both 5201
	[ "$(vulturectl --json list | grep -c '"weight":200')" = 2 ] # iperf3 has a connection for orders, too
	systemctl stop vulturectl.service mirror.service
	no rule_of_cgroup
	rm $CONF
}

test_the_service_may_do_little() {
	printf 'unit mirror.service\nuser alice\ndscp 9\n' >$CONF
	before=$(journalctl -q -n 1 --show-cursor | sed -n 's/^-- cursor: //p') # of what other tests have provoked
	rmmod tcp_lbe vulture # it loads them
	rm -rf /sys/fs/bpf/lbe
	systemctl start vulturectl.service
	lsmod | grep -q ^vulture
	[ -n "$(ls /sys/fs/bpf/lbe)" ]
	journalctl -q -u vulturectl.service | grep '3 added, 0 kept, 0 removed, 0 failed'
	[ "$(systemctl show -p CapabilityBoundingSet --value vulturectl.service)" = \
		"cap_dac_override cap_net_admin cap_sys_admin cap_perfmon cap_bpf" ]
	systemctl stop vulturectl.service
	no journalctl -q -u vulturectl.service --after-cursor "$before" --grep '^vulturectl: '
	[ -z "$(ls /sys/fs/bpf/lbe)" ]
	rm $CONF
}

test_a_wrong_file_is_named_and_nothing_changes() {
	printf 'unit mirror.service\nremote-port 99999\n' >$CONF
	no systemctl start vulturectl.service
	journalctl -u vulturectl.service | grep -q "background.conf:2: port '99999' is not a number within 1 to 65535"
	no rule_of_cgroup
	systemctl reset-failed vulturectl.service
	rm $CONF
}

test_a_user_of_the_file_who_logs_in_later() {
	echo 'user alice' >$CONF
	uid=$(id -u alice)
	no systemctl is-active -q "user-$uid.slice"
	systemctl start vulturectl.service # as at boot
	for _ in 1 2; do # the second login finds what the first logout has left
		in_a_session python3 /tmp/first.py >/tmp/session 2>&1
		grep -x 'control lbe tos 4' /tmp/session
		sleep 15 # logind stops the user's manager, the module looks for cgroups that have gone
		no systemctl is-active -q "user@$uid.service"
	done
	systemctl start "user@$uid.service"
	by_alice systemd-run -q --user --unit mine iperf3 -c $SERVER -R -t 60 -p 5204
	both 5204
	systemctl reload vulturectl.service
	[ "$(vulturectl showconf)" = "user alice both" ]
	[ "$(rule_of_cgroup | wc -l)" = 1 ]
	systemctl stop vulturectl.service
	no rule_of_cgroup
	[ "$(systemctl show -p StopWhenUnneeded --value "user-$uid.slice")" = yes ] # as systemd has it
	systemctl stop "user@$uid.service"
	in_a_session python3 /tmp/first.py >/tmp/session 2>&1
	grep -x 'control cubic tos 0' /tmp/session
	rm $CONF
}

test_one_line_puts_a_service_there() {
	printf '[Service]\nSlice=background.slice\n' | systemctl edit --stdin other.service
	systemctl start lbe-background.service
	systemctl start other.service
	both 5202
	systemctl revert other.service
	systemctl restart other.service
	neither 5202
	systemctl stop other.service lbe-background.service
	no rule_of_cgroup
}

test_a_job_of_the_template() {
	printf '#!/bin/sh\nexec iperf3 -c %s -R -t 6 -p 5203\n' $SERVER >/etc/lbe/jobs/fetch
	chmod 755 /etc/lbe/jobs/fetch
	systemctl start background@fetch.service
	both 5203
	sleep 6
	[ "$(systemctl show -p Result --value background@fetch.service)" = success ]
	systemctl stop lbe-background.service
	systemctl start background@absent.service # its condition is not met
	no systemctl is-active -q background@absent.service
}

test_a_killed_holder_comes_back() {
	systemctl start lbe-background.service
	for _ in 1 2; do
		systemctl kill -s KILL lbe-background.service
		sleep 1
		systemctl is-active -q lbe-background.service
		[ "$(rule_of_cgroup | wc -l)" = 1 ]
	done
	systemctl start other.service
	neither 5202
	systemctl stop lbe-background.service other.service
	no rule_of_cgroup
}

test_the_rule_of_a_killed_holder_ends_with_the_slice() {
	systemd-run -q --slice background.slice --unit holder vulturectl hold /sys/fs/cgroup/background.slice
	sleep 1
	systemctl kill -s KILL holder.service
	sleep 1
	rule_of_cgroup
	systemctl reset-failed holder.service
	systemctl stop background.slice
	sleep 15 # the module looks for cgroups that have gone
	no rule_of_cgroup
}

test_bg_and_fg_of_a_unit() {
	systemctl start other.service
	neither 5202
	vulturectl bg other.service
	both 5202
	vulturectl fg other.service
	neither 5202
	systemctl stop other.service
}

test_fg_and_bg_hold_for_later_connections() {
	# a connection after the other
	loop='while sleep 0.2; do python3 /tmp/first.py; done'
	unit() {
		printf '[Service]\nExecStart=/bin/sh -c "%s"\nStandardOutput=truncate:/tmp/later\nSlice=%s\n' "$loop" "$1" \
			>/etc/systemd/system/opener.service
		systemctl daemon-reload
		systemctl restart opener.service
	}
	latest() { sleep 3 && [ "$(tail -n 1 /tmp/later)" = "control $*" ]; }
	foreground() { vulturectl rule list | grep foreground; }
	systemctl start lbe-background.service
	unit background.slice
	latest lbe tos 4
	vulturectl fg opener.service | grep "; later ones too"
	latest cubic tos 0
	systemctl restart lbe-background.service
	latest cubic tos 0
	foreground
	vulturectl bg "$(systemctl show -p MainPID --value opener.service)" | grep "; later ones too"
	latest lbe tos 4
	no foreground
	vulturectl fg opener.service
	systemctl restart opener.service # as configured again
	latest lbe tos 4
	sleep 7 # the module looks for cgroups that have gone
	no foreground
	unit system.slice
	latest cubic tos 0
	vulturectl bg opener.service
	latest lbe tos 4
	vulturectl fg opener.service
	latest cubic tos 0
	no foreground
	[ "$(rule_of_cgroup | wc -l)" = 1 ] # of the slice
	systemctl stop opener.service lbe-background.service
	no rule_of_cgroup
}

test_what_yama_forbids_is_said() {
	sysctl -qw kernel.yama.ptrace_scope=1
	runuser -u alice -- iperf3 -c $SERVER -R -t 20 -p 5204 >/tmp/plain 2>&1 &
	neither 5204
	pid=$(pgrep -u alice -x iperf3)
	no by_alice vulturectl bg "$pid" 2>/tmp/yama
	grep "though it is yours: kernel.yama.ptrace_scope is 1, .* run this as root (sudo vulturectl bg $pid)" /tmp/yama
	runuser -u alice -- sudo vulturectl bg "$pid"
	both 5204
	pkill -u alice -x iperf3
	wait
	# a run may inspect what it has started
	runuser -u alice -- vulturectl run -- iperf3 -c $SERVER -R -t 20 -p 5204 >/tmp/plain 2>&1 &
	both 5204
	by_alice vulturectl fg "$(pgrep -u alice -x iperf3)" 2>/tmp/yama
	grep 'vulturectl run, process [0-9]*, has been told to switch them' /tmp/yama
	neither 5204
	pkill -u alice -x iperf3
	wait
	sysctl -qw kernel.yama.ptrace_scope=0
}

test_a_users_scope() {
	uid=$(id -u alice)
	systemctl start "user@$uid.service"
	by_alice systemd-run -q --user --scope -- vulturectl run -- iperf3 -c $SERVER -R -t 8 -p 5204 \
		>/tmp/scope 2>&1 &
	both 5204
	vulturectl --json rule list | grep -q "\"uid\":$uid"
	find /sys/fs/cgroup/user.slice -name 'vulture-*' | grep -q .
	wait $!
	[ -z "$(find /sys/fs/cgroup/user.slice -name 'vulture-*')" ]
	no rule_of_cgroup
	grep -q receiver /tmp/scope
	systemctl stop "user@$uid.service"
}

test_a_users_session() {
	in_a_session cat /proc/self/cgroup | grep 'user-.*slice/session-.*scope'
	in_a_session vulturectl run -- python3 /tmp/first.py >/tmp/session 2>&1
	grep 'control cubic tos 0' /tmp/session # 100 ms later it would have been in the background
	[ "$(grep -c 'do once: sudo systemctl enable --now lbe-background' /tmp/session)" = 1 ]

	systemctl enable --now lbe-background # what the message asks for
	in_a_session vulturectl run -- python3 /tmp/first.py >/tmp/session 2>&1
	grep -x 'control lbe tos 4' /tmp/session
	no grep '^vulturectl:' /tmp/session
	in_a_session vulturectl run -- iperf3 -c $SERVER -R -t 8 -p 5204 >/tmp/session 2>&1 &
	both 5204
	vulturectl --json rule list | grep -q "\"uid\":$(id -u alice)"
	find /sys/fs/cgroup/user.slice -path '*/session-*.scope/lbe-*/vulture-*' -name 'vulture-*' | grep -q .
	wait $!
	sleep 2
	[ -z "$(find /sys/fs/cgroup -name 'lbe-*' -path '*user*')" ]
	[ "$(rule_of_cgroup | wc -l)" = 1 ] # of the slice

	by_alice sh -c 'echo | python3 -c "
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(\"/run/lbe/background.sock\")
print(s.recv(500), open(\"/proc/self/cgroup\").read())"' | grep 'lbe-'
	pid=$(systemctl show -p MainPID --value lbe-background)
	# chown, dac_override, net_admin, perfmon, bpf: no administrator, no modules
	[ $((0x$(sed -n 's/^CapEff:\s*//p' "/proc/$pid/status"))) = $((1 << 0 | 1 << 1 | 1 << 12 | 1 << 38 | 1 << 39)) ]
	systemctl disable --now lbe-background
	no rule_of_cgroup
	[ ! -e /run/lbe/background.sock ]
}

test_a_user_puts_a_running_program_there() {
	cat >/tmp/later.py <<-END
		import socket, time
		for n in range(40):
		    s = socket.create_connection(("$SERVER", 5205))
		    print("control", s.getsockopt(6, 13, 16).split(b"\\0")[0].decode(), flush=True)
		    time.sleep(0.5)
		    s.close()
	END
	latest() { sleep 3 && [ "$(tail -n 1 /tmp/later)" = "control $1" ]; }
	in_a_session python3 /tmp/later.py >/tmp/later 2>&1 &
	latest cubic
	pid=$(pgrep -u alice -f later.py)
	by_alice vulturectl bg "$pid" >/tmp/told 2>&1
	grep 'or do once: sudo systemctl enable --now lbe-background' /tmp/told
	latest cubic
	systemctl start lbe-background
	by_alice vulturectl bg "$pid" | grep "; later ones too"
	latest lbe
	systemctl restart lbe-background # as after an upgrade
	latest lbe
	vulturectl fg "$pid" | grep "; later ones too"
	latest cubic
	wait
	sleep 10 # the module looks for cgroups that have gone
	systemctl stop lbe-background
	no rule_of_cgroup
}

test_a_users_scope_with_the_service() {
	uid=$(id -u alice)
	systemctl start "user@$uid.service" lbe-background
	by_alice systemd-run -q --user --scope -- vulturectl run -- python3 /tmp/first.py >/tmp/scope 2>&1
	grep -x 'control lbe tos 4' /tmp/scope
	no grep '^vulturectl:' /tmp/scope
	systemctl stop "user@$uid.service" lbe-background
	[ -z "$(find /sys/fs/cgroup -name 'lbe-*' -path '*user*')" ]
}

test_a_service_of_a_users_manager() {
	uid=$(id -u alice)
	fetch=(iperf3 -c "$SERVER" -R -t 60 -p 5204)
	loginctl enable-linger alice # logind stops the manager after an earlier logout otherwise
	systemctl start "user@$uid.service" lbe-background
	# a slice of that manager, which is another one than the system's of that name
	by_alice systemd-run -q --user --unit sliced -p Slice=background.slice "${fetch[@]}"
	neither 5204
	by_alice systemctl --user stop sliced.service
	# its command line begins with vulturectl run
	by_alice systemd-run -q --user --pipe --wait vulturectl run -- python3 /tmp/first.py >/tmp/user 2>&1
	grep -x 'control lbe tos 4' /tmp/user
	no grep '^vulturectl:' /tmp/user
	by_alice systemd-run -q --user --unit mine vulturectl run -- "${fetch[@]}"
	both 5204
	by_alice systemctl --user stop mine.service
	sleep 2
	[ -z "$(find /sys/fs/cgroup/user.slice -name 'vulture-*')" ]
	[ "$(rule_of_cgroup | wc -l)" = 1 ] # of the slice
	# a running one, by its number; the system's manager does not know its name
	by_alice systemd-run -q --user --unit plain "${fetch[@]}"
	neither 5204
	no vulturectl bg plain.service 2>/tmp/user
	grep 'systemd does not know it' /tmp/user
	vulturectl bg "$(by_alice systemctl --user show -p MainPID --value plain.service)" | grep "; later ones too"
	both 5204
	by_alice systemctl --user stop plain.service
	loginctl disable-linger alice
	systemctl stop "user@$uid.service" lbe-background
	no rule_of_cgroup
}

test_sudo_runs_the_command_as_who_called_it() {
	runuser -u alice -- sudo vulturectl run -- sh -c "id -un >/tmp/who; exec iperf3 -c $SERVER -R -t 5 -p 5204" \
		>/tmp/sudo 2>&1 &
	both 5204
	wait $!
	[ "$(cat /tmp/who)" = alice ]
	no rule_of_cgroup
}

test_the_hook_for_apt() {
	sh /tmp/job/apt-background.sh
	systemctl daemon-reload
	[ "$(slice_of apt-daily.service)" = background.slice ]
	[ "$(slice_of apt-daily-upgrade.service)" = background.slice ]
	# lists of an archive that has none: what counts is whose connections they come by
	rm -f /etc/apt/sources.list.d/*
	echo "deb [trusted=yes] http://$SERVER:5205 ./" >/etc/apt/sources.list
	echo 'APT::Periodic::Update-Package-Lists "always"; APT::Sandbox::User "root";' >/etc/apt/apt.conf.d/99test
	systemctl start apt-daily.service
	systemctl is-active -q lbe-background.service # the hook asks for it
	vulturectl --json rule list | grep -E '"started":[1-9]'
	systemctl stop lbe-background.service
	sh /tmp/job/apt-background.sh --remove
	systemctl daemon-reload
	[ "$(slice_of apt-daily.service)" = system.slice ]
}

set_up
if [ $# -eq 0 ]; then
	mapfile -t all < <(declare -F | cut -d' ' -f3 | grep '^test_')
	set -- "${all[@]}"
fi
for name in "$@"; do
	(set -eux; $name) >/tmp/said 2>&1
	status=$?
	if [ $status -eq 0 ]; then # not "if (...)": set -e would have no effect in it
		echo "ok $name"
	else
		echo "not ok $name"
		tail -25 /tmp/said
		journalctl -q -n 8 --no-pager | cut -c1-200
	fi
	systemctl stop mirror.service other.service lbe-background.service 2>/dev/null
done
