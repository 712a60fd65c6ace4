// The memory of slabs as JavaScript Buffers.
#pragma once

#include <napi.h>

#include <unordered_map>

#include "os/buffer_pool.h"

namespace capfleet::binding {

/// Keeps the Buffer of each slab, because creating one costs more than filling it. A Buffer shares
/// ownership of the memory, and so can outlive everything else. JavaScript thread only.
class SlabBuffers {
 public:
  /// {slab, length}: the Buffer over the slab's whole memory, and how much of it is in use.
  Napi::Object partOf(Napi::Env env, const SlabPtr& slab);
  /// Leaves the slab's memory to the remaining references to its Buffer.
  void forget(const Slab* slab) { buffers_.erase(slab); }
  void forgetAll() { buffers_.clear(); }

 private:
  std::unordered_map<const Slab*, Napi::ObjectReference> buffers_;
};

}  // namespace capfleet::binding
