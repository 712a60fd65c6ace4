// Compresses groups of packets on worker threads and returns the results in order.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "download/packet_batch.h"
#include "download/slab_compressor.h"
#include "os/worker_pool.h"

namespace capfleet {

/// A part of a download's body. Packets whose last byte is in it are counted with it.
struct BodyPart {
  SlabPtr slab;
  uint64_t packets = 0;
  uint64_t bytes = 0;  ///< size of these packets as PCAP records before compression
  int64_t firstNs = 0;
  int64_t lastNs = 0;
  uint64_t excluded = 0;  ///< packets that were read before the last of those, and left out

  /// The part that contains this batch unchanged.
  static BodyPart of(PacketBatch batch);
};

/// A consumer holds the last part and the previous one, which may be in transit to the network.
inline constexpr uint32_t kHeldParts = 2;

/// Thread-safe. Owned by shared_ptr, because running tasks hold it. A group is compressed as soon
/// as slabs for its result are free, so the first group in order never waits for a later one.
class CompressionStage : public std::enable_shared_from_this<CompressionStage> {
 public:
  struct Callbacks {
    std::function<void(SlabPtr)> giveRaw;  ///< takes back the slabs of a compressed group
    std::function<void()> onChange;        ///< called without a lock after each group
  };

  /// The number of compressed slabs is limited to what the concurrent groups may need, plus
  /// kHeldParts for those that the consumer holds.
  CompressionStage(Compression compression, GroupLimits limits, WorkerPool::Queue queue,
                   std::shared_ptr<BufferPool> pool, Callbacks callbacks);

  /// Groups are returned in the order of these calls. REQUIRES: 1 to limits.slabs batches.
  void submit(std::vector<PacketBatch> group);
  /// The next part in order, or nullopt if none is ready now. Return its slab with give().
  std::optional<BodyPart> take();
  void give(SlabPtr slab);
  /// Whether nothing is waiting to be compressed or taken.
  bool isIdle() const;
  /// Why a group could not be compressed; known once everything before it has been taken.
  std::optional<Error> error() const;
  /// Drops all groups. Slabs in use by a running task are returned when it ends.
  void cancel();

 private:
  struct Job;

  void startJobs();
  void run(const std::shared_ptr<Job>& job);
  std::unique_ptr<SlabCompressor> takeCompressor();
  void finish(Job& job, const Status& status);
  void dropSlabs(std::vector<SlabPtr>& slabs);

  const Compression compression_;
  const GroupLimits limits_;
  const uint32_t slabs_;  ///< compressed, at most
  WorkerPool::Queue queue_;
  const std::shared_ptr<BufferPool> pool_;
  const Callbacks callbacks_;
  std::atomic<bool> isCancelled_ = false;

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> jobs_;  ///< in order
  std::vector<std::unique_ptr<SlabCompressor>> idleCompressors_;
  uint32_t slabsInUse_ = 0;
};

}  // namespace capfleet
