#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Inside a distribution's root (scripts/in-root): install the suite as a user
# would, by DKMS and `make install` of the tools, and pack what that added. The
# source is /lbe/source; /lbe/installed.tar and /lbe/modules are left.
set -euo pipefail

release=$(cd /lib/modules && echo *)
version=$(cat /lbe/source/VERSION)
source=/lbe/source

make -C "$source" dkms KERNELRELEASE="$release" || {
	cat "/var/lib/dkms/lbe/$version/build/make.log"
	exit 1
}
make -C "$source/tools" install PREFIX=/usr/local LBE_VERSION="$version"
make -C "$source/testbed/agent" O=/lbe/agent >/dev/null
install -D -t /usr/local/lib/lbe /lbe/agent/lbe-agent
# what only guests load, with the product's headers beside it
cp -r "$source/testbed/kernels/guest-modules" /lbe/guest-modules
(cd "$source" && tar -cf - include ./*/*.h) | tar -C /lbe/guest-modules -xf -
make -C "/lib/modules/$release/build" M=/lbe/guest-modules LBE_VERSION="$version" modules >/dev/null
install -t /usr/local/lib/lbe /lbe/guest-modules/*.ko
ldconfig

cd /
tar --numeric-owner -cf /lbe/installed.tar "lib/modules/$release/updates" "lib/modules/$release"/modules.* \
	usr/local usr/lib/x86_64-linux-gnu/tc "usr/src/lbe-$version" var/lib/dkms \
	etc/ld.so.cache etc/ld.so.conf.d
find "lib/modules/$release/updates" usr/local/lib/lbe -name '*.ko*' >/lbe/modules
