#include "search/address_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "download/segment_condition.h"
#include "store/block_sieve.h"
#include "store/segment_index.h"
#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// Indexes, tallies and sieves of this size are read in a fraction of a second.
constexpr uint64_t kSieveBytes = uint64_t{64} << 20;
/// When there are this many times as many spans as there may be, they are joined.
constexpr size_t kUnjoinedTimes = 4;

/// Sorts the spans, and joins those that are closer than `gapNs`.
void join(std::vector<SeenSpan>& spans, int64_t gapNs) {
  std::sort(spans.begin(), spans.end(),
            [](const SeenSpan& a, const SeenSpan& b) { return a.firstNs < b.firstNs; });
  size_t kept = 0;
  for (const SeenSpan& span : spans) {
    if (kept > 0 && span.firstNs - spans[kept - 1].lastNs < gapNs) {
      spans[kept - 1].lastNs = std::max(spans[kept - 1].lastNs, span.lastNs);
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
}

/// Joins spans until there are at most `most`.
void reduce(std::vector<SeenSpan>& spans, size_t most) {
  join(spans, AddressSearch::kJoinedNs);
  if (spans.size() <= most) return;
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < spans.size(); i++) {
    gaps.push_back(spans[i].firstNs - spans[i - 1].lastNs);
  }
  const auto largest = gaps.begin() + static_cast<ptrdiff_t>(most - 1);
  std::nth_element(gaps.begin(), largest, gaps.end(), std::greater<>());
  join(spans, *largest + 1);
}

}  // namespace

AddressSearch::AddressSearch(std::vector<StreamSegments> streams, int64_t beginNs, int64_t endNs,
                             std::vector<AddressNeeds> questions)
    : streams_(std::move(streams)),
      beginNs_(beginNs),
      endNs_(endNs),
      questions_(std::move(questions)),
      spans_(questions_.size()),
      streamsLeft_(streams_.size()),
      segmentsLeft_(streams_.empty() ? 0 : streams_.back().segments.size()),
      sieveBytesLeft_(kSieveBytes) {}

Result<bool> AddressSearch::step() {
  while (streamsLeft_ > 0 && segmentsLeft_ == 0) {
    if (--streamsLeft_ > 0) segmentsLeft_ = streams_[streamsLeft_ - 1].segments.size();
  }
  if (streamsLeft_ == 0) {
    reduceAll();
    return true;
  }
  const StreamSegments& stream = streams_[streamsLeft_ - 1];
  const uint32_t number = stream.segments[segmentsLeft_ - 1].number;
  if (Status status = searchTable(stream, number / kSegmentsPerAddressTable); !status) {
    return status.error();
  }
  return false;
}

bool AddressSearch::isInRange(const SegmentEntry& entry) const {
  return entry.packets > 0 && entry.minNs < endNs_ && entry.maxNs >= beginNs_;
}

/// Searches the last of the segments that are left in the stream, as far as they are in this table.
Status AddressSearch::searchTable(const StreamSegments& stream, uint32_t table) {
  const size_t end = segmentsLeft_;
  const auto isInTable = [&](const SegmentEntry& entry) {
    return entry.number / kSegmentsPerAddressTable == table;
  };
  std::array<const SegmentEntry*, kSegmentsPerAddressTable> entries{};
  uint64_t present = 0;
  uint64_t known = 0;
  std::optional<AddressTable> addresses;
  while (segmentsLeft_ > 0 && isInTable(stream.segments[segmentsLeft_ - 1])) {
    const SegmentEntry& entry = stream.segments[--segmentsLeft_];
    if (!isInRange(entry)) continue;
    const uint32_t bit = entry.number % kSegmentsPerAddressTable;
    entries[bit] = &entry;
    present |= uint64_t{1} << bit;
    if (!addresses) addresses = AddressTable::open(stream.folder, entry.number);
    const auto content = addresses->contentOf(entry.number);
    const bool isKnown = !entry.isGrowing() && (entry.flags & kSegmentDamaged) == 0 && content &&
                         content->matches(entry);
    if (isKnown) known |= uint64_t{1} << bit;
  }
  segments_ += static_cast<uint64_t>(std::popcount(present));
  if (present == 0) return ok();
  std::array<Questions, kSegmentsPerAddressTable> questions;
  for (uint32_t question = 0; question < questions_.size(); question++) {
    uint64_t held = present & ~known;
    if (known != 0) held |= known & segmentsWith(questions_[question], *addresses);
    for (; held != 0; held &= held - 1) {
      questions[static_cast<size_t>(std::countr_zero(held))].push_back(question);
    }
  }
  for (size_t at = end; at > segmentsLeft_; at--) {
    const SegmentEntry& entry = stream.segments[at - 1];
    const uint32_t bit = entry.number % kSegmentsPerAddressTable;
    if (entries[bit] != &entry) continue;
    if (questions[bit].empty()) {
      ruledOutSegments_++;
    } else if (Status status = searchSegment(stream, entry, questions[bit]); !status) {
      return status;
    }
  }
  return ok();
}

/// Adds the times of the blocks of this segment that may have packets, or of all of it.
Status AddressSearch::searchSegment(const StreamSegments& stream, const SegmentEntry& entry,
                                    const Questions& questions) {
  // A growing segment has no figure yet; there is one for each port.
  if (entry.isGrowing() || entry.sideBytes <= sieveBytesLeft_) {
    sieveBytesLeft_ -= std::min<uint64_t>(sieveBytesLeft_, entry.sideBytes);
    return searchBlocks(stream, entry, questions);
  }
  wholeSegments_++;
  for (const uint32_t question : questions) add(question, entry.minNs, entry.maxNs);
  return ok();
}

Status AddressSearch::searchBlocks(const StreamSegments& stream, const SegmentEntry& entry,
                                   const Questions& questions) {
  const auto index = readIndexOf(stream, entry);
  if (!index) return index.error();
  // Its packets are lost.
  if (!*index) return ok();
  const std::vector<BlockEntry>& blocks = (*index)->blocks;
  std::vector<bool> isSieved(blocks.size());
  readSieves(stream.pathOf(entry), blocks, [&](const StoredSieve& stored) {
    const BlockEntry& block = blocks[stored.number];
    if (block.isDamaged()) return;
    isSieved[stored.number] = true;
    for (const uint32_t question : questions) {
      const AddressNeeds& needs = questions_[question];
      const bool mayMatch = !needs.isUsefulForSieves() || needs.mayMatch([&](AddressWord word) {
        return stored.sieve.mayHold(word);
      });
      if (mayMatch) add(question, block.minNs, block.maxNs);
    }
  });
  for (size_t i = 0; i < blocks.size(); i++) {
    if (isSieved[i]) continue;
    for (const uint32_t question : questions) add(question, blocks[i].minNs, blocks[i].maxNs);
  }
  return ok();
}

void AddressSearch::add(uint32_t question, int64_t firstNs, int64_t lastNs) {
  if (firstNs >= endNs_ || lastNs < beginNs_) return;
  std::vector<SeenSpan>& spans = spans_[question];
  if (spans.size() >= kUnjoinedTimes * mostSpans_) {
    totalSpans_ -= spans.size();
    reduce(spans, mostSpans_);
    totalSpans_ += spans.size();
  }
  if (totalSpans_ >= kUnjoinedTimes * kMostSpansOfAll) reduceAll();
  spans.push_back({std::max(firstNs, beginNs_), std::min(lastNs, endNs_ - 1)});
  totalSpans_++;
}

/// Joins the spans of each question; while all of them have too many, each gets fewer.
void AddressSearch::reduceAll() {
  while (true) {
    totalSpans_ = 0;
    for (auto& spans : spans_) {
      reduce(spans, mostSpans_);
      totalSpans_ += spans.size();
    }
    if (totalSpans_ <= kMostSpansOfAll || mostSpans_ == 1) return;
    mostSpans_ /= 2;
  }
}

}  // namespace capfleet
