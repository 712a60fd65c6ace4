// The interfaces of a merge that is written as pcapng: each is a capture port of a device, or a
// device that does not say which port it means.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capfleet {

/// Interfaces are added while the streams of their devices arrive, which differs from run to run.
/// They get their numbers in the file when their first packet is written. Not thread-safe.
class MergedInterfaces {
 public:
  /// Options for the first packet of an interface at or after a time.
  struct Remark {
    int64_t atNs = 0;
    std::vector<uint8_t> options;  ///< padded, without the end of options
  };

  struct Interface {
    std::string name;
    uint32_t linkTypeWord = 0;
    std::vector<uint8_t> description;  ///< its Interface Description Block
    std::deque<Remark> remarks;        ///< those that no packet has yet, in the order of time
    std::optional<uint32_t> number;    ///< in the file; null as long as it is not described there
    uint64_t packets = 0;              ///< written
    uint64_t duplicates = 0;           ///< left out as copies of packets that were written
  };

  /// Returns the interface's identifier, by which records are tagged.
  uint32_t add(std::string name, uint32_t linkTypeWord, std::vector<uint8_t> description);
  /// Records that the next packet of the interface at or after `atNs` has these options.
  void remark(uint32_t id, Remark remark);

  size_t size() const { return all_.size(); }
  /// REQUIRES: `id` was returned by add().
  Interface& at(uint32_t id) { return *all_[id]; }
  /// Gives the interface the next number. REQUIRES: its description is written now.
  void number(Interface& one) { one.number = numbered_++; }

 private:
  std::vector<std::unique_ptr<Interface>> all_;
  uint32_t numbered_ = 0;
};

}  // namespace capfleet
