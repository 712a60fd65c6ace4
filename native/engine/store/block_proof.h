// Finds out whether the bytes of a block whose index entry was lost are still those that were
// written: what is left of the entry, the tally and the sieve all bear or are seeded with the
// checksum of the block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/file.h"
#include "store/record_scan.h"

namespace capfleet {

enum class BlockProof : uint8_t {
  kProven,        ///< a checksum of 64 bits matches the bytes
  kUnknown,       ///< nothing tells
  kContradicted,  ///< the block's tally or sieve is there, and does not match
};

/// The blocks of one segment, in file order. Not thread-safe.
class BlockProofs {
 public:
  /// `segment` is the path without ending.
  explicit BlockProofs(std::string segment) : segment_(std::move(segment)) {}

  /// Says that the next block has this entry, which is whole.
  void pass(const BlockEntry& entry);

  /// Says that blocks follow that are not asked about.
  void skip() { tallyOffset_.reset(); }

  /// What the files tell of the next block, whose number in the index is `number`. Sets the place
  /// of its tally in the entry when the tally is right. `lost` is what the index has in place of
  /// its entry, or null. `isAlone`: where the block begins and ends is known, and `tallyEnd` is
  /// where its tally ends, if that is known too.
  BlockProof prove(ScannedBlock& block, uint32_t number, const uint8_t* lost, bool isAlone,
                   std::optional<uint64_t> tallyEnd);

 private:
  enum class Match : uint8_t { kMissing, kDiffers, kEqual };
  Match compareTally(ScannedBlock& block, std::optional<uint64_t> tallyEnd);
  Match compareSieve(uint32_t number, uint64_t checksum);
  void readSieveFile();

  const std::string segment_;
  /// Where the tally of the next block begins, if that is known.
  std::optional<uint64_t> tallyOffset_ = 0;
  std::optional<Result<File>> tallies_;
  bool areSievesRead_ = false;
  std::vector<uint8_t> sieveBytes_;
  std::unordered_multimap<uint32_t, std::span<const uint8_t>> sieves_;  ///< by block
};

}  // namespace capfleet
