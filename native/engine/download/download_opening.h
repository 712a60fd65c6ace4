// Opens a download: plans where it begins.
#pragma once

#include <memory>
#include <optional>

#include "download/download.h"
#include "download/skipped_slices.h"

namespace capfleet {

/// The work before the first byte, in steps: plans the first window of time, and with `afterBytes`
/// as many as are skipped. Removal of segments since the caller looked them up is mostly detected
/// here, while the caller can still look again. Not thread-safe, but each step() may be called by a
/// different thread.
class DownloadOpening {
 public:
  /// `workers` must outlive all tasks passed to it.
  DownloadOpening(DownloadOptions options, WorkerPool& workers, std::shared_ptr<BufferPool> slabs);
  ~DownloadOpening();

  /// Does some milliseconds of work. Null until the download is open. Fails with kMixedLinkType,
  /// kAgedOut, kStoreUnavailable and kStoreCorrupt. REQUIRES: the download is not open, and no step
  /// has failed.
  Result<std::shared_ptr<Download>> step();

 private:
  Status begin();
  Result<bool> plan();
  Result<std::shared_ptr<Download>> finish();

  DownloadOptions options_;
  WorkerPool& workers_;
  std::shared_ptr<BufferPool> slabs_;
  PcapFileHeader header_{};
  std::unique_ptr<ScanContext> context_;  ///< null until begun
  PlannedSlices planned_;
  std::optional<SliceSkip> skip_;
  uint64_t corruptBlocks_ = 0;
  uint64_t heldBytes_ = uint64_t{1}
                        << 20;  ///< memory of the download: indexes and plans, then entries
};

/// Runs all steps of an opening.
Result<std::shared_ptr<Download>> openDownload(DownloadOptions options, WorkerPool& workers,
                                               std::shared_ptr<BufferPool> slabs);

}  // namespace capfleet
