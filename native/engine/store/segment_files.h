// The files of one segment while they grow: .pcap, .idx, .tally and .sieve, and the order in which
// they become durable. The only code that writes them. See FORMAT.md, "What is safe when".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "os/file.h"
#include "os/result.h"
#include "packet/pcap_format.h"
#include "store/address_collector.h"
#include "store/block_tally.h"
#include "store/segment_index.h"

namespace capfleet {

/// What a segment holds; stored in its capture's log.
struct SegmentSummary {
  uint32_t number = 0;  ///< 1 for 00000001.pcap
  int64_t minNs = 0;
  int64_t maxNs = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;      ///< of the .pcap file
  uint64_t sideBytes = 0;  ///< of index, tallies and sieves together
  uint32_t checksum = 0;   ///< of its blocks, by addToChecksum()
  bool isFlat = false;     ///< its files are directly in the port's folder, not in a subfolder

  /// Adds blocks at its end. Damaged blocks count in `bytes` and in the times: a range all of whose
  /// packets are lost must find the segment, and report the loss. A damaged block without known
  /// times contributes its times only if the segment has no other blocks.
  void add(std::span<const BlockEntry> blocks);
};

struct SegmentFilesOptions {
  std::string directory;  ///< the port's folder (…/<capture>/cap0); must exist
  uint32_t port = 0;
  PcapFileHeader header;
  /// False for files that need not survive a crash: nothing is synced.
  bool durable = true;
  /// False for files that no download reads: they get neither sieves nor a column in a table of
  /// addresses.
  bool withSieves = true;
  /// The files are directly in `directory`: those of a store of format 1, and the runs of an
  /// import. Others are in the subfolder of their group, which create() makes.
  bool isFlat = false;
};

/// Not thread-safe. Fails with kStoreFull or kStoreUnavailable. After a failure only cutBack() may
/// be called.
class SegmentFiles {
 public:
  /// Creates the files, which must not exist, with their headers. Files created before a failure
  /// stay.
  static Result<SegmentFiles> create(const SegmentFilesOptions& options, uint32_t number);

  /// Continues existing files as far as `index` describes them: its blocks are the committed ones.
  /// Creates the tally file if it is missing, and writes no sieves for the blocks that are added.
  /// Bytes beyond the index are removed by cutBack(), which must be called first if there may be
  /// some.
  static Result<SegmentFiles> resume(const SegmentFilesOptions& options, uint32_t number,
                                     const SegmentIndex& index);

  /// Removes the files of a segment, as far as they exist; `segment` is the path without its
  /// ending.
  static Status remove(const std::string& segment);

  /// Passes bytes of whole records to the kernel, after the previous ones.
  Status write(std::span<const uint8_t> bytes);

  /// Declares the next bytes a block. They must be written before commit(). The entry's offset and
  /// tally place are set here; `rows` are its tally. The sieve is made from the block's `bytes`,
  /// which are not used for continued files.
  void addBlock(BlockEntry entry, std::span<const TallyRow> rows, std::span<const uint8_t> bytes);

  /// Makes the blocks durable: data, then tallies, then entries. Sieves are written without a sync:
  /// their blocks' checksums prove them.
  Status commit();

  /// Cuts the files after the last committed block, but keeps this many bytes of data after it for
  /// addBlock() to describe. May be retried if it fails.
  Status cutBack(uint64_t keptBytes = 0);

  /// Whether nothing follows the committed blocks: cutBack() has nothing to do.
  Result<bool> isWhole() const;

  /// Ends the segment, and adds the addresses of its blocks to the table of its port as far as the
  /// disk allows: without them filters take longer. Returns what the committed blocks hold.
  SegmentSummary finish();

  /// What the committed blocks hold.
  const SegmentSummary& committed() const { return committed_; }
  /// Bytes of the .pcap file, including what is written but not committed.
  uint64_t bytes() const { return bytes_; }
  uint64_t uncommittedBytes() const { return bytes_ - committed_.bytes; }
  const File& data() const { return data_; }

 private:
  SegmentFiles(SegmentFilesOptions options, uint32_t number, File data, File index, File tallies,
               std::optional<File> sieves);
  Status writeHeaders();
  Status writeTallies();
  Status writeSieves();
  Status writeEntries();
  void countCommitted();
  uint64_t committedIndexBytes() const {
    return kIndexHeaderBytes + committedEntries_ * kIndexEntryBytes;
  }

  SegmentFilesOptions options_;
  File data_;
  File index_;
  File tallies_;
  std::optional<File> sieves_;  ///< none without sieves, and for a continued segment
  /// Of all blocks, also of those that were cut off; none without sieves.
  std::unique_ptr<AddressCollector> addresses_;
  SegmentSummary committed_;
  uint64_t committedEntries_ = 0;
  uint64_t committedTallyBytes_ = 0;
  uint64_t committedSieveBytes_ = 0;
  uint64_t bytes_ = kPcapFileHeaderBytes;
  uint64_t blockEnd_ = kPcapFileHeaderBytes;  ///< where the last block ends
  std::vector<BlockEntry> uncommitted_;
  std::vector<uint8_t> uncommittedTallies_;
  std::vector<uint8_t> uncommittedSieves_;
};

}  // namespace capfleet
