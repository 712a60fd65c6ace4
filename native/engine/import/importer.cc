#include "import/importer.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "import/capture_file_reader.h"
#include "import/import_ports.h"
#include "import/import_sorter.h"
#include "os/file.h"

namespace capfleet {

namespace fs = std::filesystem;

namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(200);
constexpr uint32_t kPacketsPerClockLook = 1024;
/// Entries have a 32-bit offset; far more than is reasonable.
constexpr uint64_t kMaxSortBytes = uint64_t{1} << 30;
constexpr const char* kScratchName = "/.sort";

/// A file of which nothing is imported, and why.
struct LeftOut {
  std::string file;
  std::string why;  ///< a sentence that names the file
};

Error cancelled() { return {Code::kCancelled, "the import was cancelled"}; }

Result<std::unique_ptr<CaptureFileReader>> openCaptureFile(const std::string& path,
                                                           uint32_t maxRatio) {
  auto stream = InputStream::open(path, InputStream::kDefaultBufferBytes, maxRatio);
  if (!stream) return stream.error();
  auto reader = CaptureFileReader::open(std::move(*stream));
  if (!reader) return Error{reader.error().code, path + " " + reader.error().message};
  return reader;
}

/// One attempt of an import, from the first file to the result.
class Import {
 public:
  /// Imports `files` instead of those in the options.
  Import(const ImportOptions& options, const std::vector<std::string>& files,
         const std::function<bool(const ImportProgress&)>& onProgress)
      : options_(options),
        files_(files),
        onProgress_(onProgress),
        sorter_({.directory = options.directory,
                 .scratchDirectory = options.directory + kScratchName,
                 .segmentBytes = options.segmentBytes,
                 .sortBytes = options.sortBytes}) {}

  Result<ImportResult> run() {
    for (const std::string& path : files_) addInputBytes(path);
    for (const std::string& path : files_) {
      if (auto status = importFile(path); !status) return status.error();
    }
    auto status = sorter_.finish([this] { return reportProgress(); });
    if (!status) return status.error();
    if (auto removed = removeScratch(); !removed) return removed.error();
    if (auto synced = syncDirectory(options_.directory); !synced) return synced.error();
    if (!tellProgress()) return cancelled();
    collectStreams();
    return std::move(result_);
  }

  /// After a failed run(): the file that must be left out of the next attempt, if that was the
  /// reason.
  const std::optional<LeftOut>& leftOut() const { return leftOut_; }

 private:
  struct Interface {
    uint32_t linkTypeWord = 0;
    std::optional<uint32_t> port;
  };

  void addInputBytes(const std::string& path) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (!error) progress_.totalInputBytes += bytes;
  }

  Status importFile(const std::string& path) {
    auto reader = openCaptureFile(path, options_.maxRatio);
    if (!reader) return leaveOut(path, reader.error().message);
    reader_ = std::move(*reader);
    interfaces_.clear();
    joinedFiles_ = 0;
    const uint64_t sharedBefore = ports_.sharedInterfaces();
    if (auto status = importPackets(path); !status) return status;
    if (reader_) finishedInputBytes_ += reader_->stream().inputBytes();
    reader_.reset();
    if (joinedFiles_ > 0) {
      addNote(path,
              "consists of capture files, one after another: " + std::to_string(joinedFiles_ + 1));
    }
    if (ports_.sharedInterfaces() > sharedBefore) {
      addNote(path,
              "has packets of more interfaces than there are capture ports (256): some "
              "interfaces of the same link type share a port");
    }
    return ok();
  }

  Status importPackets(const std::string& path) {
    CaptureRecord record;
    for (;;) {
      if (reader_->isAtJoinedFile() && !openJoinedFile(path)) return ok();
      const uint64_t offset = reader_->stream().offset();
      switch (reader_->next(record)) {
        case ReadStep::kPacket:
          if (!hasPort(record.interfaceIndex)) {
            addDamage(path, {offset, "its packets have more link types than capture ports (256)"});
            return ok();
          }
          if (auto status = addPacket(record); !status) return status;
          break;
        case ReadStep::kInterface:
          announceInterface(record);
          break;
        case ReadStep::kOutOfTimeRange:
          ++result_.packetsOutOfTimeRange;
          break;
        case ReadStep::kDamage:
          if (reader_->stream().isBomb()) return refuseBomb(path);
          addDamage(path, reader_->damage());
          return ok();
        case ReadStep::kEnd:
          return ok();
      }
    }
  }

  /// False if the rest of the file cannot be read.
  bool openJoinedFile(const std::string& path) {
    const InputStream& stream = reader_->stream();
    const ImportDamage there{.file = path,
                             .offset = stream.offset(),
                             .compressed = stream.isCompressed(),
                             .message = "the capture file that begins there "};
    const uint64_t inputBytes = stream.inputBytes();
    auto joined = CaptureFileReader::openJoined(std::move(reader_));
    if (!joined) {
      finishedInputBytes_ += inputBytes;
      result_.damages.push_back(there);
      result_.damages.back().message += joined.error().message;
      return false;
    }
    reader_ = std::move(*joined);
    ++joinedFiles_;
    return true;
  }

  void announceInterface(const CaptureRecord& record) {
    if (record.interfaceIndex >= interfaces_.size()) interfaces_.resize(record.interfaceIndex + 1);
    interfaces_[record.interfaceIndex] = {record.linkTypeWord, std::nullopt};
    ports_.announce(record.interfaceIndex, record.linkTypeWord);
  }

  /// Whether the packets of an interface have a port; decided at its first packet.
  bool hasPort(uint32_t interfaceIndex) {
    auto& [linkTypeWord, port] = interfaces_[interfaceIndex];
    if (!port) port = ports_.take(interfaceIndex, linkTypeWord);
    return port.has_value();
  }

  Status addPacket(const CaptureRecord& record) {
    recordBytes_ += kRecordHeaderBytes + record.captured.size();
    if (recordBytes_ > options_.maxBytes) {
      return Error{Code::kStoreFull, "the packets need more than the " +
                                         std::to_string(options_.maxBytes) + " bytes available"};
    }
    const uint32_t port = *interfaces_[record.interfaceIndex].port;
    if (auto status = sorter_.add(port, headerOf(port), record); !status) return status;
    ++progress_.packets;
    if (progress_.packets % kPacketsPerClockLook == 0 && !reportProgress()) return cancelled();
    return ok();
  }

  /// The snaplen is the format's limit, whatever the input says: libpcap truncates packets that are
  /// longer than it, and inputs with different ones share a port.
  PcapFileHeader headerOf(uint32_t port) const {
    return {.linkTypeWord = ports_.linkTypeWord(port).value_or(0), .snaplen = kMaxCapturedLength};
  }

  void addDamage(const std::string& path, ReadDamage damage) {
    result_.damages.push_back({.file = path,
                               .offset = damage.offset,
                               .compressed = reader_->stream().isCompressed(),
                               .message = std::move(damage.message)});
  }

  void addNote(const std::string& path, std::string message) {
    result_.notes.push_back({.file = path, .message = std::move(message)});
  }

  /// Its packets are mixed with those of other files by now: nothing of this attempt can be kept.
  Status refuseBomb(const std::string& path) {
    return leaveOut(
        path, path + " was rejected: " + reader_->stream().failure()->message +
                  "; if the file is as intended, decompress it and import the result, or raise "
                  "imports.maxRatio");
  }

  Status leaveOut(const std::string& path, std::string why) {
    leftOut_ = {path, why};
    return Error{Code::kBadCaptureFile, std::move(why)};
  }

  /// Calls onProgress when due. False if the caller wants to stop.
  bool reportProgress() {
    const auto now = std::chrono::steady_clock::now();
    if (now < nextProgress_) return true;
    nextProgress_ = now + kProgressInterval;
    return tellProgress();
  }

  bool tellProgress() {
    progress_.inputBytes = finishedInputBytes_ + (reader_ ? reader_->stream().inputBytes() : 0);
    return !onProgress_ || onProgress_(progress_);
  }

  Status removeScratch() {
    const std::string path = options_.directory + kScratchName;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return storeError("remove", path, error.value());
    return ok();
  }

  void collectStreams() {
    result_.packets = progress_.packets;
    for (uint32_t port = 0; port < ImportPorts::kMaxPorts; ++port) {
      if (!ports_.linkTypeWord(port)) continue;
      result_.streams.push_back({port, headerOf(port), sorter_.segments(port)});
    }
  }

  const ImportOptions& options_;
  const std::vector<std::string>& files_;
  const std::function<bool(const ImportProgress&)>& onProgress_;
  ImportSorter sorter_;
  ImportPorts ports_;
  std::unique_ptr<CaptureFileReader> reader_;
  std::vector<Interface> interfaces_;  ///< of the current section, and perhaps earlier ones
  uint32_t joinedFiles_ = 0;           ///< in the current file, after its first
  ImportProgress progress_;
  uint64_t finishedInputBytes_ = 0;
  uint64_t recordBytes_ = 0;
  std::optional<LeftOut> leftOut_;
  std::chrono::steady_clock::time_point nextProgress_{};
  ImportResult result_;
};

Status checkOptions(const ImportOptions& options) {
  if (options.files.empty()) {
    return Error{Code::kBadParameter, "files is empty; name at least one capture file"};
  }
  if (options.sortBytes > kMaxSortBytes) {
    return Error{Code::kBadParameter, "sortBytes is above 1 GiB"};
  }
  if (options.maxRatio == 0)
    return Error{Code::kBadParameter, "maxRatio is 0; it must be at least 1"};
  std::error_code error;
  const bool isEmpty = fs::is_empty(options.directory, error);
  if (error) return storeError("open", options.directory, error.value());
  if (!isEmpty) {
    return Error{Code::kBadParameter,
                 "directory " + options.directory + " is not empty; give a new folder"};
  }
  return ok();
}

struct ChosenFiles {
  std::vector<std::string> files;
  std::vector<LeftOut> leftOut;
};

/// Opens every input before anything is written.
ChosenFiles chooseFiles(const ImportOptions& options) {
  ChosenFiles chosen;
  for (const std::string& path : options.files) {
    if (auto reader = openCaptureFile(path, options.maxRatio); reader) {
      chosen.files.push_back(path);
    } else {
      chosen.leftOut.push_back({path, reader.error().message});
    }
  }
  return chosen;
}

void addLeftOut(ImportResult& result, const std::vector<LeftOut>& leftOut) {
  for (const auto& [file, why] : leftOut) result.damages.push_back({.file = file, .message = why});
}

Error noFileLeft(const std::vector<LeftOut>& leftOut) {
  std::string message;
  for (const auto& [file, why] : leftOut) message += (message.empty() ? "" : "; ") + why;
  return {Code::kBadCaptureFile, message};
}

/// The error for files without a single packet that can be stored.
Error noPackets(const std::vector<std::string>& files, const ImportResult& result,
                const std::vector<LeftOut>& leftOut) {
  std::string message = noFileLeft(leftOut).message;
  for (const std::string& path : files) {
    message += (message.empty() ? "" : "; ") + path + " contains no packets";
    if (result.packetsOutOfTimeRange > 0) message += " of the times that PCAP can store";
    for (const ImportDamage& damage : result.damages) {
      if (damage.file != path) continue;
      message +=
          ", and is damaged at offset " + std::to_string(damage.offset) + ": " + damage.message;
    }
  }
  return {Code::kBadCaptureFile, message};
}

/// For use after a failure. Best effort: the failure itself is what must be reported.
void emptyDirectory(const std::string& path) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace

Result<ImportResult> importCaptureFiles(
    const ImportOptions& options, const std::function<bool(const ImportProgress&)>& onProgress) {
  if (auto status = checkOptions(options); !status) return status.error();
  auto [files, leftOut] = chooseFiles(options);
  while (!files.empty()) {
    Import import(options, files, onProgress);
    auto result = import.run();
    if (result && result->packets > 0) {
      addLeftOut(*result, leftOut);
      return result;
    }
    emptyDirectory(options.directory);
    if (result) return noPackets(files, *result, leftOut);
    if (!import.leftOut()) return result;
    std::erase(files, import.leftOut()->file);
    leftOut.push_back(*import.leftOut());
  }
  return noFileLeft(leftOut);
}

}  // namespace capfleet
