// Wakes one thread that may also wait for a socket.
#pragma once

#include <cstdint>

namespace capfleet {

/// signal() may be called by any thread and never waits; the rest is for the waiting thread.
class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void signal();

  /// Returns when signalled since the last wait, when `socket` (a descriptor, or -1 for none) has
  /// something to read or an error, or after `timeoutMs`.
  void wait(int timeoutMs, int socket = -1);

 private:
  const int descriptor_;
};

}  // namespace capfleet
