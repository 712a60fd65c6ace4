// The state that the interfaces report.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/wakeup.h"

namespace capfleet {

struct PortState {
  bool isUp = false;       ///< up, with a carrier
  uint64_t fcsErrors = 0;  ///< received frames with a wrong frame check sequence, since boot
};

/// Polls several times a second on its own thread, because drivers may be slow. Thread-safe.
class PortWatch {
 public:
  explicit PortWatch(std::vector<std::string> interfaceNames);
  ~PortWatch();

  /// The state of each interface, in the order in which they were passed.
  std::vector<PortState> states() const;

 private:
  void run();

  const std::vector<std::string> interfaceNames_;
  Wakeup wakeup_;
  mutable std::mutex mutex_;
  std::vector<PortState> states_;
  bool isEnding_ = false;
  std::thread thread_;
};

}  // namespace capfleet
