#include "store/segment_writer.h"

#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "os/file.h"
#include "store/block_checksum.h"
#include "store/block_counter.h"
#include "store/segment_index.h"

namespace capfleet {

namespace {

/// Whole blocks are written together: the disk is several times faster with large writes.
constexpr size_t kBufferBytes = size_t{1} << 20;
static_assert(kBufferBytes >= kMaxBlockBytes);
/// Bytes between syncs: syncing every 8 MiB costs six times the throughput of every 64 MiB.
constexpr uint64_t kSyncBytes = uint64_t{64} << 20;

}  // namespace

struct SegmentWriter::State {
  SegmentWriterOptions options;
  std::vector<SegmentSummary> finished;

  std::optional<SegmentFiles> files;  ///< of the open segment, if any
  uint64_t segmentBytes = 0;          ///< of it, with what is buffered

  BlockCounter block;  ///< the open one

  std::unique_ptr<uint8_t[]> buffer;
  size_t bufferBytes = 0;
  size_t bufferedBytes = 0;  ///< of it: blocks that have ended, then the open one

  Status openSegment();
  Status finishSegment();
  void endBlock();
  void put(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);
  Status makeRoom(uint32_t recordBytes);
  void resizeBuffer(size_t bytes);
  Status writeBlocks();
  Status releaseBuffer();
  Status flush();
};

Status SegmentWriter::State::openSegment() {
  const auto number = static_cast<uint32_t>(finished.size() + 1);
  auto made = SegmentFiles::create({options.directory, options.port, options.header,
                                    options.durable, options.withSieves, options.isFlat},
                                   number);
  if (!made) return made.error();
  files = std::move(*made);
  segmentBytes = files->bytes();
  return ok();
}

Status SegmentWriter::State::finishSegment() {
  if (auto status = flush(); !status) return status;
  finished.push_back(files->finish());
  files.reset();
  return ok();
}

void SegmentWriter::State::endBlock() {
  if (block.isEmpty()) return;
  BlockEntry entry = block.entry();
  const std::span<const uint8_t> bytes(buffer.get() + bufferedBytes - entry.bytes, entry.bytes);
  entry.checksum = blockChecksum(bytes);
  files->addBlock(entry, block.tallyRows(), bytes);
  block.reset();
}

/// Ends the segment, the block or the buffer if the next record does not fit.
Status SegmentWriter::State::makeRoom(uint32_t recordBytes) {
  const bool isEmpty = segmentBytes == kPcapFileHeaderBytes;
  if (files && !isEmpty && segmentBytes + recordBytes > options.segmentBytes) {
    if (auto status = finishSegment(); !status) return status;
  }
  if (!files) {
    if (auto status = openSegment(); !status) return status;
  }
  if (!block.hasRoom(recordBytes)) endBlock();
  if (block.isEmpty() && bufferedBytes + kMaxBlockBytes > kBufferBytes) {
    if (auto status = writeBlocks(); !status) return status;
  }
  if (bufferBytes < kBufferBytes) resizeBuffer(kBufferBytes);
  return ok();
}

void SegmentWriter::State::put(int64_t timestampNs, uint32_t originalLength,
                               std::span<const uint8_t> captured) {
  uint8_t* out = buffer.get() + bufferedBytes;
  storeRecordHeader(out, {timestampNs, static_cast<uint32_t>(captured.size()), originalLength});
  if (!captured.empty()) std::memcpy(out + kRecordHeaderBytes, captured.data(), captured.size());
  bufferedBytes += kRecordHeaderBytes + captured.size();
}

void SegmentWriter::State::resizeBuffer(size_t bytes) {
  auto resized = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  if (bufferedBytes > 0) std::memcpy(resized.get(), buffer.get(), bufferedBytes);
  buffer = std::move(resized);
  bufferBytes = bytes;
}

/// Writes out the blocks that have ended.
Status SegmentWriter::State::writeBlocks() {
  const size_t open = block.entry().bytes;
  const size_t ended = bufferedBytes - open;
  if (ended == 0) return ok();
  if (auto status = files->write({buffer.get(), ended}); !status) return status;
  std::memmove(buffer.get(), buffer.get() + ended, open);
  bufferedBytes = open;
  return files->uncommittedBytes() >= kSyncBytes ? files->commit() : ok();
}

Status SegmentWriter::State::releaseBuffer() {
  if (auto status = writeBlocks(); !status) return status;
  resizeBuffer(bufferedBytes);
  return ok();
}

Status SegmentWriter::State::flush() {
  endBlock();
  if (auto status = writeBlocks(); !status) return status;
  return files->commit();
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
  state_->block.add(timestampNs, recordBytes);
  state_->segmentBytes += recordBytes;
  return ok();
}

Status SegmentWriter::flush() { return state_->files ? state_->flush() : ok(); }

Status SegmentWriter::releaseBuffer() { return state_->files ? state_->releaseBuffer() : ok(); }

Result<std::vector<SegmentSummary>> SegmentWriter::close() {
  if (state_->files) {
    if (auto status = state_->finishSegment(); !status) return status.error();
  }
  return std::move(state_->finished);
}

}  // namespace capfleet
