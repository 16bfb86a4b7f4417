# SPDX-License-Identifier: GPL-2.0
"""From an experiment to finished runs: jobs, workers here or on a Dask cluster, and the cache of runs."""
