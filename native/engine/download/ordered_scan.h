// Runs the slices of a download on worker threads and returns their packets in the slices' order.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "download/slice_scan.h"
#include "download/window_planner.h"
#include "os/buffer_pool.h"
#include "os/worker_pool.h"

namespace capfleet {

struct OrderedScanOptions {
  uint32_t slabs = 8;         ///< filled or being filled at once; more than kReservedSlabs
  uint32_t slicesAtOnce = 4;  ///< scanned at the same time; fewer where they have many inputs
  std::optional<int64_t> maxSpanNs;  ///< end this long after the first packet that passes
};

/// What a scan reads, in time order.
struct PlannedSlices {
  std::shared_ptr<const SlicePlan> first;  ///< may be null
  size_t firstSlice = 0;                   ///< first slice of it; those before it are skipped
  /// Produces the plans that follow; null: there are none.
  std::unique_ptr<WindowPlanner> rest;
};

/// Slabs reserved for the first unfinished slice. Otherwise later slices could hold all slabs, and
/// the one whose packets are next could never continue: two that the consumer may hold while it
/// waits for the next one, and that one.
inline constexpr uint32_t kReservedSlabs = 3;

/// Thread-safe. Owned by shared_ptr, because running tasks hold it. At most `slabs` slabs are in
/// use; a slice that finds none free gives up its thread and continues when give() is called.
class OrderedScan : public std::enable_shared_from_this<OrderedScan> {
 public:
  /// `onChange` is called without the lock, on a worker thread, after every step of a slice.
  OrderedScan(std::unique_ptr<ScanContext> context, PlannedSlices planned,
              OrderedScanOptions options, WorkerPool::Queue queue,
              std::shared_ptr<BufferPool> slabs, std::function<void()> onChange);
  ~OrderedScan();
  void start();

  /// The next packets in order, or nullopt if none are ready now. Return the slab with give().
  std::optional<PacketBatch> take();
  /// Number of packets that were read and left out after the last one taken, by slices that are
  /// done. Each is reported once: here, or as `excluded` of the batch taken next.
  uint64_t takeExcluded();
  void give(SlabPtr slab);
  /// Whether all packets have been taken, or the scan has failed.
  bool isFinished() const;
  /// Why the scan failed; known once everything before the failure has been taken.
  std::optional<Error> error() const;
  /// Whether the next slice is waiting for a slab.
  bool isStalled() const;
  /// Stops the scan soon. Slabs that it holds return to the pool automatically.
  void cancel();
  ScanCounts counts() const;

 private:
  struct ActiveSlice;

  void startSlices();
  bool findNextSlice();
  void countRuledOut();
  void start(const Slice& slice);
  void planAhead();
  void planStep();
  void endPlanning();
  bool hasRoomFor(const Slice& slice) const;
  bool passOver(const Slice& slice);
  bool isBehindLimit(const Slice& slice) const;
  void post(ActiveSlice& slice);
  void run(ActiveSlice& slice);
  Result<ScanStep> advance(ActiveSlice& slice, ScanCounts& counts);
  bool claimSlab(ActiveSlice& slice);
  bool mayTakeSlab(const ActiveSlice& slice) const;
  void settle(ActiveSlice& slice, const Result<ScanStep>& step);
  void noteFirstPacket(const ActiveSlice& slice);
  void finish(ActiveSlice& slice);
  void deliver(ActiveSlice& slice);
  void dropSlab(SlabPtr slab);
  void wake();

  const std::unique_ptr<ScanContext> context_;
  const OrderedScanOptions options_;
  WorkerPool::Queue queue_;
  const std::shared_ptr<BufferPool> pool_;
  const std::function<void()> onChange_;

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<ActiveSlice>> active_;  ///< in order; the first is the head
  /// Plans with slices that have not begun, in order; `nextSlice_` is the first of them.
  std::deque<std::shared_ptr<const SlicePlan>> plans_;
  size_t nextSlice_;
  bool isRuledOutCounted_ = false;  ///< for the first plan
  /// Belongs to the planning task while one is running. Null once everything is planned.
  std::unique_ptr<WindowPlanner> planner_;
  bool isPlanning_ = false;
  std::optional<Error> planError_;  ///< comes after the slices of `plans_`
  bool needsFinalSlice_;            ///< one in a vendor's time, after all others
  uint32_t slabsInUse_ = 0;
  std::optional<int64_t> limitNs_;  ///< known once maxSpanNs has a first packet
  std::optional<Error> error_;
  uint64_t excluded_ = 0;  ///< excluded by finished slices after the last batch taken
  ScanCounts counts_;
};

}  // namespace capfleet
