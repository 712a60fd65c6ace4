// Determines whether the bytes of a block whose index entry was lost are still those that were
// written: the rest of the entry, the tally and the sieve all contain the checksum of the block, or
// are seeded with it.
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
  /// `segment` is the path without its ending.
  explicit BlockProofs(std::string segment) : segment_(std::move(segment)) {}

  /// Sets the entry of the next block, which is whole.
  void pass(const BlockEntry& entry);
  /// Sets the next block to this one, for which prove() was called.
  void pass(const ScannedBlock& block);
  /// Skips blocks for which prove() is not called.
  void skip() { tallyOffset_.reset(); }

  /// Whether anything beside its entry could prove the next block.
  bool canProve(uint32_t number);
  /// Whether a checksum of 64 bits matches the bytes of the next block, whose number in the index
  /// is `number`. Sets the place of its tally in the entry if the tally is right. `lost` is what
  /// the index has in place of its entry, or null; `tallyEnd` is where its tally ends, if that is
  /// known.
  bool prove(ScannedBlock& block, uint32_t number, const uint8_t* lost,
             std::optional<uint64_t> tallyEnd);
  /// Whether something was written that would have proved the block if its bytes had not changed.
  /// REQUIRES: prove() did not prove it; `tallyEnd` is the value passed to prove().
  bool contradicts(const ScannedBlock& block, uint32_t number, std::optional<uint64_t> tallyEnd);
  /// The same as far as its tally shows.
  bool tallyContradicts(const ScannedBlock& block, std::optional<uint64_t> tallyEnd);
  /// Where the last tally of the segment ends; nothing if there are none.
  std::optional<uint64_t> talliesEnd();
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
