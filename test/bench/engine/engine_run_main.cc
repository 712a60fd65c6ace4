// The engine's work without HTTP, for the bench: downloads streams of a store and drops the bytes.
//   capfleet-engine-run [--filter FILE] [--slice BYTES] [--threads N] [--empty | --write] FOLDER...
// Each folder is a stream, as an import makes them. FILE is a program of capfleet-bpf-compile. With
// --empty the range holds no packet: what remains is the start of the program and the reading of
// the indexes. --write writes the bytes to stdout; else one line of JSON says how many packets were
// read and what that took.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "download/download_opening.h"
#include "os/worker_pool.h"
#include "store/segment_extent.h"

namespace {

using namespace capfleet;

struct Arguments {
  DownloadOptions options;
  unsigned threads = 1;
  bool writes = false;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "capfleet-engine-run: %s\n", message.c_str());
  std::exit(1);
}

/// The segment's entry in its capture's log, without the fields that are not needed here.
SegmentEntry entryOf(const std::filesystem::path& segment) {
  const Result<SegmentExtent> extent = measureSegment(segment.string(), {});
  if (!extent) fail(extent.error().message);
  SegmentEntry entry;
  entry.number = static_cast<uint32_t>(std::stoul(segment.filename().string()));
  entry.port = extent->port;
  entry.flags = kSegmentFlat;
  entry.minNs = extent->minNs;
  entry.maxNs = extent->maxNs;
  entry.packets = extent->packets;
  entry.bytes = extent->bytes;
  entry.linkTypeWord = extent->header.linkTypeWord;
  entry.snaplen = extent->header.snaplen;
  return entry;
}

StreamSegments segmentsOf(const std::string& folder) {
  StreamSegments stream{folder, {}};
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".pcap") continue;
    stream.segments.push_back(entryOf(file.path().parent_path() / file.path().stem()));
  }
  std::sort(stream.segments.begin(), stream.segments.end(),
            [](const SegmentEntry& a, const SegmentEntry& b) { return a.number < b.number; });
  return stream;
}

BpfProgram readProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  auto program = BpfProgram::parse(bytes);
  if (!program) fail(path + ": " + program.error().message);
  return *program;
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.options.endNs = INT64_MAX;
  for (size_t i = 0; i < words.size(); i++) {
    const bool hasValue = i + 1 < words.size();
    if (words[i] == "--filter" && hasValue) {
      arguments.options.filter = readProgram(words[++i]);
    } else if (words[i] == "--slice" && hasValue) {
      arguments.options.sliceBytes = static_cast<uint32_t>(std::stoul(words[++i]));
    } else if (words[i] == "--threads" && hasValue) {
      arguments.threads = static_cast<unsigned>(std::stoul(words[++i]));
    } else if (words[i] == "--empty") {
      arguments.options.endNs = 1;
    } else if (words[i] == "--write") {
      arguments.writes = true;
    } else {
      arguments.options.streams.push_back(segmentsOf(words[i]));
    }
  }
  return arguments;
}

void writeAll(const uint8_t* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDOUT_FILENO, bytes, size);
    if (written < 0) fail("stdout takes no bytes");
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void readAll(Download& download, bool writes) {
  for (;;) {
    std::promise<Download::Answer> promise;
    download.next([&](Download::Answer answer) { promise.set_value(std::move(answer)); });
    const Download::Answer answer = promise.get_future().get();
    if (!answer) fail(answer.error().message);
    if (*answer == nullptr) return;
    if (writes) writeAll((*answer)->bytes.get(), (*answer)->size);
    download.release(answer->get());
  }
}

double secondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void printFigures(uint64_t packets, double seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("{\"packets\":%llu,\"seconds\":%.6f,\"cpuSeconds\":%.6f,\"peakRssMiB\":%.1f}\n",
              static_cast<unsigned long long>(packets), seconds,
              secondsOf(used.ru_utime) + secondsOf(used.ru_stime),
              static_cast<double>(used.ru_maxrss) / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = parse({argv + 1, argv + argc});
  WorkerPool workers(arguments.threads);
  const auto start = std::chrono::steady_clock::now();
  auto download =
      openDownload(std::move(arguments.options), workers, std::make_shared<BufferPool>());
  if (!download) fail(download.error().message);
  readAll(**download, arguments.writes);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (!arguments.writes) printFigures((*download)->totals().readPackets, elapsed.count());
}
