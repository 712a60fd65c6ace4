#include "store/segment_removal.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "os/file.h"
#include "store/address_table.h"
#include "store/segment_path.h"

namespace capfleet {
namespace {

Status removeName(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return ok();
  return storeError("remove", path, errno);
}

/// The name first: a reader that finds it gone knows that the bytes may be gone too.
Status removeAndEmpty(const File& file) {
  if (Status status = removeName(file.path()); !status) return status;
  const Result<uint64_t> names = file.names();
  if (!names) return names.error();
  return *names == 0 ? file.empty() : ok();
}

}  // namespace

Result<bool> removeSegment(const std::string& segment, bool evenIfRead) {
  const Result<File> packets = File::openForChange(segment + ".pcap");
  if (packets) {
    if (!packets->tryLockExclusive() && !evenIfRead) return false;
    if (Status status = removeAndEmpty(*packets); !status) return status.error();
  } else if (packets.error().code != Code::kAgedOut) {
    return packets.error();
  }
  for (const char* ending : kSegmentEndings) {
    if (Status status = removeName(segment + ending); !status) return status.error();
  }
  // Files that an interrupted repair may have left.
  for (const char* ending : {".idx", ".tally", ".sieve"}) {
    const Status status = removeName(segment + ending + kNewFileEnding);
    if (!status) return status.error();
  }
  const auto [folder, number] = placeOfSegment(segment);
  // A table that cannot be removed misleads no reader, and goes with its capture.
  static_cast<void>(removeUnusedAddresses(folder, number));
  removeEmptyGroup(segment);
  return true;
}

void removeEmptyGroup(const std::string& segment) {
  const std::filesystem::path folder = std::filesystem::path(segment).parent_path();
  // A folder that is not empty stays.
  if (isGroupName(folder.filename())) static_cast<void>(::rmdir(folder.c_str()));
}

}  // namespace capfleet
