#include "segment_log_calls.h"

#include <algorithm>

#include "store/segment_entry.h"

namespace capfleet::binding {
namespace {

enum EntryState : uint8_t { kDamaged = 0, kUndamaged = 1, kNeverWritten = 2 };

EntryState stateOf(const uint8_t* entry, uint64_t fileOffset) {
  if (isValidLogEntry(entry, fileOffset)) return kUndamaged;
  const bool isEmpty =
      std::all_of(entry, entry + kLogEntryBytes, [](uint8_t byte) { return byte == 0; });
  return isEmpty ? kNeverWritten : kDamaged;
}

}  // namespace

void sealLogEntriesOf(const Napi::CallbackInfo& info) {
  auto entries = info[0].As<Napi::Uint8Array>();
  const auto fileOffset = static_cast<uint64_t>(info[1].As<Napi::Number>().Int64Value());
  sealLogEntries(std::span<uint8_t>(entries.Data(), entries.ByteLength()), fileOffset);
}

Napi::Value checkLogEntriesOf(const Napi::CallbackInfo& info) {
  const auto entries = info[0].As<Napi::Uint8Array>();
  const auto fileOffset = static_cast<uint64_t>(info[1].As<Napi::Number>().Int64Value());
  const size_t count = entries.ByteLength() / kLogEntryBytes;
  Napi::Uint8Array states = Napi::Uint8Array::New(info.Env(), count);
  for (size_t i = 0; i < count; i++) {
    const size_t at = i * kLogEntryBytes;
    states[i] = stateOf(entries.Data() + at, fileOffset + at);
  }
  return states;
}

}  // namespace capfleet::binding
