"""What every room stands on: the pool of threads, caches, checks of arguments."""
