#include "store/block_tally.h"

#include "os/byte_order.h"
#include "store/xxh3.h"

namespace capfleet {
namespace {

constexpr size_t kChecksumBytes = 8;
/// 42 bits: no number of a tally needs more.
constexpr size_t kMaxVarintBytes = 6;
static_assert(kTimestampEndNs / kNanosPerMillisecond <= int64_t{1} << (7 * kMaxVarintBytes));
constexpr size_t kNumbersPerRow = 3;

void appendVarint(std::vector<uint8_t>& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

/// Removes a number from the front of the bytes. Nothing if there is none in its shortest form.
std::optional<uint64_t> takeVarint(std::span<const uint8_t>& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < kMaxVarintBytes; i++) {
    value |= uint64_t{bytes[i] & 0x7Fu} << (7 * i);
    if (bytes[i] >= 0x80) continue;
    if (i > 0 && bytes[i] == 0) return std::nullopt;
    bytes = bytes.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

/// Bounds for the next row: what the previous rows leave of the block.
struct Rest {
  int64_t millisecond;  ///< of the previous row
  int64_t lastMillisecond;
  uint64_t packets;
  uint64_t bytes;
};

std::optional<TallyRow> takeRow(std::span<const uint8_t>& bytes, Rest& rest) {
  const auto delta = takeVarint(bytes);
  const auto packets = delta ? takeVarint(bytes) : std::nullopt;
  const auto recordBytes = packets ? takeVarint(bytes) : std::nullopt;
  if (!recordBytes) return std::nullopt;
  if (*delta > static_cast<uint64_t>(rest.lastMillisecond - rest.millisecond)) return std::nullopt;
  if (*packets == 0 || *packets > rest.packets || *recordBytes > rest.bytes) return std::nullopt;
  if (*recordBytes / kRecordHeaderBytes < *packets) return std::nullopt;
  rest.millisecond += static_cast<int64_t>(*delta);
  rest.packets -= *packets;
  rest.bytes -= *recordBytes;
  return TallyRow{rest.millisecond, static_cast<uint32_t>(*packets),
                  static_cast<uint32_t>(*recordBytes)};
}

}  // namespace

void appendTally(std::vector<uint8_t>& out, std::span<const TallyRow> rows,
                 const BlockEntry& entry) {
  const size_t begin = out.size();
  out.resize(begin + kChecksumBytes);
  int64_t millisecond = entry.minNs / kNanosPerMillisecond;
  for (const TallyRow& row : rows) {
    appendVarint(out, static_cast<uint64_t>(row.millisecond - millisecond));
    appendVarint(out, row.packets);
    appendVarint(out, row.bytes);
    millisecond = row.millisecond;
  }
  const std::span<const uint8_t> numbers(out.data() + begin + kChecksumBytes,
                                         out.size() - begin - kChecksumBytes);
  storeLe64(out.data() + begin, xxh3(numbers, entry.checksum));
}

uint64_t maxTallyBytes(const BlockEntry& entry) {
  return kChecksumBytes + uint64_t{entry.packets} * kNumbersPerRow * kMaxVarintBytes;
}

std::optional<std::vector<TallyRow>> parseTally(std::span<const uint8_t> bytes,
                                                const BlockEntry& entry) {
  if (bytes.size() < kChecksumBytes) return std::nullopt;
  std::span<const uint8_t> numbers = bytes.subspan(kChecksumBytes);
  if (loadLe64(bytes.data()) != xxh3(numbers, entry.checksum)) return std::nullopt;
  const int64_t firstMillisecond = entry.minNs / kNanosPerMillisecond;
  Rest rest{firstMillisecond, entry.maxNs / kNanosPerMillisecond, entry.packets, entry.bytes};
  std::vector<TallyRow> rows;
  rows.reserve(numbers.size() / kNumbersPerRow);
  while (!numbers.empty()) {
    const int64_t before = rest.millisecond;
    const auto row = takeRow(numbers, rest);
    // The first row is the millisecond of the smallest timestamp; each other one is later.
    if (!row || (row->millisecond == before) != rows.empty()) return std::nullopt;
    rows.push_back(*row);
  }
  if (rest.packets != 0 || rest.bytes != 0 || rest.millisecond != rest.lastMillisecond) {
    return std::nullopt;
  }
  return rows;
}

}  // namespace capfleet
