#include "download/download.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace capfleet {
namespace {

/// A batch with less room than this is not kept open for more packets.
constexpr size_t kNearlyFullBytes = kSlabBytes / 4;
/// A waiting consumer gets what there is after this time, so that rare hits are seen early.
constexpr auto kPatience = std::chrono::milliseconds(100);

/// How many of the packets in the slab end within its first `bytes` bytes.
uint64_t packetsWithin(const Slab& slab, uint64_t bytes, OutputForm form) {
  uint64_t packets = 0;
  size_t at = 0;
  while (at < slab.size) {
    const uint8_t* const p = slab.bytes.get() + at;
    at += form.isPcapng ? blockBytes(p) : size_t{kRecordHeaderBytes} + loadLe32(p + 8);
    if (at > bytes) break;
    if (!form.isPcapng || blockType(p) == kEnhancedPacketBlock) packets++;
  }
  return packets;
}

uint64_t headerBytes(const DownloadOptions& options) {
  return options.pcapng ? options.pcapng->head.size() : kPcapFileHeaderBytes;
}

/// At most as many bytes of the file are not packets.
uint64_t otherBytes(const DownloadOptions& options) {
  return options.pcapng ? options.pcapng->otherBytes : kPcapFileHeaderBytes;
}

/// Removes up to `bytes` bytes from the front of the slab. Returns how many.
size_t dropFront(Slab& slab, uint64_t bytes) {
  const size_t dropped = std::min<uint64_t>(bytes, slab.size);
  if (dropped == 0) return 0;
  slab.size -= dropped;
  std::memmove(slab.bytes.get(), slab.bytes.get() + dropped, slab.size);
  return dropped;
}

/// By number of the interface.
std::vector<uint32_t> linkTypeWordsOf(PcapFileHeader header, const DownloadOptions& options) {
  if (!options.pcapng) return {header.linkTypeWord};
  std::vector<uint32_t> words;
  for (const PcapngInterface& one : options.pcapng->interfaces) words.push_back(one.linkType);
  return words;
}

}  // namespace

Download::Download(PcapFileHeader header, const DownloadOptions& options, WorkerPool::Queue queue,
                   std::shared_ptr<BufferPool> pool, uint64_t corruptBlocks)
    : header_(header),
      form_{options.pcapng.has_value(), options.toMicroseconds},
      compression_(options.compression),
      queue_(std::move(queue)),
      pool_(std::move(pool)),
      limit_(options.limits, form_, otherBytes(options)),
      bytesToSkip_(options.afterBytes - std::min(options.afterBytes, headerBytes(options))) {
  totals_.corruptBlocks = corruptBlocks;
  if (options.dedup) duplicates_.emplace(*options.dedup, linkTypeWordsOf(header, options), form_);
  if (options.pcapng) framing_.emplace(*options.pcapng);
  totals_.isPcapng = form_.isPcapng;
}

Download::~Download() {
  close();
  for (SlabPtr& slab : handedOut_) pool_->abandon(std::move(slab));
}

/// Counts what is skipped as if it had been returned.
void Download::skip(const SkippedSlices& skipped) {
  limit_.skip(skipped.packets, skipped.bytes);
  bytesToSkip_ -= skipped.bytes;
  totals_.packets = skipped.packets;
  totals_.skippedPackets = skipped.packets;
  totals_.bytes = skipped.bytes;
  totals_.corruptBlocks += skipped.corruptBlocks;
  totals_.firstNs = skipped.firstNs;
  totals_.lastNs = skipped.lastNs;
}

void Download::start(std::unique_ptr<ScanContext> context, PlannedSlices planned,
                     OrderedScanOptions options) {
  // Weak: the stages call this object, which owns them.
  const auto onChange = [self = weak_from_this()] {
    if (const auto download = self.lock()) download->pump();
  };
  scan_ = std::make_shared<OrderedScan>(std::move(context), std::move(planned), options, queue_,
                                        pool_, onChange);
  if (compression_.codec != Codec::kNone) {
    const auto giveRaw = [scan = scan_](SlabPtr slab) { scan->give(std::move(slab)); };
    stage_ = std::make_shared<CompressionStage>(
        compression_, usualGroups(compression_, queue_.tasksAtOnce()), queue_, pool_,
        CompressionStage::Callbacks{giveRaw, onChange});
  }
  scan_->start();
}

/// The header is a separate part, and a separate member or frame, so that it is sent at once.
Status Download::pushFileHeader(const DownloadOptions& options) {
  BodyPart part;
  part.slab = pool_->take();
  if (options.pcapng) {
    const std::vector<uint8_t>& head = options.pcapng->head;
    std::memcpy(part.slab->bytes.get(), head.data(), head.size());
    part.slab->size = head.size();
  } else {
    storePcapFileHeader(part.slab->bytes.get(), header_, !options.toMicroseconds);
    part.slab->size = kPcapFileHeaderBytes;
  }
  dropFront(*part.slab, options.afterBytes);
  if (stage_) {
    const SlabPtr raw = part.slab;
    part.slab = pool_->take();
    const std::atomic<bool> isCancelled = false;
    const Status status =
        makeCompressor(compression_)->compress({&raw, 1}, {&part.slab, 1}, isCancelled);
    pool_->give(raw);
    if (!status) {
      pool_->give(part.slab);
      return status;
    }
  }
  const std::lock_guard lock(mutex_);
  headerSlab_ = part.slab.get();
  ready_.push_front(std::move(part));
  return ok();
}

void Download::next(Callback done) {
  std::optional<Answer> answer;
  {
    const std::lock_guard lock(mutex_);
    assert(!pending_);
    answer = findAnswer();
    if (!answer) {
      pending_ = std::move(done);
      waitingSince_ = Clock::now();
    }
  }
  if (answer) {
    done(std::move(*answer));
  } else {
    queue_.post([self = shared_from_this()] { self->pump(); });
  }
}

/// Moves packets on as far as possible. Any thread may call this; only one at a time does the work.
void Download::pump() {
  {
    const std::lock_guard lock(mutex_);
    mustPumpAgain_ = true;
    if (isPumping_) return;
    isPumping_ = true;
  }
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (!mustPumpAgain_) {
        isPumping_ = false;
        break;
      }
      mustPumpAgain_ = false;
    }
    collect();
  }
  answerPending();
}

/// Collects the scan's finished packets into groups, and passes groups on.
void Download::collect() {
  if (isClosed()) {
    dropCollected();
    return;
  }
  takeBatches();
  const bool isFinished = isCut_ || scan_->isFinished();
  if (isFinished || shouldFlush()) closeGroup();
  if (isFinished) finish();
}

void Download::finish() {
  const std::lock_guard lock(mutex_);
  isCollected_ = true;
  totals_.isTruncated = isCut_;
  totals_.nextNs = limit_.nextNs();
  totals_.leftToSkip = bytesToSkip_;
  if (!framing_) return;
  totals_.interfacePackets = framing_->packets();
  totals_.describedInterfaces = framing_->described();
  totals_.remarkedPackets = framing_->remarked();
}

/// For a close() while another thread is collecting: that thread calls this.
void Download::dropCollected() {
  for (PacketBatch& batch : group_) scan_->give(std::move(batch.slab));
  group_.clear();
  std::deque<BodyPart> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(ready_);
  }
  for (BodyPart& part : ready) giveBack(std::move(part.slab));
}

void Download::takeBatches() {
  while (!isCut_) {
    std::optional<PacketBatch> batch = scan_->take();
    if (!batch) return takeExcluded();
    if (duplicates_) duplicates_->drop(*batch);
    isCut_ = limit_.cut(*batch);
    if (duplicates_) countDuplicates(*batch);
    if (framing_) framing_->frame(*batch);
    skipFront(*batch);
    if (batch->slab->size > 0) {
      append(std::move(*batch));
    } else {
      scan_->give(std::move(batch->slab));
    }
  }
  scan_->cancel();
}

/// What is left out after all packets so far counts with the last of them if that is being
/// collected; else at once, because nothing else would report a scan that finds nothing.
void Download::takeExcluded() {
  const uint64_t excluded = scan_->takeExcluded();
  if (!group_.empty()) {
    group_.back().excluded += excluded;
    return;
  }
  const std::lock_guard lock(mutex_);
  totals_.excludedPackets += excluded;
}

/// Called when the limit has cut the batch. One of copies only is not returned, so what was left
/// out before them counts here.
void Download::countDuplicates(PacketBatch& batch) {
  const uint64_t dropped = duplicates_->droppedBefore(batch.packets);
  const bool isEmpty = batch.packets == 0 && !isCut_;
  const uint64_t excluded = isEmpty ? std::exchange(batch.excluded, 0) : 0;
  const std::lock_guard lock(mutex_);
  totals_.duplicates += dropped;
  totals_.excludedPackets += excluded;
}

/// Drops the unwanted part of the batch. In the totals it counts as returned.
void Download::skipFront(PacketBatch& batch) {
  if (bytesToSkip_ == 0) return;
  const uint64_t skippedPackets = packetsWithin(*batch.slab, bytesToSkip_, form_);
  const size_t bytes = dropFront(*batch.slab, bytesToSkip_);
  bytesToSkip_ -= bytes;
  // Packets count with the part that has their last byte.
  const bool isSkipped = batch.slab->size == 0;
  const std::lock_guard lock(mutex_);
  totals_.skippedPackets += skippedPackets;
  count({nullptr, isSkipped ? batch.packets : 0, bytes, batch.firstNs, batch.lastNs,
         isSkipped ? batch.excluded : 0});
}

/// Adds a batch to the open group. Small ones are copied together, large ones kept unchanged.
void Download::append(PacketBatch batch) {
  const size_t bytes = batch.slab->size;
  if (!group_.empty() && group_.back().room() >= bytes) {
    PacketBatch& last = group_.back();
    std::memcpy(last.slab->bytes.get() + last.slab->size, batch.slab->bytes.get(), bytes);
    last.slab->size += bytes;
    last.count(batch.packets, batch.firstNs, batch.lastNs);
    last.excluded += batch.excluded;
    scan_->give(std::move(batch.slab));
  } else {
    if (group_.size() == slabsPerGroup(compression_)) closeGroup();
    group_.push_back(std::move(batch));
  }
  const bool isWhole = group_.size() == slabsPerGroup(compression_);
  if (isWhole && group_.back().room() < kNearlyFullBytes) closeGroup();
}

void Download::closeGroup() {
  if (group_.empty()) return;
  std::vector<PacketBatch> group = std::move(group_);
  group_.clear();
  if (stage_) {
    stage_->submit(std::move(group));
    return;
  }
  const std::lock_guard lock(mutex_);
  for (PacketBatch& batch : group) ready_.push_back(BodyPart::of(std::move(batch)));
}

/// Whether the open group must be sent although it is not full: the consumer has waited long
/// enough, or the scan cannot continue before the consumer gets and releases it.
bool Download::shouldFlush() const {
  if (stage_ && !stage_->isIdle()) return false;
  const bool isStalled = scan_->isStalled();
  const std::lock_guard lock(mutex_);
  if (!ready_.empty()) return false;
  return isStalled || (pending_ && Clock::now() - waitingSince_ >= kPatience);
}

void Download::answerPending() {
  Callback done;
  std::optional<Answer> answer;
  {
    const std::lock_guard lock(mutex_);
    if (!pending_) return;
    answer = findAnswer();
    if (!answer) return;
    done = std::move(pending_);
    pending_ = nullptr;
  }
  done(std::move(*answer));
}

/// The current answer for next(), if any. Called with the lock held.
std::optional<Download::Answer> Download::findAnswer() {
  if (isClosed_) return Error{Code::kCancelled, "the download was closed"};
  if (!ready_.empty()) {
    BodyPart part = std::move(ready_.front());
    ready_.pop_front();
    return handOut(std::move(part));
  }
  if (stage_) {
    if (std::optional<BodyPart> part = stage_->take()) return handOut(std::move(*part));
    if (std::optional<Error> error = stage_->error()) return std::move(*error);
    if (!stage_->isIdle()) return std::nullopt;
  }
  if (!isCollected_) return std::nullopt;
  if (std::optional<Error> error = scan_->error()) return std::move(*error);
  return SlabPtr{};
}

/// Called with the lock held.
SlabPtr Download::handOut(BodyPart part) {
  totals_.outputBytes += part.slab->size;
  count(part);
  handedOut_.push_back(part.slab);
  return part.slab;
}

/// Called with the lock held.
void Download::count(const BodyPart& part) {
  totals_.bytes += part.bytes;
  totals_.excludedPackets += part.excluded;
  if (part.packets == 0) return;
  totals_.packets += part.packets;
  if (!totals_.firstNs) totals_.firstNs = part.firstNs;
  totals_.lastNs = part.lastNs;
}

void Download::release(const Slab* slab) {
  SlabPtr released;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(handedOut_.begin(), handedOut_.end(),
                     [slab](const SlabPtr& candidate) { return candidate.get() == slab; });
    if (found == handedOut_.end()) return;
    released = std::move(*found);
    handedOut_.erase(found);
  }
  giveBack(std::move(released));
}

void Download::giveBack(SlabPtr slab) {
  bool isHeader = false;
  {
    const std::lock_guard lock(mutex_);
    isHeader = slab.get() == headerSlab_;
    if (isHeader) headerSlab_ = nullptr;
  }
  if (isHeader) {
    pool_->give(std::move(slab));
  } else if (stage_) {
    stage_->give(std::move(slab));
  } else {
    scan_->give(std::move(slab));
  }
}

void Download::close() {
  Callback done;
  {
    const std::lock_guard lock(mutex_);
    if (isClosed_) return;
    isClosed_ = true;
    done = std::move(pending_);
    pending_ = nullptr;
  }
  scan_->cancel();
  if (stage_) stage_->cancel();
  pump();  // gives back what was collected
  if (done) done(Error{Code::kCancelled, "the download was closed"});
}

bool Download::isClosed() const {
  const std::lock_guard lock(mutex_);
  return isClosed_;
}

DownloadTotals Download::totals() const {
  const ScanCounts counts = scan_->counts();
  const std::lock_guard lock(mutex_);
  DownloadTotals totals = totals_;
  totals.readPackets = counts.packets;
  totals.readBytes = counts.bytes;
  totals.passedBlocks = counts.passedBlocks;
  totals.ruledOutSegments = counts.ruledOutSegments;
  totals.corruptBlocks += counts.corruptBlocks;
  totals.vendorTimeFallbacks = counts.vendorTimeFallbacks;
  totals.latePackets = counts.latePackets;
  return totals;
}

}  // namespace capfleet
