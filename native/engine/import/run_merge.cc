#include "import/run_merge.h"

#include <utility>

#include "merge/merge_tree.h"

namespace capfleet {

namespace {

constexpr uint32_t kPacketsPerQuestion = 4096;

class Merge {
 public:
  Merge(const std::vector<SortedRun>& runs, SegmentWriter writer,
        const std::function<bool()>& goesOn)
      : readers_(runs.begin(), runs.end()), writer_(std::move(writer)), goesOn_(goesOn) {}

  Result<std::vector<SegmentSummary>> run() {
    std::vector<int64_t> keys;
    for (RunReader& reader : readers_) {
      const auto key = advance(reader);
      if (!key) return key.error();
      keys.push_back(*key);
    }
    MergeTree tree(std::move(keys));
    while (!tree.hasEnded()) {
      if (auto status = drainWinner(tree); !status) return status.error();
    }
    return writer_.close();
  }

 private:
  /// Advances to the run's next packet; returns its key.
  static Result<int64_t> advance(RunReader& reader) {
    const auto found = reader.advance();
    if (!found) return found.error();
    return *found ? reader.packet().timestampNs : MergeTree::kEnded;
  }

  /// Takes packets from the first run while no other precedes them: runs of neighbouring packets
  /// are common, and then cost one comparison each.
  Status drainWinner(MergeTree& tree) {
    RunReader& reader = readers_[tree.winner()];
    const int64_t bound = tree.winnerStaysBelow();
    for (;;) {
      const CaptureRecord& packet = reader.packet();
      auto status = writer_.append(packet.timestampNs, packet.originalLength, packet.captured);
      if (!status) return status;
      if (++packets_ % kPacketsPerQuestion == 0 && !goesOn_()) {
        return Error{Code::kCancelled, "the import was cancelled"};
      }
      const auto key = advance(reader);
      if (!key) return key.error();
      if (*key < bound) continue;
      tree.replaceWinner(*key);
      return ok();
    }
  }

  std::vector<RunReader> readers_;
  SegmentWriter writer_;
  const std::function<bool()>& goesOn_;
  uint64_t packets_ = 0;
};

}  // namespace

Result<std::vector<SegmentSummary>> mergeRuns(const std::vector<SortedRun>& runs,
                                              SegmentWriterOptions output,
                                              const std::function<bool()>& goesOn) {
  auto writer = SegmentWriter::open(std::move(output));
  if (!writer) return writer.error();
  return Merge(runs, std::move(*writer), goesOn).run();
}

}  // namespace capfleet
