#include "address_counter_wrap.h"

#include <utility>

#include "packet/pcap_format.h"

namespace capfleet::binding {
namespace {

/// Of the link type word in the file header.
constexpr size_t kLinkTypeOffset = 20;

std::span<const uint8_t> spanOf(const Napi::Value& value) {
  const auto bytes = value.As<Napi::Uint8Array>();
  return {bytes.Data(), bytes.ByteLength()};
}

/// A time whose fraction was read as nanoseconds but counts microseconds.
int64_t inNanoseconds(int64_t timestampNs) {
  const int64_t fraction = timestampNs % kNanosPerSecond;
  return timestampNs - fraction + fraction * 1000;
}

}  // namespace

AddressRanges addressRangesOf(const Napi::Value& value) {
  auto ranges = parseAddressRanges(spanOf(value));
  return ranges ? std::move(*ranges) : AddressRanges{};
}

Napi::Function AddressCounterWrap::define(Napi::Env env) {
  return DefineClass(env, "AddressCounter",
                     {InstanceMethod<&AddressCounterWrap::add>("add"),
                      InstanceMethod<&AddressCounterWrap::counts>("counts")});
}

AddressCounterWrap::AddressCounterWrap(const Napi::CallbackInfo& info)
    : ObjectWrap(info), counter_([&] {
        const AddressRanges ranges = addressRangesOf(info[0]);
        return AddressCounter(ranges.four, ranges.six);
      }()) {}

void AddressCounterWrap::add(const Napi::CallbackInfo& info) {
  std::span<const uint8_t> bytes = spanOf(info[0]);
  if (rest_.empty()) {
    bytes = bytes.subspan(countWhole(bytes));
    rest_.assign(bytes.begin(), bytes.end());
    return;
  }
  rest_.insert(rest_.end(), bytes.begin(), bytes.end());
  rest_.erase(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(countWhole(rest_)));
}

size_t AddressCounterWrap::countWhole(std::span<const uint8_t> bytes) {
  size_t at = 0;
  if (!linkTypeWord_) {
    if (bytes.size() < kPcapFileHeaderBytes) return 0;
    linkTypeWord_ = loadLe32(&bytes[kLinkTypeOffset]);
    isMicroseconds_ = loadLe32(bytes.data()) == kPcapMagicMicros;
    at = kPcapFileHeaderBytes;
  }
  while (bytes.size() - at >= kRecordHeaderBytes) {
    const RecordHeader header = loadRecordHeader(&bytes[at]);
    const size_t end = at + kRecordHeaderBytes + header.capturedLength;
    if (end > bytes.size()) break;
    counter_.add({bytes.subspan(at + kRecordHeaderBytes, header.capturedLength),
                  header.originalLength,
                  isMicroseconds_ ? inNanoseconds(header.timestampNs) : header.timestampNs,
                  *linkTypeWord_, 0, 0});
    at = end;
  }
  return at;
}

Napi::Value AddressCounterWrap::counts(const Napi::CallbackInfo& info) {
  auto values = Napi::BigInt64Array::New(info.Env(), counter_.counts().size() * 4);
  size_t at = 0;
  for (const auto& [packets, bytes, firstNs, lastNs] : counter_.counts()) {
    values[at++] = static_cast<int64_t>(packets);
    values[at++] = static_cast<int64_t>(bytes);
    values[at++] = firstNs;
    values[at++] = lastNs;
  }
  return values;
}

}  // namespace capfleet::binding
