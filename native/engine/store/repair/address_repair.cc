#include "store/repair/address_repair.h"

#include <vector>

#include "store/address_table.h"
#include "store/block_reader.h"
#include "store/block_sieve.h"
#include "store/segment_path.h"
#include "store/sieve_file.h"

namespace capfleet {
namespace {

/// The lines for the whole segment; nothing if a block cannot be read.
Result<std::optional<std::vector<uint64_t>>> collect(const SegmentFile& file,
                                                     const SegmentIndex& index,
                                                     const std::function<bool()>& goesOn) {
  AddressCollector collector;
  BlockReader reader;
  for (const BlockEntry& entry : index.blocks) {
    if (!goesOn()) return Error{Code::kCancelled, "the collection of addresses was cancelled"};
    auto block = reader.load(file, entry);
    if (!block) return block.error();
    if (!*block) return std::optional<std::vector<uint64_t>>{};
    collector.addBlock({(*block)->bytes.data(), entry.bytes});
    reader.give(std::move(*block));
  }
  return std::optional{collector.takeLines(index.endOffset)};
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
  // Readers do not ask the table about a segment of which packets are lost.
  if (index->damagedBlocks > 0) return false;
  AddressColumn column{SegmentContent::of(number, *index), {}};
  {
    AddressTable table = AddressTable::open(folder, number);
    if (table.contentOf(number) == column.segment && table.isSound()) {
      return settle(folder, number, false);
    }
  }
  const auto file = SegmentFile::open(segment);
  if (!file) return file.error();
  auto lines = collect(*file, *index, goesOn);
  if (!lines) return lines.error();
  if (!*lines) return false;
  column.lines = std::move(**lines);
  if (auto status = addAddresses(folder, column); !status) return status.error();
  // Perhaps the last segment of the table was removed meanwhile.
  if (auto status = removeUnusedAddresses(folder, number); !status) return status.error();
  return settle(folder, number, true);
}

}  // namespace capfleet
