#include "store/segment_index.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "os/byte_order.h"
#include "os/file.h"
#include "store/index_rebuild.h"
#include "store/segment_entry.h"
#include "store/segment_file.h"
#include "store/segment_files.h"
#include "store/xxh3.h"

namespace capfleet {

namespace {

constexpr uint8_t kMagic[8] = {'C', 'F', 'I', 'N', 'D', 'E', 'X', '1'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxPort = 255;
/// Header and entry both end with the XXH3-64 of the bytes before it.
constexpr size_t kPartChecksumOffset = 56;
static_assert(kIndexHeaderBytes == kPartChecksumOffset + 8);
static_assert(kIndexEntryBytes == kPartChecksumOffset + 8);
/// No file is longer, so sums of offsets and bytes stay far from an overflow.
constexpr uint64_t kMaxOffset = uint64_t{1} << 62;

void storePartChecksum(uint8_t* part) {
  storeLe64(part + kPartChecksumOffset, xxh3({part, kPartChecksumOffset}));
}

bool hasValidPartChecksum(const uint8_t* part) {
  return loadLe64(part + kPartChecksumOffset) == xxh3({part, kPartChecksumOffset});
}

BlockEntry loadIndexEntry(const uint8_t* p) {
  BlockEntry entry{};
  entry.offset = loadLe64(p);
  entry.minNs = static_cast<int64_t>(loadLe64(p + 8));
  entry.maxNs = static_cast<int64_t>(loadLe64(p + 16));
  entry.bytes = loadLe32(p + 24);
  entry.packets = loadLe32(p + 28);
  entry.checksum = loadLe64(p + 32);
  entry.flags = loadLe32(p + 40);
  entry.tallyBytes = loadLe32(p + 44);
  entry.tallyOffset = loadLe64(p + 48);
  if (entry.isDamaged()) {
    std::swap(entry.packets, entry.lostPackets);
    std::swap(entry.checksum, entry.lostChecksum);
  }
  return entry;
}

bool isPlausible(const BlockEntry& entry) {
  if (entry.minNs < 0 || entry.minNs > entry.maxNs || entry.maxNs >= kTimestampEndNs) return false;
  if (entry.bytes == 0 || entry.bytes > kMaxBlockBytes) return false;
  if (entry.offset > kMaxOffset) return false;
  const uint32_t mostPackets = entry.bytes / kRecordHeaderBytes;
  if (entry.isDamaged()) return entry.lostPackets <= mostPackets && entry.tallyBytes == 0;
  return entry.packets > 0 && entry.packets <= mostPackets;
}

Error corrupt(const std::string& path, const std::string& what) {
  return {Code::kStoreCorrupt, path + ": " + what};
}

std::optional<Error> readHeader(const uint8_t* p, const std::string& path, SegmentIndex& index) {
  if (std::memcmp(p, kMagic, sizeof kMagic) != 0) return corrupt(path, "is not an index file");
  if (!hasValidPartChecksum(p)) return corrupt(path, "the header is damaged");
  if (loadLe32(p + 8) != kVersion || loadLe32(p + 12) != kIndexEntryBytes) {
    return corrupt(path, "has a version that this program does not support");
  }
  index.port = loadLe32(p + 16);
  index.header.linkTypeWord = loadLe32(p + 20);
  index.header.snaplen = loadLe32(p + 24);
  if (index.port > kMaxPort) return corrupt(path, "the capture port is above 255");
  return std::nullopt;
}

/// What the log says about a finished segment.
IndexRebuildOptions rebuildOptionsOf(const SegmentEntry* entry) {
  IndexRebuildOptions options;
  if (entry == nullptr) return options;
  options.port = entry->port;
  options.header = PcapFileHeader{entry->linkTypeWord, entry->snaplen};
  if (entry->isGrowing()) return options;
  options.endOffset = entry->bytes;
  options.isMarked = (entry->flags & kSegmentDamaged) != 0;
  options.minNs = entry->minNs;
  options.maxNs = entry->maxNs;
  return options;
}

/// Whether an undamaged index has packets from outside the times in the log, which cover all that
/// the segment ever had: then a file is not where it belongs.
bool isOfAnother(const SegmentIndex& index, const SegmentEntry& entry) {
  if (entry.isGrowing() || (entry.flags & kSegmentDamaged) != 0) return false;
  if (index.blocks.empty() || index.damagedBlocks > 0) return false;
  SegmentSummary summary{.minNs = INT64_MAX, .maxNs = INT64_MIN};
  summary.add(index.blocks);
  return summary.minNs < entry.minNs || summary.maxNs > entry.maxNs;
}

/// The index of the packets that are there, if they are those that were logged. Otherwise all that
/// is there is damaged: something else was in this segment, at any of its times.
Result<SegmentIndex> readMisplaced(const std::string& segment, const SegmentEntry& entry,
                                   const IndexRebuildOptions& options) {
  Result<SegmentIndex> index = rebuildIndex(segment, {}, options);
  if (!index || !isOfAnother(*index, entry)) return index;
  for (BlockEntry& block : index->blocks) {
    block = {.offset = block.offset,
             .minNs = entry.minNs,
             .maxNs = entry.maxNs,
             .bytes = block.bytes,
             .flags = kBlockDamaged};
  }
  index->damagedBlocks = static_cast<uint32_t>(index->blocks.size());
  index->rebuiltBlocks = 0;
  index->isMisplaced = true;
  return index;
}

Result<SegmentIndex> readIndex(const std::string& segment, const SegmentEntry* entry,
                               const IndexRebuildOptions& options) {
  const std::string path = segment + ".idx";
  std::vector<uint8_t> bytes;
  if (const auto file = File::openStored(path)) {
    auto read = file->readAll();
    if (!read) return read.error();
    bytes = std::move(*read);
  } else if (file.error().code != Code::kAgedOut || !SegmentFile::open(segment)) {
    return file.error();
  }
  Result<SegmentIndex> index = parseSegmentIndex(bytes, path);
  const bool isWhole = index && index->endOffset == options.endOffset.value_or(index->endOffset) &&
                       !(options.triesDamaged &&
                         std::any_of(index->blocks.begin(), index->blocks.end(),
                                     [](const BlockEntry& block) { return !block.asWritten(); }));
  if (!isWhole) index = rebuildIndex(segment, bytes, options);
  const bool isMisplaced = index && entry != nullptr && isOfAnother(*index, *entry);
  return isMisplaced ? readMisplaced(segment, *entry, options) : index;
}

}  // namespace

void storeIndexHeader(uint8_t (&out)[kIndexHeaderBytes], uint32_t port,
                      const PcapFileHeader& header) {
  assert(port <= kMaxPort);
  std::memset(out, 0, sizeof out);
  std::memcpy(out, kMagic, sizeof kMagic);
  storeLe32(out + 8, kVersion);
  storeLe32(out + 12, kIndexEntryBytes);
  storeLe32(out + 16, port);
  storeLe32(out + 20, header.linkTypeWord);
  storeLe32(out + 24, header.snaplen);
  storePartChecksum(out);
}

void storeIndexEntry(uint8_t (&out)[kIndexEntryBytes], const BlockEntry& entry) {
  std::memset(out, 0, sizeof out);
  storeLe64(out, entry.offset);
  storeLe64(out + 8, static_cast<uint64_t>(entry.minNs));
  storeLe64(out + 16, static_cast<uint64_t>(entry.maxNs));
  storeLe32(out + 24, entry.bytes);
  storeLe32(out + 28, entry.isDamaged() ? entry.lostPackets : entry.packets);
  storeLe64(out + 32, entry.isDamaged() ? entry.lostChecksum : entry.checksum);
  storeLe32(out + 40, entry.flags);
  storeLe32(out + 44, entry.tallyBytes);
  storeLe64(out + 48, entry.tallyOffset);
  storePartChecksum(out);
}

uint32_t addToChecksum(uint32_t checksum, const BlockEntry& block) {
  uint8_t bytes[8];
  storeLe64(bytes, block.checksum);
  return static_cast<uint32_t>(xxh3(bytes, checksum));
}

BlockEntry BlockEntry::asDamaged() const {
  if (isDamaged()) return *this;
  BlockEntry damaged = *this;
  damaged.flags |= kBlockDamaged;
  damaged.lostPackets = std::exchange(damaged.packets, 0);
  damaged.lostChecksum = std::exchange(damaged.checksum, 0);
  damaged.tallyBytes = 0;
  damaged.tallyOffset = 0;
  return damaged;
}

std::optional<BlockEntry> BlockEntry::asWritten() const {
  if (!isDamaged()) return *this;
  if (lostPackets == 0) return std::nullopt;
  BlockEntry written = *this;
  written.flags &= ~static_cast<uint32_t>(kBlockDamaged);
  written.packets = std::exchange(written.lostPackets, 0);
  written.checksum = std::exchange(written.lostChecksum, 0);
  return written;
}

Result<SegmentIndex> readSegmentIndex(const std::string& segment, const SegmentEntry* entry) {
  return readIndex(segment, entry, rebuildOptionsOf(entry));
}

Result<SegmentIndex> retrySegmentIndex(const std::string& segment, const SegmentEntry& entry) {
  IndexRebuildOptions options = rebuildOptionsOf(&entry);
  options.triesDamaged = true;
  return readIndex(segment, &entry, options);
}

Result<SegmentIndex> parseSegmentIndex(std::span<const uint8_t> bytes, const std::string& path) {
  Result<SegmentIndex> index = parseIndexHeader(bytes, path);
  if (!index) return index;
  const auto entries = bytes.subspan(kIndexHeaderBytes);
  if (Status status = appendIndexEntries(entries, path, *index); !status) return status.error();
  return index;
}

Result<SegmentIndex> parseIndexHeader(std::span<const uint8_t> bytes, const std::string& path) {
  if (bytes.size() < kIndexHeaderBytes) return corrupt(path, "ends inside the header");
  SegmentIndex index;
  if (auto error = readHeader(bytes.data(), path, index)) return *error;
  return index;
}

std::optional<BlockEntry> parseIndexEntry(const uint8_t* bytes) {
  if (!hasValidPartChecksum(bytes)) return std::nullopt;
  const BlockEntry entry = loadIndexEntry(bytes);
  return isPlausible(entry) ? std::optional(entry) : std::nullopt;
}

bool isUnknownIndexVersion(std::span<const uint8_t> bytes) {
  // Without a checksum that matches, this is damage.
  return bytes.size() >= kIndexHeaderBytes &&
         std::memcmp(bytes.data(), kMagic, sizeof kMagic - 1) == 0 &&
         hasValidPartChecksum(bytes.data()) &&
         (bytes[sizeof kMagic - 1] != kMagic[sizeof kMagic - 1] ||
          loadLe32(bytes.data() + 8) != kVersion ||
          loadLe32(bytes.data() + 12) != kIndexEntryBytes);
}

bool correctIndexPart(uint8_t (&part)[kIndexEntryBytes]) {
  uint8_t checksum[8];
  storeLe64(checksum, xxh3({part, kPartChecksumOffset}));
  int differing = 0;
  for (size_t i = 0; i < sizeof checksum; i++) {
    differing += checksum[i] != part[kPartChecksumOffset + i];
  }
  if (differing <= 1) {
    std::memcpy(part + kPartChecksumOffset, checksum, sizeof checksum);
    return true;
  }
  for (size_t i = 0; i < kPartChecksumOffset; i++) {
    for (int change = 1; change < 256; change++) {
      part[i] ^= static_cast<uint8_t>(change);
      if (hasValidPartChecksum(part)) return true;
      part[i] ^= static_cast<uint8_t>(change);
    }
  }
  return false;
}

std::vector<uint8_t> serialiseIndex(const SegmentIndex& index) {
  std::vector<uint8_t> bytes(kIndexHeaderBytes + index.blocks.size() * kIndexEntryBytes);
  uint8_t part[kIndexEntryBytes];
  static_assert(sizeof part == kIndexHeaderBytes);
  storeIndexHeader(part, index.port, index.header);
  std::memcpy(bytes.data(), part, sizeof part);
  for (size_t i = 0; i < index.blocks.size(); i++) {
    storeIndexEntry(part, index.blocks[i]);
    std::memcpy(bytes.data() + kIndexHeaderBytes + i * kIndexEntryBytes, part, sizeof part);
  }
  return bytes;
}

Status appendIndexEntries(std::span<const uint8_t> bytes, const std::string& path,
                          SegmentIndex& index) {
  const size_t count = bytes.size() / kIndexEntryBytes;
  index.blocks.reserve(index.blocks.size() + count);
  index.lastEntryLeftOut = bytes.size() % kIndexEntryBytes != 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* p = bytes.data() + i * kIndexEntryBytes;
    const bool isLast = i + 1 == count && !index.lastEntryLeftOut;
    if (!hasValidPartChecksum(p)) {
      if (!isLast) return corrupt(path, "entry " + std::to_string(i) + " is damaged");
      index.lastEntryLeftOut = true;
      break;
    }
    const BlockEntry entry = loadIndexEntry(p);
    if (entry.offset != index.endOffset || !isPlausible(entry)) {
      return corrupt(path, "entry " + std::to_string(i) + " contradicts the format");
    }
    index.endOffset += entry.bytes;
    index.damagedBlocks += entry.isDamaged();
    index.blocks.push_back(entry);
  }
  return ok();
}

Result<std::optional<SegmentIndex>> readIndexOf(const StreamSegments& stream,
                                                const SegmentEntry& segment) {
  const std::string path = stream.pathOf(segment);
  const bool isMarked = (segment.flags & kSegmentDamaged) != 0;
  // Its index may still exist: it describes packets that are gone.
  if (isMarked && ::access((path + ".pcap").c_str(), F_OK) != 0) return {std::nullopt};
  auto index = readSegmentIndex(path, segment.isGrowing() ? nullptr : &segment);
  if (index) return {std::move(*index)};
  if (isMarked && index.error().code == Code::kAgedOut) return {std::nullopt};
  return index.error();
}

}  // namespace capfleet
