// Assigns the interfaces of inputs to capture ports.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace capfleet {

/// Interfaces of several sections and files with the same index and link type are the same one. Not
/// thread-safe.
class ImportPorts {
 public:
  static constexpr uint32_t kMaxPorts = 256;

  /// Gives an interface the port of its index, or, if that has another link type, the next free
  /// one. Does nothing if the index is no port's, or all ports are taken.
  void announce(uint32_t interfaceIndex, uint32_t linkTypeWord);

  /// The port for the packets of an interface, announced or not: its own; else a free one, or that
  /// of an interface without packets; else one that it shares with others of its link type. nullopt
  /// if there is none, because the ports have 256 other link types.
  std::optional<uint32_t> take(uint32_t interfaceIndex, uint32_t linkTypeWord);

  /// The link type word of a port, or nullopt if no interface uses it.
  std::optional<uint32_t> linkTypeWord(uint32_t port) const;

  /// How often take() returned a port that is shared.
  uint64_t sharedInterfaces() const { return sharedInterfaces_; }

 private:
  struct Port {
    uint32_t interfaceIndex;
    uint32_t linkTypeWord;
    bool hasPackets;
  };

  std::optional<uint32_t> find(uint32_t interfaceIndex, uint32_t linkTypeWord) const;
  std::optional<uint32_t> firstFree() const;
  std::optional<uint32_t> lastWithoutPackets() const;
  std::optional<uint32_t> firstOfType(uint32_t linkTypeWord) const;

  std::array<std::optional<Port>, kMaxPorts> ports_;
  uint64_t sharedInterfaces_ = 0;
};

}  // namespace capfleet
