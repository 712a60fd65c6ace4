// Property: whatever arrives as a device's pcapng, it is turned into the same records, blocks and
// remarks in any pieces, and into no more bytes than promised; what is not refused consists of
// records that a merge can take.
//
// Input: 1 byte size of the pieces, then the stream.
#include <memory>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "merge/pcapng_records.h"
#include "os/byte_order.h"

namespace {

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

Converted converted(std::span<const uint8_t> stream, size_t pieceBytes) {
  PcapngRecords records;
  Converted made;
  while (!stream.empty() && made.failure.empty()) {
    const auto piece = stream.first(std::min(pieceBytes, stream.size()));
    stream = stream.subspan(piece.size());
    // Memory of its own, so that a sanitizer sees what is read or written after its end.
    const auto shown = std::make_unique<uint8_t[]>(piece.size());
    std::ranges::copy(piece, shown.get());
    Bytes output(piece.size() + PcapngRecords::kMoreBytes);
    size_t written = 0;
    records.show({shown.get(), piece.size()});
    for (auto state = PcapngRecords::State::kInterface; state != PcapngRecords::State::kDry;) {
      state = records.advance(output, written);
      require(written <= output.size());
      if (state == PcapngRecords::State::kBroken) {
        made.failure = records.failure();
        break;
      }
      if (state == PcapngRecords::State::kDry) break;
      if (state == PcapngRecords::State::kInterface)
        records.addInterface(static_cast<uint32_t>(made.blocks.size()));
      if (state == PcapngRecords::State::kStatistics) records.statisticsTag();
      made.blocks.emplace_back(records.block().begin(), records.block().end());
    }
    made.records.insert(made.records.end(), output.begin(),
                        output.begin() + static_cast<ptrdiff_t>(written));
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
  if (!whole.isBetweenBlocks || !whole.failure.empty()) return 0;
  for (size_t at = 0; at < whole.records.size();) {
    require(whole.records.size() - at >= kRecordHeaderBytes + kInterfaceTagBytes);
    const uint32_t captured = loadLe32(&whole.records[at + 8]);
    require(captured >= kInterfaceTagBytes && captured <= kMaxCapturedLength + kInterfaceTagBytes);
    at += kRecordHeaderBytes + captured;
    require(at <= whole.records.size());
  }
  return 0;
}
