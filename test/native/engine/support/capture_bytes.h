// Builds the bytes of capture files, field by field, in either byte order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "support/temp_directory.h"

namespace capfleet::test {

/// Appends integers in one byte order.
class FieldWriter {
 public:
  explicit FieldWriter(bool isBigEndian) : isBigEndian_(isBigEndian) {}
  void put16(uint16_t value) { put(value, 2); }
  void put32(uint32_t value) { put(value, 4); }
  void put64(uint64_t value) { put(value, 8); }
  void putBytes(std::span<const uint8_t> bytes) { append(bytes_, bytes); }
  void pad() {
    while (bytes_.size() % 4 != 0) bytes_.push_back(0);
  }
  Bytes& bytes() { return bytes_; }

 private:
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) {
      const int shift = 8 * (isBigEndian_ ? count - 1 - i : i);
      bytes_.push_back(static_cast<uint8_t>(value >> shift));
    }
  }
  bool isBigEndian_;
  Bytes bytes_;
};

struct PcapShape {
  bool isBigEndian = false;
  uint32_t magic = 0xA1B23C4D;
  uint32_t linkTypeWord = 1;
};

class PcapBytes {
 public:
  explicit PcapBytes(PcapShape shape = {}) : shape_(shape), out_(shape.isBigEndian) {
    out_.put32(shape.magic);
    out_.put16(2);
    out_.put16(4);
    out_.put64(0);
    out_.put32(65535);
    out_.put32(shape.linkTypeWord);
  }

  PcapBytes& packet(uint32_t seconds, uint32_t fraction, const Bytes& captured,
                    uint32_t originalLength) {
    out_.put32(seconds);
    out_.put32(fraction);
    out_.put32(static_cast<uint32_t>(captured.size()));
    out_.put32(originalLength);
    if (shape_.magic == 0xA1B2CD34) out_.put64(0x1122334455667788);
    out_.putBytes(captured);
    ends_.push_back(out_.bytes().size());
    return *this;
  }

  const Bytes& bytes() { return out_.bytes(); }
  /// Where each packet's record ends.
  const std::vector<size_t>& ends() const { return ends_; }

 private:
  PcapShape shape_;
  FieldWriter out_;
  std::vector<size_t> ends_;
};

class PcapngBytes {
 public:
  using Options = std::vector<std::pair<uint16_t, Bytes>>;

  /// Begins a section in the given byte order.
  PcapngBytes& section(bool isBigEndian) {
    isBigEndian_ = isBigEndian;
    FieldWriter body = writer();
    body.put32(0x1A2B3C4D);
    body.put16(1);
    body.put16(0);
    body.put64(UINT64_MAX);
    return block(0x0A0D0D0A, body.bytes());
  }

  PcapngBytes& interface(uint16_t linkType, const Options& options = {}, uint32_t snaplen = 0) {
    FieldWriter body = writer();
    body.put16(linkType);
    body.put16(0);
    body.put32(snaplen);
    for (const auto& [code, value] : options) {
      body.put16(code);
      body.put16(static_cast<uint16_t>(value.size()));
      body.putBytes(value);
      body.pad();
    }
    if (!options.empty()) body.put32(0);
    return block(1, body.bytes());
  }

  PcapngBytes& enhancedPacket(uint32_t interfaceIndex, uint64_t ticks, const Bytes& captured,
                              uint32_t originalLength) {
    FieldWriter body = writer();
    body.put32(interfaceIndex);
    return packetTail(6, body, ticks, captured, originalLength);
  }

  PcapngBytes& obsoletePacket(uint16_t interfaceIndex, uint64_t ticks, const Bytes& captured,
                              uint32_t originalLength) {
    FieldWriter body = writer();
    body.put16(interfaceIndex);
    body.put16(0xFFFF);
    return packetTail(2, body, ticks, captured, originalLength);
  }

  PcapngBytes& simplePacket(const Bytes& captured, uint32_t originalLength) {
    FieldWriter body = writer();
    body.put32(originalLength);
    body.putBytes(captured);
    body.pad();
    return packetBlock(3, body.bytes());
  }

  PcapngBytes& block(uint32_t type, const Bytes& body) {
    FieldWriter out = writer();
    out.put32(type);
    out.put32(static_cast<uint32_t>(body.size() + 12));
    out.putBytes(body);
    out.put32(static_cast<uint32_t>(body.size() + 12));
    append(bytes_, out.bytes());
    return *this;
  }

  /// A value for an option, in the section's byte order.
  Bytes option64(uint64_t value) {
    FieldWriter out = writer();
    out.put64(value);
    return out.bytes();
  }

  const Bytes& bytes() const { return bytes_; }
  /// Where each packet's block ends.
  const std::vector<size_t>& ends() const { return ends_; }

 private:
  FieldWriter writer() const { return FieldWriter(isBigEndian_); }

  PcapngBytes& packetTail(uint32_t type, FieldWriter& body, uint64_t ticks, const Bytes& captured,
                          uint32_t originalLength) {
    body.put32(static_cast<uint32_t>(ticks >> 32));
    body.put32(static_cast<uint32_t>(ticks));
    body.put32(static_cast<uint32_t>(captured.size()));
    body.put32(originalLength);
    body.putBytes(captured);
    body.pad();
    return packetBlock(type, body.bytes());
  }

  PcapngBytes& packetBlock(uint32_t type, const Bytes& body) {
    block(type, body);
    ends_.push_back(bytes_.size());
    return *this;
  }

  bool isBigEndian_ = false;
  Bytes bytes_;
  std::vector<size_t> ends_;
};

}  // namespace capfleet::test
