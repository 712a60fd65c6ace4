// The packet sockets of one capture port share its packets by flow.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

namespace capfleet {

/// One per port with several threads. Thread-safe.
class FanoutGroup {
 public:
  /// Adds a bound socket; returns 0 or an errno. A new interface index (the interface was removed
  /// and came back) starts a new group. In a group, the sockets' own setting to ignore outgoing
  /// packets has no effect.
  int join(int socket, int interfaceIndex, bool ignoresOutgoing);

 private:
  std::mutex mutex_;
  int interfaceIndex_ = 0;
  std::optional<uint16_t> id_;
};

}  // namespace capfleet
