// Blocks of pcapng, and the contents of a file in pcapng, read without the engine's readers.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "download/pcapng_framing.h"
#include "support/stored_packets.h"

namespace capfleet::test {

inline constexpr uint32_t kSectionHeaderBlock = 0x0A0D0D0A;
inline constexpr uint32_t kInterfaceBlock = 1;

inline void put16(Bytes& to, uint32_t value) {
  to.push_back(static_cast<uint8_t>(value));
  to.push_back(static_cast<uint8_t>(value >> 8));
}

inline void put32(Bytes& to, uint32_t value) {
  put16(to, value & 0xFFFF);
  put16(to, value >> 16);
}

inline Bytes blockOf(uint32_t type, const Bytes& body) {
  Bytes block;
  put32(block, type);
  put32(block, static_cast<uint32_t>(body.size()) + 12);
  append(block, body);
  put32(block, static_cast<uint32_t>(body.size()) + 12);
  return block;
}

inline Bytes sectionHeader() {
  Bytes body;
  put32(body, 0x1A2B3C4D);
  put16(body, 1);
  put16(body, 0);
  for (int i = 0; i < 2; i++) put32(body, UINT32_MAX);
  return blockOf(kSectionHeaderBlock, body);
}

inline Bytes commentOption(const std::string& text) {
  Bytes option;
  put16(option, 1);
  put16(option, static_cast<uint32_t>(text.size()));
  option.insert(option.end(), text.begin(), text.end());
  while (option.size() % 4 != 0) option.push_back(0);
  return option;
}

/// Its comment is the number of the port.
inline PcapngInterface interfaceOf(uint32_t port, uint32_t linkType) {
  Bytes body;
  put16(body, linkType);
  put16(body, 0);
  put32(body, 262144);
  for (const uint32_t word : {9u | (1u << 16), 9u}) put32(body, word);  // if_tsresol
  append(body, commentOption(std::to_string(port)));
  put32(body, 0);
  return {port, linkType, blockOf(kInterfaceBlock, body)};
}

struct PcapngPacket {
  StoredPacket packet;
  uint32_t interfaceNumber;
  Bytes options;
};

struct PcapngContent {
  std::vector<Bytes> interfaces;
  std::vector<PcapngPacket> packets;

  std::vector<StoredPacket> stored() const {
    std::vector<StoredPacket> stored;
    for (const PcapngPacket& one : packets) stored.push_back(one.packet);
    return stored;
  }
};

/// Fails the test unless every byte is part of a valid block, and a packet's interface is described
/// before it.
inline PcapngContent contentOf(const Bytes& file) {
  PcapngContent content;
  size_t at = 0;
  while (at < file.size()) {
    const uint8_t* const p = file.data() + at;
    if (file.size() - at < 12 || loadLe32(p + 4) < 12 || loadLe32(p + 4) % 4 != 0 ||
        loadLe32(p + 4) > file.size() - at ||
        loadLe32(p + loadLe32(p + 4) - 4) != loadLe32(p + 4)) {
      ADD_FAILURE() << "no block at " << at << " of " << file.size();
      break;
    }
    const uint32_t type = loadLe32(p);
    const uint32_t bytes = loadLe32(p + 4);
    EXPECT_EQ(type == kSectionHeaderBlock, at == 0);
    if (type == kInterfaceBlock) content.interfaces.emplace_back(p, p + bytes);
    if (type == 6) {
      const uint32_t captured = loadLe32(p + 20);
      const size_t padded = (captured + 3) / 4 * 4;
      EXPECT_LE(32 + padded, bytes);
      EXPECT_LT(loadLe32(p + 8), content.interfaces.size());
      for (size_t i = 28 + captured; i < 28 + padded; i++) EXPECT_EQ(p[i], 0) << "padding";
      const auto timestampNs =
          static_cast<int64_t>((uint64_t{loadLe32(p + 12)} << 32) | loadLe32(p + 16));
      content.packets.push_back({{timestampNs, loadLe32(p + 24), Bytes(p + 28, p + 28 + captured)},
                                 loadLe32(p + 8),
                                 Bytes(p + 28 + padded, p + bytes - 4)});
    }
    at += bytes;
  }
  return content;
}

}  // namespace capfleet::test
