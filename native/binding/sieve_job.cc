#include "sieve_job.h"

#include <atomic>
#include <memory>
#include <string>

#include "background_thread.h"
#include "promise_job.h"
#include "store/sieve_repair.h"

namespace capfleet::binding {
namespace {

Napi::Value toCount(Napi::Env env, uint64_t count) { return Napi::BigInt::New(env, count); }

}  // namespace

Napi::Value addSievesTo(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto isCancelled = std::make_shared<std::atomic<bool>>(false);
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished", promiseOf(
                             env,
                             [segment = info[0].As<Napi::String>().Utf8Value(), isCancelled] {
                               return addSieves(segment, [&] { return !*isCancelled; });
                             },
                             toCount, runInBackground));
  handle.Set("cancel", Napi::Function::New(
                           env, [isCancelled](const Napi::CallbackInfo&) { *isCancelled = true; }));
  return handle;
}

}  // namespace capfleet::binding
