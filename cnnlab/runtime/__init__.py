"""What every room stands on: threads, the cache, files, tables, arguments, and lessons' setup."""
