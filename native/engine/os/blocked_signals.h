// Signals belong to the program, so its own threads get them, and those of the engine none.
#pragma once

#include <pthread.h>

#include <csignal>

namespace capfleet {

/// While it lives, the calling thread blocks all signals. Threads that it starts meanwhile block
/// them for good.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace capfleet
