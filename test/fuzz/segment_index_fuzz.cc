// Property: over any bytes parseSegmentIndex() fails, or yields blocks that follow each other
// without a gap and keep every limit that the rest of the engine relies on.
//
// Input: 1 byte, the index file. Unless that byte is 0, the checksums of header and entries are put
// right first: a fuzzer finds none, an attacker would.
#include <vector>

#include "fuzz_input.h"
#include "os/byte_order.h"
#include "store/segment_index.h"
#include "store/xxh3.h"

namespace {

using capfleet::fuzz::require;

void repairChecksums(std::vector<uint8_t>& bytes) {
  constexpr size_t kPartBytes = capfleet::kIndexEntryBytes, kCheckedBytes = kPartBytes - 8;
  for (size_t at = 0; at + kPartBytes <= bytes.size(); at += kPartBytes) {
    uint8_t* part = bytes.data() + at;
    capfleet::storeLe64(part + kCheckedBytes, capfleet::xxh3({part, kCheckedBytes}));
  }
}

void checkBlocks(const capfleet::SegmentIndex& index, size_t fileBytes) {
  require(index.port <= 255);
  require(index.blocks.size() * capfleet::kIndexEntryBytes <= fileBytes);
  uint64_t offset = capfleet::kPcapFileHeaderBytes;
  for (const capfleet::BlockEntry& block : index.blocks) {
    require(block.offset == offset);
    require(block.isDamaged() == (block.packets == 0));
    require(block.bytes >= 1 && block.bytes <= capfleet::kMaxBlockBytes);
    require(uint64_t{block.packets} * capfleet::kRecordHeaderBytes <= block.bytes);
    require(0 <= block.minNs && block.minNs <= block.maxNs);
    require(block.maxNs < capfleet::kTimestampEndNs);
    offset += block.bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const bool repairs = input.take(1) != 0;
  std::vector<uint8_t> bytes(input.rest().begin(), input.rest().end());
  if (repairs) repairChecksums(bytes);
  const auto index = capfleet::parseSegmentIndex(bytes, "0.idx");
  if (index) checkBlocks(*index, bytes.size());
  return 0;
}
