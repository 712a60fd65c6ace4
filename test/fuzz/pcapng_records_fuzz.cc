// Property: whatever arrives as a device's pcapng, it is turned into the same records, blocks and
// remarks in any pieces; what is not refused consists of records that a merge can take.
//
// Input: 1 byte size of the pieces, then the stream.
#include <memory>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "merge/pcapng_records.h"
#include "os/byte_order.h"

namespace {

using capfleet::betweenTaggedRecords;
using capfleet::kInterfaceTagBytes;
using capfleet::kMaxCapturedLength;
using capfleet::kRecordHeaderBytes;
using capfleet::loadLe32;
using capfleet::PcapngRecords;
using capfleet::fuzz::FuzzInput;
using capfleet::fuzz::require;
using Bytes = std::vector<uint8_t>;

struct Converted {
  Bytes records;
  std::vector<Bytes> blocks;
  std::string failure;
  bool isBetweenBlocks = false;

  bool operator==(const Converted&) const = default;
};

/// What was written before a failure may differ: a larger piece shows it earlier.
void forgetUnlessWhole(Converted& made) {
  if (made.failure.empty()) return;
  made.records.clear();
  made.blocks.clear();
}

/// Appends whole records to `to`, without what is between them.
void appendTagged(Bytes& to, std::span<const uint8_t> records) {
  require(!records.empty());
  for (;;) {
    require(records.size() >= kRecordHeaderBytes + kInterfaceTagBytes);
    const uint32_t captured = loadLe32(&records[8]);
    require(captured >= kInterfaceTagBytes && captured <= kMaxCapturedLength + kInterfaceTagBytes);
    const size_t bytes = kRecordHeaderBytes + captured;
    require(bytes <= records.size());
    to.insert(to.end(), records.begin(), records.begin() + static_cast<ptrdiff_t>(bytes));
    if (bytes == records.size()) return;
    const size_t stride = bytes + betweenTaggedRecords(static_cast<uint32_t>(bytes));
    require(stride < records.size());
    records = records.subspan(stride);
  }
}

Converted converted(std::span<const uint8_t> stream, size_t pieceBytes) {
  PcapngRecords records;
  Converted made;
  while (!stream.empty() && made.failure.empty()) {
    const auto piece = stream.first(std::min(pieceBytes, stream.size()));
    stream = stream.subspan(piece.size());
    // Memory of its own, so that a sanitizer sees what is read or written after its end.
    const auto shown = std::make_unique<uint8_t[]>(piece.size());
    std::ranges::copy(piece, shown.get());
    records.show({shown.get(), piece.size()});
    for (auto state = PcapngRecords::State::kInterface; state != PcapngRecords::State::kDry;) {
      state = records.advance();
      if (state == PcapngRecords::State::kBroken) {
        made.failure = records.failure();
        break;
      }
      if (state == PcapngRecords::State::kDry) break;
      if (state == PcapngRecords::State::kRecords) {
        appendTagged(made.records, records.records());
        continue;
      }
      if (state == PcapngRecords::State::kInterface)
        records.addInterface(static_cast<uint32_t>(made.blocks.size()));
      if (state == PcapngRecords::State::kStatistics) records.statisticsTag();
      made.blocks.emplace_back(records.block().begin(), records.block().end());
    }
  }
  made.isBetweenBlocks = records.isBetweenBlocks();
  forgetUnlessWhole(made);
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(std::span(data, size));
  const size_t pieceBytes = 1 + input.take(1);
  const Converted whole = converted(input.rest(), SIZE_MAX);
  require(converted(input.rest(), pieceBytes) == whole);
  return 0;
}
