// The engine's list of blocks as a JavaScript function. addon.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// listBlocks(streams): Promise<BlockList> of addon.ts. The indexes are read on a worker thread.
Napi::Value listBlocksOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
