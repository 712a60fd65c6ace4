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
#include "store/segment_path.h"

namespace capfleet {

/// The addresses of one segment, and what the segment held when they were collected.
struct AddressColumn {
  uint32_t number = 0;  ///< of the segment
  uint64_t bytes = 0;   ///< of its .pcap file
  uint64_t packets = 0;
  uint32_t blocks = 0;
  std::vector<uint64_t> lines;  ///< as AddressCollector returns them
};

/// Adds the addresses of a finished segment to its table, replacing those that the table had of it.
/// Writes little: it does not wait for the disk, nor read the other columns unless the table is
/// transposed. A crash leaves the old or the new table, or one whose last columns are damaged.
/// Thread-safe, also between processes.
Status addAddresses(const std::string& portFolder, const AddressColumn& column);

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

  /// The number of blocks of this segment if the table has its addresses; nullopt if it has none,
  /// or those of a segment with another content. `bytes` and `packets` are those of the log.
  std::optional<uint32_t> blocksOf(uint32_t number, uint64_t bytes, uint64_t packets) const;

  /// The segments that may hold the key. Those of which the table knows nothing may hold all.
  uint64_t mayHold(uint64_t key);

  /// Whether the table has all that it should have of the segments that it knows. Reads all of it.
  bool isSound();

  /// Bytes that were read from the disk so far.
  uint64_t readBytes() const { return readBytes_; }

 private:
  friend Status addAddresses(const std::string& portFolder, const AddressColumn& column);
  friend Status transposeAddresses(const std::string& portFolder, uint32_t number);

  struct Known {
    bool isKnown = false;
    AddressColumn column;  ///< its lines only before the table is transposed
  };
  using Page = std::vector<uint64_t>;

  static AddressTable read(File file);
  void readColumns(std::span<const uint8_t> bytes);
  void readHeader(const std::vector<uint8_t>& bytes);
  const Page& pageOf(uint32_t line);
  std::optional<std::vector<AddressColumn>> columns();

  std::optional<File> file_;
  bool isTransposed_ = false;
  bool isDamaged_ = false;  ///< a part of the transposed table
  uint64_t readBytes_ = 0;
  uint64_t known_ = 0;  ///< mask
  std::array<Known, kSegmentsPerAddressTable> segments_;
  uint32_t lines_ = 0;  ///< of the transposed table
  uint64_t checksum_ = 0;
  std::unordered_map<uint32_t, Page> pages_;
};

}  // namespace capfleet
