#include "store/tally_builder.h"

#include <algorithm>

namespace capfleet {

void TallyBuilder::beginRow(int64_t timestampNs) {
  const int64_t millisecond = timestampNs / kNanosPerMillisecond;
  rows_.push_back({.millisecond = millisecond});
  rowBeginNs_ = millisecond * kNanosPerMillisecond;
}

std::span<const TallyRow> TallyBuilder::rows() {
  const auto isEarlier = [](const TallyRow& a, const TallyRow& b) {
    return a.millisecond < b.millisecond;
  };
  // Neighbouring rows never have the same millisecond, so sorted rows have no duplicates.
  if (std::is_sorted(rows_.begin(), rows_.end(), isEarlier)) return rows_;
  std::sort(rows_.begin(), rows_.end(), isEarlier);
  size_t last = 0;
  for (size_t i = 1; i < rows_.size(); i++) {
    if (rows_[i].millisecond != rows_[last].millisecond) {
      rows_[++last] = rows_[i];
      continue;
    }
    rows_[last].packets += rows_[i].packets;
    rows_[last].bytes += rows_[i].bytes;
  }
  rows_.resize(last + 1);
  return rows_;
}

void TallyBuilder::reset() {
  rows_.clear();
  rowBeginNs_ = kNoRowNs;
}

}  // namespace capfleet
