#compdef vulturectl
# SPDX-License-Identifier: GPL-2.0
# zsh completion for vulturectl

_vulturectl_option() {
	local -a names
	names=(${(f)"$(_call_program options "vulturectl --help-options 2>/dev/null | awk 'NR > 1 { print \$1 }'")"})
	compadd -S '=' -a names
}

_vulturectl_program() {
	local -a units
	units=(${(f)"$(_call_program units 'systemctl list-units --plain --no-legend --state=running --type=service,scope 2>/dev/null | cut -d" " -f1')"})
	compadd -a units
	_pids
}

_vulturectl_rule() {
	_arguments -C '1:what:(add del list)' '*::arg:->rest'
	case $line[1] in
	add)
		_arguments '--cgroup[a v2 cgroup]:directory:_files -/' '--local-port[of this machine]:port:' \
			'--remote-port[of the peer]:port:' '--remote[of the peer]:prefix:' \
			'--dscp[that the socket sends with]:le, cs1 or 0 to 63:(le cs1)' \
			'--foreground[stays in the foreground]' '*-o[option]:option:_vulturectl_option' ;;
	del)
		local -a ids
		ids=(${(f)"$(_call_program ids 'vulturectl rule list 2>/dev/null | cut -d" " -f1')"})
		compadd -a ids ;;
	esac
}

_vulturectl() {
	local -a commands
	commands=(
		'top:what runs in the background, live'
		'metrics:the table and counters, for Prometheus'
		'start:connections go to the background'
		'stop:they get their window back'
		'show:one connection, or the defaults'
		'list:connections under control'
		'monitor:the same, live'
		'run:a command whose connections are background ones'
		'bg:a running program goes to the background'
		'fg:and back to the foreground'
		'hold:a v2 cgroup, for as long as this runs'
		'apply:what a file says runs in the background'
		'showconf:what apply has put in force'
		'rule:for new connections'
		'set:defaults of this network namespace'
	)
	_arguments -C '--json[machine-readable]' '--help[usage]' '--help-options[what -o takes]' \
		'--version[version]' '1:command:->command' '*::arg:->rest'
	case $state in
	command) _describe command commands ;;
	rest)
		case $line[1] in
		start) _arguments '--pid[a process]:pid:_pids' '--cgroup[a v2 cgroup]:directory:_files -/' \
			'*-o[option]:option:_vulturectl_option' '1:local:' '2:remote:' ;;
		stop) _arguments '--pid[a process]:pid:_pids' '--cgroup[a v2 cgroup]:directory:_files -/' \
			'--id[from list]:id:' '1:local:' '2:remote:' ;;
		top) _arguments '-n[interval]:seconds:' '-c[tables]:count:' ;;
		show) _arguments '--all[every counter]' '--id[from list]:id:' '1:local:' '2:remote:' ;;
		monitor) _arguments '--events[a line each]' '-n[interval]:seconds:' ;;
		set) _arguments '-m[limit on connections]:connections:' '*-o[option]:option:_vulturectl_option' ;;
		apply) _arguments '1:file:_files' ;;
		hold) _arguments '--users[cgroups for what users run, too]' '*-o[option]:option:_vulturectl_option' '1:directory:_files -/' ;;
		bg | fg) _arguments '1:process or unit:_vulturectl_program' ;;
		run) _arguments '--up[what it sends]' '--down[what it receives]' \
			'--weight[percent of an ordinary background program]:number (1 to 1000):' \
			'--deadline[from then on it is in the foreground]:time (06\:00, 90s, 45m, 6h):' \
			'-u[user]:user:_users' '*-o[option]:option:_vulturectl_option' '*::command:_normal' ;;
		rule) _vulturectl_rule ;;
		esac ;;
	esac
}

_vulturectl "$@"
