// Counting packets by address as JavaScript, for both addons. address-counter.ts checks the
// arguments.
#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "search/address_counter.h"

namespace capfleet::binding {

/// Bytes that address-list.ts has packed; no ranges if they are malformed.
AddressRanges addressRangesOf(const Napi::Value& value);

/// new AddressCounter(ranges: Uint8Array):
///   add(bytes: Uint8Array): void   the next bytes of a little-endian PCAP
///   counts(): BigInt64Array        packets, bytes, first and last time of each question
class AddressCounterWrap : public Napi::ObjectWrap<AddressCounterWrap> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit AddressCounterWrap(const Napi::CallbackInfo& info);

 private:
  void add(const Napi::CallbackInfo& info);
  Napi::Value counts(const Napi::CallbackInfo& info);
  /// The number of bytes at the beginning that were counted.
  size_t countWhole(std::span<const uint8_t> bytes);

  AddressCounter counter_;
  std::vector<uint8_t> rest_;             ///< the start of a record
  std::optional<uint32_t> linkTypeWord_;  ///< once the file header was read
  bool isMicroseconds_ = false;
};

}  // namespace capfleet::binding
