# SPDX-License-Identifier: GPL-2.0
# bash completion for vulturectl

_vulturectl_options() {
	vulturectl --help-options 2>/dev/null | awk 'NR > 1 { print $1 "=" }'
}

_vulturectl_programs() {
	(cd /proc && echo [0-9]*)
	systemctl list-units --plain --no-legend --state=running --type=service,scope 2>/dev/null | cut -d' ' -f1
}

# Where the command of run begins, from the word after "run"; the number of words if it is not there yet
_vulturectl_command() {
	local i
	for ((i = $1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) ((i++)); break ;;
		--weight | --deadline | -u | --user | -o | --option) ((i++)) ;;
		-*) ;;
		*) break ;;
		esac
	done
	echo "$i"
}

_vulturectl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' i

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*) ;;
		*) command=${COMP_WORDS[i]}; break ;;
		esac
	done
	if [ "$command" = run ]; then
		local first
		first=$(_vulturectl_command $((i + 1)))
		if ((first < COMP_CWORD)); then
			if declare -F _command_offset >/dev/null; then
				_command_offset "$first"
			else
				compopt -o filenames
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			fi
			return
		fi
	fi
	case $prev in
	-o | --option)
		compopt -o nospace
		mapfile -t COMPREPLY < <(compgen -W "$(_vulturectl_options)" -- "$cur")
		return ;;
	--cgroup)
		compopt -o dirnames
		[ -n "$cur" ] || cur=/sys/fs/cgroup/
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return ;;
	--pid)
		mapfile -t COMPREPLY < <(cd /proc && compgen -W "$(echo [0-9]*)" -- "$cur")
		return ;;
	--dscp)
		mapfile -t COMPREPLY < <(compgen -W "le cs1" -- "$cur")
		return ;;
	-u | --user)
		mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		return ;;
	esac
	local words=
	case $command in
	'') words="--json --help --help-options --version top metrics start stop show list monitor run bg fg hold apply showconf rule set" ;;
	start) words="--pid --cgroup -o" ;;
	stop) words="--pid --cgroup --id" ;;
	show) words="--all --id" ;;
	top) words="--interval --count" ;;
	hold)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--users -o" -- "$cur")
			return
		fi
		compopt -o dirnames
		[ -n "$cur" ] || cur=/sys/fs/cgroup/
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return ;;
	apply)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return ;;
	bg | fg)
		mapfile -t COMPREPLY < <(compgen -W "$(_vulturectl_programs)" -- "$cur")
		return ;;
	monitor) words="--events --interval" ;;
	set) words="-m -o" ;;
	rule)
		case ${COMP_WORDS[i + 1]} in
		add) words="--cgroup --local-port --remote-port --remote --dscp --foreground -o" ;;
		del) words=$(vulturectl rule list 2>/dev/null | cut -d' ' -f1) ;;
		*) words="add del list" ;;
		esac ;;
	run)
		if [[ $prev == run || ($cur == -* && $prev != --) ]]; then
			words="--up --down --weight --deadline -u -o --"
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			return
		fi ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _vulturectl vulturectl
