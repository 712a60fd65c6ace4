#include "store/packet_count.h"

#include <algorithm>

#include "store/segment_index.h"

namespace capfleet {
namespace {

/// Bytes read per step: more would delay other users of the thread.
constexpr uint64_t kStepBytes = uint64_t{4} << 20;
/// A byte of a tally takes as long as this many bytes of a block.
constexpr uint64_t kTallyWeight = 16;

}  // namespace

PacketCount::PacketCount(std::vector<StreamSegments> streams, std::vector<int64_t> boundariesNs)
    : streams_(std::move(streams)),
      boundariesNs_(std::move(boundariesNs)),
      counts_(boundariesNs_.empty() ? 0 : boundariesNs_.size() - 1) {}

Result<bool> PacketCount::step() {
  if (counts_.empty()) return true;
  uint64_t readBytes = 0;
  while (nextBlock_ < blocks_.size()) {
    Result<uint64_t> got = countBlock(blocks_[nextBlock_++]);
    if (!got) return got.error();
    readBytes += *got;
    if (readBytes >= kStepBytes) return false;
  }
  while (nextStream_ < streams_.size() && nextSegment_ == streams_[nextStream_].segments.size()) {
    nextStream_++;
    nextSegment_ = 0;
  }
  if (nextStream_ == streams_.size()) return true;
  if (Status status = openSegment(); !status) return status.error();
  return false;
}

Status PacketCount::openSegment() {
  const StreamSegments& stream = streams_[nextStream_];
  const SegmentEntry& segment = stream.segments[nextSegment_];
  segment_ = stream.pathOf(segment);
  auto index = readIndexOf(stream, segment);
  if (!index) return index.error();
  nextSegment_++;
  blocks_ = *index ? std::move((*index)->blocks) : std::vector<BlockEntry>{};
  nextBlock_ = 0;
  tallies_.emplace(segment_);
  file_.reset();
  return ok();
}

/// How many boundaries are at or before the instant: in interval i it is i + 1.
size_t PacketCount::positionOf(int64_t timestampNs) const {
  const auto after = std::upper_bound(boundariesNs_.begin(), boundariesNs_.end(), timestampNs);
  return static_cast<size_t>(after - boundariesNs_.begin());
}

void PacketCount::add(size_t position, IntervalCount count) {
  if (position == 0 || position > counts_.size()) return;
  counts_[position - 1].packets += count.packets;
  counts_[position - 1].bytes += count.bytes;
}

/// Returns the bytes that had to be read, with those of tallies weighted.
Result<uint64_t> PacketCount::countBlock(const BlockEntry& entry) {
  if (entry.isDamaged()) return uint64_t{0};
  const size_t position = positionOf(entry.minNs);
  if (position == positionOf(entry.maxNs)) {
    add(position, {entry.packets, entry.bytes});
    return uint64_t{0};
  }
  if (countTally(entry, position)) return uint64_t{entry.tallyBytes} * kTallyWeight;
  return countPackets(entry, position == 0 ? 0 : position - 1);
}

/// False, and nothing counted, if the tally is not sufficient. `position` is that of the first
/// packet.
bool PacketCount::countTally(const BlockEntry& entry, size_t position) {
  const auto rows = tallies_->read(entry);
  if (!rows) return false;
  std::vector<size_t> positions;
  positions.reserve(rows->size());
  for (const TallyRow& row : *rows) {
    const int64_t beginNs = row.millisecond * kNanosPerMillisecond;
    const int64_t lastNs = std::min(beginNs + kNanosPerMillisecond - 1, entry.maxNs);
    while (position < boundariesNs_.size() && boundariesNs_[position] <= beginNs) position++;
    if (position < boundariesNs_.size() && boundariesNs_[position] <= lastNs) return false;
    positions.push_back(position);
  }
  for (size_t i = 0; i < positions.size(); i++) {
    add(positions[i], {(*rows)[i].packets, (*rows)[i].bytes});
  }
  return true;
}

/// Reads a block whose packets are in several intervals; none is before `interval`.
Result<uint64_t> PacketCount::countPackets(const BlockEntry& entry, size_t interval) {
  if (!file_) {
    Result<SegmentFile> file = SegmentFile::open(segment_);
    if (!file) return file.error();
    file_ = std::move(*file);
  }
  auto loaded = reader_.load(*file_, entry);
  if (!loaded) return loaded.error();
  if (!*loaded) return uint64_t{entry.bytes};
  const std::vector<int64_t>& timestampsNs = (*loaded)->timestampsNs;
  const std::vector<uint32_t>& offsets = (*loaded)->offsets;
  const auto recordAt = [&](size_t boundary) {
    return static_cast<size_t>(
        std::lower_bound(timestampsNs.begin(), timestampsNs.end(), boundariesNs_[boundary]) -
        timestampsNs.begin());
  };
  size_t first = recordAt(interval);
  for (; interval < counts_.size() && first < timestampsNs.size(); interval++) {
    const size_t end = recordAt(interval + 1);
    counts_[interval].packets += end - first;
    counts_[interval].bytes += offsets[end] - offsets[first];
    first = end;
  }
  reader_.give(std::move(*loaded));
  return uint64_t{entry.bytes};
}

}  // namespace capfleet
