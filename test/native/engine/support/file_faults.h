// Makes the engine's calls to the file system fail. The linker substitutes the functions of
// file_faults.cc for the engine's open, write, fdatasync, fsync, ftruncate, mkdir, unlink,
// rename and pread (--wrap), so that production code is not changed for this.
#pragma once

#include <string>

namespace capfleet::test {

struct FileFault {
  long from = 0;   ///< the first call that fails, counted from 0
  long count = 1;  ///< the number of calls that fail
  int errorNumber = 0;
  /// Whether a write writes half of its bytes before it fails.
  bool isShort = false;
};

/// Calls fail as long as this exists; one at a time. Thread-safe.
class FileFaults {
 public:
  explicit FileFaults(FileFault fault);
  ~FileFaults();
  FileFaults(const FileFaults&) = delete;
  FileFaults& operator=(const FileFaults&) = delete;

  /// The number of calls that were made, including failed ones.
  long calls() const;
  /// Lets every call succeed from now on.
  void mend();
};

/// Reads of these bytes of a file fail with EIO as long as this exists; one at a time.
class BadSector {
 public:
  BadSector(const std::string& path, long begin, long end);
  ~BadSector();
  BadSector(const BadSector&) = delete;
  BadSector& operator=(const BadSector&) = delete;
};

}  // namespace capfleet::test
