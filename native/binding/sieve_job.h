// The making of the sieves that a segment lacks, as a call of JavaScript. stored-segments.ts checks
// the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// addSieves(segment): { finished: Promise<bigint>, cancel(): void }, with the number of blocks
/// that have a sieve now and had none.
Napi::Value addSievesTo(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
