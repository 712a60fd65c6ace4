#include "segment_job.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "addon_data.h"
#include "error_value.h"
#include "os/thread_priority.h"
#include "os/worker_pool.h"
#include "store/segment_extent.h"
#include "store/segment_removal.h"
#include "store/sieve_repair.h"

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

Napi::Value toValue(Napi::Env env, uint64_t value) { return Napi::BigInt::New(env, value); }

/// Has `start` do the work on another thread, and settles the promise with its result.
template <typename Work, typename Start>
Napi::Value promiseOf(Napi::Env env, Work work, Start start) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  start([mainThread, deferred, work = std::move(work)] {
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

void onWorker(WorkerPool::Task task) { WorkerPool::shared().makeQueue().post(std::move(task)); }

/// Runs what may take seconds, and what nobody waits for.
void behindOthers(WorkerPool::Task task) {
  std::thread([task = std::move(task)] {
    lowerThreadPriority();
    task();
  }).detach();
}

}  // namespace

Napi::Value measureSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value(), known = readExtent(info[1])] {
        return measureSegment(segment, known);
      },
      onWorker);
}

Napi::Value removeSegmentOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value(),
       evenIfRead = info[1].As<Napi::Boolean>().Value()] {
        return removeSegment(segment, evenIfRead);
      },
      onWorker);
}

Napi::Value addSievesTo(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto isCancelled = std::make_shared<std::atomic<bool>>(false);
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished", promiseOf(
                             env,
                             [segment = info[0].As<Napi::String>().Utf8Value(), isCancelled] {
                               return addSieves(segment, [&] { return !*isCancelled; });
                             },
                             behindOthers));
  handle.Set("cancel", Napi::Function::New(
                           env, [isCancelled](const Napi::CallbackInfo&) { *isCancelled = true; }));
  return handle;
}

}  // namespace capfleet::binding
