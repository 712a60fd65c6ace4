#include "capture/packet_intake.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "os/byte_order.h"

namespace capfleet {

namespace {

constexpr uint32_t kTagBytes = 4;
/// The tag follows the two addresses.
constexpr uint32_t kTagOffset = 12;
constexpr uint32_t kFcsBytes = 4;

/// The first size of each class except the first; 1024_2047 begins here where 1024_1518 ends.
constexpr std::array<uint32_t, kSizeClasses - 1> kClassBegins = {64,   65,   128,  256,  512, 1024,
                                                                 1519, 2048, 4096, 8192, 9217};

void storeBe16(uint8_t* out, uint16_t value) { storeLe16(out, __builtin_bswap16(value)); }

/// Copies `length` bytes of the packet with its tag restored.
void copyTagged(uint8_t* out, const RingPacket& packet, uint32_t length) {
  uint8_t head[kTagOffset + kTagBytes];
  std::memcpy(head, packet.bytes, kTagOffset);
  storeBe16(head + kTagOffset, packet.vlanProtocol);
  storeBe16(head + kTagOffset + 2, packet.vlanTag);
  const uint32_t headLength = std::min<uint32_t>(length, sizeof head);
  std::memcpy(out, head, headLength);
  std::memcpy(out + headLength, packet.bytes + kTagOffset, length - headLength);
}

}  // namespace

bool PacketIntake::take(const RingPacket& packet, CaptureBlock& block) {
  // A packet that is shorter than two addresses has no place for a tag.
  const bool isTagged = packet.hasVlanTag && packet.capturedLength >= kTagOffset;
  const uint32_t tagBytes = isTagged ? kTagBytes : 0;
  const uint32_t originalLength = packet.originalLength + tagBytes;
  const uint32_t wholeLength = std::min(packet.capturedLength + tagBytes, kMaxCapturedLength);
  const uint32_t capturedLength = std::min(wholeLength, snaplen_);
  // The filter reads a tagged packet, completely, at the place where its record will be.
  const uint32_t neededLength = isTagged && filter_ ? wholeLength : capturedLength;
  if (!block.hasRoom(kRecordHeaderBytes + neededLength)) return false;

  count(packet, originalLength);
  uint8_t* record = block.end();
  uint8_t* bytes = record + kRecordHeaderBytes;
  const uint8_t* seen = packet.bytes;
  if (isTagged) {
    copyTagged(bytes, packet, neededLength);
    seen = bytes;
  }
  if (filter_ && !filter_->accepts(seen, wholeLength, originalLength)) {
    counts_.filteredPackets += 1;
    return true;
  }
  if (!isTagged) std::memcpy(bytes, packet.bytes, capturedLength);
  storeRecordHeader(record, {packet.timestampNs, capturedLength, originalLength});
  block.add(packet.timestampNs, kRecordHeaderBytes + capturedLength);
  counts_.recordBytes += kRecordHeaderBytes + capturedLength;
  return true;
}

void PacketIntake::count(const RingPacket& packet, uint32_t originalLength) {
  const uint32_t wireLength = originalLength + kFcsBytes;
  const auto next = std::upper_bound(kClassBegins.begin(), kClassBegins.end(), wireLength);
  counts_.sizes[static_cast<size_t>(next - kClassBegins.begin())] += 1;
  counts_.packets += 1;
  counts_.originalBytes += originalLength;
  counts_.lastPacketNs = packet.timestampNs;
}

}  // namespace capfleet
