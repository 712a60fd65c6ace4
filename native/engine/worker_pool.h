// The engine's threads, shared fairly by everybody who has work.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace capfleet {

/// Threads that take tasks from any number of queues in turn, one task per queue and turn: a
/// download with much work does not hold up one with little. Tasks of one queue start in order and
/// may run at the same time. Thread-safe.
class WorkerPool {
 public:
  using Task = std::function<void()>;

  /// Tasks of one client. Copies are the same queue. It may outlive its users, not the pool.
  class Queue {
   public:
    /// The task should run for milliseconds at most, or it delays other queues.
    void post(Task task);

   private:
    friend class WorkerPool;
    struct State {
      std::deque<Task> tasks;  ///< guarded by the pool's mutex
    };
    explicit Queue(WorkerPool& pool) : pool_(&pool), state_(std::make_shared<State>()) {}
    WorkerPool* pool_;
    std::shared_ptr<State> state_;
  };

  explicit WorkerPool(unsigned threads);
  /// Runs every task that was posted, then ends the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The pool of the process: as many threads as processors, at least two. It is never destroyed,
  /// because the process may exit while a task runs.
  static WorkerPool& shared();

  Queue makeQueue() { return Queue(*this); }
  unsigned threads() const { return static_cast<unsigned>(threads_.size()); }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable hasWork_;
  std::deque<std::shared_ptr<Queue::State>> turns_;  ///< queues with tasks, next turn first
  bool isEnding_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace capfleet
