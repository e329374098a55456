"""How kernels become machine code, where that is kept, and what is said meanwhile."""
