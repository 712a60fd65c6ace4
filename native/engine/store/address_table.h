// Which addresses occur in segments, so that one address can be looked up in 64 segments with one
// small read. The tables of a capture port are in its folder, each for 64 segments with consecutive
// numbers. See FORMAT.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/file.h"
#include "store/segment_files.h"
#include "store/segment_index.h"
#include "store/segment_path.h"

namespace capfleet {

/// What a segment held when its addresses were collected: a table of another capture, or of an
/// earlier content, must not be taken for its own.
struct SegmentContent {
  uint32_t number = 0;  ///< of the segment
  uint32_t blocks = 0;
  uint64_t bytes = 0;  ///< of its .pcap file
  uint64_t packets = 0;
  int64_t minNs = 0;      ///< smallest timestamp
  int64_t maxNs = 0;      ///< largest timestamp (inclusive)
  uint32_t checksum = 0;  ///< of its blocks, by addToChecksum()

  static SegmentContent of(const SegmentSummary& summary, size_t blocks);
  /// REQUIRES: no block is damaged.
  static SegmentContent of(uint32_t number, const SegmentIndex& index);
  /// Whether this may be what the log describes.
  bool matches(const SegmentEntry& entry) const;
  bool operator==(const SegmentContent&) const = default;
};

/// The addresses of one segment.
struct AddressColumn {
  SegmentContent segment;
  /// As AddressCollector returns them; none if the segment may hold any address.
  std::vector<uint64_t> lines;
};

/// Adds the addresses of a finished segment to its table, replacing those that the table had of it.
/// Writes little: it does not wait for the disk, nor read the other columns unless the table is
/// transposed. A crash leaves the old or the new table, or one whose last columns are damaged.
/// Thread-safe, also between processes.
Status addAddresses(const std::string& portFolder, const AddressColumn& column);

/// Removes the table of a segment if none of the segments in it exists any more. Thread-safe like
/// addAddresses().
Status removeUnusedAddresses(const std::string& portFolder, uint32_t number);

/// Makes the table of a segment one of which a reader needs only a small part, when it has all its
/// columns. Reads, writes and syncs up to 64 MiB. A crash leaves the old or the new table. Does
/// nothing if there is no table, or if it was done. Thread-safe like addAddresses().
Status transposeAddresses(const std::string& portFolder, uint32_t number);

/// The table of up to 64 segments, each of which is a bit of a mask: segment n is bit n % 64. Reads
/// what it needs when it needs it. Not thread-safe.
class AddressTable {
 public:
  /// The table that holds the addresses of this segment. If it is missing, unreadable or damaged,
  /// it knows no segments.
  static AddressTable open(const std::string& portFolder, uint32_t number);

  /// What the segment with this number held, if the table has its addresses.
  std::optional<SegmentContent> contentOf(uint32_t number) const;

  /// A bit for each segment that may hold the key, including those of which the table knows
  /// nothing.
  uint64_t mayHold(uint64_t key);

  /// Whether the table has all that it should have of the segments that it knows. Reads all of it.
  bool isSound();

  /// Bytes that were read from the disk so far.
  uint64_t readBytes() const { return readBytes_; }

 private:
  friend Status addAddresses(const std::string& portFolder, const AddressColumn& column);
  friend Status transposeAddresses(const std::string& portFolder, uint32_t number);

  struct Known {
    SegmentContent segment;
    std::span<const uint8_t> lines;  ///< in `bytes_`, little-endian; none of a transposed table
  };

  static AddressTable read(File file);
  void readColumns();
  void readHeader();
  bool isKnown(uint32_t bit) const { return (known_ >> bit & 1) != 0; }
  std::span<const uint8_t> pageOf(uint32_t line);
  std::span<const uint8_t> readPage(uint32_t line);
  std::optional<std::vector<AddressColumn>> columns();

  std::optional<File> file_;
  std::vector<uint8_t> bytes_;  ///< of a transposed table the first ones, of another one all
  bool isTransposed_ = false;
  bool isDamaged_ = false;  ///< a part of the transposed table
  uint64_t readBytes_ = 0;
  uint64_t known_ = 0;  ///< mask
  std::array<Known, kSegmentsPerAddressTable> segments_;
  uint32_t lines_ = 0;  ///< of the transposed table
  uint64_t checksum_ = 0;
  std::unordered_map<uint32_t, std::span<const uint8_t>> pages_;   ///< verified, by line
  std::unordered_map<uint32_t, std::vector<uint8_t>> laterPages_;  ///< not in `bytes_`
};

}  // namespace capfleet
