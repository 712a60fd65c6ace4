// Builds packets from the outermost header inwards.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "packet/packet_view.h"
#include "support/temp_directory.h"

namespace capfleet::test {

class LayeredPacket {
 public:
  LayeredPacket& bytes(std::initializer_list<int> values) {
    for (const int value : values) bytes_.push_back(static_cast<uint8_t>(value));
    return *this;
  }
  LayeredPacket& be16(uint32_t value) {
    return bytes({static_cast<int>(value >> 8) & 255, static_cast<int>(value & 255)});
  }
  LayeredPacket& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }

  /// Addresses 02:00:00:00:00:<id> and 02:00:00:00:01:<id>, then the type.
  LayeredPacket& ethernet(int id, uint32_t type) {
    return bytes({2, 0, 0, 0, 0, id, 2, 0, 0, 0, 1, id}).be16(type);
  }
  LayeredPacket& vlan(uint32_t id, uint32_t nextType) { return be16(id).be16(nextType); }
  /// Adds IPv4 from 10.0.0.<id> to 10.0.1.<id>; total length 0: whatever follows belongs to it.
  LayeredPacket& ipv4(int id, int protocol, uint32_t fragment = 0) {
    bytes({0x45, 0, 0, 0, 0, 0}).be16(fragment);
    return bytes({64, protocol, 0, 0, 10, 0, 0, id, 10, 0, 1, id});
  }
  LayeredPacket& ipv6(int id, int nextHeader) {
    bytes({0x60, 0, 0, 0, 0, 0, nextHeader, 64, 0x20, 1}).zeros(13).bytes({id, 0x20, 1});
    return zeros(13).bytes({id});
  }
  LayeredPacket& udp(uint32_t source, uint32_t destination) {
    return be16(source).be16(destination).be16(0).be16(0);
  }
  LayeredPacket& tcp(uint32_t source, uint32_t destination) {
    return be16(source).be16(destination).zeros(8).bytes({0x50, 2}).zeros(6);
  }
  LayeredPacket& mpls(uint32_t label, bool isBottom) {
    return bytes({static_cast<int>(label >> 12), static_cast<int>(label >> 4) & 255,
                  static_cast<int>((label & 15) << 4) | (isBottom ? 1 : 0), 64});
  }

  const Bytes& captured() const { return bytes_; }
  /// Not cut: the original length is the captured one. Valid until the next change.
  PacketView view(uint32_t linkTypeWord = 1) const {
    return {bytes_, static_cast<uint32_t>(bytes_.size()), 0, linkTypeWord, 0, 0};
  }

 private:
  Bytes bytes_;
};

}  // namespace capfleet::test
