// Chooses the next of several inputs: the one with the smallest key, the first of equal ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace capfleet {

/// A binary heap of inputs by (key, input number). Replacing the top costs about 2 log2(n)
/// comparisons; the runner-up is known at once, which lets the caller take from the top input
/// without asking until it passes that. Not thread-safe.
class MergeHeap {
 public:
  struct Entry {
    int64_t keyNs;
    uint32_t input;

    bool operator<(const Entry& other) const {
      return keyNs != other.keyNs ? keyNs < other.keyNs : input < other.input;
    }
  };

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Entry& top() const { return entries_.front(); }

  void push(Entry entry) {
    entries_.push_back(entry);
    std::push_heap(entries_.begin(), entries_.end(), isAfter);
  }

  /// The entry that is top once the current top is gone. REQUIRES: size() > 1.
  const Entry& runnerUp() const {
    const bool second = entries_.size() > 2 && entries_[2] < entries_[1];
    return entries_[second ? 2 : 1];
  }

  /// Gives the top input a new key, which is not smaller.
  void replaceTop(int64_t keyNs) {
    entries_.front().keyNs = keyNs;
    sink();
  }

  void popTop() {
    entries_.front() = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) sink();
  }

 private:
  static bool isAfter(const Entry& a, const Entry& b) { return b < a; }

  void sink() {
    const Entry moved = entries_.front();
    size_t at = 0;
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= entries_.size()) break;
      if (child + 1 < entries_.size() && entries_[child + 1] < entries_[child]) child++;
      if (!(entries_[child] < moved)) break;
      entries_[at] = entries_[child];
      at = child;
    }
    entries_[at] = moved;
  }

  std::vector<Entry> entries_;
};

}  // namespace capfleet
