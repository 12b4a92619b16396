"""How work runs: searches, threads, clusters, compilation, devices, and where it all runs."""
