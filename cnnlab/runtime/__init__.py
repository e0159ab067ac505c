"""What every room stands on: threads, the cache, files, tables, and checks of arguments."""
