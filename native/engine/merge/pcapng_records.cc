#include "merge/pcapng_records.h"

#include <algorithm>
#include <cassert>
#include <cstring>
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

PcapngRecords::State PcapngRecords::advance(std::span<uint8_t> output, size_t& written) {
  assert(output.size() - written >= in_.size());
  for (;;) {
    switch (part_) {
      case Part::kFrame:
        if (passWhole(output, written)) continue;
        if (!failure_.empty()) return State::kBroken;
        if (!fillHead(kFrameBytes)) return State::kDry;
        if (!beginBlock()) return State::kBroken;
        break;
      case Part::kPacketHead:
        if (!fillHead(kPacketBlockHeaderBytes)) return State::kDry;
        if (!beginPacket(head_.data(), output, written)) return State::kBroken;
        break;
      case Part::kPacketBytes:
        passBytes(output, written);
        if (left_ > 0) return State::kDry;
        left_ = padding_;
        part_ = Part::kPadding;
        break;
      case Part::kPadding: {
        const size_t bytes = std::min<size_t>(left_, in_.size());
        in_ = in_.subspan(bytes);
        left_ -= static_cast<uint32_t>(bytes);
        if (left_ > 0) return State::kDry;
        block_.clear();
        part_ = Part::kOptions;
        break;
      }
      case Part::kOptions:
        if (!fillBlock(optionsBytes_)) return State::kDry;
        head_.clear();
        part_ = Part::kTrailer;
        break;
      case Part::kTrailer: {
        if (!fillHead(kBlockTrailerBytes)) return State::kDry;
        if (loadLe32(head_.data()) != blockBytes_) return broken("a block has two lengths");
        head_.clear();
        part_ = Part::kFrame;
        if (optionsBytes_ == 0) break;
        output[written++] = held_;
        return State::kRemark;
      }
      case Part::kBlock: {
        if (!fillBlock(blockBytes_)) return State::kDry;
        part_ = Part::kFrame;
        if (const auto state = readBlock()) return *state;
        break;
      }
    }
  }
}

uint32_t PcapngRecords::statisticsTag() const { return tags_[loadLe32(block_.data() + 8)]; }

bool PcapngRecords::fillHead(size_t wanted) {
  const size_t bytes = std::min(wanted - head_.size(), in_.size());
  head_.insert(head_.end(), in_.begin(), in_.begin() + static_cast<ptrdiff_t>(bytes));
  in_ = in_.subspan(bytes);
  return head_.size() == wanted;
}

bool PcapngRecords::fillBlock(size_t wanted) {
  const size_t bytes = std::min(wanted - block_.size(), in_.size());
  block_.insert(block_.end(), in_.begin(), in_.begin() + static_cast<ptrdiff_t>(bytes));
  in_ = in_.subspan(bytes);
  return block_.size() == wanted;
}

/// Passes packets whose blocks have arrived in one piece. Returns whether there was one; if not,
/// and failure_ is set, it was broken.
bool PcapngRecords::passWhole(std::span<uint8_t> output, size_t& written) {
  const size_t before = written;
  while (head_.empty() && hasSection_ && in_.size() >= kPacketBlockHeaderBytes) {
    const uint8_t* const block = in_.data();
    if (blockType(block) != kEnhancedPacketBlock) break;
    const PacketBlock packet = loadPacketBlock(block);
    if (packet.capturedLength > kMaxCapturedLength) break;
    const size_t bytes = packetBlockBytes(packet.capturedLength);
    if (capfleet::blockBytes(block) != bytes || bytes > in_.size()) break;
    if (!beginPacket(block, output, written)) return false;
    if (loadLe32(block + bytes - kBlockTrailerBytes) != bytes) {
      broken("a block has two lengths");
      return false;
    }
    std::memcpy(output.data() + written, block + kPacketBlockHeaderBytes, packet.capturedLength);
    written += packet.capturedLength;
    part_ = Part::kFrame;
    in_ = in_.subspan(bytes);
  }
  return written != before;
}

bool PcapngRecords::beginBlock() {
  const uint32_t type = blockType(head_.data());
  blockBytes_ = capfleet::blockBytes(head_.data());
  if (!hasSection_ && type != kSectionHeaderBlock) {
    broken("it does not begin with a section");
  } else if (hasSection_ && type == kSectionHeaderBlock) {
    broken("it has a second section");
  } else if (blockBytes_ < fewestBytes(type) || blockBytes_ % 4 != 0) {
    broken("a block claims " + std::to_string(blockBytes_) + " bytes");
  } else if (type == kEnhancedPacketBlock) {
    part_ = Part::kPacketHead;
  } else if (blockBytes_ > kMostBlockBytes) {
    broken("a block without a packet claims " + std::to_string(blockBytes_) + " bytes");
  } else {
    block_.assign(head_.begin(), head_.end());
    head_.clear();
    part_ = Part::kBlock;
  }
  return failure_.empty();
}

/// The answer to a block that is not a packet; null if it says nothing.
std::optional<PcapngRecords::State> PcapngRecords::readBlock() {
  if (loadLe32(block_.data() + block_.size() - kBlockTrailerBytes) != blockBytes_)
    return broken("a block has two lengths");
  switch (blockType(block_.data())) {
    case kSectionHeaderBlock:
      if (loadLe32(block_.data() + kFrameBytes) != kByteOrderMagic)
        return broken("its section is not little-endian");
      hasSection_ = true;
      return std::nullopt;
    case kInterfaceDescriptionBlock:
      return State::kInterface;
    case kInterfaceStatisticsBlock:
      if (loadLe32(block_.data() + kFrameBytes) >= tags_.size())
        return broken("it has statistics of an interface that it did not describe");
      return State::kStatistics;
    default:
      return std::nullopt;
  }
}

/// Checks a packet block by its 28 first bytes, and writes the header of its record.
bool PcapngRecords::beginPacket(const uint8_t* head, std::span<uint8_t> output, size_t& written) {
  const PacketBlock packet = loadPacketBlock(head);
  blockBytes_ = capfleet::blockBytes(head);
  const uint32_t captured = packet.capturedLength;
  if (captured > kMaxCapturedLength || packetBlockBytes(captured) > blockBytes_) {
    broken("a packet claims " + std::to_string(captured) + " captured bytes");
  } else if (packet.interfaceNumber >= tags_.size()) {
    broken("a packet is from an interface that it did not describe");
  } else if (packet.timestampNs < 0 || packet.timestampNs >= kTimestampEndNs) {
    broken("a packet has a time that PCAP cannot represent");
  } else if (blockBytes_ - packetBlockBytes(captured) > kMostBlockBytes) {
    broken("the options of a packet claim too many bytes");
  }
  if (!failure_.empty()) return false;
  const uint32_t tag = tags_[packet.interfaceNumber];
  storeRecordHeader(output.data() + written,
                    {packet.timestampNs, captured + kInterfaceTagBytes, packet.originalLength});
  storeLe32(output.data() + written + kRecordHeaderBytes, tag);
  written += kRecordHeaderBytes + kInterfaceTagBytes;
  optionsBytes_ = static_cast<uint32_t>(blockBytes_ - packetBlockBytes(captured));
  if (optionsBytes_ > 0 && captured == 0) held_ = output[--written];
  remarked_ = {tag, packet.timestampNs};
  left_ = captured;
  padding_ = blockPadded(captured) - captured;
  part_ = Part::kPacketBytes;
  return true;
}

void PcapngRecords::passBytes(std::span<uint8_t> output, size_t& written) {
  const size_t bytes = std::min<size_t>(left_, in_.size());
  if (bytes == 0) return;
  std::memcpy(output.data() + written, in_.data(), bytes);
  in_ = in_.subspan(bytes);
  written += bytes;
  left_ -= static_cast<uint32_t>(bytes);
  if (left_ == 0 && optionsBytes_ > 0) held_ = output[--written];
}

PcapngRecords::State PcapngRecords::broken(std::string why) {
  failure_ = std::move(why);
  return State::kBroken;
}

}  // namespace capfleet
