# SPDX-License-Identifier: GPL-2.0
"""Running experiments: jobs, local or Dask workers, and the cache of runs."""
