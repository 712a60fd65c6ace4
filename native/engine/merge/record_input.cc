#include "merge/record_input.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "merge/record_hash.h"

namespace capfleet {

namespace {

constexpr uint64_t kTailPackets = 64;
constexpr size_t kCapturedLengthAt = 8;

/// Size of the little-endian record that begins there; its header must be complete.
size_t claimedBytes(const uint8_t* record) {
  return size_t{kRecordHeaderBytes} + loadLe32(record + kCapturedLengthAt);
}

int64_t timeOf(const uint8_t* record, int64_t unitsPerSecond) {
  return loadLe32(record) * unitsPerSecond + loadLe32(record + 4);
}

/// Swaps the byte order of a record's header.
void swapHeader(uint8_t* record) {
  for (size_t at = 0; at < kRecordHeaderBytes; at += 4)
    storeLe32(record + at, loadBe32(record + at));
}

}  // namespace

RecordInput::RecordInput(const RecordInputOptions& options)
    : unitsPerSecond_(options.nanoseconds || options.widens ? 1'000'000'000 : 1'000'000),
      mostCaptured_(kMaxCapturedLength + (options.isTagged ? kInterfaceTagBytes : 0)),
      shownUnitNs_(options.nanoseconds ? 1 : 1000),
      unitNs_(options.nanoseconds || options.widens ? 1 : 1000),
      alignNs_(options.alignNs),
      bigEndian_(options.bigEndian),
      rewritesTimes_(alignNs_ != 0 || shownUnitNs_ != unitNs_),
      marksTail_(options.marksTail || options.marksAll),
      marksAll_(options.marksAll) {}

void RecordInput::show(std::span<uint8_t> bytes) {
  assert(!hasRecord() && !impossibleLength_);
  if (partial_.empty()) {
    enterSegment(bytes);
    return;
  }
  after_ = completePartial(bytes);
  if (impossibleLength_ || partial_.size() < kRecordHeaderBytes ||
      partial_.size() < kRecordHeaderBytes + size_t{shownLength(partial_.data())}) {
    return;
  }
  joined_.swap(partial_);
  partial_.clear();
  enterSegment(joined_);
}

/// Appends the missing bytes to the partial record; returns the bytes after that.
std::span<uint8_t> RecordInput::completePartial(std::span<uint8_t> bytes) {
  bytes = extendPartial(kRecordHeaderBytes, bytes);
  if (partial_.size() < kRecordHeaderBytes) return bytes;
  const uint32_t captured = shownLength(partial_.data());
  if (captured > mostCaptured_) {
    impossibleLength_ = captured;
    return {};
  }
  return extendPartial(kRecordHeaderBytes + captured, bytes);
}

std::span<uint8_t> RecordInput::extendPartial(size_t wanted, std::span<uint8_t> bytes) {
  if (partial_.size() >= wanted) return bytes;
  const auto part = bytes.first(std::min(wanted - partial_.size(), bytes.size()));
  partial_.insert(partial_.end(), part.begin(), part.end());
  return bytes.subspan(part.size());
}

void RecordInput::enterSegment(std::span<uint8_t> segment) {
  const bool isRewritten = bigEndian_ || rewritesTimes_;
  const size_t recordBytes = isRewritten ? rewriteRecords(segment) : segment.size();
  segmentBegin_ = next_ = segment.data();
  end_ = next_ + recordBytes;
  segmentEnd_ = next_ + segment.size();
  look();
}

/// From a complete record to the next, or to the end after the last one.
size_t RecordInput::strideAt(const uint8_t* record, const uint8_t* end) const {
  size_t bytes = claimedBytes(record);
  if (isTagged()) bytes += betweenTaggedRecords(static_cast<uint32_t>(bytes));
  return std::min(bytes, static_cast<size_t>(end - record));
}

/// The mark extended by the records from `from` to `to`, all of them complete.
RecordMark RecordInput::extended(RecordMark mark, const uint8_t* from, const uint8_t* to) const {
  for (; from < to; mark.packets++) {
    const size_t bytes = claimedBytes(from);
    assert(bytes <= static_cast<size_t>(to - from));
    mark.hash = hashRecord({from, bytes}, mark.hash);
    mark.bytes += bytes;
    from += strideAt(from, to);
  }
  return mark;
}

/// At the end of a segment's complete records.
void RecordInput::leaveSegment() {
  commit();
  recordBytes_ = 0;
  if (next_ != segmentEnd_) {
    partial_.assign(next_, segmentEnd_);
    end_ = segmentEnd_ = next_;
    completePartial({});
  } else if (!after_.empty()) {
    enterSegment(std::exchange(after_, {}));
  }
}

void RecordInput::forget() {
  commit();
  segmentBegin_ = next_ = end_ = segmentEnd_ = nullptr;
  recordBytes_ = 0;
  partial_.clear();
  after_ = {};
  impossibleLength_.reset();
}

uint64_t RecordInput::skip(uint64_t count, uint64_t* hash) {
  uint64_t taken = 0;
  for (; taken < count && hasRecord(); taken++) {
    if (hash != nullptr) *hash = hashRecord(record(), *hash);
    take();
  }
  return taken;
}

std::vector<uint8_t> RecordInput::untaken() const {
  std::vector<uint8_t> bytes(partial_);
  bytes.insert(bytes.end(), next_, segmentEnd_);
  if (bigEndian_) {
    // Partial bytes were not swapped, and there are none if there are records.
    for (const uint8_t* record = next_; record < end_; record += claimedBytes(record)) {
      swapHeader(bytes.data() + (record - next_));
    }
  }
  bytes.insert(bytes.end(), after_.begin(), after_.end());
  return bytes;
}

RecordFigures RecordInput::figures() {
  commit();
  return {.packets = packets_,
          .bytes = bytes_,
          .outOfOrder = outOfOrder_,
          .firstTime = firstTime_,
          .lastTime = lastTime_,
          .ties = ties_,
          .tail = tail_};
}

/// The captured length of a record as it was passed; its header must be complete.
uint32_t RecordInput::shownLength(const uint8_t* record) const {
  const uint8_t* const length = record + kCapturedLengthAt;
  return bigEndian_ ? loadBe32(length) : loadLe32(length);
}

/// Rewrites the complete records at the beginning of a segment, and returns how many bytes they
/// have. What follows stays unchanged, because its rest has not arrived.
size_t RecordInput::rewriteRecords(std::span<uint8_t> segment) const {
  size_t at = 0;
  while (segment.size() - at >= kRecordHeaderBytes) {
    uint8_t* const record = segment.data() + at;
    const uint32_t captured = shownLength(record);
    const size_t bytes = size_t{kRecordHeaderBytes} + captured;
    if (captured > mostCaptured_ || bytes > segment.size() - at) break;
    if (bigEndian_) swapHeader(record);
    if (rewritesTimes_) rewriteTime(record);
    at += strideAt(record, segment.data() + segment.size());
  }
  return at;
}

/// A time that PCAP cannot represent becomes the first or last instant that it can.
void RecordInput::rewriteTime(uint8_t* record) const {
  const int64_t ns =
      int64_t{loadLe32(record)} * kNanosPerSecond + int64_t{loadLe32(record + 4)} * shownUnitNs_;
  const int64_t alignedNs = std::clamp<int64_t>(ns - alignNs_, 0, kTimestampEndNs - 1);
  storeLe32(record, static_cast<uint32_t>(alignedNs / kNanosPerSecond));
  storeLe32(record + 4, static_cast<uint32_t>(alignedNs % kNanosPerSecond / unitNs_));
}

/// Adds the consumed bytes of the segment to the figures while they are available: their hashes
/// cost little in one piece.
void RecordInput::commit() {
  if (next_ == segmentBegin_) return;
  if (bytes_ == 0) firstTime_ = timeOf(segmentBegin_, unitsPerSecond_);
  bytes_ += static_cast<uint64_t>(next_ - segmentBegin_) - std::exchange(gapBytes_, 0);
  ties_ =
      tiesFrom_ != nullptr ? extended({}, tiesFrom_, next_) : extended(ties_, segmentBegin_, next_);
  if (marksTail_ || outOfOrder_ > 0) commitTail();
  segmentBegin_ = next_;
  tiesFrom_ = nullptr;
}

void RecordInput::commitTail() {
  if (marksAll_) {
    tail_ = extended(tail_, segmentBegin_, next_);
    return;
  }
  uint64_t packets = 0;
  for (const uint8_t* at = segmentBegin_; at < next_; at += strideAt(at, next_)) packets++;
  if (packets >= kTailPackets || tail_.packets >= kTailPackets) tail_ = {};
  const uint8_t* from = segmentBegin_;
  for (; packets > kTailPackets; packets--) from += strideAt(from, next_);
  tail_ = extended(tail_, from, next_);
}

}  // namespace capfleet
