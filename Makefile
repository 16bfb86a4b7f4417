# SPDX-License-Identifier: GPL-2.0
#
# The targets of the suite. They delegate the work: kbuild builds the modules (Kbuild),
# each tool has a Makefile, and `python3 -m testbed` runs everything else.
# No target loads a module into the running kernel.

KERNELRELEASE	?= $(shell uname -r)
KDIR		?= /lib/modules/$(KERNELRELEASE)/build
DESTDIR		?=
PREFIX		?= /usr/local
LINT_SERIES	?=
LINT_STEPS	?=
ARGS		?=
PYTEST_ARGS	?=
SERIES		?=

# A relative KDIR means relative to here, also after make -C.
kdir		:= $(abspath $(KDIR))
ifndef LBE_VERSION
LBE_VERSION	:= $(shell scripts/version)
endif
export LBE_VERSION DESTDIR PREFIX

# kbuild's own default where ARCH is not given.
kbuild		= $(MAKE) -C $(kdir) M=$(CURDIR) $(if $(ARCH),ARCH=$(ARCH))
python		= python=$$(scripts/venv) && exec "$$python"

# Another kernel changes nothing for the tiers that need none.
ifdef SERIES
check-what	:= --series=$(SERIES) --tiers=kunit,scenario
else
check-what	:= --tiers=host,harness,kunit,scenario,qemu
endif

.DEFAULT_GOAL := help
.PHONY: help modules tools demo check check-fast check-report check-kernels check-foreign lint ynl bench mutants abuse soak report install \
	uninstall dkms-source dkms dkms-remove deb clean

help:
	@echo 'Less-than-best-effort transport for Linux, version $(LBE_VERSION)'
	@echo
	@echo 'See it (needs neither root nor modules; kernels run in user mode):'
	@echo '  make demo        a background transfer steps aside: table, picture; at most 10 min the'
	@echo '                   first time (it fetches and builds a kernel), then under 30 s'
	@echo '  make check       all tests: host arithmetic, harness, KUnit, scenarios;'
	@echo '                   SERIES=6.1 or 7.2: those inside a kernel, on that one instead of 6.12'
	@echo '  make check-fast  the tests that need no kernel'
	@echo '  make check-kernels  tests on Debian'\''s kernels 6.1, 6.12, 7.2 and PREEMPT_RT in QEMU: packages, races'
	@echo '  make check-foreign  suites of other projects: packetdrill with each congestion control and with vulture,'
	@echo '                   netfilter with vulture, tc-testing with shred, flent, recorded links; more than an hour.'
	@echo '                   LBE_PACKETDRILL=<file> and LBE_TRACES=<folder>, or LBE_FOREIGN=<folder> for both, name'
	@echo '                   what is not part of the project'
	@echo '  make check-report  tests of the report: its page in Chromium, runs on Dask workers'
	@echo '  make report      every table and figure of the papers, every contender in every scenario: one'
	@echo '                   page; 30 min on 2 CPUs, ARGS="--minutes 5" for less, ARGS=--full for days'
	@echo '  make bench       how fast the testbed, the queue, lbe and the receiver'\''s controller are'
	@echo '  make mutants     plants faults in a copy of the tree and runs the tests that should notice; ARGS="lowpri"'
	@echo '  make abuse       attacks on the modules: fuzzing, hostile packets, failing memory; 15 min'
	@echo '  make soak        long connections: gigabytes, idle days, hours of sending, odd clocks; two hours'
	@echo
	@echo 'Build it for a kernel:'
	@echo '  make modules     all modules, in place; for the running kernel, or'
	@echo '                   KDIR=<build folder of 6.1, 6.12 or 7.2>  [ARCH=um for a user-mode one]'
	@echo '  make tools       library, command line, tc plugin'
	@echo '  make install     modules into updates/lbe, tools and systemd units under PREFIX ($(PREFIX)); loads and starts nothing'
	@echo '  make uninstall   removes what install installed; give the same KDIR, PREFIX, DESTDIR'
	@echo '  make dkms        the modules by DKMS, which builds them again for each new kernel; make dkms-remove'
	@echo '  make deb         Debian packages, in build/: lbe-dkms, lbe-tools, libvulture1, libvulture-dev, python3-vulture'
	@echo '  make clean       removes what was built here; the cache (kernels, Python) stays'
	@echo
	@echo 'Work on it:'
	@echo '  make lint        checkpatch, sparse, W=1, shellcheck, ruff, mypy, the project'\''s own rules'
	@echo '                   LINT_STEPS="ruff spdx" picks steps, LINT_SERIES="6.1 7.2" adds kernels'
	@echo '  make ynl         writes again what is made from Documentation/vulture.yaml: policies, operations,'
	@echo '                   numbers, lists of options, parsers'
	@echo
	@echo 'Further arguments: ARGS="--seed 7" (demo, bench, report), PYTEST_ARGS="-k name" (check).'
	@echo 'The cache is $$LBE_CACHE, else $$XDG_CACHE_HOME/lbe, else ~/.cache/lbe.'
	@echo 'Missing packages are installed by apt as root or through sudo, else named in one line;'
	@echo 'LBE_NO_DEPS=1 leaves the machine as it is.'

modules:
	@test -e $(kdir)/Makefile || { \
		echo 'modules: no kernel build folder at $(kdir): install linux-headers-$(KERNELRELEASE), or give KDIR=<folder>' >&2; \
		exit 1; }
	$(kbuild) modules

tools:
	@scripts/deps tools
	@$(MAKE) -C tools all

demo:
	@scripts/deps python kernel testbed
	@$(python) -m testbed demo $(ARGS)

check:
	@scripts/deps python kernel testbed tools check lint distro
	@$(python) -m pytest $(check-what) -n auto --dist loadfile $(PYTEST_ARGS)

check-kernels:
	@scripts/deps python kernel testbed tools distro package race go
	@$(python) -m pytest --tiers=kernels --results=results $(PYTEST_ARGS)

# ARGS="lbe vulture" picks subjects.
check-foreign:
	@scripts/deps python kernel testbed tools distro foreign
	@$(python) -m testbed foreign $(ARGS)

check-fast:
	@scripts/deps python compiler testbed tools check lint
	@$(python) -m pytest --tiers=host,harness $(PYTEST_ARGS)

lint:
	@scripts/deps python kernel lint
	@$(python) scripts/lint.py $(addprefix --series ,$(LINT_SERIES)) $(LINT_STEPS)

ynl:
	@scripts/deps python kernel lint
	@$(python) scripts/ynl.py

bench:
	@scripts/deps python kernel testbed
	@status=0; ($(python) -m testbed speed $(ARGS)) || status=$$?; \
		($(python) -m sch_shred.tests.bench) || status=$$?; \
		($(python) -m tcp_lbe.tests.bench) || status=$$?; \
		($(python) -m vulture.tests.bench) || status=$$?; exit $$status

mutants:
	@scripts/deps python compiler testbed
	@$(python) -m testbed.support.mutants $(ARGS)

abuse:
	@scripts/deps python kernel testbed
	@$(python) -m testbed abuse $(ARGS)

# ARGS="life_idle --short" picks.
soak:
	@scripts/deps python kernel testbed
	@$(python) -m testbed soak $(ARGS)

report:
	@scripts/deps python kernel testbed browser ns2
	@$(python) -m testbed evaluate $(ARGS)

# Dask and a browser are for the report alone: they and their tests are no part of check.
check-report:
	@scripts/deps python kernel testbed browser ns2
	@($(python) -m pip install -q --disable-pip-version-check --no-input -r requirements-dask.txt)
	@$(python) -m pytest --tiers=report $(PYTEST_ARGS)

# As uname -r says it. Debian's headers of 6.1 have something else in include/config/kernel.release.
utsrelease = $(kdir)/include/generated/utsrelease.h
release = $(or $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(utsrelease) 2>/dev/null),$(KERNELRELEASE))

# An installed kernel has no use for the KUnit modules: they are left out.
# A package's root (DESTDIR) gets its indexes from the maintainer scripts.
install:
	@$(MAKE) modules CONFIG_KUNIT=
	@$(MAKE) tools
	$(kbuild) CONFIG_KUNIT= INSTALL_MOD_PATH=$(DESTDIR) INSTALL_MOD_DIR=updates/lbe DEPMOD=true modules_install
	@$(MAKE) -C tools install
	$(if $(DESTDIR),,depmod -a $(release) && ldconfig)

uninstall:
	rm -rf $(DESTDIR)/lib/modules/$(release)/updates/lbe
	@$(MAKE) -C tools uninstall
	$(if $(DESTDIR),,depmod -a $(release) && ldconfig)

# What the modules are built from, where DKMS looks for it.
dkms-version	= $(shell cat VERSION)
dkms-folder	= $(DESTDIR)/usr/src/lbe-$(dkms-version)
module-dirs	:= $(patsubst %/Kbuild,%,$(wildcard */Kbuild))

dkms-source:
	rm -rf $(dkms-folder)
	install -D -m 0755 -t $(dkms-folder)/scripts scripts/version
	install -m 0644 -t $(dkms-folder) Kbuild Makefile VERSION dkms.conf
	find include $(module-dirs) -name tests -prune -o \( -name '*.[ch]' ! -name '*.mod.c' -o -name Kbuild \) -type f \
		-exec install -D -m 0644 '{}' '$(dkms-folder)/{}' ';'

dkms:
	@command -v dkms >/dev/null || { echo 'dkms: not installed: apt-get install dkms' >&2; exit 1; }
	-dkms remove lbe/$(dkms-version) --all >/dev/null 2>&1
	$(MAKE) dkms-source
	dkms add lbe/$(dkms-version)
	dkms install lbe/$(dkms-version) -k $(KERNELRELEASE)

dkms-remove:
	dkms remove lbe/$(dkms-version) --all
	rm -rf $(dkms-folder)

# The packages, built from what git would ship, in a folder of their own.
deb:
	@scripts/deps package
	@scripts/deb build

# kbuild's clean wants a kernel; this one does not.
clean:
	@find . -name .git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '*.o.d' -o -name 'modules.order' -o -name 'Module.symvers' \
		-o -name '.module-common.o' \) -type f -exec rm -f {} +
	@$(MAKE) -C tools clean
