// The sorted runs of one capture port during an import; at the end one sorted stream of segments.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/run_reader.h"
#include "os/result.h"
#include "store/segment_writer.h"

namespace capfleet {

struct PortRunsOptions {
  SegmentWriterOptions output;   ///< its folder is made when the first packet comes
  std::string scratchDirectory;  ///< made when the first run does not reach; removed at the end
};

/// Collects the packets of one port in sorted runs, and merges these at the end. The first run is
/// written directly to the stream's final place, so that sorted input is written only once. Not
/// thread-safe. Every failure is final.
class PortRuns {
 public:
  explicit PortRuns(PortRunsOptions options) : options_(std::move(options)) {}

  /// Appends a packet. One that is older than the previous packet begins a new run.
  Status append(int64_t timestampNs, uint32_t originalLength, std::span<const uint8_t> captured);

  /// Frees memory until the next append().
  Status releaseBuffer() { return writer_ ? writer_->releaseBuffer() : ok(); }

  /// Merges the runs if there are several. `goesOn` as in mergeRuns().
  Result<std::vector<SegmentSummary>> finish(const std::function<bool()>& goesOn);

 private:
  Status beginRun();
  Status endRun();
  Status mergeOnce(const std::function<bool()>& goesOn);
  Result<std::vector<SegmentSummary>> mergeAll(const std::function<bool()>& goesOn);
  std::string newScratchRun();
  SegmentWriterOptions scratchOutput();

  PortRunsOptions options_;
  std::vector<SortedRun> runs_;  ///< in input order
  uint32_t scratchRuns_ = 0;
  std::optional<SegmentWriter> writer_;
  std::vector<SegmentSummary> segments_;  ///< segments of the run that ended last
  int64_t lastNs_ = 0;
};

}  // namespace capfleet
