"""Relations between objects: everything that rests on a Kronecker product of two kernels."""
