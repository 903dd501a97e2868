#include "mm/tests/host/host.h"
int host_trace(uint64_t seed, uint64_t ops) { (void)seed; (void)ops; return 0; }
