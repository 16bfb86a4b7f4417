# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What scripts/fresh and scripts/in-root share: commands inside an unpacked Debian root.

# in_root ROOT COMMAND...  in a mount and process namespace of its own: nothing
# that runs in there outlives it, nothing that it mounts is seen outside. The root is
# pivoted to, not chrooted to: the kernel gives no user namespaces to who is in a chroot.
in_root() {
	# shellcheck disable=SC2016  # the inner shell expands them
	unshare --mount --pid --fork --kill-child -- bash -euc '
		root=$1
		shift
		mount --rbind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount -t sysfs sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 tmp "$root/tmp"
		cd "$root"
		pivot_root . .
		umount -l .
		exec "$@"' in_root "$@"
}

# What this machine needs to reach the network, a root needs too.
give_network() { # give_network ROOT
	cp /etc/resolv.conf "$1/etc/resolv.conf"
	[ ! -e /etc/ssl/certs/ca-certificates.crt ] || {
		mkdir -p "$1/etc/ssl/certs"
		cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
	}
	grep -q "^127.0.1.1 " "$1/etc/hosts" 2>/dev/null || echo "127.0.1.1 $(uname -n)" >>"$1/etc/hosts"
}
