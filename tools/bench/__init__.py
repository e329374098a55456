"""`hnefi bench`: the signature of the search, and measurements that a command reproduces."""
