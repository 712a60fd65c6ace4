// A file of the store or an input: an owned descriptor whose failures are Errors with the path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "os/result.h"

namespace capfleet {

/// The Error for a failed system call: kStoreFull when the disk or quota is full, otherwise
/// kStoreUnavailable. `action` completes "cannot <action> <path>".
Error storeError(const char* action, const std::string& path, int errorNumber);

/// Not thread-safe, except readAt(), which any number of threads may call at once.
class File {
 public:
  /// Opens an existing file for reading.
  static Result<File> openForRead(const std::string& path);
  /// Opens an existing file for reading, unless its path ends in a symbolic link.
  static Result<File> openNamed(const std::string& path);
  /// Opens a file of a segment for reading. One that is not there was removed: kAgedOut.
  static Result<File> openStored(const std::string& path);
  /// Opens an existing file to read and change it; kAgedOut when it is not there.
  static Result<File> openForChange(const std::string& path);
  /// Creates a file for reading and appending; fails when it exists.
  static Result<File> create(const std::string& path);
  /// Opens an existing file for reading and appending; `createsMissing` makes it when there is
  /// none.
  static Result<File> openForAppend(const std::string& path, bool createsMissing = false);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }

  /// Fills `out` from `offset` on. The count is smaller than out.size() only at the end of file.
  Result<size_t> readAt(uint64_t offset, std::span<uint8_t> out) const;
  /// All bytes up to where the file ended when this asked for its size; it may grow meanwhile.
  Result<std::vector<uint8_t>> readAll() const;
  /// Size in bytes; fails with kStoreUnavailable when this is not a regular file.
  Result<uint64_t> size() const;
  /// How many names the file has; 0: it was removed, and exists only for those who have it open.
  Result<uint64_t> names() const;
  /// Locks the file until it is closed, over processes (flock(2)). False when that cannot be now.
  bool tryLockShared() const;
  bool tryLockExclusive() const;
  /// Frees the file's space, for everybody who has it open.
  Status empty() const;
  /// Appends all bytes at the end of the file. After a failure a part of them may be there.
  Status write(std::span<const uint8_t> bytes);
  /// Asks the kernel to start writing back `bytes` from `offset`, and does not wait.
  void startWriteBack(uint64_t offset, uint64_t bytes);
  /// Cuts the file, or makes it longer by zeros.
  Status resize(uint64_t bytes);
  /// Returns when data and size are on stable storage.
  Status sync();

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

/// What replaceFile() adds to the name of the file that it prepares.
inline constexpr const char* kNewFileEnding = ".new";

/// Gives the file this content, durably: after a crash it has the old or the new one. What a crash
/// leaves beside it is used by the next call.
Status replaceFile(const std::string& path, std::span<const uint8_t> bytes);

/// Makes new names in a folder durable.
Status syncDirectory(const std::string& path);

/// Makes a folder; one that exists already is as good.
Status makeDirectory(const std::string& path);

/// Removes a file; one that does not exist is as good.
Status removeFile(const std::string& path);

}  // namespace capfleet
