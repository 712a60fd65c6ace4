#include "run_merge.h"

#include <algorithm>
#include <utility>

namespace capfleet {

namespace {

constexpr uint32_t kPacketsPerQuestion = 4096;

/// The head of a run in the merge.
struct Head {
  int64_t timestampNs;
  size_t run;

  bool isBefore(const Head& other) const {
    return timestampNs != other.timestampNs ? timestampNs < other.timestampNs : run < other.run;
  }
};

bool heapOrder(const Head& a, const Head& b) { return b.isBefore(a); }

class Merge {
 public:
  Merge(const std::vector<SortedRun>& runs, SegmentWriter writer,
        const std::function<bool()>& goesOn)
      : readers_(runs.begin(), runs.end()), writer_(std::move(writer)), goesOn_(goesOn) {}

  Result<std::vector<SegmentSummary>> run() {
    for (size_t i = 0; i < readers_.size(); ++i) {
      const auto found = readers_[i].advance();
      if (!found) return found.error();
      if (*found) push({readers_[i].packet().timestampNs, i});
    }
    while (!heap_.empty()) {
      if (auto status = drainFirst(); !status) return status.error();
    }
    return writer_.close();
  }

 private:
  void push(Head head) {
    heap_.push_back(head);
    std::push_heap(heap_.begin(), heap_.end(), heapOrder);
  }

  /// Takes packets from the first run as long as no other comes before it: runs of neighbouring
  /// packets are common, and then cost one comparison each.
  Status drainFirst() {
    std::pop_heap(heap_.begin(), heap_.end(), heapOrder);
    Head head = heap_.back();
    heap_.pop_back();
    RunReader& reader = readers_[head.run];
    do {
      const CaptureRecord& packet = reader.packet();
      auto status = writer_.append(packet.timestampNs, packet.originalLength, packet.captured);
      if (!status) return status;
      if (++packets_ % kPacketsPerQuestion == 0 && !goesOn_()) {
        return Error{Code::kCancelled, "the import was cancelled"};
      }
      const auto found = reader.advance();
      if (!found) return found.error();
      if (!*found) return ok();
      head.timestampNs = reader.packet().timestampNs;
    } while (heap_.empty() || head.isBefore(heap_.front()));
    push(head);
    return ok();
  }

  std::vector<RunReader> readers_;
  SegmentWriter writer_;
  const std::function<bool()>& goesOn_;
  std::vector<Head> heap_;
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
