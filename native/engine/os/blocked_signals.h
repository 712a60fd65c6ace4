// Signals are for the program's own threads; those of the engine get none.
#pragma once

#include <pthread.h>

#include <csignal>

namespace capfleet {

/// Blocks all signals for the calling thread during its lifetime. Threads started meanwhile keep
/// them blocked.
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
