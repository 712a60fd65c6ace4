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

/// The blocks of one segment, in file order. Not thread-safe.
class BlockProofs {
 public:
  /// `segment` is the path without ending.
  explicit BlockProofs(std::string segment) : segment_(std::move(segment)) {}

  /// Says that the next block has this entry, which is whole.
  void pass(const BlockEntry& entry);
  /// Says that the next block is this one, of which prove() was asked.
  void pass(const ScannedBlock& block);
  /// Says that blocks follow that are not asked about.
  void skip() { tallyOffset_.reset(); }

  /// Whether there is anything beside its entry that can prove the next block.
  bool canProve(uint32_t number);
  /// Whether a checksum of 64 bits matches the bytes of the next block, whose number in the index
  /// is `number`. Sets the place of its tally in the entry when the tally is right. `lost` is what
  /// the index has in place of its entry, or null; `tallyEnd` is where its tally ends, if that is
  /// known.
  bool prove(ScannedBlock& block, uint32_t number, const uint8_t* lost,
             std::optional<uint64_t> tallyEnd);
  /// Whether something was written that must have proved the block, had its bytes not changed.
  /// REQUIRES: prove() did not prove it; `tallyEnd` is what it was given.
  bool contradicts(const ScannedBlock& block, uint32_t number, std::optional<uint64_t> tallyEnd);
  /// Whether a sieve was written for the block with this number.
  bool hasSieve(uint32_t number);

 private:
  bool findTally(ScannedBlock& block, std::optional<uint64_t> tallyEnd);
  const File* tallies();
  bool isSieved(uint32_t number, uint64_t checksum);
  void readSieveFile();

  const std::string segment_;
  /// Where the tally of the next block begins, if that is known.
  std::optional<uint64_t> tallyOffset_ = 0;
  /// False after a damaged block: its tally may have been dropped when the file was rebuilt.
  bool isTallyOffsetSure_ = true;
  std::optional<Result<File>> tallies_;
  bool areSievesRead_ = false;
  std::vector<uint8_t> sieveBytes_;
  std::unordered_multimap<uint32_t, std::span<const uint8_t>> sieves_;  ///< by block
};

}  // namespace capfleet
