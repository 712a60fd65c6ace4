// Calls from the engine's threads to the thread that runs JavaScript.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace capfleet::binding {

/// One per Node environment. Thread-safe where stated.
class MainThread {
 public:
  using Task = std::function<void(Napi::Env)>;

  static std::shared_ptr<MainThread> create(Napi::Env env);

  /// Runs the task on the JavaScript thread: at once if called there, else soon. Drops it if the
  /// environment is shutting down. Thread-safe.
  void run(Task task);

  /// Between these two calls the process waits for the result of an operation instead of exiting.
  /// JavaScript thread only.
  void beginOperation();
  void endOperation();

 private:
  MainThread() = default;
  void shutDown();
  static void call(napi_env env, napi_value function, void* context, void* data);

  napi_env env_ = nullptr;
  std::thread::id thread_;
  uint32_t operations_ = 0;
  std::mutex mutex_;
  bool isShutDown_ = false;
  napi_threadsafe_function function_ = nullptr;
};

}  // namespace capfleet::binding
