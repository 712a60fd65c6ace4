#include "store/block_proof.h"

#include <algorithm>

#include "os/byte_order.h"
#include "store/block_sieve.h"
#include "store/segment_path.h"

namespace capfleet {
namespace {

constexpr size_t kEntryChecksumOffset = 32;
constexpr size_t kPartChecksumOffset = 56;

/// Whether what is left of the entry bears the block's checksum, or that of all of the entry.
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
  if (entry.tallyBytes > 0) tallyOffset_ = entry.tallyOffset + entry.tallyBytes;
}

BlockProof BlockProofs::prove(ScannedBlock& block, uint32_t number, const uint8_t* lost,
                              bool isAlone, std::optional<uint64_t> tallyEnd) {
  const Match tally = compareTally(block, isAlone ? tallyEnd : std::nullopt);
  if (tally == Match::kEqual || (lost && isLeftOf(lost, block.entry))) return BlockProof::kProven;
  const Match sieve = compareSieve(number, block.entry.checksum);
  if (sieve == Match::kEqual) return BlockProof::kProven;
  // With other bounds than those of the writer a block has another checksum.
  const bool differs = tally == Match::kDiffers || sieve == Match::kDiffers;
  return isAlone && differs ? BlockProof::kContradicted : BlockProof::kUnknown;
}

/// The tally that belongs to these bytes is made, and looked for where that of the block is.
BlockProofs::Match BlockProofs::compareTally(ScannedBlock& block,
                                             std::optional<uint64_t> tallyEnd) {
  if (!tallyOffset_) return Match::kMissing;
  std::vector<uint8_t> expected;
  if (block.rows.size() > 1) appendTally(expected, block.rows, block.entry);
  if (!tallies_) tallies_ = File::openForRead(segment_ + ".tally");
  if (!*tallies_) return Match::kMissing;
  if (!expected.empty()) {
    std::vector<uint8_t> stored(expected.size());
    const auto count = (*tallies_)->readAt(*tallyOffset_, stored);
    if (count && *count == stored.size() && stored == expected) {
      block.entry.tallyOffset = *tallyOffset_;
      block.entry.tallyBytes = static_cast<uint32_t>(expected.size());
      *tallyOffset_ += expected.size();
      return Match::kEqual;
    }
  }
  const uint64_t begin = *tallyOffset_;
  const auto fileBytes = (*tallies_)->size();
  if (!expected.empty()) tallyOffset_.reset();
  const bool isThere = tallyEnd && *tallyEnd > begin && fileBytes && *tallyEnd <= *fileBytes;
  return isThere ? Match::kDiffers : Match::kMissing;
}

BlockProofs::Match BlockProofs::compareSieve(uint32_t number, uint64_t checksum) {
  readSieveFile();
  const auto [begin, end] = sieves_.equal_range(number);
  if (begin == end) return Match::kMissing;
  const bool isEqual =
      std::any_of(begin, end, [&](const auto& sieve) { return isSieveOf(sieve.second, checksum); });
  return isEqual ? Match::kEqual : Match::kDiffers;
}

/// A few MiB at most. One that cannot be read proves nothing.
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
