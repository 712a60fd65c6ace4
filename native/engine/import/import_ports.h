// Assigns the interfaces of inputs to capture ports.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace capfleet {

/// Not thread-safe.
class ImportPorts {
 public:
  static constexpr uint32_t kMaxPorts = 256;

  /// The port with the interface's index; if that port has another link type already, the next free
  /// one, consistently. nullopt if all ports are taken. REQUIRES: interfaceIndex < kMaxPorts.
  std::optional<uint32_t> assign(uint32_t interfaceIndex, uint32_t linkTypeWord);

  /// The link type word of a port, or nullopt if no interface uses it.
  std::optional<uint32_t> linkTypeWord(uint32_t port) const { return linkTypeWords_[port]; }

 private:
  std::array<std::optional<uint32_t>, kMaxPorts> linkTypeWords_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> moved_;
};

}  // namespace capfleet
