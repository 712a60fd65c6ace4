#include "main_thread.h"

#include <cassert>

namespace capfleet::binding {

std::shared_ptr<MainThread> MainThread::create(Napi::Env env) {
  std::shared_ptr<MainThread> self(new MainThread);
  self->env_ = env;
  self->thread_ = std::this_thread::get_id();
  const napi_status status = napi_create_threadsafe_function(
      env, nullptr, nullptr, Napi::String::New(env, "capfleet"), 0, 1, nullptr, nullptr, nullptr,
      &MainThread::call, &self->function_);
  assert(status == napi_ok);
  napi_unref_threadsafe_function(env, self->function_);
  // Registered after the function, so it runs before Node destroys that.
  env.AddCleanupHook([self] { self->shutDown(); });
  return self;
}

void MainThread::run(Task task) {
  if (std::this_thread::get_id() == thread_) {
    if (isShutDown_) return;
    const Napi::HandleScope scope(env_);
    task(env_);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (isShutDown_) return;
  auto owned = std::make_unique<Task>(std::move(task));
  const napi_status status =
      napi_call_threadsafe_function(function_, owned.get(), napi_tsfn_nonblocking);
  if (status == napi_ok) owned.release();  // call() owns it now
}

void MainThread::beginOperation() {
  if (operations_++ == 0) napi_ref_threadsafe_function(env_, function_);
}

void MainThread::endOperation() {
  assert(operations_ > 0);
  if (--operations_ == 0) napi_unref_threadsafe_function(env_, function_);
}

void MainThread::shutDown() {
  const std::lock_guard lock(mutex_);
  isShutDown_ = true;
  napi_release_threadsafe_function(function_, napi_tsfn_abort);
}

void MainThread::call(napi_env env, napi_value, void*, void* data) {
  const std::unique_ptr<Task> task(static_cast<Task*>(data));
  // Without an environment the process is ending.
  if (env != nullptr) (*task)(env);
}

}  // namespace capfleet::binding
