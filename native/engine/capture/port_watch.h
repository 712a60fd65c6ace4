// What the interfaces say of themselves.
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

/// Asks several times a second on a thread of its own, because drivers may take their time.
/// Thread-safe.
class PortWatch {
 public:
  explicit PortWatch(std::vector<std::string> interfaceNames);
  ~PortWatch();

  /// The state of each interface, in the order in which they were given.
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
