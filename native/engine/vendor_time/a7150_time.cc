#include "vendor_time/a7150_time.h"

#include <algorithm>
#include <cstdlib>

#include "os/byte_order.h"
#include "packet/ethernet_payload.h"
#include "packet/pcap_format.h"
#include "vendor_time/counter_distance.h"
#include "vendor_time/frame_check_sequence.h"

namespace capfleet {

namespace {

constexpr unsigned kTickBits = 31;
constexpr uint32_t kTickMask = (uint32_t{1} << kTickBits) - 1;
/// 350 MHz. The real frequency is some ppm off; the next key frame corrects that.
constexpr TickLength kTick{20, 7};
/// Bytes that happen to look like a tick are seldom this near.
constexpr int64_t kFarthestNs = 100'000'000;
constexpr size_t kEthernetHeaderBytes = 14;
constexpr size_t kTickBytes = 4;

/// The four bytes that hold the tick, if the packet has any.
std::optional<uint32_t> tickWord(const PacketView& packet, A7150Clock::Mode mode) {
  if (!isWholeEthernetFrame(packet)) return std::nullopt;
  const auto frame = packet.captured;
  const auto declared = declaredFcsBytes(packet.linkTypeWord);
  size_t behind = 0;
  if (mode == A7150Clock::Mode::kOverwrite) {
    // A correct FCS was not replaced; one that was not captured cannot have been.
    if (declared.value_or(kFcsBytes) != kFcsBytes || endsInCorrectFcs(frame)) return std::nullopt;
  } else {
    behind = declared ? *declared : (endsInCorrectFcs(frame) ? kFcsBytes : 0);
  }
  if (frame.size() < kEthernetHeaderBytes + kTickBytes + behind) return std::nullopt;
  return loadBe32(&frame[frame.size() - kTickBytes - behind]);
}

}  // namespace

std::optional<A7150Clock::KeyFrame> A7150Clock::readKeyFrame(const PacketView& packet) {
  constexpr uint8_t kIpv4WithoutOptions = 0x45;
  constexpr size_t kIpHeaderBytes = 20;
  constexpr uint8_t kExperimentalProtocol = 253;
  constexpr uint16_t kTotalBytesV1 = 66;
  constexpr uint16_t kTotalBytesV2 = 82;
  if (linkTypeOf(packet.linkTypeWord) != kLinkTypeEthernet) return std::nullopt;
  const auto payload = ethernetPayload(packet.captured);
  if (!payload || payload->etherType != 0x0800) return std::nullopt;
  const auto ip = payload->bytes;
  if (ip.size() < kTotalBytesV1 || ip[0] != kIpv4WithoutOptions || ip[9] != kExperimentalProtocol) {
    return std::nullopt;
  }
  const uint16_t totalBytes = loadBe16(&ip[2]);
  if (totalBytes != kTotalBytesV1 && totalBytes != kTotalBytesV2) return std::nullopt;
  if (ip.size() < totalBytes) return std::nullopt;
  const uint64_t utcNs = loadBe64(&ip[kIpHeaderBytes + 8]);
  // A switch that has no time yet is of no use.
  if (utcNs == 0 || utcNs >= uint64_t{kTimestampEndNs}) return std::nullopt;
  const auto tick = static_cast<uint32_t>(loadBe64(&ip[kIpHeaderBytes]) & kTickMask);
  return KeyFrame{packet.nicNs, static_cast<int64_t>(utcNs), tick};
}

const A7150Clock::KeyFrame* A7150Clock::governing(int64_t nicNs) const {
  const uint64_t known = std::min<uint64_t>(keyFrameCount_, keyFrames_.size());
  for (uint64_t back = 1; back <= known; back++) {
    const KeyFrame& keyFrame = keyFrames_[(keyFrameCount_ - back) % keyFrames_.size()];
    if (keyFrame.nicNs <= nicNs && nicNs - keyFrame.nicNs <= kMaxKeyFrameAgeNs) return &keyFrame;
  }
  return nullptr;
}

std::optional<int64_t> A7150Clock::timeOf(const PacketView& packet, Mode mode) {
  if (const auto keyFrame = readKeyFrame(packet)) {
    keyFrames_[keyFrameCount_ % keyFrames_.size()] = *keyFrame;
    keyFrameCount_++;
  }
  constexpr uint32_t kPaddingBit = 0x80;
  const KeyFrame* keyFrame = governing(packet.nicNs);
  if (keyFrame == nullptr) return std::nullopt;
  const auto word = tickWord(packet, mode);
  // Frames that the switch made itself carry zero.
  if (!word || *word == 0 || (*word & kPaddingBit) != 0) return std::nullopt;
  const uint32_t tick = ((*word & 0xFFFFFF00) >> 1) | (*word & 0x7F);
  // Compared with the NIC's time of the key frame: the two clocks may be minutes apart.
  const int64_t nicDistanceNs = packet.nicNs - keyFrame->nicNs;
  const uint32_t ticks = (tick - keyFrame->tick) & kTickMask;
  const int64_t distanceNs = counterDistanceNs(ticks, kTickBits, kTick, nicDistanceNs);
  if (std::abs(distanceNs - nicDistanceNs) > kFarthestNs) return std::nullopt;
  return keyFrame->utcNs + distanceNs;
}

}  // namespace capfleet
