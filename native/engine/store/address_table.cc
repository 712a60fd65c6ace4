#include "store/address_table.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/byte_order.h"
#include "store/address_collector.h"
#include "store/xxh3.h"

namespace capfleet {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr char kColumnsMagic[kMagicBytes + 1] = "CFADDRS2";
constexpr char kTableMagic[kMagicBytes + 1] = "CFADDRT2";

constexpr size_t kColumnHeaderBytes = 56;
constexpr size_t kLineBytes = kLineWords * sizeof(uint64_t);

constexpr size_t kPageBytes = 4096;
constexpr size_t kChecksumOffset = kPageBytes - 8;
static_assert(kChecksumOffset == kLineBits * sizeof(uint64_t));
constexpr size_t kFactsOffset = 16;
constexpr size_t kFactsBytes = 40;
static_assert(kFactsOffset + kSegmentsPerAddressTable * kFactsBytes <= kChecksumOffset);
/// Stands for a page that is damaged: everything may be in every segment.
constexpr auto kFullPage = [] {
  std::array<uint8_t, kPageBytes> page{};
  page.fill(0xFF);
  return page;
}();
/// Tables of up to this size are read at once.
constexpr size_t kFirstReadBytes = 4 * kPageBytes;

bool isLineCount(uint32_t lines) { return std::has_single_bit(lines) && lines <= kMostLines; }

/// The facts of a segment in a table of either kind, without its number.
void storeFacts(uint8_t* to, const SegmentContent& segment) {
  storeLe64(to, segment.bytes);
  storeLe64(to + 8, segment.packets);
  storeLe64(to + 16, static_cast<uint64_t>(segment.minNs));
  storeLe64(to + 24, static_cast<uint64_t>(segment.maxNs));
  storeLe32(to + 32, segment.checksum);
  storeLe32(to + 36, segment.blocks);
}

SegmentContent loadFacts(const uint8_t* from, uint32_t number) {
  return {.number = number,
          .blocks = loadLe32(from + 36),
          .bytes = loadLe64(from),
          .packets = loadLe64(from + 8),
          .minNs = static_cast<int64_t>(loadLe64(from + 16)),
          .maxNs = static_cast<int64_t>(loadLe64(from + 24)),
          .checksum = loadLe32(from + 32)};
}

void appendColumn(std::vector<uint8_t>& out, const AddressColumn& column) {
  const size_t begin = out.size();
  const size_t lineBytes = column.lines.size() * sizeof(uint64_t);
  out.resize(begin + kColumnHeaderBytes + lineBytes);
  uint8_t* const to = out.data() + begin;
  storeLe32(to + 8, column.segment.number);
  storeLe32(to + 12, static_cast<uint32_t>(column.lines.size() / kLineWords));
  storeFacts(to + 16, column.segment);
  if (lineBytes > 0) std::memcpy(to + kColumnHeaderBytes, column.lines.data(), lineBytes);
  storeLe64(to, xxh3({to + 8, kColumnHeaderBytes - 8 + lineBytes}));
}

/// The size of the column whose header the bytes are; nullopt if it is damaged.
std::optional<size_t> columnBytes(std::span<const uint8_t> header) {
  if (header.size() < kColumnHeaderBytes) return std::nullopt;
  const uint32_t lines = loadLe32(&header[12]);
  if (lines != 0 && !isLineCount(lines)) return std::nullopt;
  return kColumnHeaderBytes + lines * kLineBytes;
}

/// Each row of a page is a bit of the segments' lines with its number.
std::vector<uint8_t> transposed(const std::vector<AddressColumn>& columns) {
  size_t words = kLineWords;
  for (const AddressColumn& column : columns) words = std::max(words, column.lines.size());
  const auto lines = static_cast<uint32_t>(words / kLineWords);
  std::vector<uint8_t> bytes(kPageBytes * (1 + size_t{lines}));
  std::memcpy(bytes.data(), kTableMagic, kMagicBytes);
  storeLe32(&bytes[8], lines);
  storeLe32(&bytes[12], columns.front().segment.number / kSegmentsPerAddressTable);
  for (const AddressColumn& column : columns) {
    const uint32_t bit = column.segment.number % kSegmentsPerAddressTable;
    storeFacts(&bytes[kFactsOffset + bit * kFactsBytes], column.segment);
  }
  const uint64_t checksum = xxh3({bytes.data(), kChecksumOffset});
  storeLe64(&bytes[kChecksumOffset], checksum);
  std::array<uint64_t, kLineBits> rows;
  for (uint32_t line = 0; line < lines; line++) {
    rows.fill(0);
    for (const AddressColumn& column : columns) {
      const uint64_t mask = uint64_t{1} << column.segment.number % kSegmentsPerAddressTable;
      if (column.lines.empty()) {
        for (uint64_t& row : rows) row |= mask;
        continue;
      }
      const uint64_t* const from = &column.lines[line * kLineWords % column.lines.size()];
      for (size_t word = 0; word < kLineWords; word++) {
        for (uint64_t left = from[word]; left != 0; left &= left - 1) {
          rows[word * 64 + static_cast<size_t>(std::countr_zero(left))] |= mask;
        }
      }
    }
    uint8_t* const page = &bytes[kPageBytes * (1 + size_t{line})];
    std::memcpy(page, rows.data(), kChecksumOffset);
    storeLe64(page + kChecksumOffset, xxh3({page, kChecksumOffset}, checksum + line));
  }
  return bytes;
}

/// Whether a segment with these lines may hold the key.
bool linesMayHold(std::span<const uint8_t> lines, uint64_t key) {
  if (lines.empty()) return true;
  const uint8_t* const line = &lines[lineOf(key) * kLineBytes % lines.size()];
  bool holds = true;
  forEachBitOf(key, [&](uint32_t bit) { holds &= (line[bit / 8] >> bit % 8 & 1) != 0; });
  return holds;
}

}  // namespace

SegmentContent SegmentContent::of(const SegmentSummary& summary, size_t blocks) {
  return {.number = summary.number,
          .blocks = static_cast<uint32_t>(blocks),
          .bytes = summary.bytes,
          .packets = summary.packets,
          .minNs = summary.minNs,
          .maxNs = summary.maxNs,
          .checksum = summary.checksum};
}

SegmentContent SegmentContent::of(uint32_t number, const SegmentIndex& index) {
  SegmentSummary summary{
      .number = number, .minNs = INT64_MAX, .maxNs = INT64_MIN, .bytes = kPcapFileHeaderBytes};
  summary.add(index.blocks);
  return of(summary, index.blocks.size());
}

bool SegmentContent::matches(const SegmentEntry& entry) const {
  return number == entry.number && bytes == entry.bytes && packets == entry.packets &&
         minNs == entry.minNs && maxNs == entry.maxNs && checksum == entry.checksum &&
         checksum != 0;
}

AddressTable AddressTable::open(const std::string& portFolder, uint32_t number) {
  auto file = File::openForRead(addressTablePath(portFolder, number));
  return file ? read(std::move(*file)) : AddressTable{};
}

AddressTable AddressTable::read(File file) {
  AddressTable table;
  std::vector<uint8_t>& bytes = table.bytes_;
  bytes.resize(kFirstReadBytes);
  const auto count = file.readAt(0, bytes);
  if (!count) return table;
  bytes.resize(*count);
  table.readBytes_ = *count;
  table.file_ = std::move(file);
  if (bytes.size() >= kPageBytes && std::memcmp(bytes.data(), kTableMagic, kMagicBytes) == 0) {
    table.readHeader();
  } else if (bytes.size() >= kMagicBytes &&
             std::memcmp(bytes.data(), kColumnsMagic, kMagicBytes) == 0) {
    if (bytes.size() == kFirstReadBytes) {
      auto all = table.file_->readAll();
      if (!all) return table;
      bytes = std::move(*all);
      table.readBytes_ += bytes.size();
    }
    table.readColumns();
  }
  return table;
}

/// A column that is damaged is left out.
void AddressTable::readColumns() {
  for (auto bytes = std::span<const uint8_t>(bytes_).subspan(kMagicBytes); !bytes.empty();) {
    const auto size = columnBytes(bytes);
    if (!size || *size > bytes.size()) return;
    const std::span<const uint8_t> column = bytes.first(*size);
    bytes = bytes.subspan(*size);
    if (loadLe64(column.data()) != xxh3(column.subspan(8))) continue;
    const uint32_t number = loadLe32(&column[8]);
    const uint32_t bit = number % kSegmentsPerAddressTable;
    segments_[bit] = {loadFacts(&column[16], number), column.subspan(kColumnHeaderBytes)};
    known_ |= uint64_t{1} << bit;
  }
}

void AddressTable::readHeader() {
  isTransposed_ = true;
  checksum_ = loadLe64(&bytes_[kChecksumOffset]);
  lines_ = loadLe32(&bytes_[8]);
  isDamaged_ = checksum_ != xxh3({bytes_.data(), kChecksumOffset}) || !isLineCount(lines_);
  if (isDamaged_) return;
  const uint32_t first = loadLe32(&bytes_[12]) * kSegmentsPerAddressTable;
  for (uint32_t bit = 0; bit < kSegmentsPerAddressTable; bit++) {
    const SegmentContent segment =
        loadFacts(&bytes_[kFactsOffset + bit * kFactsBytes], first + bit);
    if (segment.blocks == 0) continue;
    segments_[bit].segment = segment;
    known_ |= uint64_t{1} << bit;
  }
}

std::optional<SegmentContent> AddressTable::contentOf(uint32_t number) const {
  const uint32_t bit = number % kSegmentsPerAddressTable;
  if (!isKnown(bit) || segments_[bit].segment.number != number) return std::nullopt;
  return segments_[bit].segment;
}

uint64_t AddressTable::mayHold(uint64_t key) {
  if (known_ == 0) return ~uint64_t{0};
  if (isTransposed_) {
    const std::span<const uint8_t> page = pageOf(lineOf(key) % lines_);
    uint64_t held = ~uint64_t{0};
    forEachBitOf(key, [&](uint32_t bit) { held &= loadLe64(&page[bit * sizeof(uint64_t)]); });
    return held | ~known_;
  }
  uint64_t held = ~known_;
  for (uint32_t i = 0; i < kSegmentsPerAddressTable; i++) {
    if (isKnown(i) && linesMayHold(segments_[i].lines, key)) held |= uint64_t{1} << i;
  }
  return held;
}

/// Its checksum, and before that a row for each bit of the line: the segments that have it.
std::span<const uint8_t> AddressTable::pageOf(uint32_t line) {
  const auto found = pages_.find(line);
  if (found != pages_.end()) return found->second;
  std::span<const uint8_t> page = readPage(line);
  const bool isSound =
      page.size() == kPageBytes &&
      loadLe64(&page[kChecksumOffset]) == xxh3(page.first(kChecksumOffset), checksum_ + line);
  if (!isSound) {
    isDamaged_ = true;
    page = kFullPage;
  }
  return pages_.emplace(line, page).first->second;
}

/// Shorter than a page if it cannot be read.
std::span<const uint8_t> AddressTable::readPage(uint32_t line) {
  const uint64_t at = kPageBytes * (1 + uint64_t{line});
  if (at + kPageBytes <= bytes_.size()) {
    return std::span<const uint8_t>(bytes_).subspan(at, kPageBytes);
  }
  std::vector<uint8_t>& page = laterPages_[line];
  page.resize(kPageBytes);
  const auto count = file_->readAt(at, page);
  page.resize(count ? *count : 0);
  readBytes_ += page.size();
  return page;
}

bool AddressTable::isSound() {
  for (uint32_t line = 0; isTransposed_ && line < lines_ && !isDamaged_; line++) pageOf(line);
  return !isDamaged_;
}

/// All columns, by number; nullopt if a transposed table is damaged.
std::optional<std::vector<AddressColumn>> AddressTable::columns() {
  if (isTransposed_ && !isSound()) return std::nullopt;
  std::vector<AddressColumn> columns;
  for (uint32_t bit = 0; bit < kSegmentsPerAddressTable; bit++) {
    if (!isKnown(bit)) continue;
    const auto& [segment, lines] = segments_[bit];
    AddressColumn column{segment, std::vector<uint64_t>(lines.size() / sizeof(uint64_t))};
    if (!lines.empty()) std::memcpy(column.lines.data(), lines.data(), lines.size());
    if (isTransposed_) {
      column.lines.resize(size_t{lines_} * kLineWords);
      for (uint32_t line = 0; line < lines_; line++) {
        const std::span<const uint8_t> page = pageOf(line);
        for (uint32_t row = 0; row < kLineBits; row++) {
          const uint64_t segments = loadLe64(&page[row * sizeof(uint64_t)]);
          column.lines[line * kLineWords + row / 64] |= (segments >> bit & 1) << row % 64;
        }
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

namespace {

/// Where the next column goes: after the last one of which nothing is missing. Reads only headers.
Result<uint64_t> endOfColumns(const File& file, uint64_t fileBytes) {
  std::array<uint8_t, kColumnHeaderBytes> header;
  for (uint64_t at = kMagicBytes;;) {
    const auto count = file.readAt(at, header);
    if (!count) return count.error();
    const auto size = columnBytes({header.data(), *count});
    if (!size || at + *size > fileBytes) return at;
    at += *size;
  }
}

/// Appends to a table that is being filled.
Status append(File& file, uint64_t fileBytes, const AddressColumn& column) {
  std::vector<uint8_t> added;
  if (fileBytes < kMagicBytes) {
    added.assign(kColumnsMagic, kColumnsMagic + kMagicBytes);
    if (auto status = file.resize(0); !status) return status;
  } else {
    const auto end = endOfColumns(file, fileBytes);
    if (!end) return end.error();
    if (auto status = file.resize(*end); !status) return status;
  }
  appendColumn(added, column);
  return file.write(added);
}

/// The table, locked against other writers; nullopt if `creates` is false and there is none.
Result<std::optional<File>> openLocked(const std::string& path, bool creates) {
  while (true) {
    auto file = creates ? File::openForAppend(path, true) : File::openForChange(path);
    if (!file) {
      if (file.error().code == Code::kAgedOut) return std::optional<File>{};
      return file.error();
    }
    if (auto status = file->lockExclusive(); !status) return status.error();
    const auto names = file->names();
    if (!names) return names.error();
    // Otherwise another writer replaced the file while this one was waiting.
    if (*names > 0) return std::optional<File>(std::move(*file));
  }
}

}  // namespace

Status addAddresses(const std::string& portFolder, const AddressColumn& column) {
  const std::string path = addressTablePath(portFolder, column.segment.number);
  auto file = openLocked(path, true);
  if (!file) return file.error();
  const auto bytes = (*file)->size();
  if (!bytes) return bytes.error();
  std::array<uint8_t, kMagicBytes> magic{};
  const auto count = (*file)->readAt(0, magic);
  if (!count) return count.error();
  if (*count < kMagicBytes || std::memcmp(magic.data(), kColumnsMagic, kMagicBytes) == 0) {
    return append(**file, *bytes, column);
  }
  auto columns = AddressTable::open(portFolder, column.segment.number).columns();
  if (!columns) columns.emplace();
  std::erase_if(*columns,
                [&](const AddressColumn& c) { return c.segment.number == column.segment.number; });
  columns->push_back(column);
  return replaceFile(path, transposed(*columns));
}

Status transposeAddresses(const std::string& portFolder, uint32_t number) {
  const std::string path = addressTablePath(portFolder, number);
  const auto file = openLocked(path, false);
  if (!file) return file.error();
  if (!*file) return ok();
  AddressTable table = AddressTable::open(portFolder, number);
  if (table.isTransposed_) return ok();
  const auto columns = table.columns();
  return columns->empty() ? ok() : replaceFile(path, transposed(*columns));
}

namespace {

/// Whether a segment of this table has packets on the disk.
bool isUsed(const std::string& portFolder, uint32_t number) {
  const uint32_t first = number / kSegmentsPerAddressTable * kSegmentsPerAddressTable;
  // From this one on: segments are removed in the order of their numbers.
  for (uint32_t i = 0; i < kSegmentsPerAddressTable; i++) {
    const uint32_t other = first + (number + i) % kSegmentsPerAddressTable;
    for (const bool isFlat : {false, true}) {
      const std::string path = storedSegmentPath(portFolder, other, isFlat) + ".pcap";
      if (::access(path.c_str(), F_OK) == 0 || errno != ENOENT) return true;
    }
  }
  return false;
}

}  // namespace

Status removeUnusedAddresses(const std::string& portFolder, uint32_t number) {
  if (isUsed(portFolder, number)) return ok();
  const std::string path = addressTablePath(portFolder, number);
  const auto file = openLocked(path, false);
  if (!file) return file.error();
  // A writer that comes later looks for its segment after it has written.
  if (auto status = removeFile(path); !status) return status;
  return removeFile(path + kNewFileEnding);
}

}  // namespace capfleet
