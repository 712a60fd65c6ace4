// Why packets are lost: no memory, a disk that is too slow, or no processor time.
#include "capture/capture_thread.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "support/loopback_sender.h"

namespace capfleet::test {
namespace {

constexpr size_t kDatagramBytes = 60'000;
constexpr uint64_t kRingBytes = uint64_t{2} << 20;
/// Datagrams that fill several rings. Other programs use the loopback too, so that a few more
/// packets may be dropped at any time, for any cause.
constexpr int kManyDatagrams = 200;
constexpr int64_t kLimitNs = 600'000'000'000;
/// A flush interval that never passes: drops are then counted only when a block is taken, or none
/// is there.
constexpr int64_t kNeverNs = 3'600'000'000'000;

std::set<pid_t> threadsOfThisProcess() {
  std::set<pid_t> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(static_cast<pid_t>(std::stol(entry.path().filename())));
  }
  return threads;
}

/// Suspends one thread, wherever it is, until it may continue.
class SuspendedThread {
 public:
  explicit SuspendedThread(pid_t thread) {
    mayGoOn_ = isSuspended_ = false;
    struct sigaction action {};
    action.sa_handler = waitInside;
    EXPECT_EQ(::sigaction(SIGUSR1, &action, &before_), 0);
    EXPECT_EQ(::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1), 0);
    while (!isSuspended_) std::this_thread::yield();
  }
  ~SuspendedThread() {
    mayGoOn_ = true;
    while (isSuspended_) std::this_thread::yield();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  static void waitInside(int) {
    const int error = errno;
    isSuspended_ = true;
    while (!mayGoOn_) ::poll(nullptr, 0, 1);
    isSuspended_ = false;
    errno = error;
  }

  static inline std::atomic<bool> mayGoOn_, isSuspended_;
  struct sigaction before_ {};
};

/// A thread that captures what is sent, with blocks for this many bytes, which are not written to
/// disk.
class CaptureThreadTest : public testing::Test {
 protected:
  void begin(uint64_t queueBytes, int64_t flushIntervalNs) {
    CaptureThreadOptions options;
    options.socket.interfaceName = "lo";
    options.socket.ringBytes = kRingBytes;
    options.filter = BpfEvaluator(portFilter(sender_.port()));
    options.flushIntervalNs = flushIntervalNs;
    auto socket = CaptureSocket::open(options.socket);
    SKIP_UNLESS_CAPTURED(socket);
    queue_ = std::make_unique<BlockQueue>(queueBytes);
    const auto before = threadsOfThisProcess();
    thread_ = std::make_unique<CaptureThread>(options, std::move(*socket), *queue_);
    for (const pid_t thread : threadsOfThisProcess()) {
      if (!before.contains(thread)) number_ = thread;
    }
    capture();
  }

  /// Returns when the thread has finished its current step.
  void capture() {
    thread_->pursue({.recording = 1, .isCapturing = true});
    thread_->awaitGoal();
  }

  void send(int datagrams) {
    for (int i = 0; i < datagrams; ++i) sender_.send(datagram_);
  }

  /// Lets the thread fill its only block, and keeps that block.
  std::unique_ptr<CaptureBlock> takeTheOnlyBlock() {
    send(kBlockTargetBytes / kDatagramBytes + 1);
    const int64_t limitNs = steadyNs() + kLimitNs;
    while (steadyNs() < limitNs) {
      queue_->wait(1'000);
      for (QueueItem& item : queue_->popAll()) {
        if (!item.block) continue;
        capture();
        return std::move(item.block);
      }
    }
    ADD_FAILURE() << "no block was filled";
    return nullptr;
  }

  /// The first counts that include drops for this cause.
  ThreadCounts awaitDrops(uint64_t ThreadCounts::*cause) const {
    const int64_t limitNs = steadyNs() + kLimitNs;
    ThreadCounts counts = thread_->counts();
    while (counts.*cause == 0 && steadyNs() < limitNs) {
      ::poll(nullptr, 0, 1);
      counts = thread_->counts();
    }
    return counts;
  }

  LoopbackSender sender_;
  const Bytes datagram_ = Bytes(kDatagramBytes, 7);
  std::unique_ptr<BlockQueue> queue_;
  std::unique_ptr<CaptureThread> thread_;
  pid_t number_ = 0;
};

TEST_F(CaptureThreadTest, WithoutAFreeBlockItIsTheDiskThatIsTooSlow) {
  begin(kMaxBlockBytes, 20'000'000);
  if (!thread_) return;
  const auto block = takeTheOnlyBlock();
  send(kManyDatagrams);
  const ThreadCounts counts = awaitDrops(&ThreadCounts::diskDrops);
  EXPECT_GT(counts.diskDrops, counts.ringDrops);
}

TEST_F(CaptureThreadTest, WhatWasLostWhileNoBlockWasFreeIsOfTheDiskAlsoWhenItIsSeenLater) {
  begin(kMaxBlockBytes, kNeverNs);
  if (!thread_) return;
  auto block = takeTheOnlyBlock();
  send(kManyDatagrams);
  EXPECT_EQ(thread_->counts().diskDrops, 0u);
  if (block) queue_->giveBack(std::move(block));
  const ThreadCounts counts = awaitDrops(&ThreadCounts::diskDrops);
  EXPECT_GT(counts.diskDrops, counts.ringDrops);
}

TEST_F(CaptureThreadTest, WithFreeBlocksAFullRingIsAThreadThatIsTooSlow) {
  begin(64 * uint64_t{kMaxBlockBytes}, 20'000'000);
  if (!thread_) return;
  ASSERT_NE(number_, 0);
  {
    const SuspendedThread suspended(number_);
    send(kManyDatagrams);
  }
  const ThreadCounts counts = awaitDrops(&ThreadCounts::ringDrops);
  EXPECT_GT(counts.ringDrops, 0u);
  EXPECT_EQ(counts.diskDrops, 0u);
}

}  // namespace
}  // namespace capfleet::test
