#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# apt-background.sh [--remove]: puts apt's periodic updates (unattended-upgrades) in the background.
# Writes a drop-in for apt-daily.service and apt-daily-upgrade.service. A run that is under way does not change.
set -eu

folder=${SYSTEMD_ETC:-/etc/systemd/system}
unit_conf=$(dirname "$0")/background-unit.conf

case ${1:-} in
'' | --remove) ;;
*)
	echo "usage: apt-background.sh [--remove], not '$1'" >&2
	exit 2 ;;
esac
for unit in apt-daily apt-daily-upgrade; do
	drop_in=$folder/$unit.service.d/50-lbe-background.conf
	if [ "${1:-}" = --remove ]; then
		rm -f "$drop_in"
		rmdir --ignore-fail-on-non-empty "$folder/$unit.service.d" 2>/dev/null || true
	else
		install -D -m 644 "$unit_conf" "$drop_in"
	fi
done
[ -z "${SYSTEMD_ETC:-}" ] && systemctl daemon-reload
exit 0
