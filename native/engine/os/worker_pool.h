// The engine's threads, shared fairly among everyone who has work.
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
/// download with much work does not delay one with little. Tasks of one queue start in order and
/// may run concurrently. Slow tasks never occupy all threads: if as many are running as there are
/// CPUs, one extra thread takes the others, and the kernel shares the CPUs. Thread-safe.
class WorkerPool {
 public:
  using Task = std::function<void()>;

  /// Tasks of one client. Copies refer to the same queue. It may outlive its users, but not the
  /// pool.
  class Queue {
   public:
    /// The task should run for at most milliseconds, or it delays other queues.
    void post(Task task) { post(std::move(task), false); }
    /// A task that may run for seconds.
    void postSlow(Task task) { post(std::move(task), true); }
    /// How many tasks the pool runs at a time.
    unsigned tasksAtOnce() const { return pool_->tasksAtOnce(); }

   private:
    friend class WorkerPool;
    struct PostedTask {
      Task run;
      bool isSlow;
    };
    struct State {
      std::deque<PostedTask> tasks;  ///< guarded by the pool's mutex
    };
    void post(Task task, bool isSlow);
    explicit Queue(WorkerPool& pool) : pool_(&pool), state_(std::make_shared<State>()) {}
    WorkerPool* pool_;
    std::shared_ptr<State> state_;
  };

  /// Runs `tasksAtOnce` tasks at a time, and one more when all of these are slow.
  explicit WorkerPool(unsigned tasksAtOnce);
  /// Runs every task that was posted, then ends the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The pool of the process: as many concurrent tasks as CPUs, at least two. It is never
  /// destroyed, because the process may exit while a task is running.
  static WorkerPool& shared();

  Queue makeQueue() { return Queue(*this); }
  unsigned tasksAtOnce() const { return tasksAtOnce_; }

 private:
  using QueueState = std::shared_ptr<Queue::State>;

  void run();
  bool mayStart(bool isSlow) const;
  std::deque<QueueState>::iterator nextTurn();

  std::mutex mutex_;
  std::condition_variable hasWork_;
  std::deque<QueueState> turns_;  ///< queues with tasks, next turn first
  const unsigned tasksAtOnce_;
  unsigned running_ = 0;
  unsigned slowRunning_ = 0;
  bool isEnding_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace capfleet
