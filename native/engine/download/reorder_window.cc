#include "download/reorder_window.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <limits>

namespace capfleet {

ReorderWindow::ReorderWindow(const Limits& limits)
    : limits_(limits),
      ringMask_(std::bit_ceil(uint64_t{limits.packets}) - 1),
      bytes_(std::make_unique_for_overwrite<uint8_t[]>(limits.bytes)),
      held_(std::make_unique_for_overwrite<Held[]>(ringMask_ + 1)),
      run_(std::make_unique_for_overwrite<Entry[]>(ringMask_ + 1)),
      latestNs_(std::numeric_limits<int64_t>::min()) {
  assert(limits.packets > 0);
  heap_.reserve(limits.packets);
}

bool ReorderWindow::hasRoomFor(int64_t nicNs, size_t recordBytes) const {
  size_t offset = 0;
  if (!findPlace(recordBytes, offset)) return false;
  if (empty()) return true;
  // A clock that steps back makes the same distance: then waiting gains nothing either.
  return end_ - oldest_ < limits_.packets && std::abs(nicNs - held(oldest_).nicNs) <= limits_.nicNs;
}

/// Where a record fits in one piece: after the newest, or else at the front of the ring.
bool ReorderWindow::findPlace(size_t recordBytes, size_t& offset) const {
  offset = 0;
  if (oldest_ == end_) return recordBytes <= limits_.bytes;
  const size_t begin = held(oldest_).offset;
  const Held& newest = held(end_ - 1);
  const size_t end = newest.offset + newest.length;
  if (newest.offset < begin) {  // the records inside go over the ring's end
    offset = end;
    return recordBytes <= begin - end;
  }
  if (recordBytes <= limits_.bytes - end) {
    offset = end;
    return true;
  }
  return recordBytes <= begin;
}

uint8_t* ReorderWindow::add(int64_t timeNs, int64_t nicNs, size_t recordBytes) {
  size_t offset = 0;
  const bool fits = findPlace(recordBytes, offset);
  assert(fits && end_ - oldest_ < limits_.packets);
  (void)fits;
  held(end_) = {nicNs, offset, recordBytes, true};
  const Entry entry{timeNs, end_};
  if (runBegin_ == runEnd_ || timeNs >= inRun(runEnd_ - 1).timeNs) {
    inRun(runEnd_) = entry;
    runEnd_++;
  } else {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), isAfter);
  }
  end_++;
  return &bytes_[offset];
}

bool ReorderWindow::isNextInRun() const {
  if (runBegin_ == runEnd_) return false;
  return heap_.empty() || isAfter(heap_.front(), inRun(runBegin_));
}

ReorderWindow::Record ReorderWindow::next() const {
  assert(!empty());
  const Entry& entry = isNextInRun() ? inRun(runBegin_) : heap_.front();
  const Held& record = held(entry.number);
  return {entry.timeNs, {&bytes_[record.offset], record.length}};
}

void ReorderWindow::pop() {
  assert(!empty());
  Entry entry;
  if (isNextInRun()) {
    entry = inRun(runBegin_);
    runBegin_++;
  } else {
    entry = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), isAfter);
    heap_.pop_back();
  }
  held(entry.number).isInside = false;
  while (oldest_ < end_ && !held(oldest_).isInside) oldest_++;
  if (entry.timeNs < latestNs_) latePackets_++;
  latestNs_ = std::max(latestNs_, entry.timeNs);
}

bool ReorderWindow::isAfter(const Entry& a, const Entry& b) {
  return a.timeNs != b.timeNs ? a.timeNs > b.timeNs : a.number > b.number;
}

}  // namespace capfleet
