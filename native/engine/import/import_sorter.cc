#include "import/import_sorter.h"

#include <algorithm>
#include <cstring>

#include "store/segment_index.h"

namespace capfleet {

namespace {

/// Limits the entries' own memory if packets are tiny.
constexpr size_t kMaxEntries = size_t{1} << 19;
/// With this many ports or more, idle ones do not keep their write buffer (1 MiB each).
constexpr uint32_t kMaxBuffers = 16;

}  // namespace

ImportSorter::ImportSorter(ImportSorterOptions options) : options_(std::move(options)) {
  const uint64_t bytes = std::max<uint64_t>(options_.sortBytes, kMaxBlockBytes);
  arena_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
}

ImportSorter::Port& ImportSorter::portFor(uint32_t port, const PcapFileHeader& header) {
  auto& entry = ports_[port];
  if (!entry) {
    const std::string name = std::to_string(port);
    PortRunsOptions runs;
    runs.output.directory = options_.directory + "/cap" + name;
    runs.output.port = port;
    runs.output.header = header;
    runs.output.segmentBytes = options_.segmentBytes;
    runs.scratchDirectory = options_.scratchDirectory + "/" + name;
    entry = std::make_unique<Port>(Port{{}, true, PortRuns(std::move(runs))});
    ++portCount_;
  }
  return *entry;
}

bool ImportSorter::hasRoom(size_t recordBytes) const {
  if (entryCount_ == 0) return true;
  return arenaBytes_ + recordBytes <= options_.sortBytes && entryCount_ < kMaxEntries;
}

Status ImportSorter::add(uint32_t port, const PcapFileHeader& header, const CaptureRecord& packet) {
  const size_t recordBytes = kRecordHeaderBytes + packet.captured.size();
  while (!hasRoom(recordBytes)) {
    if (auto status = writeOldest(); !status) return status;
  }
  Port& target = portFor(port, header);
  if (!target.waiting.empty() && packet.timestampNs < target.waiting.back().timestampNs) {
    target.isOrdered = false;
  }
  uint8_t* out = arena_.get() + arenaBytes_;
  storeRecordHeader(out, {packet.timestampNs, static_cast<uint32_t>(packet.captured.size()),
                          packet.originalLength});
  if (!packet.captured.empty()) {
    std::memcpy(out + kRecordHeaderBytes, packet.captured.data(), packet.captured.size());
  }
  target.waiting.push_back({packet.timestampNs, static_cast<uint32_t>(arenaBytes_)});
  arenaBytes_ += recordBytes;
  ++entryCount_;
  return ok();
}

Status ImportSorter::writeOldest() {
  for (const auto& port : ports_) {
    if (!port) continue;
    const size_t count = port->waiting.size();
    if (auto status = writeFirst(*port, count - count / 4); !status) return status;
    if (portCount_ > kMaxBuffers) {
      if (auto status = port->runs.releaseBuffer(); !status) return status;
    }
  }
  compact();
  return ok();
}

Status ImportSorter::writeFirst(Port& port, size_t count) {
  if (!port.isOrdered) std::sort(port.waiting.begin(), port.waiting.end());
  port.isOrdered = true;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* record = arena_.get() + port.waiting[i].offset;
    const RecordHeader header = loadRecordHeader(record);
    auto status = port.runs.append(header.timestampNs, header.originalLength,
                                   {record + kRecordHeaderBytes, header.capturedLength});
    if (!status) return status;
  }
  port.waiting.erase(port.waiting.begin(), port.waiting.begin() + static_cast<ptrdiff_t>(count));
  entryCount_ -= count;
  return ok();
}

/// Moves the remaining records to the front of the arena, in their order there.
void ImportSorter::compact() {
  std::vector<Entry*> entries;
  entries.reserve(entryCount_);
  for (const auto& port : ports_) {
    if (!port) continue;
    for (Entry& entry : port->waiting) entries.push_back(&entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  arenaBytes_ = 0;
  for (Entry* entry : entries) {
    const uint8_t* record = arena_.get() + entry->offset;
    const size_t recordBytes = kRecordHeaderBytes + loadRecordHeader(record).capturedLength;
    std::memmove(arena_.get() + arenaBytes_, record, recordBytes);
    entry->offset = static_cast<uint32_t>(arenaBytes_);
    arenaBytes_ += recordBytes;
  }
}

Status ImportSorter::finish(const std::function<bool()>& goesOn) {
  for (const auto& port : ports_) {
    if (!port) continue;
    if (auto status = writeFirst(*port, port->waiting.size()); !status) return status;
  }
  arena_.reset();
  for (uint32_t i = 0; i < ports_.size(); ++i) {
    if (!ports_[i]) continue;
    auto segments = ports_[i]->runs.finish(goesOn);
    if (!segments) return segments.error();
    segments_[i] = std::move(*segments);
    ports_[i].reset();
  }
  return ok();
}

}  // namespace capfleet
