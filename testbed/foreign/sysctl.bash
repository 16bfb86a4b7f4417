# SPDX-License-Identifier: GPL-2.0
# sysctl(8) without a process for each of the scripts' thirty defaults.
sysctl() {
	local word name
	for word; do
		name=${word%%=*}
		case $word in
		*=*) printf '%s\n' "${word#*=}" 2>/dev/null >"/proc/sys/${name//.//}" ;;
		esac
	done 2>/dev/null
	return 0
}
