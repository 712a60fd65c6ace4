#include "merge/record_input.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "merge/record_hash.h"

namespace capfleet {

namespace {

constexpr uint64_t kTailPackets = 64;
constexpr size_t kCapturedLengthAt = 8;

/// Of the record that begins there, of which the header is whole.
size_t claimedBytes(const uint8_t* record) {
  return size_t{kRecordHeaderBytes} + loadLe32(record + kCapturedLengthAt);
}

int64_t timeOf(const uint8_t* record, int64_t unitsPerSecond) {
  return loadLe32(record) * unitsPerSecond + loadLe32(record + 4);
}

/// The mark of those before with the records from `from` to `to`, all of them whole.
RecordMark extended(RecordMark mark, const uint8_t* from, const uint8_t* to) {
  for (; from < to; mark.packets++) {
    const size_t bytes = claimedBytes(from);
    assert(bytes <= static_cast<size_t>(to - from));
    mark.hash = hashRecord({from, bytes}, mark.hash);
    mark.bytes += bytes;
    from += bytes;
  }
  return mark;
}

uint64_t countRecords(const uint8_t* from, const uint8_t* to) {
  uint64_t count = 0;
  for (; from < to; from += claimedBytes(from)) count++;
  return count;
}

}  // namespace

RecordInput::RecordInput(const RecordInputOptions& options)
    : unitsPerSecond_(options.nanoseconds || options.widens ? 1'000'000'000 : 1'000'000),
      shownUnitNs_(options.nanoseconds ? 1 : 1000),
      unitNs_(options.nanoseconds || options.widens ? 1 : 1000),
      alignNs_(options.alignNs),
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
      partial_.size() < claimedBytes(partial_.data())) {
    return;
  }
  joined_.swap(partial_);
  partial_.clear();
  enterSegment(joined_);
}

/// Appends to the partial record what it lacks; returns the bytes behind that.
std::span<uint8_t> RecordInput::completePartial(std::span<uint8_t> bytes) {
  bytes = extendPartial(kRecordHeaderBytes, bytes);
  if (partial_.size() < kRecordHeaderBytes) return bytes;
  const uint32_t captured = loadLe32(partial_.data() + kCapturedLengthAt);
  if (captured > kMaxCapturedLength) {
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
  if (alignNs_ != 0 || shownUnitNs_ != unitNs_) rewriteTimes(segment);
  segmentBegin_ = next_ = segment.data();
  end_ = next_ + segment.size();
  look();
}

/// At the end of a segment's whole records.
void RecordInput::leaveSegment() {
  commit();
  recordBytes_ = 0;
  if (next_ != end_) {
    partial_.assign(next_, end_);
    end_ = next_;
    completePartial({});
  } else if (!after_.empty()) {
    enterSegment(std::exchange(after_, {}));
  }
}

void RecordInput::forget() {
  commit();
  segmentBegin_ = next_ = end_ = nullptr;
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
  bytes.insert(bytes.end(), next_, end_);
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

/// What PCAP cannot carry becomes the first or last instant that it can.
void RecordInput::rewriteTimes(std::span<uint8_t> segment) const {
  while (segment.size() >= kRecordHeaderBytes) {
    const size_t bytes = claimedBytes(segment.data());
    if (bytes > segment.size()) return;
    const int64_t ns = int64_t{loadLe32(segment.data())} * kNanosPerSecond +
                       int64_t{loadLe32(segment.data() + 4)} * shownUnitNs_;
    const int64_t alignedNs = std::clamp<int64_t>(ns - alignNs_, 0, kTimestampEndNs - 1);
    storeLe32(segment.data(), static_cast<uint32_t>(alignedNs / kNanosPerSecond));
    storeLe32(segment.data() + 4, static_cast<uint32_t>(alignedNs % kNanosPerSecond / unitNs_));
    segment = segment.subspan(bytes);
  }
}

/// Takes the taken bytes of the segment into the figures, while they are there: their hashes cost
/// little in one piece.
void RecordInput::commit() {
  if (next_ == segmentBegin_) return;
  if (bytes_ == 0) firstTime_ = timeOf(segmentBegin_, unitsPerSecond_);
  bytes_ += static_cast<uint64_t>(next_ - segmentBegin_);
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
  uint64_t packets = countRecords(segmentBegin_, next_);
  if (packets >= kTailPackets || tail_.packets >= kTailPackets) tail_ = {};
  const uint8_t* from = segmentBegin_;
  for (; packets > kTailPackets; packets--) from += claimedBytes(from);
  tail_ = extended(tail_, from, next_);
}

}  // namespace capfleet
