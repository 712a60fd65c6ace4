#include "worker_pool.h"

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
