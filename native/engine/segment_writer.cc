#include "segment_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "file.h"
#include "segment_index.h"
#include "segment_path.h"
#include "tally_builder.h"
#include "xxh3.h"

namespace capfleet {

namespace {

/// One write call. Large, because the disk is several times faster with large writes.
constexpr size_t kBufferBytes = size_t{1} << 20;
/// Bytes between syncs: every 8 MiB costs six times the throughput of every 64 MiB.
constexpr uint64_t kSyncBytes = uint64_t{64} << 20;

}  // namespace

struct SegmentWriter::State {
  SegmentWriterOptions options;
  std::vector<SegmentSummary> finished;

  // The open segment, if any.
  std::optional<File> data;
  std::optional<File> index;
  std::optional<File> tallies;
  SegmentSummary segment;
  uint64_t writtenBytes = 0;   ///< of the segment, handed to the kernel
  uint64_t unsyncedBytes = 0;  ///< of those, not yet synced
  std::vector<BlockEntry> unindexed;
  uint64_t writtenTallyBytes = 0;
  std::vector<uint8_t> unwrittenTallies;  ///< of the unindexed blocks

  // The open block: its bytes are the end of the buffer, and before that the end of the file.
  BlockEntry block{};
  int64_t lastNs = 0;
  TallyBuilder tally;
  Xxh3Stream blockHash;
  size_t hashedEnd = 0;  ///< the buffer's bytes before this are in blockHash or in older blocks

  std::unique_ptr<uint8_t[]> buffer;
  size_t bufferedBytes = 0;

  Status openSegment();
  Status finishSegment();
  void beginBlock();
  void endBlock();
  void addTally();
  void hashBuffered();
  void put(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);
  void count(int64_t timestampNs, uint32_t recordBytes);
  Status makeRoom(uint32_t recordBytes);
  Status writeBuffer();
  Status writeTallies();
  Status writeEntries();
  Status commit();
  Status flush();
};

Status SegmentWriter::State::openSegment() {
  const auto number = static_cast<uint32_t>(finished.size() + 1);
  const std::string path = segmentPath(options.directory, number);
  auto dataFile = File::create(path + ".pcap");
  if (!dataFile) return dataFile.error();
  auto indexFile = File::create(path + ".idx");
  if (!indexFile) return indexFile.error();
  auto tallyFile = File::create(path + ".tally");
  if (!tallyFile) return tallyFile.error();
  if (options.durable) {
    if (auto status = syncDirectory(options.directory); !status) return status;
  }
  uint8_t header[kIndexHeaderBytes];
  storeIndexHeader(header, options.port, options.header);
  if (auto status = indexFile->write(header); !status) return status;

  data = std::move(*dataFile);
  index = std::move(*indexFile);
  tallies = std::move(*tallyFile);
  if (!buffer) buffer = std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes);
  storePcapFileHeader(buffer.get(), options.header, true);
  bufferedBytes = kPcapFileHeaderBytes;
  hashedEnd = kPcapFileHeaderBytes;
  writtenBytes = 0;
  unsyncedBytes = 0;
  writtenTallyBytes = 0;
  segment = {.number = number, .minNs = INT64_MAX, .maxNs = INT64_MIN, .bytes = bufferedBytes};
  beginBlock();
  return ok();
}

Status SegmentWriter::State::finishSegment() {
  if (auto status = flush(); !status) return status;
  data.reset();
  index.reset();
  tallies.reset();
  finished.push_back(segment);
  return ok();
}

void SegmentWriter::State::beginBlock() {
  block = {.offset = segment.bytes, .minNs = INT64_MAX, .maxNs = INT64_MIN};
  lastNs = INT64_MIN;
  tally.reset();
  blockHash.reset();
}

void SegmentWriter::State::endBlock() {
  if (block.packets == 0) return;
  hashBuffered();
  block.checksum = blockHash.value();
  addTally();
  unindexed.push_back(block);
  beginBlock();
}

void SegmentWriter::State::addTally() {
  const std::span<const TallyRow> rows = tally.rows();
  // What lies in one millisecond, the entry tells itself.
  if (rows.size() == 1) return;
  const size_t begin = unwrittenTallies.size();
  appendTally(unwrittenTallies, rows, block);
  block.tallyOffset = writtenTallyBytes + begin;
  block.tallyBytes = static_cast<uint32_t>(unwrittenTallies.size() - begin);
}

void SegmentWriter::State::hashBuffered() {
  blockHash.add({buffer.get() + hashedEnd, bufferedBytes - hashedEnd});
  hashedEnd = bufferedBytes;
}

/// Ends the segment, the block or the buffer when the next record does not fit.
Status SegmentWriter::State::makeRoom(uint32_t recordBytes) {
  if (data && segment.packets > 0 && segment.bytes + recordBytes > options.segmentBytes) {
    if (auto status = finishSegment(); !status) return status;
  }
  if (!data) {
    if (auto status = openSegment(); !status) return status;
  }
  if (block.bytes + recordBytes > kBlockTargetBytes) endBlock();
  if (bufferedBytes + recordBytes > kBufferBytes) {
    if (auto status = writeBuffer(); !status) return status;
    if (unsyncedBytes >= kSyncBytes) return commit();
  }
  if (!buffer) buffer = std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes);
  return ok();
}

void SegmentWriter::State::put(int64_t timestampNs, uint32_t originalLength,
                               std::span<const uint8_t> captured) {
  uint8_t* out = buffer.get() + bufferedBytes;
  storeRecordHeader(out, {timestampNs, static_cast<uint32_t>(captured.size()), originalLength});
  if (!captured.empty()) std::memcpy(out + kRecordHeaderBytes, captured.data(), captured.size());
  bufferedBytes += kRecordHeaderBytes + captured.size();
}

void SegmentWriter::State::count(int64_t timestampNs, uint32_t recordBytes) {
  if (timestampNs < lastNs) block.flags |= kBlockUnordered;
  lastNs = timestampNs;
  tally.add(timestampNs, recordBytes);
  block.minNs = std::min(block.minNs, timestampNs);
  block.maxNs = std::max(block.maxNs, timestampNs);
  block.bytes += recordBytes;
  block.packets += 1;
  segment.minNs = std::min(segment.minNs, timestampNs);
  segment.maxNs = std::max(segment.maxNs, timestampNs);
  segment.bytes += recordBytes;
  segment.packets += 1;
}

Status SegmentWriter::State::writeBuffer() {
  if (bufferedBytes == 0) return ok();
  hashBuffered();
  if (auto status = data->write({buffer.get(), bufferedBytes}); !status) return status;
  // Keeps the disk busy between syncs, so that a sync finds little left to do.
  if (options.durable) data->startWriteBack(writtenBytes, bufferedBytes);
  writtenBytes += bufferedBytes;
  unsyncedBytes += bufferedBytes;
  bufferedBytes = 0;
  hashedEnd = 0;
  return ok();
}

Status SegmentWriter::State::writeTallies() {
  if (unwrittenTallies.empty()) return ok();
  if (auto status = tallies->write(unwrittenTallies); !status) return status;
  writtenTallyBytes += unwrittenTallies.size();
  unwrittenTallies.clear();
  return options.durable ? tallies->sync() : ok();
}

Status SegmentWriter::State::writeEntries() {
  if (unindexed.empty()) return ok();
  std::vector<uint8_t> bytes(unindexed.size() * kIndexEntryBytes);
  for (size_t i = 0; i < unindexed.size(); ++i) {
    uint8_t entry[kIndexEntryBytes];
    storeIndexEntry(entry, unindexed[i]);
    std::memcpy(bytes.data() + i * kIndexEntryBytes, entry, kIndexEntryBytes);
  }
  if (auto status = index->write(bytes); !status) return status;
  unindexed.clear();
  return options.durable ? index->sync() : ok();
}

/// REQUIRES: the bytes of all unindexed blocks are written.
Status SegmentWriter::State::commit() {
  if (options.durable && unsyncedBytes > 0) {
    if (auto status = data->sync(); !status) return status;
  }
  unsyncedBytes = 0;
  if (auto status = writeTallies(); !status) return status;
  return writeEntries();
}

Status SegmentWriter::State::flush() {
  endBlock();
  if (auto status = writeBuffer(); !status) return status;
  return commit();
}

Result<SegmentWriter> SegmentWriter::open(SegmentWriterOptions options) {
  if (options.port > 255) return Error{Code::kBadParameter, "port must be 0 to 255"};
  if (auto folder = File::openForRead(options.directory); !folder) return folder.error();
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  return SegmentWriter(std::move(state));
}

SegmentWriter::SegmentWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SegmentWriter::SegmentWriter(SegmentWriter&&) noexcept = default;
SegmentWriter& SegmentWriter::operator=(SegmentWriter&&) noexcept = default;
SegmentWriter::~SegmentWriter() = default;

Status SegmentWriter::append(int64_t timestampNs, uint32_t originalLength,
                             std::span<const uint8_t> captured) {
  assert(captured.size() <= kMaxCapturedLength);
  assert(timestampNs >= 0 && timestampNs < kTimestampEndNs);
  const auto recordBytes = kRecordHeaderBytes + static_cast<uint32_t>(captured.size());
  if (auto status = state_->makeRoom(recordBytes); !status) return status;
  state_->put(timestampNs, originalLength, captured);
  state_->count(timestampNs, recordBytes);
  return ok();
}

Status SegmentWriter::flush() { return state_->data ? state_->flush() : ok(); }

Status SegmentWriter::releaseBuffer() {
  if (!state_->data) return ok();
  if (auto status = state_->writeBuffer(); !status) return status;
  state_->buffer.reset();
  return state_->unsyncedBytes >= kSyncBytes ? state_->commit() : ok();
}

Result<std::vector<SegmentSummary>> SegmentWriter::close() {
  if (state_->data) {
    if (auto status = state_->finishSegment(); !status) return status.error();
  }
  return std::move(state_->finished);
}

}  // namespace capfleet
