#include "search_job.h"

#include <memory>
#include <utility>

#include "address_counter_wrap.h"
#include "search/address_search.h"
#include "segment_values.h"
#include "step_job.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

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
                                                questionsOf(addressRangesOf(info[3])));
  return startSteps(info.Env(), std::move(search), toSpansValue);
}

}  // namespace capfleet::binding
