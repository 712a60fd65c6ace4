#include "live_capture_wrap.h"

#include <thread>
#include <utility>

#include "error_value.h"
#include "os/blocked_signals.h"
#include "os/worker_pool.h"
#include "segment_values.h"

namespace capfleet::binding {
namespace {

using OpenResult = Result<std::unique_ptr<LiveCapture>>;

/// Only fails because of the compiled filter.
Result<LivePort> readPort(const Napi::Object& from) {
  LivePort port;
  port.port = from.Get("port").As<Napi::Number>();
  port.interfaceName = from.Get("interfaceName").As<Napi::String>();
  port.threads = from.Get("threads").As<Napi::Number>();
  port.ringBytes = static_cast<uint64_t>(from.Get("ringBytes").As<Napi::Number>().Int64Value());
  port.snaplen = from.Get("snaplen").As<Napi::Number>();
  port.isPromiscuous = from.Get("isPromiscuous").As<Napi::Boolean>();
  if (const Napi::Value filter = from.Get("filter"); !filter.IsUndefined()) {
    const auto bytes = filter.As<Napi::Uint8Array>();
    auto program = BpfProgram::parse({bytes.Data(), bytes.ByteLength()});
    if (!program) return program.error();
    port.filter = std::move(*program);
  }
  return port;
}

Result<LiveCaptureOptions> readOptions(const Napi::Object& from) {
  const auto number = [&](const char* name) {
    return from.Get(name).As<Napi::Number>().Int64Value();
  };
  LiveCaptureOptions options;
  const auto ports = from.Get("ports").As<Napi::Array>();
  for (uint32_t i = 0; i < ports.Length(); i++) {
    auto port = readPort(ports.Get(i).As<Napi::Object>());
    if (!port) return port.error();
    options.ports.push_back(std::move(*port));
  }
  options.segmentBytes = static_cast<uint64_t>(number("segmentBytes"));
  options.syncIntervalNs = number("syncIntervalMs") * 1'000'000;
  options.queueBytes = static_cast<uint64_t>(number("queueBytes"));
  return options;
}

Napi::Value toStreams(Napi::Env env, const std::vector<RecordedStream>& from) {
  Napi::Array streams = Napi::Array::New(env, from.size());
  for (uint32_t i = 0; i < from.size(); i++) {
    streams.Set(i, toStream(env, from[i].port, from[i].header, from[i].segments));
  }
  return streams;
}

Napi::Value toPortCounts(Napi::Env env, const LivePortCounts& from) {
  Napi::Object counts = Napi::Object::New(env);
  const auto set = [&](const char* name, auto value) {
    counts.Set(name, Napi::BigInt::New(env, value));
  };
  counts.Set("port", Napi::Number::New(env, from.port));
  set("seenPackets", from.seenPackets);
  set("storedPackets", from.storedPackets);
  set("storedBytes", from.storedBytes);
  set("seenBytes", from.seenBytes);
  set("filteredPackets", from.filteredPackets);
  set("ringDrops", from.ringDrops);
  set("diskDrops", from.diskDrops);
  set("pendingPackets", from.pendingPackets);
  set("fcsErrors", from.fcsErrors);
  set("lastPacketNs", from.lastPacketNs);
  Napi::Array sizes = Napi::Array::New(env, kSizeClasses);
  for (uint32_t i = 0; i < kSizeClasses; i++) sizes.Set(i, Napi::BigInt::New(env, from.sizes[i]));
  counts.Set("sizeClasses", sizes);
  counts.Set("hasHardwareTimestamps", Napi::Boolean::New(env, from.hasNicTimestamps));
  counts.Set("isUp", Napi::Boolean::New(env, from.isUp));
  return counts;
}

Napi::Value toCounts(Napi::Env env, const LiveCounts& from) {
  Napi::Object counts = Napi::Object::New(env);
  Napi::Array ports = Napi::Array::New(env, from.ports.size());
  uint64_t pendingBytes = 0;
  for (uint32_t i = 0; i < from.ports.size(); i++) {
    ports.Set(i, toPortCounts(env, from.ports[i]));
    pendingBytes += from.ports[i].pendingBytes;
  }
  counts.Set("ports", ports);
  counts.Set("flushedNs", Napi::BigInt::New(env, from.flushedNs));
  counts.Set("pendingBytes", Napi::BigInt::New(env, pendingBytes));
  counts.Set("diskErrors", Napi::BigInt::New(env, from.diskErrors));
  counts.Set("diskMessage", Napi::String::New(env, from.diskMessage));
  return counts;
}

void settleOpen(Napi::Env env, Napi::Promise::Deferred deferred, OpenResult& opened) {
  AddonData& data = *AddonData::of(env);
  data.mainThread()->endOperation();
  if (!opened) {
    deferred.Reject(toErrorValue(env, opened.error()));
    return;
  }
  const auto holder = Napi::External<OpenResult>::New(env, &opened);
  deferred.Resolve(data.liveCaptureConstructor.New({holder}));
}

/// Settles the promise of a recording's end, from the writer's thread.
LiveCapture::OnEnded settleStreams(const std::shared_ptr<MainThread>& mainThread,
                                   Napi::Promise::Deferred deferred) {
  mainThread->beginOperation();
  return [mainThread, deferred](std::vector<RecordedStream> streams) {
    mainThread->run([mainThread, deferred, streams = std::move(streams)](Napi::Env env) {
      mainThread->endOperation();
      deferred.Resolve(toStreams(env, streams));
    });
  };
}

}  // namespace

void LiveCaptureWrap::define(Napi::Env env) {
  const Napi::Function constructor =
      DefineClass(env, "NativeLiveCapture",
                  {InstanceMethod<&LiveCaptureWrap::start>("start"),
                   InstanceMethod<&LiveCaptureWrap::roll>("roll"),
                   InstanceMethod<&LiveCaptureWrap::stop>("stop"),
                   InstanceMethod<&LiveCaptureWrap::takeFinished>("takeFinished"),
                   InstanceMethod<&LiveCaptureWrap::counts>("counts"),
                   InstanceMethod<&LiveCaptureWrap::close>("close")});
  AddonData::of(env)->liveCaptureConstructor = Napi::Persistent(constructor);
}

Napi::Value LiveCaptureWrap::open(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto deferred = Napi::Promise::Deferred::New(env);
  Result<LiveCaptureOptions> options = readOptions(info[0].As<Napi::Object>());
  if (!options) {
    deferred.Reject(toErrorValue(env, options.error()));
    return deferred.Promise();
  }
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  // Tasks are copied; shared, so that the options are not copied along.
  const auto wanted = std::make_shared<LiveCaptureOptions>(std::move(*options));
  WorkerPool::shared().makeQueue().post([mainThread, deferred, wanted] {
    auto opened = std::make_shared<OpenResult>(LiveCapture::open(std::move(*wanted)));
    mainThread->run([deferred, opened](Napi::Env there) { settleOpen(there, deferred, *opened); });
  });
  return deferred.Promise();
}

LiveCaptureWrap::LiveCaptureWrap(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<LiveCaptureWrap>(info), data_(AddonData::of(info.Env())) {
  // Only settleOpen() can call this constructor.
  capture_ = std::move(**info[0].As<Napi::External<OpenResult>>().Data());
}

Napi::Value LiveCaptureWrap::start(const Napi::CallbackInfo& info) {
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  const std::shared_ptr<MainThread> mainThread = data_->mainThread();
  mainThread->beginOperation();
  const std::string folder = info[0].As<Napi::String>();
  LastNumbers lastNumbers;
  const auto pairs = info[1].As<Napi::Array>();
  for (uint32_t i = 0; i < pairs.Length(); i++) {
    const auto pair = pairs.Get(i).As<Napi::Array>();
    const uint32_t port = pair.Get(0u).As<Napi::Number>();
    lastNumbers[port] = pair.Get(1u).As<Napi::Number>();
  }
  WorkerPool::shared().makeQueue().post(
      [mainThread, deferred, folder, lastNumbers, capture = capture_] {
        capture->start(folder, lastNumbers);
        mainThread->run([mainThread, deferred](Napi::Env there) {
          mainThread->endOperation();
          deferred.Resolve(there.Undefined());
        });
      });
  return deferred.Promise();
}

Napi::Value LiveCaptureWrap::roll(const Napi::CallbackInfo& info) {
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  capture_->roll(info[0].As<Napi::String>(), settleStreams(data_->mainThread(), deferred));
  return deferred.Promise();
}

Napi::Value LiveCaptureWrap::stop(const Napi::CallbackInfo& info) {
  const auto deferred = Napi::Promise::Deferred::New(info.Env());
  capture_->stop(settleStreams(data_->mainThread(), deferred));
  return deferred.Promise();
}

Napi::Value LiveCaptureWrap::takeFinished(const Napi::CallbackInfo& info) {
  return toStreams(info.Env(), capture_->takeFinished());
}

Napi::Value LiveCaptureWrap::counts(const Napi::CallbackInfo& info) {
  return toCounts(info.Env(), capture_->counts());
}

void LiveCaptureWrap::close(const Napi::CallbackInfo&) {
  const std::shared_ptr<MainThread> mainThread = data_->mainThread();
  mainThread->beginOperation();
  const BlockedSignals blocked;
  // Its destructor waits for the disk.
  std::thread([mainThread, capture = std::move(capture_)]() mutable {
    capture.reset();
    mainThread->run([mainThread](Napi::Env) { mainThread->endOperation(); });
  }).detach();
}

}  // namespace capfleet::binding
