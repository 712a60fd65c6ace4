#include "store/repair/segment_recovery.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "store/index_rebuild.h"
#include "store/record_scan.h"
#include "store/segment_folder.h"
#include "store/segment_path.h"
#include "store/segment_removal.h"
#include "store/sieve_file.h"

namespace capfleet {

namespace {

constexpr size_t kMostNamedSegments = 10;

/// All bytes; none if there is no file.
Result<std::vector<uint8_t>> readWhole(const std::string& path) {
  const auto file = File::openForAppend(path, true);
  if (!file) return file.error();
  return file->readAll();
}

/// 0 if there is no file.
Result<uint64_t> sizeOf(const std::string& path) {
  const auto file = File::openForChange(path);
  if (file) return file->size();
  if (file.error().code == Code::kAgedOut) return uint64_t{0};
  return file.error();
}

/// Nothing proves these records, so they end where they are unlikely to be what was written: at
/// zeros, or at bytes that cannot be read.
std::vector<ScannedBlock> scanTail(const File& data, uint64_t begin, uint64_t end) {
  std::vector<ScannedBlock> blocks;
  RecordScan records(
      [&](uint64_t offset, std::span<uint8_t> out) { return data.readAt(offset, out); }, begin, end,
      ZeroRecords::kEnd);
  while (true) {
    auto block = records.next();
    if (!block || block->entry.packets == 0) return blocks;
    blocks.push_back(std::move(*block));
  }
}

/// Whether anything was written after the header, which happens when the packets are safe.
bool hasEntries(std::span<const uint8_t> index) {
  return index.size() > kIndexHeaderBytes &&
         std::any_of(index.begin() + kIndexHeaderBytes, index.end(),
                     [](uint8_t byte) { return byte != 0; });
}

class Recovery {
 public:
  explicit Recovery(RecoveryOptions options)
      : options_(std::move(options)), folder_(portFolder(options_.captureFolder, options_.port)) {}

  Result<RecoveredSegments> run() {
    const auto found = listSegments(folder_, options_.afterNumber);
    if (!found) return found.error();
    for (const FoundSegment& segment : *found) {
      const bool isNewest = segment == found->back();
      if (auto status = recover(segment, isNewest); !status) return status.error();
    }
    if (!found->empty()) {
      if (auto status = syncDirectory(folder_); !status) return status.error();
    }
    // A port without packets has no folder, nor does one whose first segment was never created. A
    // folder with other files stays.
    if (recovered_.segments.empty()) static_cast<void>(::rmdir(folder_.c_str()));
    return std::move(recovered_);
  }

 private:
  Status recover(const FoundSegment& found, bool isNewest) {
    const std::string segment = storedSegmentPath(folder_, found.number, found.isFlat);
    const auto dataBytes = sizeOf(segment + ".pcap");
    if (!dataBytes) return dataBytes.error();
    const auto bytes = readWhole(segment + ".idx");
    if (!bytes) return bytes.error();
    // Without records the segment was never begun. With entries its packets were lost by the
    // medium: retention only removes segments that are in the log.
    if (*dataBytes <= kPcapFileHeaderBytes) {
      if (!hasEntries(*bytes)) return remove(segment, *dataBytes);
      if (auto file = File::openForAppend(segment + ".pcap", true); !file) return file.error();
    }
    auto index = isNewest ? readNewest(segment, *bytes, *dataBytes)
                          : readFinished(segment, *bytes, *dataBytes);
    if (!index) return index.error();
    if (!*index) return remove(segment, *dataBytes);
    if (auto status = replaceHeader(segment, **index, *dataBytes); !status) return status;
    if (auto status = replaceIndex(segment, *bytes, **index, isNewest); !status) return status;
    note(segment, **index);
    recovered_.header = (*index)->header;
    return isNewest ? settleNewest(found, **index, *dataBytes) : summarise(segment, found, **index);
  }

  /// The index of a segment that its writer has ended: everything in it was safe.
  Result<std::optional<SegmentIndex>> readFinished(const std::string& segment,
                                                   std::span<const uint8_t> bytes,
                                                   uint64_t dataBytes) {
    IndexRebuildOptions options;
    options.port = options_.port;
    options.endOffset = dataBytes;
    auto index = rebuild(segment, bytes, options);
    if (!index) return index.error();
    markLostBlocks(*index, dataBytes);
    return std::optional(std::move(*index));
  }

  /// If nothing else shows the link type, it is that of the previous segment.
  Result<SegmentIndex> rebuild(const std::string& segment, std::span<const uint8_t> bytes,
                               IndexRebuildOptions options) const {
    auto index = rebuildIndex(segment, bytes, options);
    if (index || index.error().code != Code::kStoreCorrupt || recovered_.segments.empty()) {
      return index;
    }
    options.header = recovered_.header;
    return rebuildIndex(segment, bytes, options);
  }

  /// The index of the newest segment, up to the last block of which more than its packets was
  /// written. Nothing if the segment holds no packet to keep.
  Result<std::optional<SegmentIndex>> readNewest(const std::string& segment,
                                                 std::span<const uint8_t> bytes,
                                                 uint64_t dataBytes) {
    IndexRebuildOptions options;
    options.port = options_.port;
    options.tail = UnindexedTail{.end = dataBytes, .isWhole = options_.isSameBoot};
    auto index = rebuild(segment, bytes, options);
    if (!index && index.error().code != Code::kStoreCorrupt) return index.error();
    // Its files exist from the beginning, but perhaps without their headers: nothing was promised.
    if (!index && bytes.size() <= kIndexHeaderBytes) return std::optional<SegmentIndex>{};
    if (!index) return index.error();
    markLostBlocks(*index, dataBytes);
    // Before the first sync nothing is promised, but if the machine has not restarted, it has what
    // was written.
    if (index->blocks.empty() && !options_.isSameBoot) return std::optional<SegmentIndex>{};
    return std::optional(std::move(*index));
  }

  /// If the file of packets is lost: without a header no program could open it.
  static Status replaceHeader(const std::string& segment, const SegmentIndex& index,
                              uint64_t dataBytes) {
    if (dataBytes >= kPcapFileHeaderBytes || index.blocks.empty()) return ok();
    uint8_t header[kPcapFileHeaderBytes];
    storePcapFileHeader(header, index.header, true);
    return replaceFile(segment + ".pcap", header);
  }

  /// Only if the file differs. What follows the last entry of the newest segment is cut later.
  static Status replaceIndex(const std::string& segment, std::span<const uint8_t> bytes,
                             const SegmentIndex& index, bool isNewest) {
    const std::vector<uint8_t> wanted = serialiseIndex(index);
    const auto compared = isNewest ? bytes.first(std::min(bytes.size(), wanted.size())) : bytes;
    const bool isSame = std::equal(wanted.begin(), wanted.end(), compared.begin(), compared.end());
    if (isSame) return removeFile(segment + ".idx" + kNewFileEnding);
    return replaceFile(segment + ".idx", wanted);
  }

  void note(const std::string& segment, const SegmentIndex& index) {
    recovered_.rebuiltBlocks += index.rebuiltBlocks;
    recovered_.damagedBlocks += index.damagedBlocks;
    recovered_.recoveredPackets += index.unindexedPackets;
    if (index.rebuiltBlocks + index.damagedBlocks == 0) return;
    if (++noted_ > kMostNamedSegments) return;
    recovered_.message += (recovered_.message.empty() ? "" : "; ") + segment +
                          ".idx: " + std::to_string(index.rebuiltBlocks) +
                          " entries were rebuilt, " + std::to_string(index.damagedBlocks) +
                          " blocks are damaged";
  }

  Status summarise(const std::string& segment, const FoundSegment& found,
                   const SegmentIndex& index) {
    SegmentSummary summary{.number = found.number,
                           .minNs = INT64_MAX,
                           .maxNs = INT64_MIN,
                           .bytes = kPcapFileHeaderBytes,
                           .isFlat = found.isFlat};
    summary.add(index.blocks);
    const auto tallyBytes = sizeOf(segment + ".tally");
    if (!tallyBytes) return tallyBytes.error();
    summary.sideBytes = kIndexHeaderBytes + index.blocks.size() * kIndexEntryBytes + *tallyBytes +
                        sieveFileBytes(segment);
    recovered_.segments.push_back(summary);
    return ok();
  }

  /// Makes data, tallies and index of the newest segment end together, with entries for the tail if
  /// that can be trusted.
  Status settleNewest(const FoundSegment& found, const SegmentIndex& index, uint64_t dataBytes) {
    const std::string segment = storedSegmentPath(folder_, found.number, found.isFlat);
    SegmentFilesOptions options{folder_, options_.port, index.header};
    options.isFlat = found.isFlat;
    auto files = SegmentFiles::resume(options, found.number, index);
    if (!files) return files.error();
    const uint64_t end = files->committed().bytes;
    std::vector<ScannedBlock> tail;
    if (options_.isSameBoot && dataBytes > end) tail = scanTail(files->data(), end, dataBytes);
    if (index.blocks.empty() && tail.empty()) return remove(segment, dataBytes);
    if (auto status = endWith(*files, tail); !status) return status;
    recovered_.cutBytes += dataBytes - std::min(dataBytes, files->committed().bytes);
    recovered_.segments.push_back(files->committed());
    return ok();
  }

  /// These blocks follow the committed ones, and nothing else does. Missing data is replaced by
  /// zeros.
  Status endWith(SegmentFiles& files, const std::vector<ScannedBlock>& tail) {
    uint64_t tailBytes = 0;
    for (const ScannedBlock& block : tail) tailBytes += block.entry.bytes;
    if (auto status = files.cutBack(tailBytes); !status) return status;
    for (const ScannedBlock& block : tail) {
      files.addBlock(block.entry, block.rows, {});
      recovered_.recoveredPackets += block.entry.packets;
    }
    return files.commit();
  }

  Status remove(const std::string& segment, uint64_t dataBytes) {
    recovered_.cutBytes += dataBytes - std::min<uint64_t>(dataBytes, kPcapFileHeaderBytes);
    if (auto status = SegmentFiles::remove(segment); !status) return status;
    removeEmptyGroup(segment);
    return ok();
  }

  const RecoveryOptions options_;
  const std::string folder_;
  RecoveredSegments recovered_;
  size_t noted_ = 0;
};

}  // namespace

Result<RecoveredSegments> recoverSegments(const RecoveryOptions& options) {
  return Recovery(options).run();
}

}  // namespace capfleet
