// The last stage of a sequential scan whose packets get a vendor's times: filters, rewrites and
// sorts them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "download/packet_batch.h"
#include "download/reorder_window.h"
#include "download/scan_counts.h"
#include "vendor_time/vendor_clock.h"

namespace capfleet {

/// Takes every packet of a scan in NIC time order, starting with the look-back, so that the time of
/// a packet depends neither on the range nor on a filter. Not thread-safe.
class VendorTimeStage {
 public:
  /// Where packets and figures go.
  struct Output {
    PacketBatch& batch;
    ScanCounts& counts;
  };

  /// Packets before `deliverFromNs` in NIC time only feed the clock. With `maxSpanNs` the output
  /// ends before the first packet whose time is this much or more after the first one's.
  /// `transform` must outlive the stage.
  VendorTimeStage(const PacketTransform& transform, int64_t deliverFromNs,
                  std::optional<int64_t> maxSpanNs);

  /// Takes the records [first, last) of a block; `filter` is the transform's. Returns the first
  /// that it could not take because the batch is full or the output has ended, or `last`. The next
  /// call must continue with that record.
  uint32_t take(const LoadedBlock& block, uint32_t first, uint32_t last, PacketFilter& filter,
                Output output);
  /// After the last record: appends what is still waiting to be sorted. False if the batch is full.
  bool finish(Output output);
  /// Whether the output has reached `maxSpanNs`: nothing more follows.
  bool hasEnded() const { return hasEnded_; }

 private:
  bool findTime(const PacketView& packet, PacketFilter& filter, Output output);
  bool appendNext(Output output);

  const PacketTransform& transform_;
  const int64_t deliverFromNs_;
  const std::optional<int64_t> maxSpanNs_;
  VendorClock clock_;
  ReorderWindow window_;
  std::optional<int64_t> timeNs_;  ///< time of the next record, once the clock has seen it
  std::optional<int64_t> firstNs_;
  bool hasEnded_ = false;
};

}  // namespace capfleet
