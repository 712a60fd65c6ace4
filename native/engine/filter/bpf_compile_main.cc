// capfleet-bpf-compile: turns a filter expression (tcpdump syntax) into a BPF program.
//
// libpcap's compiler can need minutes and gigabytes for a hostile expression, and it asks the
// network for names. So it runs here, in a process of its own that limits itself before it reads
// the expression and that its caller may kill at any time.
//
//   stdin   4 bytes little-endian link type word, 4 bytes little-endian snaplen, the expression
//           (at most 16 KiB) until end of file; an empty expression accepts every packet
//   stdout  the instructions, 8 bytes each, as little-endian struct bpf_insn; exit status 0
//   stderr  one line, libpcap's message; exit status 1
#include <pcap/pcap.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "filter/bpf_compile_names.h"
#include "filter/bpf_program.h"
#include "filter/compile_limits.h"
#include "packet/pcap_format.h"

namespace capfleet {
namespace {

constexpr uint32_t kCpuSeconds = 2;
constexpr size_t kPrefixBytes = 8;
constexpr size_t kMaxExpressionBytes = 16 * 1024;
/// Instructions before optimization: those of about 150 hosts, which take 0.5 s.
constexpr size_t kMostOptimized = 4500;

int fail(std::string message) {
  // Some of libpcap's messages end in a line feed.
  while (message.ends_with('\n')) message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

/// Reads all of stdin, but at most one byte more than allowed.
std::string readInput() {
  std::string input(kPrefixBytes + kMaxExpressionBytes + 1, '\0');
  input.resize(std::fread(input.data(), 1, input.size(), stdin));
  return input;
}

/// A handle like that of tcpdump -r: libpcap maps the link type word of a file header itself.
pcap_t* openHeaderOnly(uint32_t linkTypeWord, uint32_t snaplen, char* message) {
  static uint8_t header[kPcapFileHeaderBytes];
  storePcapFileHeader(header, {linkTypeWord, snaplen}, true);
  FILE* file = fmemopen(header, sizeof header, "r");
  if (file == nullptr) return nullptr;
  return pcap_fopen_offline(file, message);
}

/// The instructions in the format for stdout, or nullopt, with libpcap's message in the handle.
std::optional<std::vector<uint8_t>> compiled(pcap_t* handle, const std::string& expression,
                                             bool isOptimized) {
  bpf_program program{};
  // Netmask 0, as in tcpdump -r.
  if (pcap_compile(handle, &program, expression.c_str(), isOptimized ? 1 : 0, 0) != 0) return {};
  std::vector<uint8_t> bytes(size_t{program.bf_len} * kBpfInstructionBytes);
  for (size_t i = 0; i < program.bf_len; i++) {
    const bpf_insn& instruction = program.bf_insns[i];
    uint8_t* p = bytes.data() + i * kBpfInstructionBytes;
    storeLe16(p, instruction.code);
    p[2] = instruction.jt;
    p[3] = instruction.jf;
    storeLe32(p + 4, instruction.k);
  }
  pcap_freecode(&program);
  return bytes;
}

/// The program that tcpdump -r runs comes from the optimizer, and results must be the same. But in
/// a filter with five or more calculations the optimizer may remove what writes a memory slot and
/// keep what reads it. tcpdump then selects by previous contents of its stack; the unoptimized
/// program selects what the filter says.
///
/// The time of the optimizer grows with the square of the program's size: a filter of hundreds of
/// hosts would take longer than this process may. Such a filter is not optimized. Both programs
/// select the same packets.
std::optional<std::vector<uint8_t>> compiledSoundly(pcap_t* handle, const std::string& expression) {
  auto plain = compiled(handle, expression, false);
  if (!plain || plain->size() > kMostOptimized * kBpfInstructionBytes) return plain;
  auto optimized = compiled(handle, expression, true);
  if (!optimized || BpfProgram::parse(*optimized)) return optimized;
  // If both are invalid, the expression is at fault; whoever parses the program reports why.
  return BpfProgram::parse(*plain) ? plain : optimized;
}

int writeProgram(const std::vector<uint8_t>& bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  return written && std::fflush(stdout) == 0 ? 0 : fail("cannot write the program");
}

int compile(const std::string& input) {
  if (input.size() < kPrefixBytes) return fail("the link type and snaplen are missing");
  if (input.size() > kPrefixBytes + kMaxExpressionBytes) {
    return fail("the expression is longer than 16384 bytes");
  }
  const std::string expression = input.substr(kPrefixBytes);
  if (expression.find('\0') != std::string::npos)
    return fail("the expression contains a zero byte");

  char message[PCAP_ERRBUF_SIZE] = "";
  pcap_t* handle = openHeaderOnly(loadLe32(input.data()), loadLe32(input.data() + 4), message);
  if (handle == nullptr) return fail(message);
  const auto program = compiledSoundly(handle, expression);
  if (!program) return fail(std::string(pcap_geterr(handle)) + refusedNameHint());
  return writeProgram(*program);
}

}  // namespace
}  // namespace capfleet

int main() {
  capfleet::loadNames();
  capfleet::limitThisProcess(capfleet::kCpuSeconds);
  return capfleet::compile(capfleet::readInput());
}
