// The packets of a segment, open for reading and pinned: nobody removes it meanwhile, for a while.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "os/file.h"

namespace capfleet {

/// Holds a shared lock on the segment, which removeSegment() respects until its patience ends. The
/// kernel drops the lock with the process, so that a killed reader pins nothing. Thread-safe.
class SegmentFile {
 public:
  /// `segment` is the path without its ending. Fails with kAgedOut when the segment has been
  /// removed or is being removed, with kStoreUnavailable when it does not open.
  static Result<SegmentFile> open(const std::string& segment);

  /// As File::readAt(). Fails with kAgedOut when the segment was removed before all was read: what
  /// it gives is always the segment's own bytes.
  Result<size_t> readAt(uint64_t offset, std::span<uint8_t> out) const;
  Result<uint64_t> size() const { return file_.size(); }

 private:
  explicit SegmentFile(File file) : file_(std::move(file)) {}
  Status checkKept() const;
  File file_;
};

/// The file of a segment for all who read it: opened when one needs it, closed when none holds it.
/// Thread-safe.
class SharedSegmentFile {
 public:
  /// `segment` is the path without its ending.
  explicit SharedSegmentFile(std::string segment) : segment_(std::move(segment)) {}

  /// Fails as SegmentFile::open().
  Result<std::shared_ptr<SegmentFile>> open();

 private:
  const std::string segment_;
  std::mutex mutex_;
  std::weak_ptr<SegmentFile> file_;
};

}  // namespace capfleet
