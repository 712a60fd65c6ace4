// The search for addresses, and counting by address, as JavaScript. address-search.ts checks the
// arguments.
#pragma once

#include <napi.h>

#include <vector>

#include "search/address_counter.h"

namespace capfleet::binding {

/// searchAddresses(streams, beginNs: bigint, endNs: bigint, ranges: Uint8Array): {finished,
/// cancel()}. `ranges` are as for AddressSet::parse(), and each is a question. `finished` becomes
/// {counts: Uint32Array of the spans of each question, times: BigInt64Array of first and last of
/// each span, segments, ruledOutSegments, wholeSegments: bigint}.
Napi::Value searchAddresses(const Napi::CallbackInfo& info);

/// new AddressCounter(ranges: Uint8Array):
///   add(bytes: Uint8Array): void   the next bytes of a PCAP, as downloads return it
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
  std::vector<uint8_t> rest_;             ///< the begin of a record
  std::optional<uint32_t> linkTypeWord_;  ///< once the file header was read
};

}  // namespace capfleet::binding
