#include "count_job.h"

#include <memory>

#include "step_job.h"
#include "store/packet_count.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

template <typename Member>
Napi::Value toColumn(Napi::Env env, const std::vector<IntervalCount>& counts, Member member) {
  auto column = Napi::BigUint64Array::New(env, counts.size());
  for (size_t i = 0; i < counts.size(); i++) column[i] = counts[i].*member;
  return column;
}

Napi::Value toCountsValue(Napi::Env env, const PacketCount& count) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("packets", toColumn(env, count.counts(), &IntervalCount::packets));
  result.Set("bytes", toColumn(env, count.counts(), &IntervalCount::bytes));
  return result;
}

}  // namespace

Napi::Value countPackets(const Napi::CallbackInfo& info) {
  const auto boundaries = info[1].As<Napi::BigInt64Array>();
  auto count = std::make_unique<PacketCount>(
      readStreamSegments(info[0].As<Napi::Array>()),
      std::vector<int64_t>(boundaries.Data(), boundaries.Data() + boundaries.ElementLength()));
  return startSteps(info.Env(), std::move(count), toCountsValue);
}

}  // namespace capfleet::binding
