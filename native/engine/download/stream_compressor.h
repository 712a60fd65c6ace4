// Compresses any byte stream as the body of a download is compressed; used for the gateway's
// merges.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "download/compression_stage.h"

namespace capfleet {

/// Bytes are passed to write(), parts of the compressed stream are returned by next(). Owned by
/// shared_ptr, because running tasks call it. All methods belong to one thread; the answers of
/// next() may arrive on any. Its slabs are bounded whatever the data: with two threads 7 with gzip,
/// 44 with zstd; with sixteen 35 and 78; with small groups 5 and 6 in any case. In addition each
/// thread that compresses a group has its tables and its window (9 MiB with zstd, 70 at its highest
/// level).
class StreamCompressor : public std::enable_shared_from_this<StreamCompressor> {
 public:
  /// The next part of the compressed stream, or null at its end.
  using Answer = Result<SlabPtr>;
  using Callback = std::function<void(Answer)>;

  /// `workers` must outlive all tasks passed to it. With `hasSmallGroups` it uses kSmallGroups.
  /// REQUIRES: the codec is not kNone.
  static std::shared_ptr<StreamCompressor> create(Compression compression, WorkerPool& workers,
                                                  std::shared_ptr<BufferPool> slabs,
                                                  bool hasSmallGroups = false);
  /// Closes.
  ~StreamCompressor();
  StreamCompressor(const StreamCompressor&) = delete;
  StreamCompressor& operator=(const StreamCompressor&) = delete;

  /// Copies as many of the bytes as there is room for, and returns how many. If that is not all,
  /// next() has a part or will have one, and there is room again after it. REQUIRES: neither ended
  /// nor closed.
  size_t write(std::span<const uint8_t> bytes);
  /// Lets what was written be returned although its group is not full, unless something is pending
  /// anyway.
  void flush();
  /// No more bytes follow. A stream without any byte is one empty member or frame.
  void end();
  /// Calls `done` exactly once: before returning, or later on any thread. The part is valid until
  /// the second call of next() after this one, even when closed. Fails with kStoreUnavailable if
  /// memory is short, with kCancelled once closed. REQUIRES: no other call is waiting for its
  /// answer.
  void next(Callback done);
  /// Stops the work at once; a waiting next() fails with kCancelled. The memory of parts that are
  /// still valid is left to their other owners. May be called again.
  void close();

 private:
  StreamCompressor(GroupLimits limits, std::shared_ptr<BufferPool> slabs);
  bool hasRoom();
  void submit();
  void answerPending();
  std::optional<Answer> findAnswer();

  const GroupLimits limits_;
  const std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<CompressionStage> stage_;
  std::vector<PacketBatch> group_;  ///< being filled
  bool hasSubmitted_ = false;
  std::atomic<uint32_t> rawSlabs_ = 0;  ///< raw slabs in group_ and in the stage

  std::mutex mutex_;
  std::deque<SlabPtr> valid_;  ///< the parts that the consumer may look at
  Callback pending_;
  bool isEnded_ = false;
  bool isClosed_ = false;
};

}  // namespace capfleet
