// The search for addresses as JavaScript. address-search.ts checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// searchAddresses(streams, beginNs: bigint, endNs: bigint, ranges: Uint8Array): {finished,
/// cancel()}. `ranges` are as for AddressSet::parse(), and each is a question. `finished` becomes
/// {counts: Uint32Array of the spans of each question, times: BigInt64Array of first and last of
/// each span, segments, ruledOutSegments, wholeSegments: bigint}.
Napi::Value searchAddresses(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
