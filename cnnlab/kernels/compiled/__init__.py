"""What compiled kernels call: vector registers, shared memory, MPI's functions."""
