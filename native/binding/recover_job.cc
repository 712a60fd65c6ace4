#include "recover_job.h"

#include <memory>

#include "addon_data.h"
#include "error_value.h"
#include "os/worker_pool.h"
#include "segment_values.h"
#include "store/repair/segment_recovery.h"

namespace capfleet::binding {
namespace {

using RecoverResult = Result<RecoveredSegments>;

void settle(Napi::Env env, Napi::Promise::Deferred deferred, uint32_t port,
            const RecoverResult& recovered) {
  AddonData::of(env)->mainThread()->endOperation();
  if (!recovered) {
    deferred.Reject(toErrorValue(env, recovered.error()));
    return;
  }
  Napi::Object result = Napi::Object::New(env);
  if (!recovered->segments.empty()) {
    result.Set("stream", toStream(env, port, recovered->header, recovered->segments));
  }
  result.Set("cutBytes", Napi::BigInt::New(env, recovered->cutBytes));
  result.Set("recoveredPackets", Napi::BigInt::New(env, recovered->recoveredPackets));
  result.Set("rebuiltBlocks", Napi::BigInt::New(env, recovered->rebuiltBlocks));
  result.Set("damagedBlocks", Napi::BigInt::New(env, recovered->damagedBlocks));
  result.Set("message", Napi::String::New(env, recovered->message));
  deferred.Resolve(result);
}

}  // namespace

Napi::Value recoverStream(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto from = info[0].As<Napi::Object>();
  const RecoveryOptions options{
      from.Get("folder").As<Napi::String>(), from.Get("port").As<Napi::Number>(),
      from.Get("isSameBoot").As<Napi::Boolean>(), from.Get("afterNumber").As<Napi::Number>()};
  const auto deferred = Napi::Promise::Deferred::New(env);
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  WorkerPool::shared().makeQueue().post([mainThread, deferred, options] {
    auto recovered = std::make_shared<RecoverResult>(recoverSegments(options));
    mainThread->run([deferred, recovered, port = options.port](Napi::Env there) {
      settle(there, deferred, port, *recovered);
    });
  });
  return deferred.Promise();
}

}  // namespace capfleet::binding
