#include "download/duplicate_stage.h"

#include <algorithm>
#include <cstring>

namespace capfleet {

void DuplicateStage::drop(PacketBatch& batch) {
  Slab& slab = *batch.slab;
  keptBefore_.clear();
  PacketBatch kept;
  size_t end = 0;
  for (size_t at = 0; at < slab.size;) {
    uint8_t* const record = slab.bytes.get() + at;
    const auto [bytes, timestampNs, captured] = loadOutputRecord(record, {form_.isPcapng, false});
    at += bytes;
    latestNs_ = std::max(latestNs_, timestampNs);
    const DuplicateWindow::Packet packet{captured, linkTypeWordOf(record), latestNs_};
    if (window_.originalOf(packet) != 0) {
      keptBefore_.push_back(kept.packets);
      continue;
    }
    window_.add(packet);
    if (form_.isMicroseconds) toMicroseconds(record, timestampNs);
    uint8_t* const to = slab.bytes.get() + end;
    if (to != record) std::memmove(to, record, bytes);
    end += bytes;
    kept.count(1, timestampNs, timestampNs);
  }
  slab.size = end;
  batch.packets = kept.packets;
  batch.firstNs = kept.firstNs;
  batch.lastNs = kept.lastNs;
}

uint32_t DuplicateStage::linkTypeWordOf(const uint8_t* record) const {
  return linkTypeWords_[form_.isPcapng ? loadPacketBlock(record).interfaceNumber : 0];
}

void DuplicateStage::toMicroseconds(uint8_t* record, int64_t timestampNs) const {
  if (form_.isPcapng) {
    storeBlockTime(record, timestampNs - timestampNs % 1000);
  } else {
    storeLe32(record + 4, loadLe32(record + 4) / 1000);
  }
}

uint64_t DuplicateStage::droppedBefore(uint64_t packets) const {
  const auto end = std::upper_bound(keptBefore_.begin(), keptBefore_.end(), packets);
  return static_cast<uint64_t>(end - keptBefore_.begin());
}

}  // namespace capfleet
