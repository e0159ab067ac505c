"""Ranks: several processes, each with a memory of its own, that send each other messages (MPI)."""
