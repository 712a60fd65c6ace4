#include "merge/pcapng_records.h"

#include <algorithm>
#include <utility>

#include "packet/pcapng_block.h"

namespace capfleet {

namespace {

constexpr uint32_t kSectionHeaderBlock = 0x0A0D0D0A;
constexpr uint32_t kInterfaceDescriptionBlock = 1;
constexpr uint32_t kInterfaceStatisticsBlock = 5;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint32_t kFrameBytes = 8;  ///< type and length
constexpr uint32_t kSectionBytes = 28;
constexpr uint32_t kInterfaceBytes = 20;
constexpr uint32_t kStatisticsBytes = 24;
constexpr uint32_t kTaggedHeaderBytes = kRecordHeaderBytes + kInterfaceTagBytes;
/// Where in the block of a packet its record begins, which ends with the packet's bytes.
constexpr uint32_t kRecordAt = kPacketBlockHeaderBytes - kTaggedHeaderBytes;
constexpr const char* kTwoLengths = "a block has two lengths";

/// Of a block with nothing but its fields.
uint32_t fewestBytes(uint32_t type) {
  switch (type) {
    case kSectionHeaderBlock:
      return kSectionBytes;
    case kInterfaceDescriptionBlock:
      return kInterfaceBytes;
    case kInterfaceStatisticsBlock:
      return kStatisticsBytes;
    case kEnhancedPacketBlock:
      return kPacketBlockHeaderBytes + kBlockTrailerBytes;
    default:
      return kFrameBytes + kBlockTrailerBytes;
  }
}

}  // namespace

PcapngRecords::State PcapngRecords::advance() {
  answer_ = {};
  if (std::exchange(hasRemark_, false)) return State::kRecords;
  records_ = {};
  if (std::exchange(isRead_, false)) block_.clear();
  for (;;) {
    if (block_.empty()) {
      if (findRecords()) return failure_.empty() ? State::kRecords : State::kBroken;
      if (in_.empty()) return State::kDry;
    }
    if (!fillBlock(kFrameBytes)) return State::kDry;
    if (!checkLength()) return State::kBroken;
    if (!fillBlock(capfleet::blockBytes(block_.data()))) return State::kDry;
    isRead_ = true;
    if (const auto state = readBlock()) return *state;
    block_.clear();
    isRead_ = false;
  }
}

uint32_t PcapngRecords::statisticsTag() const { return tags_[loadLe32(block_.data() + 8)]; }

bool PcapngRecords::fillBlock(size_t wanted) {
  if (block_.size() >= wanted) return true;
  const size_t bytes = std::min(wanted - block_.size(), in_.size());
  block_.insert(block_.end(), in_.begin(), in_.begin() + static_cast<ptrdiff_t>(bytes));
  in_ = in_.subspan(bytes);
  return block_.size() == wanted;
}

/// Writes the records of packets whose blocks have arrived in one piece, one after another, without
/// options. Returns whether there was one; it may be broken.
bool PcapngRecords::findRecords() {
  uint8_t* const first = in_.data();
  const uint8_t* end = nullptr;
  while (hasSection_ && in_.size() >= kPacketBlockHeaderBytes) {
    uint8_t* const block = in_.data();
    if (blockType(block) != kEnhancedPacketBlock) break;
    const uint32_t captured = loadPacketBlock(block).capturedLength;
    if (captured > kMaxCapturedLength) break;
    const size_t bytes = packetBlockBytes(captured);
    if (capfleet::blockBytes(block) != bytes || bytes > in_.size()) break;
    if (!writeRecord(block)) return true;
    end = block + kPacketBlockHeaderBytes + captured;
    in_ = in_.subspan(bytes);
  }
  if (end == nullptr) return false;
  records_ = {first + kRecordAt, end};
  return true;
}

/// Checks a block by its type and length.
bool PcapngRecords::checkLength() {
  const uint32_t type = blockType(block_.data());
  const uint32_t bytes = capfleet::blockBytes(block_.data());
  if (!hasSection_ && type != kSectionHeaderBlock) {
    broken("it does not begin with a section");
  } else if (hasSection_ && type == kSectionHeaderBlock) {
    broken("it has a second section");
  } else if (bytes < fewestBytes(type) || bytes % 4 != 0) {
    broken("a block claims " + std::to_string(bytes) + " bytes");
  } else if (type == kEnhancedPacketBlock) {
    if (bytes > packetBlockBytes(kMaxCapturedLength) + kMostBlockBytes)
      broken("a packet claims " + std::to_string(bytes) + " bytes with its options");
  } else if (bytes > kMostBlockBytes) {
    broken("a block without a packet claims " + std::to_string(bytes) + " bytes");
  }
  return failure_.empty();
}

/// The answer to a whole block; null if it says nothing.
std::optional<PcapngRecords::State> PcapngRecords::readBlock() {
  if (blockType(block_.data()) == kEnhancedPacketBlock) return readPacket();
  if (loadLe32(block_.data() + block_.size() - kBlockTrailerBytes) != block_.size())
    return broken(kTwoLengths);
  switch (blockType(block_.data())) {
    case kSectionHeaderBlock:
      if (loadLe32(block_.data() + kFrameBytes) != kByteOrderMagic)
        return broken("its section is not little-endian");
      hasSection_ = true;
      return std::nullopt;
    case kInterfaceDescriptionBlock:
      answer_ = block_;
      return State::kInterface;
    case kInterfaceStatisticsBlock:
      if (loadLe32(block_.data() + kFrameBytes) >= tags_.size())
        return broken("it has statistics of an interface that it did not describe");
      answer_ = block_;
      return State::kStatistics;
    default:
      return std::nullopt;
  }
}

/// The packet of block_: its remark first, if there is one.
PcapngRecords::State PcapngRecords::readPacket() {
  const uint32_t captured = loadPacketBlock(block_.data()).capturedLength;
  if (!writeRecord(block_.data())) return State::kBroken;
  const std::span<const uint8_t> block = block_;
  records_ = block.subspan(kRecordAt, kTaggedHeaderBytes + captured);
  const size_t options = block.size() - packetBlockBytes(captured);
  if (options == 0) return State::kRecords;
  answer_ = block.subspan(kPacketBlockHeaderBytes + blockPadded(captured), options);
  hasRemark_ = true;
  return State::kRemark;
}

/// Writes a record into the whole block of its packet, in front of its bytes. Returns whether the
/// block is as it must be.
bool PcapngRecords::writeRecord(uint8_t* block) {
  const PacketBlock packet = loadPacketBlock(block);
  const uint32_t bytes = capfleet::blockBytes(block);
  const uint32_t captured = packet.capturedLength;
  if (captured > kMaxCapturedLength || packetBlockBytes(captured) > bytes) [[unlikely]] {
    broken("a packet claims " + std::to_string(captured) + " captured bytes");
  } else if (packet.interfaceNumber >= tags_.size()) [[unlikely]] {
    broken("a packet is from an interface that it did not describe");
  } else if (packet.timestampNs < 0 || packet.timestampNs >= kTimestampEndNs) [[unlikely]] {
    broken("a packet has a time that PCAP cannot represent");
  } else if (bytes - packetBlockBytes(captured) > kMostBlockBytes) [[unlikely]] {
    broken("the options of a packet claim too many bytes");
  } else if (loadLe32(block + bytes - kBlockTrailerBytes) != bytes) [[unlikely]] {
    broken(kTwoLengths);
  } else {
    const uint32_t tag = tags_[packet.interfaceNumber];
    remarked_ = {tag, packet.timestampNs};
    storeRecordHeader(block + kRecordAt,
                      {packet.timestampNs, captured + kInterfaceTagBytes, packet.originalLength});
    storeLe32(block + kRecordAt + kRecordHeaderBytes, tag);
    return true;
  }
  return false;
}

PcapngRecords::State PcapngRecords::broken(std::string why) {
  failure_ = std::move(why);
  return State::kBroken;
}

}  // namespace capfleet
