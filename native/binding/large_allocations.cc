#include "large_allocations.h"

#include <malloc.h>

namespace capfleet::binding {

void returnLargeAllocations() {
  // By default glibc raises this limit to the size of each larger block that is freed, up to
  // 32 MiB. From then on such blocks come from the arenas of the threads, each of which keeps up to
  // twice that size after they are freed. A few downloads in a vendor's time (windows of 20 MiB)
  // made an appliance grow by 150 MiB for good. Setting the limit turns that off. Slabs are reused
  // by their pool, so a download makes no more system calls than before.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

}  // namespace capfleet::binding
