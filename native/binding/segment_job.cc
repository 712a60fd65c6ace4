#include "segment_job.h"

#include <string>
#include <utility>

#include "addon_data.h"
#include "os/worker_pool.h"
#include "promise_job.h"
#include "store/segment_extent.h"
#include "store/segment_removal.h"

namespace capfleet::binding {
namespace {

uint64_t toUint64(const Napi::Value& value) {
  bool isLossless = false;
  return value.As<Napi::BigInt>().Uint64Value(&isLossless);
}

int64_t toInt64(const Napi::Value& value) {
  bool isLossless = false;
  return value.As<Napi::BigInt>().Int64Value(&isLossless);
}

SegmentExtent readExtent(const Napi::Value& value) {
  SegmentExtent extent;
  if (value.IsUndefined()) return extent;
  const auto from = value.As<Napi::Object>();
  extent.indexBytes = toUint64(from.Get("indexBytes"));
  extent.port = from.Get("port").As<Napi::Number>().Uint32Value();
  extent.header.linkTypeWord = from.Get("linkType").As<Napi::Number>().Uint32Value();
  extent.header.snaplen = from.Get("snaplen").As<Napi::Number>().Uint32Value();
  extent.minNs = toInt64(from.Get("minNs"));
  extent.maxNs = toInt64(from.Get("maxNs"));
  extent.packets = toUint64(from.Get("packets"));
  extent.bytes = toUint64(from.Get("bytes"));
  extent.damagedBlocks = toUint64(from.Get("damagedBlocks"));
  extent.checksum = from.Get("checksum").As<Napi::Number>().Uint32Value();
  return extent;
}

Napi::Value toExtentValue(Napi::Env env, const SegmentExtent& extent) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("indexBytes", Napi::BigInt::New(env, extent.indexBytes));
  result.Set("port", Napi::Number::New(env, extent.port));
  result.Set("linkType", Napi::Number::New(env, extent.header.linkTypeWord));
  result.Set("snaplen", Napi::Number::New(env, extent.header.snaplen));
  result.Set("minNs", Napi::BigInt::New(env, extent.minNs));
  result.Set("maxNs", Napi::BigInt::New(env, extent.maxNs));
  result.Set("packets", Napi::BigInt::New(env, extent.packets));
  result.Set("bytes", Napi::BigInt::New(env, extent.bytes));
  result.Set("damagedBlocks", Napi::BigInt::New(env, extent.damagedBlocks));
  result.Set("checksum", Napi::Number::New(env, extent.checksum));
  return result;
}

void onWorker(WorkerPool::Task task) { WorkerPool::shared().makeQueue().post(std::move(task)); }

}  // namespace

Napi::Value measureSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value(), known = readExtent(info[1])] {
        return measureSegment(segment, known);
      },
      toExtentValue, onWorker);
}

Napi::Value measureFinishedSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value()] {
        return measureFinishedSegment(segment);
      },
      toExtentValue, onWorker);
}

Napi::Value takeSuspects(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto taken = AddonData::of(env)->checkedBlocks()->suspects().take();
  Napi::Array paths = Napi::Array::New(env, taken.size());
  for (uint32_t i = 0; i < taken.size(); i++) paths.Set(i, Napi::String::New(env, taken[i]));
  return paths;
}

Napi::Value removeSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value(),
       evenIfRead = info[1].As<Napi::Boolean>().Value()] {
        return removeSegment(segment, evenIfRead);
      },
      Napi::Boolean::New, onWorker);
}

}  // namespace capfleet::binding
