// Work in short steps on the shared worker threads, as a JavaScript promise that can be cancelled.
#pragma once

#include <napi.h>

#include <memory>
#include <utility>

#include "addon_data.h"
#include "cancellation.h"
#include "error_value.h"
#include "os/result.h"
#include "os/worker_pool.h"

namespace capfleet::binding {

/// `Work` has step(): a Result<bool>, true when it is done.
template <typename Work, typename ToValue>
class StepJob : public std::enable_shared_from_this<StepJob<Work, ToValue>> {
 public:
  StepJob(Napi::Env env, std::unique_ptr<Work> work, ToValue toValue)
      : work_(std::move(work)),
        toValue_(std::move(toValue)),
        queue_(WorkerPool::shared().makeQueue()),
        mainThread_(AddonData::of(env)->mainThread()),
        deferred_(Napi::Promise::Deferred::New(env)) {}

  /// {finished: Promise, cancel(): void}; `finished` becomes `toValue(env, work)`.
  Napi::Object start(Napi::Env env) {
    mainThread_->beginOperation();
    post();
    Napi::Object handle = Napi::Object::New(env);
    handle.Set("finished", deferred_.Promise());
    handle.Set("cancel", cancellation_.toFunction(env));
    return handle;
  }

 private:
  void post() {
    queue_.post([job = this->shared_from_this()] { job->run(); });
  }

  /// One step, on a worker thread.
  void run() {
    if (cancellation_.isCancelled()) {
      finish(Error{Code::kCancelled, "the work was cancelled"});
      return;
    }
    const Result<bool> isDone = work_->step();
    if (!isDone) {
      finish(isDone.error());
    } else if (*isDone) {
      finish(ok());
    } else {
      post();
    }
  }

  void finish(Status status) {
    mainThread_->run([job = this->shared_from_this(), status = std::move(status)](Napi::Env env) {
      job->mainThread_->endOperation();
      if (status) {
        job->deferred_.Resolve(job->toValue_(env, *job->work_));
      } else {
        job->deferred_.Reject(toErrorValue(env, status.error()));
      }
    });
  }

  const std::unique_ptr<Work> work_;
  const ToValue toValue_;
  WorkerPool::Queue queue_;
  const std::shared_ptr<MainThread> mainThread_;
  const Napi::Promise::Deferred deferred_;
  const Cancellation cancellation_;
};

template <typename Work, typename ToValue>
Napi::Object startSteps(Napi::Env env, std::unique_ptr<Work> work, ToValue toValue) {
  return std::make_shared<StepJob<Work, ToValue>>(env, std::move(work), std::move(toValue))
      ->start(env);
}

}  // namespace capfleet::binding
