#include "count_job.h"

#include <atomic>
#include <memory>

#include "addon_data.h"
#include "error_value.h"
#include "os/worker_pool.h"
#include "store/packet_count.h"
#include "stream_segments.h"

namespace capfleet::binding {
namespace {

/// Shared by the steps, the answer and the JavaScript handle.
struct CountJob {
  PacketCount count;
  WorkerPool::Queue queue;
  std::shared_ptr<MainThread> mainThread;
  Napi::Promise::Deferred deferred;
  std::atomic<bool> isCancelled = false;
};

template <typename Member>
Napi::Value toColumn(Napi::Env env, const std::vector<IntervalCount>& counts, Member member) {
  auto column = Napi::BigUint64Array::New(env, counts.size());
  for (size_t i = 0; i < counts.size(); i++) column[i] = counts[i].*member;
  return column;
}

void settle(Napi::Env env, CountJob& job, const Status& status) {
  job.mainThread->endOperation();
  if (!status) {
    job.deferred.Reject(toErrorValue(env, status.error()));
    return;
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("packets", toColumn(env, job.count.counts(), &IntervalCount::packets));
  result.Set("bytes", toColumn(env, job.count.counts(), &IntervalCount::bytes));
  job.deferred.Resolve(result);
}

void finish(const std::shared_ptr<CountJob>& job, Status status) {
  job->mainThread->run(
      [job, status = std::move(status)](Napi::Env env) { settle(env, *job, status); });
}

/// One step, on a worker thread; the next one is queued.
void run(const std::shared_ptr<CountJob>& job) {
  if (job->isCancelled) {
    finish(job, Error{Code::kCancelled, "the count was cancelled"});
    return;
  }
  const Result<bool> isCounted = job->count.step();
  if (!isCounted) {
    finish(job, isCounted.error());
  } else if (*isCounted) {
    finish(job, ok());
  } else {
    job->queue.post([job] { run(job); });
  }
}

}  // namespace

Napi::Value countPackets(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto boundaries = info[1].As<Napi::BigInt64Array>();
  const std::shared_ptr<MainThread>& mainThread = AddonData::of(env)->mainThread();
  const std::shared_ptr<CountJob> job(new CountJob{
      PacketCount(readStreamSegments(info[0].As<Napi::Array>()),
                  {boundaries.Data(), boundaries.Data() + boundaries.ElementLength()}),
      WorkerPool::shared().makeQueue(), mainThread, Napi::Promise::Deferred::New(env)});
  mainThread->beginOperation();
  job->queue.post([job] { run(job); });
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("finished", job->deferred.Promise());
  handle.Set("cancel", Napi::Function::New(
                           env, [job](const Napi::CallbackInfo&) { job->isCancelled = true; }));
  return handle;
}

}  // namespace capfleet::binding
