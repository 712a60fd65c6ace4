#include "store/address_repair.h"

#include <vector>

#include "store/address_table.h"
#include "store/block_reader.h"
#include "store/block_sieve.h"
#include "store/segment_path.h"
#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// The lines for the whole segment; nothing if a block cannot be read, or there are too many.
Result<std::optional<std::vector<uint64_t>>> collect(const SegmentFile& file,
                                                     const SegmentIndex& index,
                                                     const std::function<bool()>& goesOn) {
  std::optional<std::vector<uint64_t>> nothing;
  AddressCollector collector;
  BlockReader reader;
  for (const BlockEntry& entry : index.blocks) {
    if (!goesOn()) return Error{Code::kCancelled, "the collection of addresses was cancelled"};
    auto block = reader.load(file, entry);
    if (!block) return block.error();
    if (!*block) return nothing;
    collector.addBlock({(*block)->bytes.data(), entry.bytes});
    reader.give(std::move(*block));
  }
  return collector.takeLines(index.endOffset);
}

/// Ends the repair of a segment: the table of the last one is complete.
Result<bool> settle(const std::string& folder, uint32_t number, bool isNew) {
  if (isLastOfAddressTable(number)) {
    if (auto status = transposeAddresses(folder, number); !status) return status.error();
  }
  return isNew;
}

}  // namespace

Result<bool> repairAddresses(const std::string& segment, const std::function<bool()>& goesOn) {
  const auto index = readSegmentIndex(segment);
  if (!index) return index.error();
  if (!hasSieves(index->header)) return false;
  const auto [folder, number] = placeOfSegment(segment);
  AddressColumn column{
      number, index->endOffset, 0, static_cast<uint32_t>(index->blocks.size()), {}};
  for (const BlockEntry& entry : index->blocks) column.packets += entry.packets;
  {
    AddressTable table = AddressTable::open(folder, number);
    const bool isThere = table.blocksOf(number, column.bytes, column.packets).has_value();
    if (isThere && table.isSound()) return settle(folder, number, false);
  }
  const auto file = SegmentFile::open(segment);
  if (!file) return file.error();
  auto lines = collect(*file, *index, goesOn);
  if (!lines) return lines.error();
  if (!*lines) return false;
  column.lines = std::move(**lines);
  if (auto status = addAddresses(folder, column); !status) return status.error();
  return settle(folder, number, true);
}

}  // namespace capfleet
