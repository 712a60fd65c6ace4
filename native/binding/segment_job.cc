#include "segment_job.h"

#include <memory>
#include <string>

#include "addon_data.h"
#include "error_value.h"
#include "os/worker_pool.h"
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
  return extent;
}

Napi::Value toValue(Napi::Env env, const SegmentExtent& extent) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("indexBytes", Napi::BigInt::New(env, extent.indexBytes));
  result.Set("port", Napi::Number::New(env, extent.port));
  result.Set("linkType", Napi::Number::New(env, extent.header.linkTypeWord));
  result.Set("snaplen", Napi::Number::New(env, extent.header.snaplen));
  result.Set("minNs", Napi::BigInt::New(env, extent.minNs));
  result.Set("maxNs", Napi::BigInt::New(env, extent.maxNs));
  result.Set("packets", Napi::BigInt::New(env, extent.packets));
  result.Set("bytes", Napi::BigInt::New(env, extent.bytes));
  return result;
}

Napi::Value toValue(Napi::Env env, bool value) { return Napi::Boolean::New(env, value); }

/// Does the work on a worker thread and settles the promise with its result.
template <typename Work>
Napi::Value promiseOf(Napi::Env env, Work work) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  WorkerPool::shared().makeQueue().post([mainThread, deferred, work = std::move(work)] {
    const auto result = std::make_shared<decltype(work())>(work());
    mainThread->run([deferred, result](Napi::Env there) {
      AddonData::of(there)->mainThread()->endOperation();
      if (*result) {
        deferred.Resolve(toValue(there, **result));
      } else {
        deferred.Reject(toErrorValue(there, result->error()));
      }
    });
  });
  return deferred.Promise();
}

}  // namespace

Napi::Value measureSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(info.Env(),
                   [segment = info[0].As<Napi::String>().Utf8Value(), known = readExtent(info[1])] {
                     return measureSegment(segment, known);
                   });
}

Napi::Value removeSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(info.Env(), [segment = info[0].As<Napi::String>().Utf8Value(),
                                evenIfRead = info[1].As<Napi::Boolean>().Value()] {
    return removeSegment(segment, evenIfRead);
  });
}

}  // namespace capfleet::binding
