#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash disable=SC2013  # the command line is words
#
# First process of a distribution's kernel in QEMU: mounts the root file system,
# unpacks into it what the host gave (plain tar on raw disks, which needs no
# driver that some kernel lacks) and goes on there.
#
#   /dev/vda  root.ext4, writes are thrown away     /dev/vdb  what was installed
#   /dev/vdc  the job                               /dev/vdd  room for results
set -e
PATH=/bin
export PATH
busybox mount -t devtmpfs dev /dev
busybox mount -t proc proc /proc
for driver in /lib/*.ko; do
	[ ! -e "$driver" ] || busybox insmod "$driver" || true # of two for one task this CPU may know only one
done
busybox mount -t ext4 -o noatime,nobarrier /dev/vda /new
for disk in b c; do
	busybox tar -C /new -xf /dev/vd$disk
done
next=/lbe/init.sh
for word in $(busybox cat /proc/cmdline); do
	case $word in
	lbe.init=*) next=${word#lbe.init=} ;;
	esac
done
busybox umount /proc
busybox mount --move /dev /new/dev
exec busybox switch_root /new "$next"
