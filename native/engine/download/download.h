// A download: stored packets of some streams over a time range, as the bytes of one PCAP or pcapng
// file.
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
#include "download/duplicate_stage.h"
#include "download/ordered_scan.h"
#include "download/output_limit.h"
#include "download/pcapng_framing.h"
#include "download/skipped_slices.h"
#include "download/window_planner.h"
#include "filter/address_set.h"
#include "filter/bpf_program.h"
#include "store/segment_entry.h"

namespace capfleet {

struct DownloadOptions {
  /// Packets with equal timestamps are in the order of the streams, then of the recording. A torn
  /// last entry in the index of a growing segment is no loss.
  std::vector<StreamSegments> streams;
  int64_t beginNs = 0;  ///< beginNs <= NIC timestamp < endNs; not negative
  int64_t endNs = 0;
  std::vector<FrameCondition> frameFilter;  ///< all must hold
  std::optional<BpfProgram> filter;
  bool filterDecap = false;  ///< `filter` sees the innermost frame
  /// Reads even the blocks that could be skipped because of their sieves, so that the duration of
  /// the download does not reveal which addresses occur in packets that do not match `filter`.
  bool readsAllBlocks = false;
  std::shared_ptr<const AddressSet> addresses;  ///< null: every packet passes
  std::shared_ptr<const RegexMatcher> regex;    ///< null: every packet passes
  /// Except for kNic, `streams` must also contain the segments of VendorClock::lookBackNs() before
  /// the range. Such a download is scanned by one thread at a time.
  VendorClockOptions clock;
  HeaderKinds stripped = 0;                  ///< headers left out of returned packets
  uint32_t sliceBytes = kMaxCapturedLength;  ///< captured bytes kept of each packet; at least 1
  std::optional<DuplicateOptions> dedup;     ///< copies of returned packets are left out
  std::optional<int64_t> tsMaxNs;            ///< end this long after the first packet; at least 1
  OutputLimit::Limits limits;
  /// The body starts at this byte of the uncompressed body; empty if that is no longer. Totals stay
  /// those of the whole body.
  uint64_t afterBytes = 0;
  /// What is known about the store's blocks, extended by the download. Without it `afterBytes`
  /// returns the same bytes, but reads everything before them.
  std::shared_ptr<CheckedBlocks> checkedBlocks;
  bool toMicroseconds = false;
  Compression compression;
  uint32_t emptyLinkTypeWord = 1;  ///< for the file header if no segment is given
  /// The file is pcapng; empty: PCAP. In pcapng link types may differ, unless packets are filtered
  /// by `filter`. With `afterBytes` everything before them is read.
  std::optional<PcapngOptions> pcapng;
  /// Bytes of the store per scan of a thread, and per planning window; tests make them small.
  uint64_t scanBytes = kSliceBytes;
  uint64_t windowBytes = kWindowBytes;
};

struct DownloadTotals {
  uint64_t packets = 0;  ///< handed out, or left out by `afterBytes`
  /// Size of `packets` before compression: as PCAP records, or as pcapng blocks including
  /// what was inserted.
  uint64_t bytes = 0;
  uint64_t skippedPackets =
      0;  ///< those of `packets` wholly before `afterBytes`, thus not delivered
  uint64_t outputBytes = 0;
  /// In the range, before the filter, including those of passedBlocks; not those that were skipped
  /// unread because of `afterBytes`.
  uint64_t readPackets = 0;
  uint64_t readBytes = 0;
  /// Read before the last of `packets`, and outside the range or left out by a filter. Packets of
  /// passedBlocks count once all of their slice has been returned.
  uint64_t excludedPackets = 0;
  uint64_t duplicates = 0;        ///< left out as copies, up to the end or a limit
  uint64_t passedBlocks = 0;      ///< not read, because none of their packets passes the filter
  uint64_t ruledOutSegments = 0;  ///< of which no file was opened; their blocks are passedBlocks
  uint64_t corruptBlocks = 0;     ///< left out, as far as they were read
  std::optional<int64_t> firstNs;
  std::optional<int64_t> lastNs;
  uint64_t vendorTimeFallbacks = 0;  ///< packets that passed and kept their NIC time
  uint64_t latePackets = 0;          ///< came after one with a later time
  bool isTruncated = false;          ///< `limits` left packets out
  std::optional<int64_t> nextNs;     ///< when truncated: of the first packet left out
  bool isPcapng = false;
  /// In pcapng, once all packets have been collected.
  std::vector<uint64_t> interfacePackets;  ///< packets by interface, with those skipped
  uint32_t describedInterfaces = 0;
  uint32_t remarkedPackets = 0;  ///< how many of the remarks a packet has
  uint64_t leftToSkip = 0;       ///< bytes of `afterBytes` beyond the packets
};

/// Thread-safe. Created by a DownloadOpening, and owned by shared_ptr, because running tasks hold
/// it. Its slabs are bounded whatever the data: 8 MiB of packets (with two threads 10 with gzip, 24
/// with zstd) and as much again compressed; in a vendor's time another 20 MiB to sort them. Blocks
/// of up to 256 overlapping inputs take about 150 MiB more. With more inputs, each holds a piece of
/// its block: 64 MiB in total, or 16 KiB each (160 MiB for 10,000 inputs), plus the excess of a
/// single packet larger than that. In addition, the log's entries of all segments are held, and the
/// indexes of those being read. If the consumer does not pull, or keeps more than two parts, the
/// work stops without holding a thread.
class Download : public std::enable_shared_from_this<Download> {
 public:
  /// The next part of the body, or null at its end. The bytes are valid until release().
  using Answer = Result<SlabPtr>;
  using Callback = std::function<void(Answer)>;

  /// Closes. Slabs that were not released are abandoned.
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  /// Calls `done` exactly once: before returning, or later on any thread. The first part is the
  /// file header, or what `afterBytes` leaves of it: it may be empty. Fails with kAgedOut if a
  /// segment was removed before it was read, with kStoreUnavailable and kStoreCorrupt, with
  /// kBadRegex if there is no memory to search with, and with kCancelled once closed; after a
  /// failure or the end it returns the same again. REQUIRES: no other call is waiting for its
  /// answer.
  void next(Callback done);
  /// Returns a part, so that its memory can be reused. Any other slab is ignored.
  void release(const Slab* slab);
  /// Stops the work at once; a waiting next() fails with kCancelled. May be called again.
  void close();

  DownloadTotals totals() const;
  uint32_t linkTypeWord() const { return header_.linkTypeWord; }
  uint32_t snaplen() const { return header_.snaplen; }
  /// Approximate memory held until it is destroyed, apart from slabs.
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
  void countDuplicates(PacketBatch& batch);
  void skipFront(PacketBatch& batch);
  void takeExcluded();
  void append(PacketBatch batch);
  void finish();
  void closeGroup();
  bool shouldFlush() const;
  void answerPending();
  std::optional<Answer> findAnswer();
  SlabPtr handOut(BodyPart part);
  void count(const BodyPart& part);
  void giveBack(SlabPtr slab);
  bool isClosed() const;

  const PcapFileHeader header_;
  const OutputForm form_;
  const Compression compression_;
  uint64_t heldBytes_ = 0;
  WorkerPool::Queue queue_;
  const std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<OrderedScan> scan_;
  std::shared_ptr<CompressionStage> stage_;  ///< null without compression
  /// These six belong to the thread that pumps.
  std::vector<PacketBatch> group_;  ///< being collected
  std::optional<DuplicateStage> duplicates_;
  OutputLimit limit_;
  std::optional<PcapngFraming> framing_;  ///< empty: PCAP
  uint64_t bytesToSkip_;                  ///< left to skip in the next records, before compression
  bool isCut_ = false;                    ///< cut by the limit; nothing more is taken from the scan

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
