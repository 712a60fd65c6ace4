#include "store/segment_files.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "store/address_table.h"
#include "store/segment_path.h"
#include "store/sieve_file.h"

namespace capfleet {

void SegmentSummary::add(std::span<const BlockEntry> blocks) {
  const auto hasTimes = [](const BlockEntry& block) { return block.hasTimes(); };
  const bool isOfAnyTime = minNs == 0 && maxNs == kTimestampEndNs - 1;
  const bool addsTimes = std::any_of(blocks.begin(), blocks.end(), hasTimes);
  if (isOfAnyTime && addsTimes) {
    minNs = INT64_MAX;
    maxNs = INT64_MIN;
  }
  for (const BlockEntry& block : blocks) {
    packets += block.packets;
    bytes += block.bytes;
    checksum = addToChecksum(checksum, block);
    if (!block.hasTimes() && (addsTimes || minNs <= maxNs)) continue;
    minNs = std::min(minNs, block.minNs);
    maxNs = std::max(maxNs, block.maxNs);
  }
}

SegmentFiles::SegmentFiles(SegmentFilesOptions options, uint32_t number, File data, File index,
                           File tallies, std::optional<File> sieves)
    : options_(std::move(options)),
      data_(std::move(data)),
      index_(std::move(index)),
      tallies_(std::move(tallies)),
      sieves_(std::move(sieves)) {
  committed_ = {.number = number,
                .minNs = INT64_MAX,
                .maxNs = INT64_MIN,
                .packets = 0,
                .bytes = kPcapFileHeaderBytes,
                .sideBytes = kIndexHeaderBytes,
                .isFlat = options_.isFlat};
}

namespace {

/// Creates the first file of a segment, and the folder of its group if it does not exist.
Result<File> createFirst(const SegmentFilesOptions& options, uint32_t number,
                         const std::string& path) {
  if (options.isFlat) return File::create(path);
  const std::string folder = groupFolder(options.directory, number);
  // Retention removes an empty group folder, perhaps between these two calls.
  for (int tries = 0;; tries++) {
    if (auto status = makeDirectory(folder); !status) return status.error();
    auto file = File::create(path);
    if (file || tries > 0 || ::access(folder.c_str(), F_OK) == 0) return file;
  }
}

}  // namespace

Result<SegmentFiles> SegmentFiles::create(const SegmentFilesOptions& options, uint32_t number) {
  const std::string path = storedSegmentPath(options.directory, number, options.isFlat);
  auto data = createFirst(options, number, path + ".pcap");
  if (!data) return data.error();
  auto index = File::create(path + ".idx");
  if (!index) return index.error();
  auto tallies = File::create(path + ".tally");
  if (!tallies) return tallies.error();
  std::optional<File> sieves;
  if (options.withSieves) {
    auto made = File::create(sievePath(path));
    if (!made) return made.error();
    sieves = std::move(*made);
  }
  SegmentFiles files(options, number, std::move(*data), std::move(*index), std::move(*tallies),
                     std::move(sieves));
  if (files.sieves_ && hasSieves(options.header)) {
    files.addresses_ = std::make_unique<AddressCollector>();
  }
  if (auto status = files.writeHeaders(); !status) return status.error();
  return files;
}

Result<SegmentFiles> SegmentFiles::resume(const SegmentFilesOptions& options, uint32_t number,
                                          const SegmentIndex& index) {
  const std::string path = storedSegmentPath(options.directory, number, options.isFlat);
  auto dataFile = File::openForAppend(path + ".pcap");
  if (!dataFile) return dataFile.error();
  auto indexFile = File::openForAppend(path + ".idx");
  if (!indexFile) return indexFile.error();
  auto tallyFile = File::openForAppend(path + ".tally", true);
  if (!tallyFile) return tallyFile.error();
  const auto tallyBytes = tallyFile->size();
  if (!tallyBytes) return tallyBytes.error();

  SegmentFiles files(options, number, std::move(*dataFile), std::move(*indexFile),
                     std::move(*tallyFile), std::nullopt);
  files.uncommitted_ = index.blocks;
  files.countCommitted();
  files.bytes_ = files.blockEnd_ = files.committed_.bytes;
  for (const BlockEntry& entry : index.blocks) {
    files.committedTallyBytes_ =
        std::max(files.committedTallyBytes_, entry.tallyOffset + entry.tallyBytes);
  }
  files.committedTallyBytes_ = std::min(files.committedTallyBytes_, *tallyBytes);
  // The sieves stay unchanged.
  files.committed_.sideBytes += files.committedTallyBytes_ + sieveFileBytes(path);
  return files;
}

Status SegmentFiles::writeHeaders() {
  if (options_.durable) {
    if (!options_.isFlat) {
      const Status synced = syncDirectory(groupFolder(options_.directory, committed_.number));
      if (!synced) return synced;
    }
    if (auto status = syncDirectory(options_.directory); !status) return status;
  }
  uint8_t indexHeader[kIndexHeaderBytes];
  storeIndexHeader(indexHeader, options_.port, options_.header);
  if (auto status = index_.write(indexHeader); !status) return status;
  uint8_t dataHeader[kPcapFileHeaderBytes];
  storePcapFileHeader(dataHeader, options_.header, true);
  return data_.write(dataHeader);
}

Status SegmentFiles::write(std::span<const uint8_t> bytes) {
  if (auto status = data_.write(bytes); !status) return status;
  // Keeps the disk busy between syncs, so that a sync finds little left to do.
  if (options_.durable) data_.startWriteBack(bytes_, bytes.size());
  bytes_ += bytes.size();
  return ok();
}

void SegmentFiles::addBlock(BlockEntry entry, std::span<const TallyRow> rows,
                            std::span<const uint8_t> bytes) {
  entry.offset = blockEnd_;
  blockEnd_ += entry.bytes;
  // A block within one millisecond needs no tally: its entry has the same information.
  if (rows.size() > 1) {
    const size_t begin = uncommittedTallies_.size();
    appendTally(uncommittedTallies_, rows, entry);
    entry.tallyOffset = committedTallyBytes_ + begin;
    entry.tallyBytes = static_cast<uint32_t>(uncommittedTallies_.size() - begin);
  }
  if (sieves_ && hasSieves(options_.header)) {
    const auto number = static_cast<uint32_t>(committedEntries_ + uncommitted_.size());
    appendSieve(uncommittedSieves_, number, bytes, entry, addresses_.get());
  }
  uncommitted_.push_back(entry);
}

Status SegmentFiles::commit() {
  if (uncommitted_.empty()) return ok();
  assert(bytes_ >= blockEnd_);
  if (options_.durable) {
    if (auto status = data_.sync(); !status) return status;
  }
  if (auto status = writeTallies(); !status) return status;
  if (auto status = writeSieves(); !status) return status;
  if (auto status = writeEntries(); !status) return status;
  countCommitted();
  return ok();
}

Status SegmentFiles::writeTallies() {
  if (uncommittedTallies_.empty()) return ok();
  if (auto status = tallies_.write(uncommittedTallies_); !status) return status;
  return options_.durable ? tallies_.sync() : ok();
}

Status SegmentFiles::writeSieves() {
  return uncommittedSieves_.empty() ? ok() : sieves_->write(uncommittedSieves_);
}

Status SegmentFiles::writeEntries() {
  std::vector<uint8_t> bytes(uncommitted_.size() * kIndexEntryBytes);
  for (size_t i = 0; i < uncommitted_.size(); ++i) {
    uint8_t entry[kIndexEntryBytes];
    storeIndexEntry(entry, uncommitted_[i]);
    std::memcpy(bytes.data() + i * kIndexEntryBytes, entry, kIndexEntryBytes);
  }
  if (auto status = index_.write(bytes); !status) return status;
  return options_.durable ? index_.sync() : ok();
}

void SegmentFiles::countCommitted() {
  committed_.add(uncommitted_);
  committed_.sideBytes += uncommitted_.size() * kIndexEntryBytes + uncommittedTallies_.size() +
                          uncommittedSieves_.size();
  committedEntries_ += uncommitted_.size();
  committedTallyBytes_ += uncommittedTallies_.size();
  committedSieveBytes_ += uncommittedSieves_.size();
  uncommitted_.clear();
  uncommittedTallies_.clear();
  uncommittedSieves_.clear();
}

Status SegmentFiles::cutBack(uint64_t keptBytes) {
  // The entries first: none may be left that describes what is cut.
  if (auto status = index_.resize(committedIndexBytes()); !status) return status;
  if (options_.durable) {
    if (auto status = index_.sync(); !status) return status;
  }
  if (auto status = tallies_.resize(committedTallyBytes_); !status) return status;
  if (sieves_) {
    if (auto status = sieves_->resize(committedSieveBytes_); !status) return status;
  }
  if (auto status = data_.resize(committed_.bytes + keptBytes); !status) {
    return status;
  }
  blockEnd_ = committed_.bytes;
  bytes_ = blockEnd_ + keptBytes;
  uncommitted_.clear();
  uncommittedTallies_.clear();
  uncommittedSieves_.clear();
  return ok();
}

SegmentSummary SegmentFiles::finish() {
  if (const auto collector = std::exchange(addresses_, nullptr)) {
    static_cast<void>(
        addAddresses(options_.directory, {SegmentContent::of(committed_, committedEntries_),
                                          collector->takeLines(committed_.bytes)}));
  }
  return committed_;
}

Result<bool> SegmentFiles::isWhole() const {
  const auto dataBytes = data_.size();
  if (!dataBytes) return dataBytes.error();
  const auto indexBytes = index_.size();
  if (!indexBytes) return indexBytes.error();
  const auto tallyBytes = tallies_.size();
  if (!tallyBytes) return tallyBytes.error();
  return *dataBytes == committed_.bytes && *indexBytes == committedIndexBytes() &&
         *tallyBytes == committedTallyBytes_;
}

Status SegmentFiles::remove(const std::string& segment) {
  for (const char* ending : kSegmentEndings) {
    if (auto status = removeFile(segment + ending); !status) return status;
  }
  return ok();
}

}  // namespace capfleet
