// Sorts the packets of an import by timestamp, port by port, in bounded memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "import/capture_file_reader.h"
#include "import/import_ports.h"
#include "import/port_runs.h"
#include "os/result.h"
#include "packet/pcap_format.h"

namespace capfleet {

struct ImportSorterOptions {
  std::string directory;  ///< cap<port>/ folders are made here
  std::string scratchDirectory;
  uint64_t segmentBytes = 0;
  uint64_t sortBytes = 0;  ///< for waiting packets; one packet is held even if larger
};

/// Buffers packets in memory. When the buffer is full, the oldest three quarters of each port are
/// written and the newest stay, so that packets slightly out of order are sorted before they reach
/// the disk. Packets that are too late for that start a new run (PortRuns). Stable: ties keep the
/// order of add(). Not thread-safe. Every failure is final.
class ImportSorter {
 public:
  explicit ImportSorter(ImportSorterOptions options);

  /// Copies the packet. `header` is the port's, and must be the same each time.
  Status add(uint32_t port, const PcapFileHeader& header, const CaptureRecord& packet);

  /// Must be called once, after all packets. `goesOn` as in mergeRuns().
  Status finish(const std::function<bool()>& goesOn);

  /// After finish(): the segments of a port; empty if it had no packets.
  const std::vector<SegmentSummary>& segments(uint32_t port) const { return segments_[port]; }

 private:
  struct Entry {
    int64_t timestampNs;
    uint32_t offset;  ///< offset of the record in arena_; grows with the input, so it breaks ties
    bool operator<(const Entry& other) const {
      return timestampNs != other.timestampNs ? timestampNs < other.timestampNs
                                              : offset < other.offset;
    }
  };
  struct Port {
    std::vector<Entry> waiting;
    bool isOrdered = true;  ///< waiting is in order as it is
    PortRuns runs;
  };

  Port& portFor(uint32_t port, const PcapFileHeader& header);
  bool hasRoom(size_t recordBytes) const;
  Status writeOldest();
  Status writeFirst(Port& port, size_t count);
  void compact();

  ImportSorterOptions options_;
  std::unique_ptr<uint8_t[]> arena_;  ///< whole records of all ports
  size_t arenaBytes_ = 0;             ///< used
  size_t entryCount_ = 0;
  std::array<std::unique_ptr<Port>, ImportPorts::kMaxPorts> ports_;
  uint32_t portCount_ = 0;
  std::array<std::vector<SegmentSummary>, ImportPorts::kMaxPorts> segments_;
};

}  // namespace capfleet
