#include "store/segment_writer.h"

#include <cassert>
#include <cstring>
#include <optional>
#include <utility>

#include "os/file.h"
#include "store/block_counter.h"
#include "store/segment_index.h"
#include "store/xxh3.h"

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

  std::optional<SegmentFiles> files;  ///< of the open segment, if any
  uint64_t segmentBytes = 0;          ///< of it, with what is buffered

  // The open block: its bytes are the end of the buffer, and before that the end of the file.
  BlockCounter block;
  Xxh3Stream blockHash;
  size_t hashedEnd = 0;  ///< the buffer's bytes before this are in blockHash or in older blocks

  std::unique_ptr<uint8_t[]> buffer;
  size_t bufferedBytes = 0;

  Status openSegment();
  Status finishSegment();
  void beginBlock();
  void endBlock();
  void hashBuffered();
  void put(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);
  Status makeRoom(uint32_t recordBytes);
  Status writeBuffer();
  Status flush();
};

Status SegmentWriter::State::openSegment() {
  const auto number = static_cast<uint32_t>(finished.size() + 1);
  auto made = SegmentFiles::create(
      {options.directory, options.port, options.header, options.durable}, number);
  if (!made) return made.error();
  files = std::move(*made);
  if (!buffer) buffer = std::make_unique_for_overwrite<uint8_t[]>(kBufferBytes);
  bufferedBytes = 0;
  hashedEnd = 0;
  segmentBytes = files->bytes();
  beginBlock();
  return ok();
}

Status SegmentWriter::State::finishSegment() {
  if (auto status = flush(); !status) return status;
  finished.push_back(files->committed());
  files.reset();
  return ok();
}

void SegmentWriter::State::beginBlock() {
  block.reset();
  blockHash.reset();
}

void SegmentWriter::State::endBlock() {
  if (block.isEmpty()) return;
  hashBuffered();
  BlockEntry entry = block.entry();
  entry.checksum = blockHash.value();
  files->addBlock(entry, block.tallyRows());
  beginBlock();
}

void SegmentWriter::State::hashBuffered() {
  blockHash.add({buffer.get() + hashedEnd, bufferedBytes - hashedEnd});
  hashedEnd = bufferedBytes;
}

/// Ends the segment, the block or the buffer when the next record does not fit.
Status SegmentWriter::State::makeRoom(uint32_t recordBytes) {
  const bool isEmpty = segmentBytes == kPcapFileHeaderBytes;
  if (files && !isEmpty && segmentBytes + recordBytes > options.segmentBytes) {
    if (auto status = finishSegment(); !status) return status;
  }
  if (!files) {
    if (auto status = openSegment(); !status) return status;
  }
  if (!block.hasRoom(recordBytes)) endBlock();
  if (bufferedBytes + recordBytes > kBufferBytes) {
    if (auto status = writeBuffer(); !status) return status;
    if (files->uncommittedBytes() >= kSyncBytes) return files->commit();
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

Status SegmentWriter::State::writeBuffer() {
  if (bufferedBytes == 0) return ok();
  hashBuffered();
  if (auto status = files->write({buffer.get(), bufferedBytes}); !status) return status;
  bufferedBytes = 0;
  hashedEnd = 0;
  return ok();
}

Status SegmentWriter::State::flush() {
  endBlock();
  if (auto status = writeBuffer(); !status) return status;
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

Status SegmentWriter::releaseBuffer() {
  if (!state_->files) return ok();
  if (auto status = state_->writeBuffer(); !status) return status;
  state_->buffer.reset();
  return state_->files->uncommittedBytes() >= kSyncBytes ? state_->files->commit() : ok();
}

Result<std::vector<SegmentSummary>> SegmentWriter::close() {
  if (state_->files) {
    if (auto status = state_->finishSegment(); !status) return status.error();
  }
  return std::move(state_->finished);
}

}  // namespace capfleet
