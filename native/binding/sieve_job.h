// Writes the missing sieves and addresses of a segment, as JavaScript functions. stored-segments.ts
// checks the arguments.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// addSieves(segment): { finished: Promise<bigint>, cancel(): void }, with the number of blocks
/// that have a sieve now and had none before.
Napi::Value addSievesTo(const Napi::CallbackInfo& info);

/// repairAddresses(segment): { finished: Promise<boolean>, cancel(): void }; see
/// store/repair/address_repair.h.
Napi::Value repairAddressesOf(const Napi::CallbackInfo& info);

/// transposeAddresses(segment): Promise<void>; see store/address_table.h.
Napi::Value transposeAddressesOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
