// The engine's repair of segments as a JavaScript function. live-capture.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// recoverStream({folder, port, isSameBoot}): Promise<RecoveredStream> of live-capture.ts. Runs on
/// a worker thread.
Napi::Value recoverStream(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
