// A download: stored packets of some streams over a time range, as the bytes of one PCAP file.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "download/compression_stage.h"
#include "download/ordered_scan.h"
#include "download/output_limit.h"
#include "download/skipped_slices.h"
#include "download/window_planner.h"
#include "filter/bpf_program.h"
#include "store/segment_entry.h"

namespace capfleet {

struct DownloadOptions {
  /// Packets with equal timestamps come in the order of the streams, then of the recording. A torn
  /// last entry in the index of a growing segment is no loss.
  std::vector<StreamSegments> streams;
  int64_t beginNs = 0;  ///< beginNs <= NIC timestamp < endNs; not negative
  int64_t endNs = 0;
  std::vector<FrameCondition> frameFilter;  ///< all must hold
  std::optional<BpfProgram> filter;
  bool filterDecap = false;  ///< `filter` sees the innermost frame
  /// No block is skipped by its sieve: the duration of the download must not reveal which addresses
  /// occur in packets that do not pass `filter`.
  bool readsAllBlocks = false;
  std::shared_ptr<const RegexMatcher> regex;  ///< null: every packet passes
  /// For all but kNic, `streams` must also hold the segments of VendorClock::lookBackNs() before
  /// the range. Such a download is scanned by one thread at a time.
  VendorClockOptions clock;
  uint32_t sliceBytes = kMaxCapturedLength;  ///< captured bytes kept of each packet; at least 1
  std::optional<int64_t> tsMaxNs;            ///< end this long after the first packet; at least 1
  OutputLimit::Limits limits;
  /// The body begins with this byte of what it would be without compression; empty if that is no
  /// longer. Totals stay those of the whole body.
  uint64_t afterBytes = 0;
  /// What is known of the store's blocks, and what the download adds to it. Without it `afterBytes`
  /// gives the same bytes, but reads all that lies before them.
  std::shared_ptr<CheckedBlocks> checkedBlocks;
  bool toMicroseconds = false;
  Compression compression;
  uint32_t emptyLinkTypeWord = 1;  ///< of the file header when no segment is given
  /// Of the store per scan of a thread, and planned at a time; tests make them small.
  uint64_t scanBytes = kSliceBytes;
  uint64_t windowBytes = kWindowBytes;
};

struct DownloadTotals {
  uint64_t packets = 0;         ///< handed out, or left out by `afterBytes`
  uint64_t bytes = 0;           ///< of those, as PCAP records before compression
  uint64_t skippedPackets = 0;  ///< of `packets`: wholly before `afterBytes`, so not handed out
  uint64_t outputBytes = 0;
  /// Of the range, before the filter, those of passedBlocks among them; not those that were left
  /// out by `afterBytes` unread.
  uint64_t readPackets = 0;
  uint64_t readBytes = 0;
  /// Read before the last of `packets`, and not of the range or left out by a filter. Packets of
  /// passedBlocks count when all of their slice has been handed out.
  uint64_t excludedPackets = 0;
  uint64_t passedBlocks = 0;   ///< not read, as no packet of them passes the filter
  uint64_t corruptBlocks = 0;  ///< left out, as far as they were read
  std::optional<int64_t> firstNs;
  std::optional<int64_t> lastNs;
  uint64_t vendorTimeFallbacks = 0;  ///< packets that passed and kept their NIC time
  uint64_t latePackets = 0;          ///< came after one with a later time
  bool isTruncated = false;          ///< `limits` left packets out
  std::optional<int64_t> nextNs;     ///< when truncated: of the first packet left out
};

/// Thread-safe. Made by a DownloadOpening, and owned by shared_ptr, because running tasks hold it.
/// Its slabs are bounded whatever the data: 8 MiB of packets (with two threads 10 with gzip, 24
/// with zstd) and as much again compressed; in a vendor's time another 20 MiB to sort them. Blocks
/// of up to 256 inputs that overlap take some 150 MiB more. Beyond, each has a piece of its block:
/// all together 64 MiB, or 16 KiB each (160 MiB for 10,000 inputs), and what a single packet is
/// larger than that. Besides, the log's entries of all segments are held, and the indexes of those
/// that are read now. When the consumer does not pull, or keeps more than two parts, the work stops
/// without holding a thread.
class Download : public std::enable_shared_from_this<Download> {
 public:
  /// The next part of the body, or null at its end. The bytes are valid until release().
  using Answer = Result<SlabPtr>;
  using Callback = std::function<void(Answer)>;

  /// Closes. The slabs not released are abandoned.
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Calls `done` exactly once: before returning, or later on any thread. The first part is the
  /// PCAP file header, or what `afterBytes` leaves of it: it may be empty. Fails with kAgedOut when
  /// a segment was removed before it was read, with kStoreUnavailable and kStoreCorrupt, with
  /// kBadRegex when there is no memory to search with, and with kCancelled once closed; after a
  /// failure or the end it answers the same again. REQUIRES: no other call waits for its answer.
  void next(Callback done);
  /// Gives a part back, so that its memory can be filled again. Any other slab is ignored.
  void release(const Slab* slab);
  /// Stops the work at once; a waiting next() is answered with kCancelled. May be called again.
  void close();

  DownloadTotals totals() const;
  uint32_t linkTypeWord() const { return header_.linkTypeWord; }
  uint32_t snaplen() const { return header_.snaplen; }
  /// What it holds until it is destroyed, apart from slabs, roughly.
  uint64_t heldBytes() const { return heldBytes_; }

 private:
  friend class DownloadOpening;
  using Clock = std::chrono::steady_clock;

  Download(PcapFileHeader header, const DownloadOptions& options, WorkerPool::Queue queue,
           std::shared_ptr<BufferPool> pool, uint64_t corruptBlocks);
  void skip(const SkippedSlices& skipped);
  void start(std::unique_ptr<ScanContext> context, PlannedSlices planned,
             OrderedScanOptions options);
  Status pushFileHeader(const DownloadOptions& options);

  void pump();
  void collect();
  void dropCollected();
  void takeBatches();
  void skipFront(PacketBatch& batch);
  void takeExcluded();
  void append(PacketBatch batch);
  void closeGroup();
  bool shouldFlush() const;
  void answerPending();
  std::optional<Answer> findAnswer();
  SlabPtr handOut(BodyPart part);
  void count(const BodyPart& part);
  void giveBack(SlabPtr slab);
  bool isClosed() const;

  const PcapFileHeader header_;
  const Compression compression_;
  uint64_t heldBytes_ = 0;
  WorkerPool::Queue queue_;
  const std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<OrderedScan> scan_;
  std::shared_ptr<CompressionStage> stage_;  ///< null without compression
  /// These four belong to the thread that pumps.
  std::vector<PacketBatch> group_;  ///< being collected
  OutputLimit limit_;
  uint64_t bytesToSkip_;  ///< of the next records, before compression
  bool isCut_ = false;    ///< by the limit; nothing more is taken from the scan

  mutable std::mutex mutex_;
  bool isPumping_ = false;
  bool mustPumpAgain_ = false;
  std::deque<BodyPart> ready_;
  std::vector<SlabPtr> handedOut_;
  const Slab* headerSlab_ = nullptr;  ///< counts against no budget
  Callback pending_;
  Clock::time_point waitingSince_;
  DownloadTotals totals_;
  bool isCollected_ = false;  ///< all packets are in ready_, the stage or the consumer's hands
  bool isClosed_ = false;
};

}  // namespace capfleet
