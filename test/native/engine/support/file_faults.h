// Lets the engine's calls to the file system fail. The linker puts the functions of file_faults.cc
// before open, write, fdatasync, fsync, ftruncate, mkdir, unlink and rename of the engine (--wrap),
// so that production code knows nothing of it.
#pragma once

namespace capfleet::test {

struct FileFault {
  long from = 0;   ///< the first call that fails, counted from 0
  long count = 1;  ///< calls that fail
  int errorNumber = 0;
  /// Of a write: half of the bytes are taken before.
  bool isShort = false;
};

/// Calls fail while it lives; one at a time. Thread-safe.
class FileFaults {
 public:
  explicit FileFaults(FileFault fault);
  ~FileFaults();
  FileFaults(const FileFaults&) = delete;
  FileFaults& operator=(const FileFaults&) = delete;

  /// Calls that were made, failed ones included.
  long calls() const;
  /// From now on every call succeeds.
  void mend();
};

}  // namespace capfleet::test
