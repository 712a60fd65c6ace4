// How JavaScript cancels work on other threads.
#pragma once

#include <napi.h>

#include <atomic>
#include <memory>

namespace capfleet::binding {

/// Copies refer to the same flag. The JavaScript function has the flag alone and not the work, so
/// that the work is freed when it is done, not when the garbage collector finds the function: it
/// cannot see how much memory hangs on it. Thread-safe where stated.
class Cancellation {
 public:
  /// `cancel(): void`, which may be called at any time and more than once. JavaScript thread only.
  Napi::Function toFunction(Napi::Env env) const {
    return Napi::Function::New(env,
                               [flag = isCancelled_](const Napi::CallbackInfo&) { *flag = true; });
  }

  /// Thread-safe.
  bool isCancelled() const { return *isCancelled_; }

 private:
  std::shared_ptr<std::atomic<bool>> isCancelled_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace capfleet::binding
