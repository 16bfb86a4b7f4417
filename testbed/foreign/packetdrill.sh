#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: all packetdrill scripts with one congestion control. env.sh has
#   PACKETDRILL the program
#   FOLDERS     the suite's folders
#   VARIANTS    ipv4, or ipv4 and ipv6
#   CONTROL     congestion control of every script
#   LBE_PACED   not empty: TCP paces every socket
#   LBE_ROUTE   attributes of the route to the peer, or nothing
#   MTU_EXTRA   by how many octets the device's MTU is larger than packetdrill's
#   CONTROLLER  vulture's controller for every connection ("default": its own default), or nothing
#   VULTURECTL  the program, or nothing
# Prints a line a script: RESULT status variant script taken message, apart by tabs; taken: connections that vulture took.

# shellcheck source=/dev/null
. ./env.sh
[ -z "$LBE_PACED" ] || export LBE_PACED
export LBE_ROUTE
mkdir /tmp/suite
# shellcheck disable=SC2086  # several words
cp -r $FOLDERS /tmp/suite/
cp "$PACKETDRILL" /tmp/packetdrill
# the scripts' defaults name cubic
find /tmp/suite -name defaults.sh -type f -exec \
	sed -i -e "s/tcp_congestion_control=cubic/tcp_congestion_control=$CONTROL/" -e '1r sysctl.bash' {} +
# one script names ICMPv4's code over IPv6, too; the others have CODE
find /tmp/suite -name '*.pkt' -type f -exec \
	sed -i 's/icmp unreachable host_unreachable/icmp unreachable CODE/' {} +
# a restricted control may be a namespace's default once it is allowed
sysctl -q net.ipv4.tcp_allowed_congestion_control="reno cubic $CONTROL" ||
	echo "cannot allow $CONTROL" >&2

packetdrill() { # packetdrill VARIANT SCRIPT TOLERANCE_US
	case $1 in
	ipv4) set -- "$2" "$3" --ip_version=ipv4 --mtu=$((1500 + MTU_EXTRA)) --local_ip=192.168.0.1 --gateway_ip=192.168.0.1 \
		--netmask_ip=255.255.0.0 --remote_ip=192.0.2.1 -D TFO_COOKIE=3021b9d889017eeb \
		-D TFO_COOKIE_ZERO=b7c12350a90dc8f5 -D CODE=host_unreachable \
		-D CMSG_LEVEL_IP=SOL_IP -D CMSG_TYPE_RECVERR=IP_RECVERR ;;
	ipv6) set -- "$2" "$3" --ip_version=ipv6 --mtu=$((1520 + MTU_EXTRA)) --local_ip=fd3d:0a0b:17d6::1 \
		--gateway_ip=fd3d:0a0b:17d6:8888::1 --remote_ip=fd3d:fa7b:d17d::1 \
		-D TFO_COOKIE=c1d1e9742a47a9bc -D TFO_COOKIE_ZERO=82af1a8f9a205c34 -D CODE=address_unreachable \
		-D CMSG_LEVEL_IP=SOL_IPV6 -D CMSG_TYPE_RECVERR=IPV6_RECVERR ;;
	esac
	script=$1 tolerance=$2
	shift 2
	ip netns add pd
	ip -n pd link set lo up
	if [ -n "$CONTROLLER" ]; then
		option=
		[ "$CONTROLLER" = default ] || option="-o controller=$CONTROLLER"
		# shellcheck disable=SC2086  # two words or none
		ip netns exec pd "$VULTURECTL" rule add --remote 0.0.0.0/0 $option >/dev/null &&
			ip netns exec pd "$VULTURECTL" rule add --remote ::/0 $option >/dev/null || return 99
	fi
	(cd "/tmp/suite/${script%/*}" &&
		timeout 120 ip netns exec pd /tmp/packetdrill --send_omit_free \
			--tolerance_usecs="$tolerance" "$@" "${script##*/}") >/tmp/printed 2>&1
	code=$? taken=0
	if [ -n "$CONTROLLER" ]; then
		taken=$(ip netns exec pd "$VULTURECTL" --json rule list | grep -o '"started":[0-9]*' |
			awk -F: '{ sum += $2 } END { print sum + 0 }')
	fi
	ip netns del pd
	return $code
}

while IFS= read -r script; do
	for variant in $VARIANTS; do
		case $variant$script in
		ipv4*v6.pkt | ipv6*v4.pkt) continue ;;
		esac
		if packetdrill "$variant" "$script" 4000; then
			status=pass
		elif packetdrill "$variant" "$script" 150000; then
			status=slow
		else
			status=fail
		fi
		message=$(grep -v '^$' /tmp/printed | head -n 1 | tr '\t' ' ' | cut -c1-200)
		printf 'RESULT\t%s\t%s\t%s\t%s\t%s\n' "$status" "$variant" "$script" "$taken" "$message"
	done
done <scripts
