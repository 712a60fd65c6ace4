// Work on other threads, as a JavaScript promise.
#pragma once

#include <napi.h>

#include <memory>
#include <utility>

#include "addon_data.h"
#include "error_value.h"
#include "main_thread.h"

namespace capfleet::binding {

/// Lets `start` do the work, which returns a Result, on another thread. Settles the promise with
/// `toValue(env, result)`, or with the error.
template <typename Work, typename ToValue, typename Start>
Napi::Value promiseOf(Napi::Env env, Work work, ToValue toValue, Start start) {
  const auto deferred = Napi::Promise::Deferred::New(env);
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  mainThread->beginOperation();
  start([mainThread, deferred, toValue, work = std::move(work)] {
    const auto result = std::make_shared<decltype(work())>(work());
    mainThread->run([deferred, toValue, result](Napi::Env there) {
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

}  // namespace capfleet::binding
