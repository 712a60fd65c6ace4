// A file of the store or an input: an owned descriptor whose failures are Errors with the path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "os/result.h"

namespace capfleet {

/// The Error for a failed system call: kStoreFull if the disk or quota is full, otherwise
/// kStoreUnavailable. `action` completes "cannot <action> <path>".
Error storeError(const char* action, const std::string& path, int errorNumber);

/// Not thread-safe, except readAt(), which any number of threads may call at once.
class File {
 public:
  /// Opens an existing file for reading.
  static Result<File> openForRead(const std::string& path);
  /// Opens an existing file for reading, unless its path ends in a symbolic link.
  static Result<File> openNamed(const std::string& path);
  /// Opens a file of a segment for reading. If it does not exist, it was removed: kAgedOut.
  static Result<File> openStored(const std::string& path);
  /// Opens an existing file to read and change it; kAgedOut if it does not exist.
  static Result<File> openForChange(const std::string& path);
  /// Creates a file for reading and appending; fails if it exists.
  static Result<File> create(const std::string& path);
  /// Opens an existing file for reading and appending; `createsMissing` creates it if it does not
  /// exist.
  static Result<File> openForAppend(const std::string& path, bool createsMissing = false);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }

  /// Fills `out`, starting at `offset`. The count is smaller than out.size() only at the end of
  /// file.
  Result<size_t> readAt(uint64_t offset, std::span<uint8_t> out) const;
  /// Likewise, but parts that the medium cannot read (EIO) are zeros, a page at a time. For bytes
  /// with a checksum: it fails, and the loss stays where it is.
  Result<size_t> readAtWithGaps(uint64_t offset, std::span<uint8_t> out) const;
  /// All bytes up to the end of the file when this determined its size, like readAtWithGaps(); the
  /// file may grow meanwhile.
  Result<std::vector<uint8_t>> readAll() const;
  /// Size in bytes; fails with kStoreUnavailable if this is not a regular file.
  Result<uint64_t> size() const;
  /// When bytes of the file were last changed, in nanoseconds since 1970 by this host's clock.
  Result<int64_t> writtenNs() const;
  /// Number of links to the file; 0: it was removed, and only exists for those who have it open.
  Result<uint64_t> names() const;
  /// Locks the file until it is closed, across processes (flock(2)). False if that is impossible
  /// now.
  bool tryLockShared() const;
  bool tryLockExclusive() const;
  /// Frees the file's space, even while others have it open.
  Status empty() const;
  /// Appends all bytes at the end of the file. After a failure a part of them may have been
  /// written.
  Status write(std::span<const uint8_t> bytes);
  /// Asks the kernel to start writing back `bytes` from `offset`, without waiting.
  void startWriteBack(uint64_t offset, uint64_t bytes);
  /// Truncates the file, or extends it with zeros.
  Status resize(uint64_t bytes);
  /// Returns when data and size are on stable storage.
  Status sync();

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  /// Shortens `out` to what was read. Returns errno, or 0.
  int fill(uint64_t offset, std::span<uint8_t>& out) const;
  int descriptor_;
  std::string path_;
};

/// Suffix of the file that replaceFile() prepares.
inline constexpr const char* kNewFileEnding = ".new";

/// Replaces the file's content durably: after a crash it has the old or the new one. What a crash
/// leaves next to it is reused by the next call.
Status replaceFile(const std::string& path, std::span<const uint8_t> bytes);

/// Makes new names in a folder durable.
Status syncDirectory(const std::string& path);

/// Creates a folder; succeeds if it exists already.
Status makeDirectory(const std::string& path);

/// Removes a file; succeeds if it does not exist.
Status removeFile(const std::string& path);

}  // namespace capfleet
