#include "store/repair/segment_verify.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/file.h"
#include "store/address_table.h"
#include "store/block_counter.h"
#include "store/block_reader.h"
#include "store/repair/address_repair.h"
#include "store/repair/sieve_repair.h"
#include "store/segment_files.h"
#include "store/segment_index.h"
#include "store/segment_path.h"
#include "store/sieve_file.h"
#include "store/tally_reader.h"

namespace capfleet {
namespace {

/// The tally rows of a block that was read, whose records are in timestamp order.
std::vector<TallyRow> rowsOf(const LoadedBlock& block) {
  TallyBuilder builder;
  for (uint32_t i = 0; i < block.packets(); i++) {
    builder.add(block.timestampsNs[i], block.offsets[i + 1] - block.offsets[i]);
  }
  const std::span<const TallyRow> rows = builder.rows();
  return {rows.begin(), rows.end()};
}

class Verification {
 public:
  Verification(std::string segment, const SegmentEntry& logged, const SegmentVerifyOptions& options)
      : segment_(std::move(segment)), logged_(logged), options_(options), tallies_(segment_) {
    verified_.entry = logged;
  }

  Result<VerifiedSegment> run() {
    auto index = readSegmentIndex(segment_, &logged_);
    if (!index) return index.error();
    index_ = std::move(*index);
    if (index_.isMisplaced) {
      add(SegmentFindingKind::kBlockDamaged, ".pcap", 0,
          "its packets are from outside the times in the capture's log: files of another segment, "
          "or another log, were put there; put the right ones back. A repair changes nothing",
          logged_.packets, logged_.bytes);
      return std::move(verified_);
    }
    if (index_.rebuiltBlocks > 0) {
      add(SegmentFindingKind::kIndexRebuilt, ".idx", 0,
          std::to_string(index_.rebuiltBlocks) +
              " entries are damaged or missing; a repair rebuilds them");
    }
    if (auto status = retryDamaged(); !status) return status.error();
    auto file = SegmentFile::open(segment_);
    if (!file) return file.error();
    for (BlockEntry& block : index_.blocks) {
      if (options_.goesOn && !options_.goesOn(block.offset)) {
        return Error{Code::kCancelled, "the check was cancelled"};
      }
      if (auto status = check(*file, block); !status) return status.error();
    }
    checkSieves();
    checkAddresses();
    checkLog();
    if (options_.repairs) {
      if (auto status = repair(); !status) return status.error();
    }
    return std::move(verified_);
  }

 private:
  void add(SegmentFindingKind kind, const char* ending, uint64_t offset, std::string message,
           uint64_t packets = 0, uint64_t bytes = 0) {
    verified_.findings.push_back(
        {kind, segment_ + ending, offset, packets, bytes, std::move(message)});
  }

  bool has(SegmentFindingKind kind) const {
    return std::any_of(verified_.findings.begin(), verified_.findings.end(),
                       [kind](const SegmentFinding& finding) { return finding.kind == kind; });
  }

  /// Blocks that the index only marks as damaged may have proof by now.
  Status retryDamaged() {
    const auto isUnknown = [](const BlockEntry& block) { return !block.asWritten(); };
    if (std::none_of(index_.blocks.begin(), index_.blocks.end(), isUnknown)) return ok();
    auto retried = retrySegmentIndex(segment_, logged_);
    if (!retried) return retried.error();
    if (retried->blocks.size() != index_.blocks.size()) return ok();
    for (size_t i = 0; i < index_.blocks.size(); i++) {
      const BlockEntry& now = retried->blocks[i];
      if (isUnknown(index_.blocks[i]) && !now.isDamaged()) addReadable(now);
    }
    if (retried->damagedBlocks == index_.damagedBlocks) return ok();
    retried->rebuiltBlocks = index_.rebuiltBlocks;
    index_ = std::move(*retried);
    return ok();
  }

  Status check(const SegmentFile& file, BlockEntry& block) {
    const std::optional<BlockEntry> written = block.asWritten();
    auto loaded = reader_.load(file, written.value_or(block));
    if (!loaded) return loaded.error();
    if (!*loaded) {
      markDamaged(block);
      rows_.emplace_back();
      return ok();
    }
    if (block.isDamaged()) takeBack(block, *written);
    std::vector<TallyRow> rows = rowsOf(**loaded);
    const auto stored = tallies_.read(block);
    const bool isRight = rows.size() == 1 ? block.tallyBytes == 0 : stored && *stored == rows;
    if (!isRight) {
      add(SegmentFindingKind::kTallyDamaged, ".tally", block.tallyOffset,
          "the tally of the block at byte " + std::to_string(block.offset) +
              " is missing or wrong; a repair rebuilds it",
          0, block.bytes);
    }
    if (rows.size() == 1) rows.clear();
    rows_.push_back(std::move(rows));
    reader_.give(std::move(*loaded));
    return ok();
  }

  void markDamaged(BlockEntry& block) {
    const bool isMarked = block.isDamaged() && (logged_.flags & kSegmentDamaged) != 0;
    add(SegmentFindingKind::kBlockDamaged, ".pcap", block.offset,
        isMarked ? "the block is damaged and marked as damaged"
                 : "the block's bytes differ from those written; a repair marks it",
        block.isDamaged() ? block.lostPackets : block.packets, block.bytes);
    verified_.findings.back().isMarked = isMarked;
    block = block.asDamaged();
  }

  /// For a marked block whose bytes are right after all: memory or a disk had returned wrong ones.
  void takeBack(BlockEntry& block, const BlockEntry& written) {
    addReadable(written);
    block = written;
  }

  void addReadable(const BlockEntry& block) {
    add(SegmentFindingKind::kBlockReadable, ".pcap", block.offset,
        "the block is marked as damaged, but its bytes are correct again; a repair takes the mark "
        "away",
        block.packets, block.bytes);
  }

  void checkSieves() {
    if (!hasSieves(index_.header)) return;
    std::vector<bool> isThere(index_.blocks.size());
    readSieves(segment_, index_.blocks,
               [&](const StoredSieve& stored) { isThere[stored.number] = true; });
    uint64_t missing = 0;
    for (size_t i = 0; i < index_.blocks.size(); i++) {
      missing += !isThere[i] && !index_.blocks[i].isDamaged();
    }
    if (missing == 0) return;
    add(SegmentFindingKind::kSievesMissing, ".sieve", 0,
        std::to_string(missing) + " sieves are missing or wrong; a repair rebuilds them");
  }

  /// A table that has nothing about the segment only costs time.
  void checkAddresses() {
    if (!hasSieves(index_.header)) return;
    const auto [folder, number] = placeOfSegment(segment_);
    const auto content = AddressTable::open(folder, number).contentOf(number);
    if (!content) return;
    // Readers do not ask the table about a segment with lost packets.
    if (has(SegmentFindingKind::kBlockDamaged)) return;
    if (*content == SegmentContent::of(number, index_)) return;
    verified_.findings.push_back(
        {SegmentFindingKind::kAddressesWrong, addressTablePath(folder, number), 0, 0, 0,
         "the table of addresses describes other packets than those of segment " +
             std::to_string(number) + "; a repair corrects it"});
  }

  void checkLog() {
    SegmentSummary summary{.minNs = INT64_MAX, .maxNs = INT64_MIN, .bytes = kPcapFileHeaderBytes};
    summary.add(index_.blocks);
    SegmentEntry& entry = verified_.entry;
    entry.minNs = summary.minNs;
    entry.maxNs = summary.maxNs;
    entry.packets = summary.packets;
    entry.bytes = summary.bytes;
    entry.checksum = summary.checksum;
    const bool isDamaged = has(SegmentFindingKind::kBlockDamaged);
    if (isDamaged) {
      entry.flags |= kSegmentDamaged;
      // Its lost packets had a time that the index may have lost with them.
      entry.minNs = std::min(entry.minNs, logged_.minNs);
      entry.maxNs = std::max(entry.maxNs, logged_.maxNs);
    } else {
      entry.flags &= static_cast<uint16_t>(~kSegmentDamaged);
    }
    if (isDamaged || !logDiffers()) return;
    const std::string packets = std::to_string(entry.packets);
    add(SegmentFindingKind::kLogDiffers, ".idx", 0,
        entry.packets != logged_.packets
            ? "the log has " + std::to_string(logged_.packets) + " packets, the segment " + packets
        : entry.flags != logged_.flags
            ? "the log says that packets are lost, but all " + packets +
                  " of the segment are present"
            : "the log and the segment differ in times, size or checksums");
  }

  bool logDiffers() const {
    const SegmentEntry& entry = verified_.entry;
    return entry.packets != logged_.packets || entry.bytes != logged_.bytes ||
           entry.minNs != logged_.minNs || entry.maxNs != logged_.maxNs ||
           entry.flags != logged_.flags ||
           (logged_.checksum != 0 && entry.checksum != logged_.checksum);
  }

  Status repair() {
    const bool remakesTallies = has(SegmentFindingKind::kTallyDamaged);
    if (remakesTallies) {
      if (auto status = remakeTallies(); !status) return status;
    }
    const auto replaced = replaceIndex();
    if (!replaced) return replaced.error();
    verified_.isRepaired = remakesTallies || *replaced || logDiffers();
    const auto goesOn = [&] { return !options_.goesOn || options_.goesOn(index_.endOffset); };
    if (has(SegmentFindingKind::kSievesMissing)) {
      if (const auto added = addSieves(segment_, goesOn); !added) return added.error();
      verified_.isRepaired = true;
    }
    if (has(SegmentFindingKind::kAddressesWrong)) {
      const auto added = repairAddresses(segment_, goesOn);
      if (!added) return added.error();
      verified_.isRepaired |= *added;
    }
    return measureSideFiles();
  }

  /// Writes the file unless it is already right. Returns whether it was written.
  Result<bool> replaceIndex() {
    const std::string path = segment_ + ".idx";
    const std::vector<uint8_t> wanted = serialiseIndex(index_);
    if (const auto file = File::openForRead(path)) {
      const auto bytes = file->readAll();
      if (!bytes) return bytes.error();
      if (*bytes == wanted) return false;
    }
    if (auto status = replaceFile(path, wanted); !status) return status.error();
    return true;
  }

  /// All tallies are written, because a tally is where its entry says. The old entries match the
  /// old file and are replaced after it; until then a tally that is read through them fails its
  /// checksum.
  Status remakeTallies() {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < index_.blocks.size(); i++) {
      BlockEntry& block = index_.blocks[i];
      block.tallyOffset = 0;
      block.tallyBytes = 0;
      if (rows_[i].empty()) continue;
      block.tallyOffset = bytes.size();
      appendTally(bytes, rows_[i], block);
      block.tallyBytes = static_cast<uint32_t>(bytes.size() - block.tallyOffset);
    }
    return replaceFile(segment_ + ".tally", bytes);
  }

  Status measureSideFiles() {
    uint64_t bytes = kIndexHeaderBytes + index_.blocks.size() * kIndexEntryBytes;
    if (const auto file = File::openForRead(segment_ + ".tally")) {
      const auto size = file->size();
      if (!size) return size.error();
      bytes += *size;
    }
    bytes += sieveFileBytes(segment_);
    verified_.entry.sideBytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
    return ok();
  }

  const std::string segment_;
  const SegmentEntry logged_;
  const SegmentVerifyOptions& options_;
  BlockReader reader_;
  TallyReader tallies_;
  SegmentIndex index_;
  std::vector<std::vector<TallyRow>> rows_;  ///< of each block; empty if it has no tally
  VerifiedSegment verified_;
};

}  // namespace

const char* nameOf(SegmentFindingKind kind) {
  switch (kind) {
    case SegmentFindingKind::kIndexRebuilt:
      return "index-rebuilt";
    case SegmentFindingKind::kBlockDamaged:
      return "block-damaged";
    case SegmentFindingKind::kBlockReadable:
      return "block-readable";
    case SegmentFindingKind::kTallyDamaged:
      return "tally-damaged";
    case SegmentFindingKind::kSievesMissing:
      return "sieves-missing";
    case SegmentFindingKind::kAddressesWrong:
      return "addresses-wrong";
    case SegmentFindingKind::kLogDiffers:
      return "log-differs";
  }
  return "";
}

Result<VerifiedSegment> verifySegment(const std::string& segment, const SegmentEntry& entry,
                                      const SegmentVerifyOptions& options) {
  return Verification(segment, entry, options).run();
}

}  // namespace capfleet
