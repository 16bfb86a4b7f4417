#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# programs.sh install PACKAGE...    install packages as they are, pack what that added: /lbe/programs.tar, /lbe/versions
# programs.sh disk MIB              make /lbe/root.ext4 of the root with /lbe/programs.tar and /lbe/installed.tar in it
#
# Runs inside a distribution's root (scripts/in-root).
set -euo pipefail

install_packages() {
	export DEBIAN_FRONTEND=noninteractive
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d # no package starts its service
	chmod 755 /usr/sbin/policy-rc.d
	apt-get -qq update
	touch /lbe/mark
	sleep 1
	apt-get -qq install -y --no-install-recommends "$@"
	rm /usr/sbin/policy-rc.d
	dpkg-query -W -f '${Package} ${Version}\n' "$@" >/lbe/versions
	cd /
	find . -xdev \( -path ./lbe -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache \
		-o -path ./var/lib/apt -o -path ./usr/share/doc -o -path ./usr/share/man -o -path ./usr/share/locale \) \
		-prune -o \( -type f -o -type l -o -type d \) -newercc /lbe/mark -print0 |
		tar --numeric-owner --no-recursion --null -T - -cf /lbe/programs.tar
	rm /lbe/mark
}

make_disk() {
	for archive in programs installed; do tar -C / --numeric-owner -xf /lbe/$archive.tar; done
	mkdir /root-alone
	mount --bind / /root-alone # without what is mounted below
	mke2fs -q -t ext4 -O ^has_journal -m 0 -d /root-alone /lbe/root.ext4 "$1M"
	umount /root-alone
}

case $1 in
install) shift; install_packages "$@" ;;
disk) make_disk "$2" ;;
*) echo "programs.sh: '$1' is neither install nor disk" >&2; exit 2 ;;
esac
