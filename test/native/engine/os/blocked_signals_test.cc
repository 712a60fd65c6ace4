#include "os/blocked_signals.h"

#include <gtest/gtest.h>

#include <thread>

namespace capfleet::test {
namespace {

bool isBlockedHere(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST(BlockedSignals, StayBlockedInThreadsStartedMeanwhileOnly) {
  bool inThread = false;
  std::thread thread;
  {
    const BlockedSignals blocked;
    EXPECT_TRUE(isBlockedHere(SIGTERM));
    thread = std::thread([&] { inThread = isBlockedHere(SIGTERM) && isBlockedHere(SIGPROF); });
  }
  EXPECT_FALSE(isBlockedHere(SIGTERM));
  thread.join();
  EXPECT_TRUE(inThread);
}

}  // namespace
}  // namespace capfleet::test
