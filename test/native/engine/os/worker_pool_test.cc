#include "os/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>

namespace capfleet::test {
namespace {

TEST(WorkerPool, RunsEveryTaskBeforeItEnds) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(3);
    for (int i = 0; i < 10; i++) {
      WorkerPool::Queue queue = pool.makeQueue();
      for (int j = 0; j < 100; j++) queue.post([&] { ran++; });
    }
  }
  EXPECT_EQ(ran, 1000);
}

TEST(WorkerPool, TakesFromQueuesInTurn) {
  std::promise<void> started;
  std::promise<void> gate;
  std::vector<int> order;
  {
    WorkerPool pool(1);
    WorkerPool::Queue busy = pool.makeQueue();
    WorkerPool::Queue small = pool.makeQueue();
    busy.post([&] {
      started.set_value();
      gate.get_future().wait();
    });
    started.get_future().wait();
    for (int i = 0; i < 5; i++) busy.post([&] { order.push_back(1); });
    for (int i = 0; i < 2; i++) small.post([&] { order.push_back(2); });
    gate.set_value();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 1, 2, 1, 1, 1}));
}

TEST(WorkerPool, RunsTasksOfOneQueueAtTheSameTime) {
  std::latch both(2);
  WorkerPool pool(2);
  WorkerPool::Queue queue = pool.makeQueue();
  for (int i = 0; i < 2; i++) queue.post([&] { both.arrive_and_wait(); });
  both.wait();
}

TEST(WorkerPool, SlowTasksLeaveOthersAThread) {
  constexpr int kAtOnce = 2;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::latch slowRunning(kAtOnce);
  std::atomic<int> slowStarted = 0;
  WorkerPool pool(kAtOnce);
  WorkerPool::Queue slow = pool.makeQueue();
  for (int i = 0; i < 10; i++) {
    slow.postSlow([&] {
      if (slowStarted++ < kAtOnce) slowRunning.count_down();
      opened.wait();
    });
  }
  slowRunning.wait();
  WorkerPool::Queue quick = pool.makeQueue();
  for (int i = 0; i < 100; i++) {
    std::promise<void> done;
    quick.post([&] { done.set_value(); });
    done.get_future().wait();
  }
  EXPECT_EQ(slowStarted, kAtOnce);
  gate.set_value();
}

TEST(WorkerPool, StartsAQuickTaskWhenTheLastThreadTakesASlowOne) {
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::promise<void> firstRuns;
  std::promise<void> quickRan;
  std::promise<void> slowEnds;
  WorkerPool pool(1);
  WorkerPool::Queue first = pool.makeQueue();
  first.post([&] {
    firstRuns.set_value();
    opened.wait();
  });
  firstRuns.get_future().wait();
  pool.makeQueue().postSlow([&] { slowEnds.get_future().wait(); });
  pool.makeQueue().post([&] { quickRan.set_value(); });
  gate.set_value();
  quickRan.get_future().wait();
  slowEnds.set_value();
}

TEST(WorkerPool, RunsNoMoreTasksAtATimeThanItMay) {
  constexpr int kAtOnce = 3;
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  {
    WorkerPool pool(kAtOnce);
    WorkerPool::Queue queue = pool.makeQueue();
    for (int i = 0; i < 2'000; i++) {
      queue.post([&] {
        const int now = ++running;
        int before = most;
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        std::this_thread::yield();
        running--;
      });
    }
  }
  EXPECT_LE(most, kAtOnce);
}

TEST(WorkerPool, BlocksSignalsInItsThreads) {
  WorkerPool pool(1);
  std::promise<bool> isBlocked;
  pool.makeQueue().post([&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    isBlocked.set_value(sigismember(&mask, SIGTERM) == 1);
  });
  EXPECT_TRUE(isBlocked.get_future().get());
}

}  // namespace
}  // namespace capfleet::test
