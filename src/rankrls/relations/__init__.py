"""Relations between objects: everything based on a Kronecker product of two kernels."""
