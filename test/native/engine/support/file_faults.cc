#include "support/file_faults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace capfleet::test {

namespace {

FileFault current;
std::atomic<bool> isActive = false;
std::atomic<long> calls = 0;
std::atomic<ino_t> badFile = 0;
std::atomic<long> badBegin = 0;
std::atomic<long> badEnd = 0;

/// Counts a call, and returns whether it must fail; errno is set in that case.
bool fails() {
  if (!isActive) return false;
  const long call = calls++;
  if (call < current.from || call >= current.from + current.count) return false;
  errno = current.errorNumber;
  return true;
}

}  // namespace

FileFaults::FileFaults(FileFault fault) {
  current = fault;
  test::calls = 0;
  isActive = true;
}
FileFaults::~FileFaults() { isActive = false; }
long FileFaults::calls() const { return test::calls; }
void FileFaults::mend() { isActive = false; }

BadSector::BadSector(const std::string& path, long begin, long end) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) badFile = status.st_ino;
  badBegin = begin;
  badEnd = end;
}
BadSector::~BadSector() { badFile = 0; }

}  // namespace capfleet::test

using capfleet::test::badBegin;
using capfleet::test::badEnd;
using capfleet::test::badFile;
using capfleet::test::current;
using capfleet::test::fails;

extern "C" {

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails() ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_pread(int file, void* bytes, size_t count, off_t offset);
ssize_t __wrap_pread(int file, void* bytes, size_t count, off_t offset) {
  struct stat status {};
  const bool isBad = badFile != 0 && ::fstat(file, &status) == 0 && status.st_ino == badFile &&
                     offset < badEnd && offset + static_cast<off_t>(count) > badBegin;
  if (!isBad) {
    return __real_pread(file, bytes, count, offset);
  }
  errno = EIO;
  return -1;
}

ssize_t __real_write(int file, const void* bytes, size_t count);
ssize_t __wrap_write(int file, const void* bytes, size_t count) {
  if (!fails()) return __real_write(file, bytes, count);
  // A disk that fills up accepts a part, and then nothing.
  if (current.isShort) {
    const int error = errno;
    static_cast<void>(!__real_write(file, bytes, count / 2));
    errno = error;
  }
  return -1;
}

// Syncing is skipped because no test here loses power; the disk would only make thousands of cases
// slow.
int __wrap_fdatasync(int) { return fails() ? -1 : 0; }
int __wrap_fsync(int) { return fails() ? -1 : 0; }

int __real_ftruncate(int file, off_t bytes);
int __wrap_ftruncate(int file, off_t bytes) { return fails() ? -1 : __real_ftruncate(file, bytes); }

int __real_mkdir(const char* path, mode_t mode);
int __wrap_mkdir(const char* path, mode_t mode) { return fails() ? -1 : __real_mkdir(path, mode); }

int __real_rename(const char* from, const char* to);
int __wrap_rename(const char* from, const char* to) {
  return fails() ? -1 : __real_rename(from, to);
}

int __real_unlink(const char* path);
int __wrap_unlink(const char* path) { return fails() ? -1 : __real_unlink(path); }
}
