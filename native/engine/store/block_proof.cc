#include "store/block_proof.h"

#include <algorithm>

#include "os/byte_order.h"
#include "store/block_sieve.h"
#include "store/segment_path.h"

namespace capfleet {
namespace {

constexpr size_t kEntryChecksumOffset = 32;
constexpr size_t kPartChecksumOffset = 56;

/// Whether what is left of the entry contains the block's checksum, or that of the whole entry.
bool isLeftOf(const uint8_t* lost, const BlockEntry& entry) {
  uint8_t whole[kIndexEntryBytes];
  storeIndexEntry(whole, entry);
  for (const size_t offset : {kEntryChecksumOffset, kPartChecksumOffset}) {
    if (loadLe64(lost + offset) == loadLe64(whole + offset)) return true;
  }
  return false;
}

}  // namespace

void BlockProofs::pass(const BlockEntry& entry) {
  if (entry.isDamaged()) isTallyOffsetSure_ = false;
  if (entry.tallyBytes == 0) return;
  tallyOffset_ = entry.tallyOffset + entry.tallyBytes;
  isTallyOffsetSure_ = true;
}

void BlockProofs::pass(const ScannedBlock& block) {
  if (block.rows.size() > 1 && block.entry.tallyBytes == 0) tallyOffset_.reset();
  pass(block.entry);
}

bool BlockProofs::canProve(uint32_t number) {
  if (hasSieve(number)) return true;
  const auto bytes = tallies() && tallyOffset_ ? tallies()->size() : Result<uint64_t>(0);
  return bytes && *bytes > tallyOffset_.value_or(0);
}

bool BlockProofs::prove(ScannedBlock& block, uint32_t number, const uint8_t* lost,
                        std::optional<uint64_t> tallyEnd) {
  return findTally(block, tallyEnd) || (lost && isLeftOf(lost, block.entry)) ||
         isSieved(number, block.entry.checksum);
}

bool BlockProofs::contradicts(const ScannedBlock& block, uint32_t number,
                              std::optional<uint64_t> tallyEnd) {
  return hasSieve(number) || tallyContradicts(block, tallyEnd);
}

bool BlockProofs::tallyContradicts(const ScannedBlock& block, std::optional<uint64_t> tallyEnd) {
  if (!tallyOffset_ || !isTallyOffsetSure_ || !tallies()) return false;
  const auto bytes = tallies()->size();
  if (!bytes) return false;
  if (tallyEnd) return *tallyEnd > *tallyOffset_ && *tallyEnd <= *bytes;
  // If the block had these rows when it was written, this is its tally. A block of one row has
  // none.
  return block.rows.size() != 1 && *bytes > *tallyOffset_;
}

std::optional<uint64_t> BlockProofs::talliesEnd() {
  const auto bytes = tallies() ? tallies()->size() : Result<uint64_t>(0);
  return bytes && *bytes > 0 ? std::optional(*bytes) : std::nullopt;
}

bool BlockProofs::hasSieve(uint32_t number) {
  readSieveFile();
  return sieves_.contains(number);
}

/// The tally that belongs to these bytes is built, and searched for at the place of the block's
/// tally.
bool BlockProofs::findTally(ScannedBlock& block, std::optional<uint64_t> tallyEnd) {
  if (block.rows.size() <= 1 || !tallies()) return false;
  std::vector<uint8_t> expected;
  appendTally(expected, block.rows, block.entry);
  std::vector<uint8_t> stored(expected.size());
  const auto isAt = [&](uint64_t offset) {
    const auto count = tallies()->readAt(offset, stored);
    if (!count || *count != stored.size() || stored != expected) return false;
    block.entry.tallyOffset = offset;
    block.entry.tallyBytes = static_cast<uint32_t>(expected.size());
    return true;
  };
  if (tallyOffset_ && isAt(*tallyOffset_)) return true;
  return tallyEnd && *tallyEnd >= expected.size() && isAt(*tallyEnd - expected.size());
}

/// Null if it cannot be read.
const File* BlockProofs::tallies() {
  if (!tallies_) tallies_ = File::openForRead(segment_ + ".tally");
  return *tallies_ ? &**tallies_ : nullptr;
}

bool BlockProofs::isSieved(uint32_t number, uint64_t checksum) {
  readSieveFile();
  const auto [begin, end] = sieves_.equal_range(number);
  return std::any_of(begin, end,
                     [&](const auto& sieve) { return isSieveOf(sieve.second, checksum); });
}

/// A few MiB at most. A file that cannot be read proves nothing.
void BlockProofs::readSieveFile() {
  if (areSievesRead_) return;
  areSievesRead_ = true;
  const auto file = File::openForRead(sievePath(segment_));
  if (!file) return;
  auto bytes = file->readAll();
  if (!bytes) return;
  sieveBytes_ = std::move(*bytes);
  for (std::span<const uint8_t> rest = sieveBytes_;;) {
    const auto header = parseSieveHeader(rest);
    if (!header) return;
    sieves_.emplace(header->number, rest.first(header->bytes));
    rest = rest.subspan(header->bytes);
  }
}

}  // namespace capfleet
