#include "packet_count.h"

#include <algorithm>

#include "segment_index.h"

namespace capfleet {
namespace {

/// What one step reads: more would delay other users of the thread.
constexpr uint64_t kStepBytes = uint64_t{4} << 20;

std::vector<std::string> allSegments(const std::vector<std::vector<std::string>>& streams) {
  std::vector<std::string> segments;
  for (const auto& stream : streams) segments.insert(segments.end(), stream.begin(), stream.end());
  return segments;
}

}  // namespace

PacketCount::PacketCount(const std::vector<std::vector<std::string>>& streams,
                         std::vector<int64_t> boundariesNs)
    : segments_(allSegments(streams)),
      boundariesNs_(std::move(boundariesNs)),
      reader_(segments_),
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
  if (nextSegment_ == segments_.size()) return true;
  if (Status status = openSegment(); !status) return status.error();
  return false;
}

Status PacketCount::openSegment() {
  Result<SegmentIndex> index = readSegmentIndex(segments_[nextSegment_]);
  if (!index) return index.error();
  nextSegment_++;
  blocks_ = std::move(index->blocks);
  nextBlock_ = 0;
  file_.reset();
  return ok();
}

/// Returns the bytes that had to be read.
Result<uint64_t> PacketCount::countBlock(const BlockEntry& entry) {
  if (entry.maxNs < boundariesNs_.front() || entry.minNs >= boundariesNs_.back())
    return uint64_t{0};
  const auto after = std::upper_bound(boundariesNs_.begin(), boundariesNs_.end(), entry.minNs);
  const bool isBehindFirst = after != boundariesNs_.begin();
  const auto interval =
      static_cast<size_t>(after - boundariesNs_.begin()) - (isBehindFirst ? 1 : 0);
  if (!isBehindFirst || entry.maxNs >= *after) return countPackets(entry, interval);
  counts_[interval].packets += entry.packets;
  counts_[interval].bytes += entry.bytes;
  return uint64_t{0};
}

/// Reads a block whose packets lie in several intervals; none lies before `interval`.
Result<uint64_t> PacketCount::countPackets(const BlockEntry& entry, size_t interval) {
  if (!file_) {
    auto file = reader_.open(static_cast<uint32_t>(nextSegment_ - 1));
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
