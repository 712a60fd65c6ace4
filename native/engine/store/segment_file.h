// The packets of a segment, open for reading and pinned: for a while they cannot be removed.
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
  /// `segment` is the path without its ending. Fails with kAgedOut if the segment has been removed
  /// or is being removed, with kStoreUnavailable if it cannot be opened.
  static Result<SegmentFile> open(const std::string& segment);

  /// Works like File::readAt(). Fails with kAgedOut if the segment was removed before everything
  /// was read: the bytes returned are always the segment's own.
  Result<size_t> readAt(uint64_t offset, std::span<uint8_t> out) const;
  Result<uint64_t> size() const { return file_.size(); }

 private:
  explicit SegmentFile(File file) : file_(std::move(file)) {}
  Status checkKept() const;
  File file_;
};

/// A segment's file shared by all its readers: opened when one needs it, closed when none holds it.
/// Thread-safe.
class SharedSegmentFile {
 public:
  /// `segment` is the path without its ending.
  explicit SharedSegmentFile(std::string segment) : segment_(std::move(segment)) {}

  /// Fails like SegmentFile::open().
  Result<std::shared_ptr<SegmentFile>> open();

 private:
  const std::string segment_;
  std::mutex mutex_;
  std::weak_ptr<SegmentFile> file_;
};

}  // namespace capfleet
