#include "import/port_runs.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "import/run_merge.h"
#include "os/file.h"

namespace capfleet {

namespace fs = std::filesystem;

namespace {

/// Number of runs merged at once: each takes an open file and a buffer of 256 KiB.
constexpr size_t kMaxMergedRuns = 64;

/// Creates missing parent folders too.
Status makeTree(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return storeError("create the folder", path, error.value());
  return ok();
}

Status removeTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return storeError("remove", path, error.value());
  return ok();
}

}  // namespace

Status PortRuns::append(int64_t timestampNs, uint32_t originalLength,
                        std::span<const uint8_t> captured) {
  if (!writer_ || timestampNs < lastNs_) {
    if (auto status = beginRun(); !status) return status;
  }
  lastNs_ = timestampNs;
  return writer_->append(timestampNs, originalLength, captured);
}

std::string PortRuns::newScratchRun() {
  return options_.scratchDirectory + "/" + std::to_string(scratchRuns_++);
}

/// For a run that is read once and removed.
SegmentWriterOptions PortRuns::scratchOutput() {
  SegmentWriterOptions output = options_.output;
  output.directory = newScratchRun();
  output.durable = false;
  output.withSieves = false;
  output.isFlat = true;
  return output;
}

Status PortRuns::beginRun() {
  if (auto status = endRun(); !status) return status;
  SegmentWriterOptions output = options_.output;
  if (!runs_.empty()) output = scratchOutput();
  if (auto status = makeTree(output.directory); !status) return status;
  runs_.push_back({output.directory, 0, output.isFlat});
  auto writer = SegmentWriter::open(std::move(output));
  if (!writer) return writer.error();
  writer_.emplace(std::move(*writer));
  return ok();
}

Status PortRuns::endRun() {
  if (!writer_) return ok();
  auto segments = writer_->close();
  if (!segments) return segments.error();
  writer_.reset();
  segments_ = std::move(*segments);
  runs_.back().segmentCount = static_cast<uint32_t>(segments_.size());
  return ok();
}

Result<std::vector<SegmentSummary>> PortRuns::finish(const std::function<bool()>& goesOn) {
  if (auto status = endRun(); !status) return status.error();
  if (runs_.size() <= 1) return std::move(segments_);
  return mergeAll(goesOn);
}

Result<std::vector<SegmentSummary>> PortRuns::mergeAll(const std::function<bool()>& goesOn) {
  const std::string moved = newScratchRun();
  std::error_code error;
  fs::rename(runs_[0].directory, moved, error);
  if (error) return storeError("move", runs_[0].directory, error.value());
  runs_[0].directory = moved;
  while (runs_.size() > kMaxMergedRuns) {
    if (auto status = mergeOnce(goesOn); !status) return status.error();
  }
  if (auto status = makeTree(options_.output.directory); !status) return status.error();
  auto segments = mergeRuns(runs_, options_.output, goesOn);
  if (!segments) return segments;
  if (auto status = removeTree(options_.scratchDirectory); !status) return status.error();
  return segments;
}

/// One pass: neighbouring runs are merged, which keeps ties in input order.
Status PortRuns::mergeOnce(const std::function<bool()>& goesOn) {
  std::vector<SortedRun> longer;
  for (size_t begin = 0; begin < runs_.size(); begin += kMaxMergedRuns) {
    const size_t end = std::min(begin + kMaxMergedRuns, runs_.size());
    const std::vector<SortedRun> group(runs_.begin() + static_cast<ptrdiff_t>(begin),
                                       runs_.begin() + static_cast<ptrdiff_t>(end));
    const SegmentWriterOptions output = scratchOutput();
    if (auto status = makeTree(output.directory); !status) return status;
    const auto segments = mergeRuns(group, output, goesOn);
    if (!segments) return segments.error();
    longer.push_back({output.directory, static_cast<uint32_t>(segments->size())});
    for (const SortedRun& run : group) {
      if (auto status = removeTree(run.directory); !status) return status;
    }
  }
  runs_ = std::move(longer);
  return ok();
}

}  // namespace capfleet
