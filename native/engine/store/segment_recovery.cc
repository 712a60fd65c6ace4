#include "store/segment_recovery.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "os/byte_order.h"
#include "store/block_checksum.h"
#include "store/block_counter.h"
#include "store/segment_folder.h"
#include "store/segment_path.h"

namespace capfleet {

namespace {

/// Of one read of records without entry.
constexpr size_t kReadBytes = size_t{1} << 20;
static_assert(kReadBytes >= kMaxBlockBytes);

/// All bytes; none when there is no file.
Result<std::vector<uint8_t>> readWhole(const std::string& path) {
  const auto file = File::openForAppend(path, true);
  if (!file) return file.error();
  return file->readAll();
}

Result<uint64_t> sizeOf(const std::string& path) {
  auto file = File::openForAppend(path, true);
  if (!file) return file.error();
  return file->size();
}

struct ScannedBlock {
  BlockEntry entry;
  std::vector<TallyRow> rows;
};

/// Walks whole records from an offset on, and says where blocks of them end.
class RecordScan {
 public:
  RecordScan(const File& data, uint64_t offset, uint64_t end)
      : data_(data), offset_(offset), end_(end), buffer_(kReadBytes) {}

  /// The next block; 0 packets when no whole record is left.
  Result<ScannedBlock> next() {
    BlockCounter block;
    const uint64_t wanted = std::min<uint64_t>(kMaxBlockBytes, end_ - offset_);
    const auto count = data_.readAt(offset_, {buffer_.data(), wanted});
    if (!count) return count.error();
    while (const uint32_t recordBytes = wholeRecordAt(block.entry().bytes, *count)) {
      if (!block.hasRoom(recordBytes)) break;
      block.add(loadRecordHeader(&buffer_[block.entry().bytes]).timestampNs, recordBytes);
    }
    const std::span<const TallyRow> rows = block.tallyRows();
    ScannedBlock scanned{block.entry(), {rows.begin(), rows.end()}};
    scanned.entry.checksum = blockChecksum({buffer_.data(), scanned.entry.bytes});
    offset_ += scanned.entry.bytes;
    return scanned;
  }

 private:
  /// 0 when there is none.
  uint32_t wholeRecordAt(uint64_t at, uint64_t end) const {
    if (at + kRecordHeaderBytes > end) return 0;
    const uint32_t fraction = loadLe32(&buffer_[at + 4]);
    const uint32_t capturedLength = loadLe32(&buffer_[at + 8]);
    if (fraction >= kNanosPerSecond || capturedLength > kMaxCapturedLength) return 0;
    return at + kRecordHeaderBytes + capturedLength <= end ? kRecordHeaderBytes + capturedLength
                                                           : 0;
  }

  const File& data_;
  uint64_t offset_;
  const uint64_t end_;
  std::vector<uint8_t> buffer_;
};

class Recovery {
 public:
  explicit Recovery(RecoveryOptions options)
      : options_(std::move(options)), folder_(portFolder(options_.captureFolder, options_.port)) {}

  Result<RecoveredSegments> run() {
    const auto numbers = listSegments(folder_);
    if (!numbers) return numbers.error();
    for (const uint32_t number : *numbers) {
      const bool isNewest = number == numbers->back();
      if (auto status = recover(number, isNewest); !status) return status.error();
    }
    if (!numbers->empty()) {
      if (auto status = syncDirectory(folder_); !status) return status.error();
    }
    // A port without packets has no folder, nor one whose first segment was never made. A folder
    // with files of others stays.
    if (recovered_.segments.empty()) static_cast<void>(::rmdir(folder_.c_str()));
    return std::move(recovered_);
  }

 private:
  Status recover(uint32_t number, bool isNewest) {
    const std::string segment = segmentPath(folder_, number);
    const auto dataBytes = sizeOf(segment + ".pcap");
    if (!dataBytes) return dataBytes.error();
    auto index = readIndex(segment, isNewest);
    if (!index) return index.error();
    if (*index) return settle(number, **index, isNewest);
    return remove(number, *dataBytes);
  }

  /// Nothing when the segment holds no packet that is to be kept.
  Result<std::optional<SegmentIndex>> readIndex(const std::string& segment, bool isNewest) {
    const auto bytes = readWhole(segment + ".idx");
    if (!bytes) return bytes.error();
    std::optional<SegmentIndex> index = parseIndexBeginning(*bytes);
    if (!index && !isNewest) {
      return Error{Code::kStoreCorrupt, segment + ".idx: the header is damaged"};
    }
    // Before the first sync nothing is promised, but the same machine has what was written.
    if (!index && options_.isSameBoot) return remakeIndex(segment);
    return index;
  }

  Result<std::optional<SegmentIndex>> remakeIndex(const std::string& segment) {
    uint8_t header[kPcapFileHeaderBytes];
    auto data = File::openForRead(segment + ".pcap");
    if (!data) return data.error();
    const auto count = data->readAt(0, header);
    if (!count) return count.error();
    if (*count < sizeof header || loadLe32(header) != kPcapMagicNanos) return {std::nullopt};
    SegmentIndex index;
    index.port = options_.port;
    index.header = {loadLe32(header + 20), loadLe32(header + 16)};
    auto file = File::openForAppend(segment + ".idx", true);
    if (!file) return file.error();
    uint8_t bytes[kIndexHeaderBytes];
    storeIndexHeader(bytes, options_.port, index.header);
    if (auto status = file->resize(0); !status) return status.error();
    if (auto status = file->write(bytes); !status) return status.error();
    return {index};
  }

  /// Lets data, tallies and index end together, with entries for the tail when that is to be
  /// trusted.
  Status settle(uint32_t number, SegmentIndex& index, bool isNewest) {
    const std::string segment = segmentPath(folder_, number);
    const auto dataBytes = sizeOf(segment + ".pcap");
    if (!dataBytes) return dataBytes.error();
    dropEntriesBehind(index, *dataBytes);
    auto files = SegmentFiles::resume({folder_, options_.port, index.header}, number, index);
    if (!files) return files.error();
    const uint64_t end = files->committed().bytes;
    const auto tail = isNewest && options_.isSameBoot ? scan(files->data(), end, *dataBytes)
                                                      : Result(std::vector<ScannedBlock>());
    if (!tail) return tail.error();
    if (index.blocks.empty() && tail->empty()) return remove(number, *dataBytes);

    const auto isWhole = files->isWhole();
    if (!isWhole) return isWhole.error();
    // An older one that was ended is safe. A sync for each would take long in a large store.
    if (isNewest || !*isWhole) {
      if (auto status = endWith(*files, *tail); !status) return status;
    }
    recovered_.cutBytes += *dataBytes - files->committed().bytes;
    recovered_.header = index.header;
    recovered_.segments.push_back(files->committed());
    return ok();
  }

  /// Behind the committed blocks come these, and nothing else.
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

  /// Entries are only written when their data is safe. A medium that lost it has lost these blocks.
  static void dropEntriesBehind(SegmentIndex& index, uint64_t dataBytes) {
    auto& blocks = index.blocks;
    while (!blocks.empty() && blocks.back().offset + blocks.back().bytes > dataBytes) {
      blocks.pop_back();
    }
  }

  static Result<std::vector<ScannedBlock>> scan(const File& data, uint64_t begin, uint64_t end) {
    std::vector<ScannedBlock> blocks;
    if (begin >= end) return blocks;
    RecordScan records(data, begin, end);
    while (true) {
      auto block = records.next();
      if (!block) return block.error();
      if (block->entry.packets == 0) return blocks;
      blocks.push_back(std::move(*block));
    }
  }

  Status remove(uint32_t number, uint64_t dataBytes) {
    recovered_.cutBytes += dataBytes - std::min<uint64_t>(dataBytes, kPcapFileHeaderBytes);
    return SegmentFiles::remove(folder_, number);
  }

  const RecoveryOptions options_;
  const std::string folder_;
  RecoveredSegments recovered_;
};

}  // namespace

Result<RecoveredSegments> recoverSegments(const RecoveryOptions& options) {
  return Recovery(options).run();
}

}  // namespace capfleet
