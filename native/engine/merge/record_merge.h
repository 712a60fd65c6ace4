// Merges PCAP streams into one, ordered by time, while their bytes arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "merge/duplicate_window.h"
#include "merge/held_packets.h"
#include "merge/merge_tree.h"
#include "merge/merged_interfaces.h"
#include "merge/record_input.h"

namespace capfleet {

/// Set to write pcapng: blocks of packets, and the description of an interface before its first
/// packet, instead of records.
struct PcapngOutput {
  /// Must outlive the merge; may be added to while it runs.
  MergedInterfaces* interfaces = nullptr;
  /// The interface of each input; null for one whose records are tagged with it.
  std::vector<std::optional<uint32_t>> ofInputs;
  /// What the caller writes at the end for each interface with packets; counts for maxBytes.
  uint64_t closingBytes = 0;
};

struct RecordMergeOptions {
  std::optional<int64_t> maxSpanNs;  ///< end before the first packet this much after the first one
  std::optional<uint64_t> maxPackets;
  std::optional<uint64_t> maxBytes;       ///< limit of what is written
  std::optional<DuplicateOptions> dedup;  ///< leave out copies of what was written
  uint32_t linkTypeWord = 0;              ///< link type word of all records; for dedup
  std::optional<uint32_t> sliceBytes;  ///< captured bytes of each packet that are written, at most
  /// Write timestamps in microseconds: truncated after the merge, so that packets of one
  /// microsecond stay in the order of their nanoseconds.
  bool toMicroseconds = false;
  std::optional<PcapngOutput> pcapng = {};
};

/// The part of a merge that never waits: moves runs of records from its inputs into an output.
/// Order: (key, position in the list of inputs, arrival). The key is the running maximum of the
/// timestamps of that input, so a late record is neither dropped nor delayed. If copies are left
/// out of pcapng, packets are written later than they are taken, see HeldPackets. Not thread-safe.
class RecordMerge {
 public:
  enum class State {
    kReady,  ///< the output has no room for the next record
    kDry,    ///< dryInput() has no record at hand: show it bytes, or know that it has ended
    kEnd,    ///< nothing may follow
  };

  struct Dropped {
    uint64_t packets = 0;  ///< duplicates
    uint64_t bytes = 0;    ///< their records, and what slices cut off others; all tags
  };

  /// Inputs in nanoseconds, at least one, which must outlive the merge. One without a record has
  /// ended.
  RecordMerge(std::vector<RecordInput*> inputs, const RecordMergeOptions& options);

  /// Appends records to `output`, which already contains `written` bytes; updates that. REQUIRES:
  /// an empty output has room for the largest record; in pcapng, for the largest block with its
  /// remarks and the longest description.
  State advance(std::span<uint8_t> output, size_t& written);

  uint32_t dryInput() const { return tree_.winner(); }
  /// The dry input has a record available now, or has ended.
  void refilled();

  /// Timestamp of the first packet that maxPackets or maxBytes cut off.
  std::optional<int64_t> nextNs() const { return nextNs_; }
  /// What an input had and the output has not.
  const Dropped& dropped(uint32_t input) const { return dropped_[input]; }

 private:
  State advanceInRuns(std::span<uint8_t> output, size_t& written);
  State advanceOneByOne(std::span<uint8_t> output, size_t& written);
  State advanceInBlocks(std::span<uint8_t> output, size_t& written);
  bool writeHeld(std::span<uint8_t> output, size_t& written);
  std::optional<State> stateBefore(size_t room) const;
  std::span<const uint8_t> takeRun(size_t room);
  size_t writtenBytes(std::span<const uint8_t> record) const;
  uint64_t originalOf(const DuplicateWindow::Packet& packet);
  bool mayWrite(const DuplicateWindow::Packet& packet, size_t bytes);
  void dropWinner();
  void rekey();
  RecordInput& winner() const { return *inputs_[tree_.winner()]; }

  const std::vector<RecordInput*> inputs_;
  MergeTree tree_;
  int64_t stop_ = MergeTree::kEnded;  ///< the first key that may not go out
  const bool isGated_;                ///< each record must be looked at
  const bool toMicroseconds_;
  const uint32_t sliceBytes_;
  uint64_t packetsLeft_;
  uint64_t bytesLeft_;
  const uint32_t linkTypeWord_;
  const std::optional<PcapngOutput> pcapng_;
  std::unique_ptr<DuplicateWindow> duplicates_;
  std::unique_ptr<HeldPackets> held_;  ///< in pcapng with duplicates_
  std::vector<Dropped> dropped_;
  std::optional<int64_t> nextNs_;
};

}  // namespace capfleet
