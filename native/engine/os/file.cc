#include "os/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace capfleet {

namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kFolderMode = 0750;
constexpr size_t kPageBytes = 4096;

int openRetrying(const char* path, int flags) {
  int descriptor;
  do {
    descriptor = ::open(path, flags | O_CLOEXEC, kFileMode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/// The Error for a segment file that cannot be opened.
Error notOpened(const std::string& path, int errorNumber) {
  if (errorNumber != ENOENT) return storeError("open", path, errorNumber);
  return {Code::kAgedOut, path + " has been removed to make room"};
}

}  // namespace

Error storeError(const char* action, const std::string& path, int errorNumber) {
  const bool full = errorNumber == ENOSPC || errorNumber == EDQUOT;
  return {full ? Code::kStoreFull : Code::kStoreUnavailable,
          std::string("cannot ") + action + " " + path + ": " +
              std::generic_category().message(errorNumber)};
}

Result<File> File::openForRead(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer. It has no effect on regular files.
  const int descriptor = openRetrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (descriptor < 0) return storeError("open", path, errno);
  return File(descriptor, path);
}

Result<File> File::openNamed(const std::string& path) {
  const int descriptor = openRetrying(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0 && errno == ELOOP) {
    return Error{Code::kStoreUnavailable,
                 path + " is a symbolic link; name the file that it points to"};
  }
  if (descriptor < 0) return storeError("open", path, errno);
  return File(descriptor, path);
}

Result<File> File::openStored(const std::string& path) {
  const int descriptor = openRetrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  if (descriptor < 0) return notOpened(path, errno);
  return File(descriptor, path);
}

Result<File> File::openForChange(const std::string& path) {
  const int descriptor = openRetrying(path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return notOpened(path, errno);
  return File(descriptor, path);
}

Result<File> File::create(const std::string& path) {
  const int descriptor = openRetrying(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL);
  if (descriptor < 0) return storeError("create", path, errno);
  return File(descriptor, path);
}

Result<File> File::openForAppend(const std::string& path, bool createsMissing) {
  const int flags = O_RDWR | O_APPEND | (createsMissing ? O_CREAT : 0);
  const int descriptor = openRetrying(path.c_str(), flags);
  if (descriptor < 0) return storeError("open", path, errno);
  return File(descriptor, path);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<size_t> File::readAt(uint64_t offset, std::span<uint8_t> out) const {
  const int errorNumber = fill(offset, out);
  if (errorNumber != 0) return storeError("read", path_, errorNumber);
  return out.size();
}

Result<size_t> File::readAtWithGaps(uint64_t offset, std::span<uint8_t> out) const {
  std::span<uint8_t> whole = out;
  const int errorNumber = fill(offset, whole);
  if (errorNumber == 0) return whole.size();
  if (errorNumber != EIO) return storeError("read", path_, errorNumber);
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = offset + done;
    const size_t wanted = std::min<size_t>(out.size() - done, kPageBytes - at % kPageBytes);
    std::span<uint8_t> page = out.subspan(done, wanted);
    const int pageError = fill(at, page);
    if (pageError == EIO)
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(done), wanted, 0);
    else if (pageError != 0)
      return storeError("read", path_, pageError);
    else if (page.size() < wanted)
      return done + page.size();
    done += wanted;
  }
  return out.size();
}

int File::fill(uint64_t offset, std::span<uint8_t>& out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(descriptor_, out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count == 0) break;
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    done += static_cast<size_t>(count);
  }
  out = out.first(done);
  return 0;
}

Result<std::vector<uint8_t>> File::readAll() const {
  const auto end = size();
  if (!end) return end.error();
  std::vector<uint8_t> bytes(*end);
  const auto count = readAtWithGaps(0, bytes);
  if (!count) return count.error();
  bytes.resize(*count);
  return bytes;
}

Result<uint64_t> File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return storeError("inspect", path_, errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{Code::kStoreUnavailable, path_ + " is not a regular file"};
  }
  return static_cast<uint64_t>(status.st_size);
}

Result<int64_t> File::writtenNs() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return storeError("inspect", path_, errno);
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return int64_t{status.st_mtim.tv_sec} * kNanosPerSecond + status.st_mtim.tv_nsec;
}

Result<uint64_t> File::names() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return storeError("inspect", path_, errno);
  return static_cast<uint64_t>(status.st_nlink);
}

bool File::tryLockShared() const { return ::flock(descriptor_, LOCK_SH | LOCK_NB) == 0; }

bool File::tryLockExclusive() const { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }

Status File::lockExclusive() const {
  while (::flock(descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) return storeError("lock", path_, errno);
  }
  return ok();
}

Status File::empty() const {
  if (::ftruncate(descriptor_, 0) != 0) return storeError("empty", path_, errno);
  return ok();
}

Status File::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return storeError("write", path_, errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return ok();
}

void File::startWriteBack(uint64_t offset, uint64_t bytes) {
  // Only a hint: sync() is what counts, so a failure here is not an error.
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(offset),
                                      static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE));
}

Status File::resize(uint64_t bytes) {
  int result;
  do {
    result = ::ftruncate(descriptor_, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return storeError("cut", path_, errno);
  return ok();
}

Status File::sync() {
  // After a failed sync the kernel may have dropped the pages, so it is never retried as if it
  // could succeed.
  if (::fdatasync(descriptor_) != 0) return storeError("sync", path_, errno);
  return ok();
}

Status replaceFile(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string prepared = path + kNewFileEnding;
  auto file = File::openForAppend(prepared, true);
  if (!file) return file.error();
  Status status = file->resize(0);
  if (status) status = file->write(bytes);
  if (status) status = file->sync();
  if (status && ::rename(prepared.c_str(), path.c_str()) != 0) {
    status = storeError("replace", path, errno);
  }
  if (!status) {
    // Its room is needed, above all on a full disk.
    static_cast<void>(removeFile(prepared));
    return status;
  }
  const size_t slash = path.rfind('/');
  return syncDirectory(slash == std::string::npos ? "." : path.substr(0, slash));
}

Status syncDirectory(const std::string& path) {
  const int descriptor = openRetrying(path.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return storeError("open", path, errno);
  const int result = ::fsync(descriptor);
  const int errorNumber = errno;
  ::close(descriptor);
  if (result != 0) return storeError("sync", path, errorNumber);
  return ok();
}

Status makeDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return storeError("create the folder", path, errno);
  }
  return ok();
}

Status removeFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return storeError("remove", path, errno);
  return ok();
}

}  // namespace capfleet
