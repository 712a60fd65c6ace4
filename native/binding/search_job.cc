#include "search_job.h"

#include <memory>
#include <utility>

#include "error_value.h"
#include "packet/pcap_format.h"
#include "search/address_search.h"
#include "segment_values.h"
#include "step_job.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

/// Of the link type word in the file header.
constexpr size_t kLinkTypeOffset = 20;

std::span<const uint8_t> spanOf(const Napi::Value& value) {
  const auto bytes = value.As<Napi::Uint8Array>();
  return {bytes.Data(), bytes.ByteLength()};
}

/// address-search.ts writes them.
AddressRanges rangesOf(const Napi::Value& value) {
  auto ranges = parseAddressRanges(spanOf(value));
  return ranges ? std::move(*ranges) : AddressRanges{};
}

std::vector<AddressNeeds> questionsOf(const AddressRanges& ranges) {
  std::vector<AddressNeeds> questions;
  questions.reserve(ranges.four.size() + ranges.six.size());
  for (const auto& range : ranges.four) {
    questions.emplace_back(std::span(&range, 1), std::span<const AddressRange<Ipv6Address>>{});
  }
  for (const auto& range : ranges.six) {
    questions.emplace_back(std::span<const AddressRange<uint32_t>>{}, std::span(&range, 1));
  }
  return questions;
}

int64_t toInt64(const Napi::Value& value) {
  bool isLossless = false;
  return value.As<Napi::BigInt>().Int64Value(&isLossless);
}

Napi::Value toSpansValue(Napi::Env env, const AddressSearch& search) {
  size_t total = 0;
  for (const auto& spans : search.spans()) total += spans.size();
  auto counts = Napi::Uint32Array::New(env, search.spans().size());
  auto times = Napi::BigInt64Array::New(env, total * 2);
  size_t question = 0;
  size_t at = 0;
  for (const auto& spans : search.spans()) {
    counts[question++] = static_cast<uint32_t>(spans.size());
    for (const SeenSpan& span : spans) {
      times[at++] = span.firstNs;
      times[at++] = span.lastNs;
    }
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("counts", counts);
  result.Set("times", times);
  result.Set("segments", Napi::BigInt::New(env, search.segments()));
  result.Set("ruledOutSegments", Napi::BigInt::New(env, search.ruledOutSegments()));
  result.Set("wholeSegments", Napi::BigInt::New(env, search.wholeSegments()));
  return result;
}

}  // namespace

Napi::Value searchAddresses(const Napi::CallbackInfo& info) {
  auto search = std::make_unique<AddressSearch>(readStreamSegments(info[0].As<Napi::Array>()),
                                                toInt64(info[1]), toInt64(info[2]),
                                                questionsOf(rangesOf(info[3])));
  return startSteps(info.Env(), std::move(search), toSpansValue);
}

Napi::Function AddressCounterWrap::define(Napi::Env env) {
  return DefineClass(env, "AddressCounter",
                     {InstanceMethod<&AddressCounterWrap::add>("add"),
                      InstanceMethod<&AddressCounterWrap::counts>("counts")});
}

AddressCounterWrap::AddressCounterWrap(const Napi::CallbackInfo& info)
    : ObjectWrap(info), counter_([&] {
        const AddressRanges ranges = rangesOf(info[0]);
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
    at = kPcapFileHeaderBytes;
  }
  while (bytes.size() - at >= kRecordHeaderBytes) {
    const RecordHeader header = loadRecordHeader(&bytes[at]);
    const size_t end = at + kRecordHeaderBytes + header.capturedLength;
    if (end > bytes.size()) break;
    counter_.add({bytes.subspan(at + kRecordHeaderBytes, header.capturedLength),
                  header.originalLength, header.timestampNs, *linkTypeWord_, 0, 0});
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
