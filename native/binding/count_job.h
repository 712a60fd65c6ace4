// The engine's exact counts as a JavaScript function. addon.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// countPackets(streams, boundariesNs: BigInt64Array): {finished: Promise<{packets: BigUint64Array,
/// bytes: BigUint64Array}>, cancel(): void}. Runs on the shared worker threads, step by step.
Napi::Value countPackets(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
