#include "download/pcapng_framing.h"

#include <cassert>
#include <cstring>
#include <span>

#include "packet/pcapng_block.h"

namespace capfleet {
namespace {

/// Makes room for `bytes` bytes at `at`.
void openGap(Slab& slab, size_t at, size_t bytes) {
  assert(slab.size + bytes <= kSlabBytes);
  std::memmove(slab.bytes.get() + at + bytes, slab.bytes.get() + at, slab.size - at);
  slab.size += bytes;
}

void insert(Slab& slab, size_t at, std::span<const uint8_t> bytes) {
  openGap(slab, at, bytes.size());
  std::memcpy(slab.bytes.get() + at, bytes.data(), bytes.size());
}

}  // namespace

size_t PcapngOptions::insertedBytes() const {
  size_t bytes = 0;
  for (size_t i = described; i < interfaces.size(); i++) bytes += interfaces[i].description.size();
  for (const PcapngRemark& one : remarks) bytes += one.options.size() + kEndOfOptionsBytes;
  return bytes;
}

PcapngFraming::PcapngFraming(const PcapngOptions& options)
    : interfaces_(options.interfaces),
      remarks_(options.remarks),
      packets_(options.interfaces.size()),
      described_(options.described) {}

void PcapngFraming::frame(PacketBatch& batch) {
  if (batch.packets == 0) return;
  const bool isPlain =
      packets_.size() == 1 && described_ == packets_.size() && remarked_ == remarks_.size();
  if (isPlain) {
    packets_[0] += batch.packets;
    return;
  }
  Slab& slab = *batch.slab;
  for (size_t at = 0; at < slab.size;) {
    const PacketBlock packet = loadPacketBlock(slab.bytes.get() + at);
    packets_.at(packet.interfaceNumber)++;
    at = describeUpTo(packet.interfaceNumber, slab, at);
    remark(packet.timestampNs, slab, at);
    at += blockBytes(slab.bytes.get() + at);
  }
}

/// A number means the position among the descriptions, so those before it must precede it too.
/// Returns where the block at `at` is now.
size_t PcapngFraming::describeUpTo(uint32_t interfaceNumber, Slab& slab, size_t at) {
  for (; described_ <= interfaceNumber; described_++) {
    const std::vector<uint8_t>& description = interfaces_[described_].description;
    insert(slab, at, description);
    at += description.size();
  }
  return at;
}

/// Adds the remarks that are due to the block at `at`.
void PcapngFraming::remark(int64_t timestampNs, Slab& slab, size_t at) {
  const auto isDue = [&] {
    return remarked_ < remarks_.size() && remarks_[remarked_].atNs <= timestampNs;
  };
  if (!isDue()) return;
  size_t end = at + blockBytes(slab.bytes.get() + at) - kBlockTrailerBytes;
  for (; isDue(); remarked_++) {
    const std::vector<uint8_t>& options = remarks_[remarked_].options;
    insert(slab, end, options);
    end += options.size();
  }
  openGap(slab, end, kEndOfOptionsBytes);
  storeLe32(slab.bytes.get() + end, 0);
  end += kEndOfOptionsBytes;
  const auto bytes = static_cast<uint32_t>(end + kBlockTrailerBytes - at);
  storeLe32(slab.bytes.get() + at + 4, bytes);
  storeLe32(slab.bytes.get() + end, bytes);
}

}  // namespace capfleet
