// Property: over any bytes parseTally() gives nothing, or the rows that make these very bytes: they
// ascend from the block's first millisecond to its last and add up to its packets and bytes.
//
// Input: 1 byte; 6, 4, 2, 3 bytes of the block's entry: first millisecond, milliseconds after it,
// packets, bytes; the tally. Unless the first byte is 0, the tally's checksum is put right: a
// fuzzer finds none, an attacker would.
#include <algorithm>
#include <vector>

#include "fuzz_input.h"
#include "os/byte_order.h"
#include "store/block_tally.h"
#include "store/xxh3.h"

namespace {

using capfleet::BlockEntry;
using capfleet::fuzz::require;

constexpr size_t kChecksumBytes = 8;

/// An entry that parseSegmentIndex() accepts.
BlockEntry takeEntry(capfleet::fuzz::FuzzInput& input) {
  constexpr int64_t kEndMs = capfleet::kTimestampEndNs / capfleet::kNanosPerMillisecond;
  BlockEntry entry{.checksum = 0x0123456789ABCDEF};
  const auto firstMs = static_cast<int64_t>(input.take(6)) % kEndMs;
  const auto lastMs = std::min(firstMs + static_cast<int64_t>(input.take(4)), kEndMs - 1);
  entry.minNs = firstMs * capfleet::kNanosPerMillisecond;
  entry.maxNs = (lastMs + 1) * capfleet::kNanosPerMillisecond - 1;
  entry.packets = std::max(1u, static_cast<uint32_t>(input.take(2)));
  entry.bytes =
      std::max(entry.packets * capfleet::kRecordHeaderBytes, static_cast<uint32_t>(input.take(3)));
  return entry;
}

void checkRows(const std::vector<capfleet::TallyRow>& rows, const BlockEntry& entry) {
  uint64_t packets = 0, bytes = 0;
  for (size_t i = 0; i < rows.size(); i++) {
    require(i == 0 || rows[i].millisecond > rows[i - 1].millisecond);
    require(rows[i].packets >= 1);
    require(rows[i].bytes >= uint64_t{rows[i].packets} * capfleet::kRecordHeaderBytes);
    packets += rows[i].packets;
    bytes += rows[i].bytes;
  }
  require(!rows.empty() && packets == entry.packets && bytes == entry.bytes);
  require(rows.front().millisecond == entry.minNs / capfleet::kNanosPerMillisecond);
  require(rows.back().millisecond == entry.maxNs / capfleet::kNanosPerMillisecond);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const bool repairs = input.take(1) != 0;
  const BlockEntry entry = takeEntry(input);
  std::vector<uint8_t> tally(input.rest().begin(), input.rest().end());
  if (repairs && tally.size() >= kChecksumBytes) {
    const std::span<const uint8_t> numbers = std::span(tally).subspan(kChecksumBytes);
    capfleet::storeLe64(tally.data(), capfleet::xxh3(numbers, entry.checksum));
  }
  const auto rows = capfleet::parseTally(tally, entry);
  if (!rows) return 0;
  checkRows(*rows, entry);
  std::vector<uint8_t> again;
  capfleet::appendTally(again, *rows, entry);
  require(again == tally && again.size() <= capfleet::maxTallyBytes(entry));
  return 0;
}
