#include "store/tally_reader.h"

#include <utility>

namespace capfleet {

std::optional<std::vector<TallyRow>> TallyReader::read(const BlockEntry& entry) {
  if (entry.tallyBytes == 0 || entry.tallyBytes > maxTallyBytes(entry)) return std::nullopt;
  if (!isTried_) {
    auto file = File::openForRead(path_);
    if (file) file_ = std::move(*file);
    isTried_ = true;
  }
  if (!file_) return std::nullopt;
  bytes_.resize(entry.tallyBytes);
  const auto count = file_->readAt(entry.tallyOffset, bytes_);
  if (!count || *count != bytes_.size()) return std::nullopt;
  return parseTally(bytes_, entry);
}

}  // namespace capfleet
