// The packet sockets of one capture port share its packets by flow.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

namespace capfleet {

/// One per port with several threads. Thread-safe.
class FanoutGroup {
 public:
  /// Adds a bound socket; 0 or an errno. A new interface index (the interface was removed and came
  /// back) begins a new group. The sockets' own wish to leave out what is sent does not count in a
  /// group.
  int join(int socket, int interfaceIndex, bool ignoresOutgoing);

 private:
  std::mutex mutex_;
  int interfaceIndex_ = 0;
  std::optional<uint16_t> id_;
};

}  // namespace capfleet
