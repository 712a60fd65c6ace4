// Checksums of entries of a capture's segment log, for JavaScript, which reads and writes the log.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// sealLogEntries(entries: Uint8Array, fileOffset: number): void, as sealLogEntries().
void sealLogEntriesOf(const Napi::CallbackInfo& info);

/// checkLogEntries(entries: Uint8Array, fileOffset: number): Uint8Array, a byte for each entry: 1 =
/// undamaged, 0 = damaged, 2 = never written (all bytes are 0).
Napi::Value checkLogEntriesOf(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
