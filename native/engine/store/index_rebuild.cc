#include "store/index_rebuild.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "os/byte_order.h"
#include "store/block_proof.h"
#include "store/record_scan.h"
#include "store/segment_file.h"

namespace capfleet {
namespace {

/// Bytes of an entry are corrected only while few could not be: if a whole sector was lost, one
/// changed byte explains nothing.
constexpr int kMostFailedCorrections = 64;
/// Number of blocks on either side whose times bound those of a block that nothing else proves.
/// Several, because each thread of a port writes its own blocks.
constexpr size_t kNeighbours = 16;
constexpr uint32_t kMaxPort = 255;

/// A place for an entry in the file.
struct Slot {
  const uint8_t* bytes;
  std::optional<BlockEntry> entry;  ///< nothing if it is damaged
};

/// A run of damaged slots, and the packets that they described.
struct Gap {
  size_t firstSlot;
  size_t slots;
  uint64_t begin;
  uint64_t end;
  /// There are as many blocks as slots.
  bool isFixed;
};

bool isZero(const uint8_t* entry) {
  return std::all_of(entry, entry + kIndexEntryBytes, [](uint8_t byte) { return byte == 0; });
}

struct Bounds {
  int64_t minNs;
  int64_t maxNs;
  bool hold(const BlockEntry& entry) const { return entry.minNs >= minNs && entry.maxNs <= maxNs; }
};

/// The number in the name "cap<number>" of the folder that holds the segment, or its group.
std::optional<uint32_t> portInPath(const std::filesystem::path& segment) {
  const std::filesystem::path folder = segment.parent_path();
  for (const std::string& name :
       {folder.filename().string(), folder.parent_path().filename().string()}) {
    if (name.size() < 4 || name.compare(0, 3, "cap") != 0) continue;
    const auto port = static_cast<uint32_t>(std::strtoul(name.c_str() + 3, nullptr, 10));
    if (port <= kMaxPort && name == "cap" + std::to_string(port)) return port;
  }
  return std::nullopt;
}

class IndexRebuild {
 public:
  IndexRebuild(const std::string& segment, std::span<const uint8_t> bytes,
               const IndexRebuildOptions& options)
      : segment_(segment), bytes_(bytes), options_(options), proofs_(segment) {}

  Result<SegmentIndex> run() {
    if (auto status = readHeader(); !status) return status.error();
    readSlots();
    size_t i = 0;
    while (i < slots_.size()) {
      if (slots_[i].entry) {
        keep(*slots_[i++].entry);
        continue;
      }
      const size_t next = nextEntry(i);
      if (next == slots_.size()) break;
      const Gap gap{i, next - i, index_.endOffset, slots_[next].entry->offset, true};
      if (auto status = fill(gap); !status) return status.error();
      i = next;
    }
    if (auto status = finish(i); !status) return status.error();
    return std::move(index_);
  }

 private:
  Status readHeader() {
    const std::string path = segment_ + ".idx";
    if (isUnknownIndexVersion(bytes_)) return parseIndexHeader(bytes_, path).error();
    Result<SegmentIndex> header = parseIndexHeader(bytes_, path);
    uint8_t part[kIndexHeaderBytes];
    if (!header && bytes_.size() >= sizeof part) {
      std::memcpy(part, bytes_.data(), sizeof part);
      if (correctIndexPart(part)) header = parseIndexHeader(part, path);
    }
    if (header) {
      index_ = std::move(*header);
      return ok();
    }
    return findHeader(header.error());
  }

  /// The facts of the index header, from other sources.
  Status findHeader(const Error& damage) {
    const auto port = options_.port ? options_.port : portInPath(segment_);
    auto header = options_.header;
    if (!header) {
      uint8_t bytes[kPcapFileHeaderBytes];
      const auto count = read(0, bytes);
      if (!count) return count.error();
      if (*count == sizeof bytes && loadLe32(bytes) == kPcapMagicNanos) {
        header = PcapFileHeader{loadLe32(bytes + 20), loadLe32(bytes + 16)};
      }
    }
    if (!port || !header) return damage;
    index_.port = *port;
    index_.header = *header;
    return ok();
  }

  /// Finds the entries that are whole and can follow each other.
  void readSlots() {
    uint64_t end = kPcapFileHeaderBytes;
    uint64_t damaged = 0;
    int failures = 0;
    for (size_t at = kIndexHeaderBytes; at + kIndexEntryBytes <= bytes_.size();
         at += kIndexEntryBytes) {
      const uint8_t* const bytes = bytes_.data() + at;
      auto entry = parseIndexEntry(bytes);
      const auto fits = [&] {
        if (!entry || entry->offset < end) return false;
        const uint64_t between = entry->offset - end;
        return between >= damaged && between <= damaged * kMaxBlockBytes;
      };
      if (!entry && failures < kMostFailedCorrections) {
        entry = correct(bytes);
        failures += !entry;
        index_.rebuiltBlocks += fits();
      }
      if (!fits() || (options_.triesDamaged && !entry->asWritten())) entry.reset();
      slots_.push_back({bytes, entry});
      damaged = entry ? 0 : damaged + 1;
      if (entry) end = entry->end();
    }
  }

  static std::optional<BlockEntry> correct(const uint8_t* bytes) {
    uint8_t part[kIndexEntryBytes];
    std::memcpy(part, bytes, sizeof part);
    return correctIndexPart(part) ? parseIndexEntry(part) : std::nullopt;
  }

  size_t nextEntry(size_t slot) const {
    while (slot < slots_.size() && !slots_[slot].entry) slot++;
    return slot;
  }

  void keep(const BlockEntry& entry) {
    proofs_.pass(entry);
    add(entry);
  }

  void add(const BlockEntry& entry) {
    index_.damagedBlocks += entry.isDamaged();
    index_.endOffset = entry.end();
    index_.blocks.push_back(entry);
  }

  /// After the last entry; all slots from this one on are damaged.
  Status finish(size_t slot) {
    const bool isTorn = bytes_.size() > kIndexHeaderBytes &&
                        (bytes_.size() - kIndexHeaderBytes) % kIndexEntryBytes != 0;
    if (options_.tail) return proveTail(slot, *options_.tail);
    if (!options_.endOffset) {
      index_.lastEntryLeftOut = slot < slots_.size() || isTorn || bytes_.size() < kIndexHeaderBytes;
      return ok();
    }
    if (*options_.endOffset <= index_.endOffset) return ok();
    const uint64_t bytes = *options_.endOffset - index_.endOffset;
    const uint64_t slots = slots_.size() - slot;
    // As many blocks as there are slots, if these can be all.
    const bool isFixed = slots > 0 && !isTorn && bytes >= slots && bytes <= slots * kMaxBlockBytes;
    return fill({slot, slots, index_.endOffset, *options_.endOffset, isFixed});
  }

  /// Adds the blocks after the last whole entry whose damaged entry, tally or sieve proves that
  /// their bytes are unchanged, and ends at the first block of which none of these was written. A
  /// block of which any was written and that is not proven is damaged, and so is everything after
  /// it that has no proof, because it is not known where that begins.
  Status proveTail(size_t slot, const UnindexedTail& tail) {
    const Gap gap{slot, slots_.size() - slot, index_.endOffset, tail.end, false};
    std::vector<BlockEntry> made;
    bool isDoubtful = false;
    RecordScan scan(reader(), gap.begin, std::max(gap.begin, gap.end));
    while (scan.offset() < gap.end) {
      const auto number = static_cast<uint32_t>(slot + made.size());
      const uint8_t* const lost = lostBytes(gap, made.size());
      // The last entry's tally is the last one.
      const auto tallyEnd = made.size() + 1 == gap.slots ? proofs_.talliesEnd() : std::nullopt;
      const RecordScan::IsProven isProven = [&](ScannedBlock& block) {
        return proofs_.prove(block, number, lost, tallyEnd);
      };
      const bool wasWritten = lost != nullptr && !isZero(lost);
      const bool canProve = wasWritten || proofs_.canProve(number);
      auto block = scan.next(UINT64_MAX, canProve ? isProven : RecordScan::IsProven());
      if (!block) return block.error();
      const bool isRight = block->entry.packets > 0 && isProven(*block);
      // An entry gets its place in the index after its block and its tally are on the disk. A sieve
      // is not synced: after a power loss it may be anything.
      const bool isContradicted = (lost && proofs_.tallyContradicts(*block, tallyEnd)) ||
                                  (tail.isWhole && proofs_.hasSieve(number));
      isDoubtful |= !isRight && (wasWritten || isContradicted);
      if (block->entry.packets == 0 || !(isRight || isDoubtful)) break;
      proofs_.pass(*block);
      made.push_back(isRight ? block->entry : damagedEntry(block->entry, gap, made));
      if (isRight && wasWritten) index_.rebuiltBlocks++;
      if (isRight && !wasWritten) index_.unindexedPackets += block->entry.packets;
    }
    const uint64_t end = made.empty() ? gap.begin : made.back().end();
    if (isDoubtful) static_cast<void>(addDamaged(gap, end, made));
    for (const BlockEntry& entry : made) add(entry);
    return ok();
  }

  Status fill(const Gap& gap) {
    auto made = makeBlocks(gap);
    if (!made) return made.error();
    const uint64_t end = made->empty() ? gap.begin : made->back().end();
    if (!addDamaged(gap, end, *made)) {
      made->clear();
      static_cast<void>(addDamaged(gap, gap.begin, *made));
    }
    for (const BlockEntry& entry : *made) {
      index_.rebuiltBlocks += !entry.isDamaged();
      if (entry.isDamaged()) proofs_.skip();
      add(entry);
    }
    return ok();
  }

  /// The blocks at the beginning of the gap that the records show.
  Result<std::vector<BlockEntry>> makeBlocks(const Gap& gap) {
    std::vector<BlockEntry> made;
    uint64_t packets = 0;
    if (gap.isFixed && gap.slots > 1) {
      const auto counted = countPackets(gap);
      if (!counted) return counted.error();
      packets = *counted;
    }
    const Bounds bounds = boundsOf(gap);
    const bool isAlone = gap.isFixed && gap.slots == 1;
    RecordScan scan(reader(), gap.begin, gap.end);
    size_t proven = 0;
    bool isDoubtful = options_.isMarked;
    while (scan.offset() < gap.end) {
      const size_t left = gap.slots - std::min(gap.slots, made.size());
      if (gap.isFixed && left == 0) break;
      // Each slot after this one has at least one packet of its own.
      const uint64_t most = packets >= left && left > 0 ? packets - (left - 1) : UINT64_MAX;
      const auto number = static_cast<uint32_t>(gap.firstSlot + made.size());
      const auto tallyEnd = [&](const BlockEntry& block) {
        return isAlone && block.end() == gap.end ? nextTally(gap.firstSlot + 1) : std::nullopt;
      };
      const RecordScan::IsProven isProven = [&](ScannedBlock& block) {
        return proofs_.prove(block, number, lostBytes(gap, made.size()), tallyEnd(block.entry));
      };
      // A single block ends with the gap; if there are several, a writer may have ended any of them
      // early.
      auto block =
          scan.next(most, !isAlone && proofs_.canProve(number) ? isProven : RecordScan::IsProven());
      if (!block) return block.error();
      if (block->entry.packets == 0) break;
      packets -= std::min<uint64_t>(packets, block->entry.packets);
      const bool isRight = isProven(*block);
      isDoubtful |= !isRight && proofs_.contradicts(*block, number, tallyEnd(block->entry));
      const bool isTrusted = isRight || (!isDoubtful && bounds.hold(block->entry));
      proofs_.pass(*block);
      made.push_back(isTrusted ? block->entry : damagedEntry(block->entry, gap, made));
      if (isRight) proven = made.size();
    }
    // Parsing the rest does not end where it should, so its records may be anything.
    if (scan.offset() != gap.end) made.resize(proven);
    return made;
  }

  /// Nothing if the records of the gap do not end with it.
  Result<uint64_t> countPackets(const Gap& gap) {
    RecordScan scan(reader(), gap.begin, gap.end);
    uint64_t packets = 0;
    while (scan.offset() < gap.end) {
      const auto block = scan.next();
      if (!block) return block.error();
      if (block->entry.packets == 0) return uint64_t{0};
      packets += block->entry.packets;
    }
    return packets;
  }

  const uint8_t* lostBytes(const Gap& gap, size_t number) const {
    return number < gap.slots ? slots_[gap.firstSlot + number].bytes : nullptr;
  }

  /// Fills the rest of the gap, starting at `begin`, with damaged entries. False if that is
  /// impossible: there are too few or too many slots.
  bool addDamaged(const Gap& gap, uint64_t begin, std::vector<BlockEntry>& made) const {
    const uint64_t bytes = gap.end - begin;
    uint64_t count = (bytes + kMaxBlockBytes - 1) / kMaxBlockBytes;
    if (gap.isFixed) {
      if (made.size() > gap.slots) return false;
      count = gap.slots - made.size();
      if (count > bytes || bytes > count * kMaxBlockBytes || (count == 0) != (bytes == 0)) {
        return false;
      }
    }
    for (uint64_t i = 0; i < count; i++) {
      const uint64_t from = begin + bytes * i / count, to = begin + bytes * (i + 1) / count;
      made.push_back(
          damagedEntry({.offset = from, .bytes = static_cast<uint32_t>(to - from)}, gap, made));
    }
    return true;
  }

  /// Represents a block about which only the place is known, after the blocks of the gap in `made`.
  /// Its time is between those of its neighbours.
  BlockEntry damagedEntry(const BlockEntry& place, const Gap& gap,
                          std::span<const BlockEntry> made) const {
    auto beforeNs = timeBefore(made), afterNs = timeAfter(gap);
    if (!beforeNs) beforeNs = afterNs.value_or(0);
    if (!afterNs) afterNs = *beforeNs == 0 ? kTimestampEndNs - 1 : lastNsAfter(*beforeNs);
    BlockEntry entry{.offset = place.offset, .bytes = place.bytes, .flags = kBlockDamaged};
    entry.minNs = std::min(*beforeNs, *afterNs);
    entry.maxNs = std::max(*beforeNs, *afterNs);
    return entry;
  }

  /// The end of the previous block. If neighbours overlap, each thread of the port wrote its own
  /// blocks, and the previous one of the same thread is among several.
  std::optional<int64_t> timeBefore(std::span<const BlockEntry> made) const {
    std::optional<int64_t> nearest;
    int64_t lowest = INT64_MAX, laterNs = INT64_MAX;
    bool isInterleaved = false;
    size_t left = kNeighbours;
    const auto visit = [&](std::span<const BlockEntry> blocks) {
      for (size_t i = blocks.size(); i > 0 && left > 0; i--) {
        const BlockEntry& block = blocks[i - 1];
        if (block.isDamaged()) continue;
        isInterleaved |= block.maxNs > laterNs;
        laterNs = block.minNs;
        lowest = std::min(lowest, block.maxNs);
        if (!nearest) nearest = block.maxNs;
        left--;
      }
    };
    visit(made);
    visit(index_.blocks);
    if (!nearest) return options_.minNs;
    return isInterleaved ? lowest : nearest;
  }

  /// The beginning of the block after the gap, or of the last one that may be from the same thread.
  std::optional<int64_t> timeAfter(const Gap& gap) const {
    std::optional<int64_t> nearest;
    int64_t highest = INT64_MIN, earlierNs = INT64_MIN;
    bool isInterleaved = false;
    size_t left = kNeighbours;
    for (size_t i = gap.firstSlot + gap.slots; i < slots_.size() && left > 0; i++) {
      const std::optional<BlockEntry>& block = slots_[i].entry;
      if (!block || block->isDamaged()) continue;
      isInterleaved |= block->minNs < earlierNs;
      earlierNs = block->maxNs;
      highest = std::max(highest, block->minNs);
      if (!nearest) nearest = block->minNs;
      left--;
    }
    if (!nearest) return options_.maxNs;
    return isInterleaved ? highest : nearest;
  }

  /// No packet of the segment has a later time if the last block with a time ends at `beforeNs`:
  /// packets are written after they were captured.
  int64_t lastNsAfter(int64_t beforeNs) const {
    const auto file = File::openForRead(segment_ + ".pcap");
    const auto writtenNs = file ? file->writtenNs() : Result<int64_t>(beforeNs);
    return writtenNs ? std::clamp(*writtenNs, beforeNs, kTimestampEndNs - 1) : beforeNs;
  }

  /// The times of the blocks around the gap.
  Bounds boundsOf(const Gap& gap) const {
    Bounds bounds{INT64_MAX, INT64_MIN};
    const auto include = [&](const BlockEntry& entry) {
      if (entry.isDamaged()) return;
      bounds.minNs = std::min(bounds.minNs, entry.minNs);
      bounds.maxNs = std::max(bounds.maxNs, entry.maxNs);
    };
    const size_t before = index_.blocks.size();
    for (size_t i = before - std::min(before, kNeighbours); i < before; i++) {
      include(index_.blocks[i]);
    }
    size_t found = 0;
    for (size_t i = gap.firstSlot + gap.slots; i < slots_.size() && found < kNeighbours; i++) {
      if (!slots_[i].entry) continue;
      include(*slots_[i].entry);
      found++;
    }
    if (before == 0) bounds.minNs = std::min(bounds.minNs, options_.minNs.value_or(0));
    if (found == 0) {
      bounds.maxNs = std::max(bounds.maxNs, options_.maxNs.value_or(kTimestampEndNs - 1));
    }
    return bounds;
  }

  /// Where the first tally of the blocks from this slot on begins, unless a lost one may precede
  /// it.
  std::optional<uint64_t> nextTally(size_t slot) const {
    for (; slot < slots_.size() && slots_[slot].entry; slot++) {
      if (slots_[slot].entry->tallyBytes > 0) return slots_[slot].entry->tallyOffset;
    }
    return std::nullopt;
  }

  RecordScan::ReadAt reader() {
    return [this](uint64_t offset, std::span<uint8_t> out) { return read(offset, out); };
  }

  Result<size_t> read(uint64_t offset, std::span<uint8_t> out) {
    if (!file_) {
      auto file = SegmentFile::open(segment_);
      if (!file) return file.error();
      file_ = std::move(*file);
    }
    return file_->readAt(offset, out);
  }

  const std::string segment_;
  const std::span<const uint8_t> bytes_;
  const IndexRebuildOptions options_;
  std::optional<SegmentFile> file_;
  std::vector<Slot> slots_;
  BlockProofs proofs_;
  SegmentIndex index_;
};

}  // namespace

Result<SegmentIndex> rebuildIndex(const std::string& segment, std::span<const uint8_t> bytes,
                                  const IndexRebuildOptions& options) {
  return IndexRebuild(segment, bytes, options).run();
}

void markLostBlocks(SegmentIndex& index, uint64_t dataBytes) {
  for (BlockEntry& block : index.blocks) {
    if (block.end() <= dataBytes || block.isDamaged()) continue;
    block = block.asDamaged();
    index.damagedBlocks++;
  }
}

}  // namespace capfleet
