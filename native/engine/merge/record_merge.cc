#include "merge/record_merge.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "merge/record_copy.h"
#include "os/byte_order.h"
#include "packet/pcap_format.h"

namespace capfleet {

namespace {

constexpr uint32_t kNanosPerMicro = 1000;

int64_t keyOf(const RecordInput& input) {
  return input.hasRecord() ? input.key() : MergeTree::kEnded;
}

std::vector<int64_t> keysOf(const std::vector<RecordInput*>& inputs) {
  std::vector<int64_t> keys(inputs.size());
  std::ranges::transform(inputs, keys.begin(), [](const RecordInput* in) { return keyOf(*in); });
  return keys;
}

/// `add` must not be negative. The result is always below kEnded.
int64_t saturatingSum(int64_t key, int64_t add) {
  constexpr int64_t kLast = MergeTree::kEnded - 1;
  return key > kLast - add ? kLast : key + add;
}

/// Converts the fractions of complete records from nanoseconds to microseconds.
void truncateTimes(std::span<uint8_t> records) {
  while (!records.empty()) {
    uint8_t* const fraction = records.data() + 4;
    storeLe32(fraction, loadLe32(fraction) / kNanosPerMicro);
    records = records.subspan(kRecordHeaderBytes + loadLe32(records.data() + 8));
  }
}

}  // namespace

RecordMerge::RecordMerge(std::vector<RecordInput*> inputs, const RecordMergeOptions& options)
    : inputs_(std::move(inputs)),
      tree_(keysOf(inputs_)),
      isGated_(options.maxPackets || options.maxBytes || options.dedup || options.sliceBytes),
      toMicroseconds_(options.toMicroseconds),
      sliceBytes_(options.sliceBytes.value_or(std::numeric_limits<uint32_t>::max())),
      packetsLeft_(options.maxPackets.value_or(std::numeric_limits<uint64_t>::max())),
      bytesLeft_(options.maxBytes.value_or(std::numeric_limits<uint64_t>::max())),
      dropped_(inputs_.size()) {
  assert(std::ranges::all_of(inputs_, [](const RecordInput* in) { return in->unitNs() == 1; }));
  if (options.maxSpanNs && !tree_.hasEnded()) {
    stop_ = saturatingSum(tree_.winnerKey(), *options.maxSpanNs);
  }
  if (options.dedup) {
    duplicates_ = std::make_unique<DuplicateWindow>(*options.dedup, options.linkTypeWord);
  }
}

/// Why the winner's record cannot be output, if so.
[[gnu::always_inline]] inline std::optional<RecordMerge::State> RecordMerge::stateBefore(
    size_t room) const {
  if (tree_.winnerKey() >= stop_) return State::kEnd;
  const RecordInput& input = winner();
  if (!input.hasRecord()) return State::kDry;
  if (input.record().size() > room) return State::kReady;
  return std::nullopt;
}

/// Called after the winner's records were consumed. A dry input stays the winner until refilled().
[[gnu::always_inline]] inline void RecordMerge::rekey() {
  const RecordInput& input = winner();
  if (input.hasRecord()) tree_.replaceWinner(input.key());
}

RecordMerge::State RecordMerge::advance(std::span<uint8_t> output, size_t& written) {
  const size_t before = written;
  const State state = isGated_ ? advanceOneByOne(output, written) : advanceInRuns(output, written);
  if (toMicroseconds_) truncateTimes(output.subspan(before, written - before));
  return state;
}

void RecordMerge::refilled() { tree_.replaceWinner(keyOf(winner())); }

RecordMerge::State RecordMerge::advanceInRuns(std::span<uint8_t> output, size_t& written) {
  WinStreak streak;
  for (;;) {
    const auto state = stateBefore(output.size() - written);
    if (state) return *state;
    RecordInput& from = winner();
    if (streak.isLongWith(tree_.winner())) {
      const auto run = takeRun(output.size() - written);
      std::memcpy(output.data() + written, run.data(), run.size());
      written += run.size();
    } else {
      const auto run = from.record();
      copyRecord(output.data() + written, run.data(), run.size());
      written += run.size();
      from.take();
    }
    rekey();
  }
}

RecordMerge::State RecordMerge::advanceOneByOne(std::span<uint8_t> output, size_t& written) {
  for (;;) {
    const auto state = stateBefore(output.size() - written);
    if (state) return *state;
    RecordInput& from = winner();
    const auto record = from.record();
    const size_t bytes = writtenBytes(record);
    switch (judge(record.first(bytes))) {
      case Verdict::kStop:
        nextNs_ = from.time();
        return State::kEnd;
      case Verdict::kDuplicate: {
        Dropped& dropped = dropped_[tree_.winner()];
        dropped.packets++;
        dropped.bytes += record.size();
        break;
      }
      case Verdict::kPass:
        std::memcpy(output.data() + written, record.data(), bytes);
        storeLe32(output.data() + written + 8, static_cast<uint32_t>(bytes - kRecordHeaderBytes));
        written += bytes;
        dropped_[tree_.winner()].bytes += record.size() - bytes;
    }
    from.take();
    rekey();
  }
}

/// The winner's record and those right after it that precede the next of any other input.
std::span<const uint8_t> RecordMerge::takeRun(size_t room) {
  RecordInput& from = winner();
  const int64_t bound = std::min(tree_.winnerStaysBelow(), stop_);
  const uint8_t* const begin = from.record().data();
  size_t bytes = 0;
  do {
    bytes += from.record().size();
    from.take();
  } while (from.hasRecord() && from.record().data() == begin + bytes && from.key() < bound &&
           bytes + from.record().size() <= room);
  return {begin, bytes};
}

size_t RecordMerge::writtenBytes(std::span<const uint8_t> record) const {
  return kRecordHeaderBytes + std::min<size_t>(record.size() - kRecordHeaderBytes, sliceBytes_);
}

/// For a record as it would be written: if one of two devices slices, they have the same packets.
RecordMerge::Verdict RecordMerge::judge(std::span<const uint8_t> record) {
  const DuplicateWindow::Packet packet{record.subspan(kRecordHeaderBytes), tree_.winnerKey()};
  if (duplicates_ && duplicates_->hasSeen(packet)) return Verdict::kDuplicate;
  if (packetsLeft_ == 0 || record.size() > bytesLeft_) return Verdict::kStop;
  packetsLeft_--;
  bytesLeft_ -= record.size();
  if (duplicates_) duplicates_->add(packet);
  return Verdict::kPass;
}

}  // namespace capfleet
