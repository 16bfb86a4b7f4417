# SPDX-License-Identifier: GPL-2.0
# bash completion for "tc qdisc ... shred"; all else is left to tc's own completion.
# Loaded at the start, as tc's own file belongs to iproute2.

_tc_shred()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word
	local values="bandwidth limit min max avpkt burst probability hint weight"
	local flags="adaptive ecn harddrop nodrop gentle bytes wash split-gso"

	for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
		[[ $word == shred ]] || continue
		case $prev in
		hint) mapfile -t COMPREPLY < <(compgen -W "off tos dscp" -- "$cur") ;;
		bandwidth) mapfile -t COMPREPLY < <(compgen -W "10mbit 100mbit 1gbit" -- "$cur") ;;
		limit | min | max | avpkt | burst | probability | weight) COMPREPLY=() ;;
		*) mapfile -t COMPREPLY < <(compgen -W "$values $flags ${flags// / no} noadaptive" -- "$cur") ;;
		esac
		return
	done
	# the first time tc's own is loaded, which takes our place: take it back
	if ! declare -F _tc > /dev/null && declare -F _completion_loader > /dev/null; then
		_completion_loader tc
		complete -F _tc_shred tc
	fi
	if declare -F _tc > /dev/null; then
		_tc "$@"
	fi
}

complete -F _tc_shred tc
