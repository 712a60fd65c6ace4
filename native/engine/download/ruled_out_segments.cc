#include "download/ruled_out_segments.h"

#include <algorithm>

#include "packet/pcap_format.h"

namespace capfleet {

std::optional<ScanCounts> RuledOutSegments::countsOf(const StreamSegments& stream, uint32_t number,
                                                     const SegmentEntry& segment) {
  if (!condition_.isUseful() || segment.isGrowing()) return std::nullopt;
  // Downloads report packets that are lost.
  if ((segment.flags & kSegmentDamaged) != 0) return std::nullopt;
  if (segment.minNs < beginNs_ || segment.maxNs >= endNs_) return std::nullopt;
  if (streams_.size() <= number) streams_.resize(number + 1);
  Neighbours& neighbours = streams_[number];
  const uint32_t table = segment.number / kSegmentsPerAddressTable;
  if (neighbours.table != table) read(neighbours, stream, table);
  const uint32_t bit = segment.number % kSegmentsPerAddressTable;
  if ((neighbours.ruledOut >> bit & 1) == 0) return std::nullopt;
  ScanCounts counts;
  counts.packets = segment.packets;
  counts.bytes = segment.bytes - kPcapFileHeaderBytes;
  counts.passedBlocks = neighbours.blocks[bit];
  counts.ruledOutSegments = 1;
  return counts;
}

void RuledOutSegments::read(Neighbours& neighbours, const StreamSegments& stream,
                            uint32_t tableNumber) {
  neighbours = {tableNumber};
  const uint32_t first = tableNumber * kSegmentsPerAddressTable;
  AddressTable table = AddressTable::open(stream.folder, first);
  const uint64_t passing = condition_.mayPass(table);
  readBytes_ += table.readBytes();
  const auto isBefore = [](const SegmentEntry& entry, uint32_t number) {
    return entry.number < number;
  };
  const auto& segments = stream.segments;
  for (auto entry = std::lower_bound(segments.begin(), segments.end(), first, isBefore);
       entry != segments.end() && entry->number < first + kSegmentsPerAddressTable; ++entry) {
    const uint32_t bit = entry->number % kSegmentsPerAddressTable;
    if ((passing >> bit & 1) != 0) continue;
    const auto content = table.contentOf(entry->number);
    if (!content || !content->matches(*entry)) continue;
    neighbours.blocks[bit] = content->blocks;
    neighbours.ruledOut |= uint64_t{1} << bit;
  }
}

}  // namespace capfleet
