#include "sieve_job.h"

#include <memory>
#include <string>

#include "background_thread.h"
#include "cancellation.h"
#include "promise_job.h"
#include "store/address_table.h"
#include "store/repair/address_repair.h"
#include "store/repair/sieve_repair.h"
#include "store/segment_path.h"

namespace capfleet::binding {
namespace {

Napi::Value toCount(Napi::Env env, uint64_t count) { return Napi::BigInt::New(env, count); }

Napi::Value toFlag(Napi::Env env, bool flag) { return Napi::Boolean::New(env, flag); }

/// Runs `work(segment, goesOn)` at the lowest priority.
template <typename Work, typename ToValue>
Napi::Value jobOf(const Napi::CallbackInfo& info, Work work, ToValue toValue) {
  const Napi::Env env = info.Env();
  const Cancellation cancellation;
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished",
             promiseOf(
                 env,
                 [segment = info[0].As<Napi::String>().Utf8Value(), cancellation, work] {
                   return work(segment, [&] { return !cancellation.isCancelled(); });
                 },
                 toValue, runInBackground));
  handle.Set("cancel", cancellation.toFunction(env));
  return handle;
}

}  // namespace

Napi::Value addSievesTo(const Napi::CallbackInfo& info) { return jobOf(info, addSieves, toCount); }

Napi::Value repairAddressesOf(const Napi::CallbackInfo& info) {
  return jobOf(info, repairAddresses, toFlag);
}

Napi::Value transposeAddressesOf(const Napi::CallbackInfo& info) {
  return promiseOf(
      info.Env(),
      [segment = info[0].As<Napi::String>().Utf8Value()]() -> Result<bool> {
        const auto [folder, number] = placeOfSegment(segment);
        if (auto status = transposeAddresses(folder, number); !status) return status.error();
        return true;
      },
      [](Napi::Env env, bool) { return env.Undefined(); }, runInBackground);
}

}  // namespace capfleet::binding
