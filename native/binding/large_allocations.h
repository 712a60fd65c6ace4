// What the process does with large memory blocks that are no longer used.
#pragma once

namespace capfleet::binding {

/// Makes the allocator return blocks of 1 MiB and more to the system as soon as they are freed.
/// Applies to the whole process, Node included; calling it again changes nothing.
void returnLargeAllocations();

}  // namespace capfleet::binding
