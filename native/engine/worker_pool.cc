#include "worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>

namespace capfleet {

void WorkerPool::Queue::post(Task task) {
  {
    const std::lock_guard lock(pool_->mutex_);
    if (state_->tasks.empty()) pool_->turns_.push_back(state_);
    state_->tasks.push_back(std::move(task));
  }
  pool_->hasWork_.notify_one();
}

WorkerPool::WorkerPool(unsigned threads) {
  // Signals belong to the program, so its own threads get them and these block all.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (unsigned i = 0; i < threads; i++) {
    threads_.emplace_back([this] { run(); });
    pthread_setname_np(threads_.back().native_handle(), "capfleet-work");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
  }
  hasWork_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

WorkerPool& WorkerPool::shared() {
  static auto* const pool = new WorkerPool(std::max(2u, std::thread::hardware_concurrency()));
  return *pool;
}

void WorkerPool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    hasWork_.wait(lock, [this] { return isEnding_ || !turns_.empty(); });
    if (turns_.empty()) return;
    const std::shared_ptr<Queue::State> queue = std::move(turns_.front());
    turns_.pop_front();
    Task task = std::move(queue->tasks.front());
    queue->tasks.pop_front();
    if (!queue->tasks.empty()) turns_.push_back(queue);
    lock.unlock();
    task();
    task = nullptr;  // what it owns is destroyed without the lock
    lock.lock();
  }
}

}  // namespace capfleet
