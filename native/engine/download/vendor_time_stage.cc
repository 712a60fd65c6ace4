#include "download/vendor_time_stage.h"

#include <algorithm>

namespace capfleet {

VendorTimeStage::VendorTimeStage(const PacketTransform& transform, int64_t deliverFromNs,
                                 std::optional<int64_t> maxSpanNs)
    : transform_(transform),
      deliverFromNs_(deliverFromNs),
      maxSpanNs_(maxSpanNs),
      clock_(transform.clock),
      window_(ReorderWindow::Limits{}) {}

uint32_t VendorTimeStage::take(const LoadedBlock& block, uint32_t first, uint32_t last,
                               PacketFilter& filter, Output output) {
  for (uint32_t record = first; record < last; record++) {
    const PacketView packet = block.packet(record);
    // The clock must see each packet once, even if the batch is full and this one is passed again.
    if (!timeNs_ && !findTime(packet, filter, output)) continue;
    const OutputPacket returned(packet, transform_);
    const size_t bytes = returned.recordBytes();
    while (!window_.hasRoomFor(packet.nicNs, bytes)) {
      if (!appendNext(output)) return record;
    }
    returned.store(window_.add(*timeNs_, packet.nicNs, bytes), *timeNs_);
    timeNs_.reset();
  }
  return last;
}

bool VendorTimeStage::finish(Output output) {
  while (!window_.empty()) {
    if (!appendNext(output)) return hasEnded_;
  }
  return true;
}

/// Passes the packet to the clock. False if it is not to be returned.
bool VendorTimeStage::findTime(const PacketView& packet, PacketFilter& filter, Output output) {
  const std::optional<int64_t> vendorNs = clock_.timeOf(packet);
  if (packet.nicNs < deliverFromNs_) return false;
  if (!filter.accepts(packet)) {
    output.batch.excluded++;
    return false;
  }
  if (!vendorNs) output.counts.vendorTimeFallbacks++;
  timeNs_ = vendorNs.value_or(packet.nicNs);
  return true;
}

/// Moves the first record of the window to the batch. False if it does not fit, or is not allowed.
bool VendorTimeStage::appendNext(Output output) {
  const ReorderWindow::Record next = window_.next();
  const int64_t spanNs = next.timeNs - firstNs_.value_or(next.timeNs);
  hasEnded_ = hasEnded_ || (maxSpanNs_ && spanNs >= *maxSpanNs_);
  if (hasEnded_ || next.bytes.size() > output.batch.roomBeside(transform_.reservedBytes()))
    return false;
  if (!firstNs_) firstNs_ = next.timeNs;
  Slab& slab = *output.batch.slab;
  std::copy(next.bytes.begin(), next.bytes.end(), slab.bytes.get() + slab.size);
  slab.size += next.bytes.size();
  output.batch.count(1, next.timeNs, next.timeNs);
  const uint64_t lateBefore = window_.latePackets();
  window_.pop();
  output.counts.latePackets += window_.latePackets() - lateBefore;
  return true;
}

}  // namespace capfleet
