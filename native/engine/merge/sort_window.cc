#include "merge/sort_window.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace capfleet {

namespace {

/// An allocation and its entry cost about this much in addition to the bytes of a record: small
/// packets must not take many times the memory that the limit says.
constexpr size_t kHoldingBytes = 64;
/// Memory of released records that is kept. More is needed only where a stream jumps ahead or ends.
constexpr size_t kKeptBytes = size_t{1} << 20;

}  // namespace

SortWindow::SortWindow(const Limits& limits) : limits_(limits), records_(RecordInputOptions{}) {}

void SortWindow::takeAll(RecordInput& stream) {
  assert(stream.unitNs() == 1 && !records_.hasRecord());
  clearReleased();
  for (; stream.hasRecord(); stream.take()) {
    if (!isInRange(stream.time())) continue;
    hold(stream.time(), stream.record());
    while (heldBytes_ > 0 &&
           (latestNs_ - firstTimeNs() >= limits_.ns || heldBytes_ > limits_.bytes)) {
      releaseFirst();
    }
  }
  records_.show(released_);
}

void SortWindow::end() {
  assert(!records_.hasRecord());
  clearReleased();
  while (heldBytes_ > 0) releaseFirst();
  records_.show(released_);
}

void SortWindow::forget() {
  records_.forget();
  run_.clear();
  heap_.clear();
  released_ = {};
  heldBytes_ = 0;
}

void SortWindow::clearReleased() {
  if (released_.capacity() > kKeptBytes) released_ = {};
  released_.clear();
}

bool SortWindow::isInRange(int64_t timeNs) const {
  return timeNs >= limits_.fromNs && timeNs < limits_.toNs;
}

void SortWindow::hold(int64_t timeNs, std::span<const uint8_t> record) {
  Held held{timeNs, taken_++, std::make_unique_for_overwrite<uint8_t[]>(record.size()),
            static_cast<uint32_t>(record.size())};
  std::memcpy(held.bytes.get(), record.data(), record.size());
  if (run_.empty() || timeNs >= run_.back().timeNs) {
    run_.push_back(std::move(held));
  } else {
    heap_.push_back(std::move(held));
    std::push_heap(heap_.begin(), heap_.end(), isAfter);
  }
  heldBytes_ += record.size() + kHoldingBytes;
  latestNs_ = std::max(latestNs_, timeNs);
}

bool SortWindow::isFirstInRun() const {
  if (run_.empty()) return false;
  return heap_.empty() || isAfter(heap_.front(), run_.front());
}

/// REQUIRES: records are held.
int64_t SortWindow::firstTimeNs() const {
  return isFirstInRun() ? run_.front().timeNs : heap_.front().timeNs;
}

/// REQUIRES: records are held.
void SortWindow::releaseFirst() {
  Held first;
  if (isFirstInRun()) {
    first = std::move(run_.front());
    run_.pop_front();
  } else {
    std::pop_heap(heap_.begin(), heap_.end(), isAfter);
    first = std::move(heap_.back());
    heap_.pop_back();
  }
  released_.insert(released_.end(), first.bytes.get(), first.bytes.get() + first.length);
  heldBytes_ -= first.length + kHoldingBytes;
}

bool SortWindow::isAfter(const Held& a, const Held& b) {
  return a.timeNs != b.timeNs ? a.timeNs > b.timeNs : a.number > b.number;
}

}  // namespace capfleet
