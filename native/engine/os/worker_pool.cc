#include "os/worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "os/blocked_signals.h"

namespace capfleet {
namespace {

constexpr std::chrono::seconds kLongestSleep{1};

}  // namespace

void WorkerPool::Queue::post(Task task, bool isSlow) {
  {
    const std::lock_guard lock(pool_->mutex_);
    if (state_->tasks.empty()) pool_->turns_.push_back(state_);
    state_->tasks.push_back({std::move(task), isSlow});
  }
  pool_->hasWork_.notify_one();
}

WorkerPool::WorkerPool(unsigned tasksAtOnce) : tasksAtOnce_(tasksAtOnce) {
  const BlockedSignals blocked;
  for (unsigned i = 0; i < tasksAtOnce + 1; i++) {
    threads_.emplace_back([this] { run(); });
    pthread_setname_np(threads_.back().native_handle(), "capfleet-work");
  }
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

/// Called with the lock held.
bool WorkerPool::mayStart(bool isSlow) const {
  if (running_ < tasksAtOnce_) return true;
  return !isSlow && slowRunning_ == tasksAtOnce_ && running_ == tasksAtOnce_;
}

/// The first queue whose next task may start. Called with the lock held.
std::deque<WorkerPool::QueueState>::iterator WorkerPool::nextTurn() {
  return std::find_if(turns_.begin(), turns_.end(), [this](const QueueState& queue) {
    return mayStart(queue->tasks.front().isSlow);
  });
}

void WorkerPool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto turn = nextTurn();
    while (turn == turns_.end()) {
      if (isEnding_ && turns_.empty()) return;
      // Until version 2.41, glibc may lose a wake-up (bug 25847): with this it is late instead of
      // lost.
      hasWork_.wait_for(lock, kLongestSleep);
      turn = nextTurn();
    }
    const QueueState queue = std::move(*turn);
    turns_.erase(turn);
    Queue::PostedTask task = std::move(queue->tasks.front());
    queue->tasks.pop_front();
    if (!queue->tasks.empty()) turns_.push_back(queue);
    running_++;
    if (task.isSlow) slowRunning_++;
    // It may have been the task that allows one more thread to work.
    if (task.isSlow && !turns_.empty()) hasWork_.notify_one();
    lock.unlock();
    task.run();
    task.run = nullptr;  // what it owns is destroyed without the lock
    lock.lock();
    running_--;
    if (task.isSlow) slowRunning_--;
    // Threads that wait for tasks which may start must not wait forever.
    if (isEnding_) hasWork_.notify_all();
  }
}

}  // namespace capfleet
