// Writes the missing sieves of a segment, as a JavaScript function. stored-segments.ts checks the
// arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// addSieves(segment): { finished: Promise<bigint>, cancel(): void }, with the number of blocks
/// that have a sieve now and had none before.
Napi::Value addSievesTo(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
