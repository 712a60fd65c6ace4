#include "store/segment_file.h"

#include <utility>

namespace capfleet {
namespace {

Error removed(const std::string& path) {
  return {Code::kAgedOut, path + " was removed to make room while it was being read"};
}

}  // namespace

Result<SegmentFile> SegmentFile::open(const std::string& segment) {
  Result<File> opened = File::openStored(segment + ".pcap");
  if (!opened) return opened.error();
  // Only a process that removes the segment locks others out.
  if (!opened->tryLockShared()) return removed(opened->path());
  SegmentFile file(std::move(*opened));
  if (Status status = file.checkKept(); !status) return status.error();
  return file;
}

Result<size_t> SegmentFile::readAt(uint64_t offset, std::span<uint8_t> out) const {
  Result<size_t> got = file_.readAtWithGaps(offset, out);
  if (!got) return got;
  // A segment loses its name before its bytes: while the name exists, the bytes read are valid.
  if (Status status = checkKept(); !status) return status.error();
  return got;
}

Status SegmentFile::checkKept() const {
  const Result<uint64_t> names = file_.names();
  if (!names) return names.error();
  if (*names == 0) return removed(file_.path());
  return ok();
}

Result<std::shared_ptr<SegmentFile>> SharedSegmentFile::open() {
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<SegmentFile> file = file_.lock()) return file;
  Result<SegmentFile> opened = SegmentFile::open(segment_);
  if (!opened) return opened.error();
  auto file = std::make_shared<SegmentFile>(std::move(*opened));
  file_ = file;
  return file;
}

}  // namespace capfleet
