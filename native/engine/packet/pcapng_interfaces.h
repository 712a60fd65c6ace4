// The interfaces of a pcapng file that is being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "packet/pcap_format.h"

namespace capfleet {

/// One interface per capture port and link type, numbered in the order of the list. Immutable, so
/// any number of threads may share one.
class PcapngInterfaces {
 public:
  struct Interface {
    uint32_t port;
    uint32_t linkType;
  };

  /// `reservedBytes`: room that batches leave free for what is inserted between their packets.
  PcapngInterfaces(std::vector<Interface> interfaces, size_t reservedBytes)
      : interfaces_(std::move(interfaces)), reservedBytes_(reservedBytes) {}

  /// The number of the interface of this port and link type; if the list lacks it, because an index
  /// contradicts its capture's log, that of another one of the port.
  uint32_t numberOf(uint32_t port, uint32_t linkTypeWord) const {
    uint32_t number = 0;
    for (uint32_t i = 0; i < interfaces_.size(); i++) {
      if (interfaces_[i].port != port) continue;
      number = i;
      if (interfaces_[i].linkType == linkTypeOf(linkTypeWord)) break;
    }
    return number;
  }

  size_t reservedBytes() const { return reservedBytes_; }

 private:
  const std::vector<Interface> interfaces_;
  const size_t reservedBytes_;
};

}  // namespace capfleet
