#include "run_merge.h"

#include <utility>

#include "merge_heap.h"

namespace capfleet {

namespace {

constexpr uint32_t kPacketsPerQuestion = 4096;

class Merge {
 public:
  Merge(const std::vector<SortedRun>& runs, SegmentWriter writer,
        const std::function<bool()>& goesOn)
      : readers_(runs.begin(), runs.end()), writer_(std::move(writer)), goesOn_(goesOn) {}

  Result<std::vector<SegmentSummary>> run() {
    for (uint32_t i = 0; i < readers_.size(); ++i) {
      const auto found = readers_[i].advance();
      if (!found) return found.error();
      if (*found) heap_.push({readers_[i].packet().timestampNs, i});
    }
    while (!heap_.empty()) {
      if (auto status = drainFirst(); !status) return status.error();
    }
    return writer_.close();
  }

 private:
  /// Takes packets from the first run as long as no other comes before it: runs of neighbouring
  /// packets are common, and then cost one comparison each.
  Status drainFirst() {
    const uint32_t run = heap_.top().input;
    RunReader& reader = readers_[run];
    for (;;) {
      const CaptureRecord& packet = reader.packet();
      auto status = writer_.append(packet.timestampNs, packet.originalLength, packet.captured);
      if (!status) return status;
      if (++packets_ % kPacketsPerQuestion == 0 && !goesOn_()) {
        return Error{Code::kCancelled, "the import was cancelled"};
      }
      const auto found = reader.advance();
      if (!found) return found.error();
      if (!*found) {
        heap_.popTop();
        return ok();
      }
      const int64_t nextNs = reader.packet().timestampNs;
      if (heap_.size() == 1 || MergeHeap::Entry{nextNs, run} < heap_.runnerUp()) continue;
      heap_.replaceTop(nextNs);
      return ok();
    }
  }

  std::vector<RunReader> readers_;
  SegmentWriter writer_;
  const std::function<bool()>& goesOn_;
  MergeHeap heap_;
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
