// Sends the packets of a PCAP file on an interface, as fast as it can or at a rate:
//   capfleet-packet-sender <interface> <file> [<rounds> [<packets per second>]]
// Prints how many packets it has sent. For the tests and the bench of the live capture.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

constexpr size_t kFileHeaderBytes = 24;
constexpr size_t kRecordHeaderBytes = 16;
constexpr size_t kBatch = 32;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::vector<iovec> readPackets(std::vector<char>& file) {
  std::vector<iovec> packets;
  for (size_t at = kFileHeaderBytes; at + kRecordHeaderBytes <= file.size();) {
    uint32_t length;
    std::memcpy(&length, &file[at + 8], sizeof length);
    packets.push_back({&file[at + kRecordHeaderBytes], length});
    at += kRecordHeaderBytes + length;
  }
  return packets;
}

int openSocket(const char* interfaceName) {
  const int socket = ::socket(AF_PACKET, SOCK_RAW, 0);
  if (socket < 0) fail("socket");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(if_nametoindex(interfaceName));
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
  const int on = 1;
  // Bypasses the interface's queue: what is sent is delivered.
  if (::setsockopt(socket, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0) fail("bypass");
  return socket;
}

void sendBatch(int socket, iovec* packets, size_t count) {
  mmsghdr messages[kBatch] = {};
  for (size_t i = 0; i < count; ++i) {
    messages[i].msg_hdr.msg_iov = packets + i;
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  for (size_t sent = 0; sent < count;) {
    const int done = ::sendmmsg(socket, messages + sent, static_cast<unsigned>(count - sent), 0);
    if (done < 0 && errno != ENOBUFS && errno != EAGAIN) fail("sendmmsg");
    if (done > 0) sent += static_cast<size_t>(done);
  }
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::ifstream in(arguments[2], std::ios::binary);
  std::vector<char> file(std::istreambuf_iterator<char>(in), {});
  std::vector<iovec> packets = readPackets(file);
  const long rounds = count > 3 ? std::atol(arguments[3]) : 1;
  const double rate = count > 4 ? std::atof(arguments[4]) : 0;
  const int socket = openSocket(arguments[1]);
  const double start = now();
  size_t sent = 0;
  for (long round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < packets.size(); i += kBatch) {
      const size_t batch = packets.size() - i < kBatch ? packets.size() - i : kBatch;
      sendBatch(socket, &packets[i], batch);
      sent += batch;
      while (rate > 0 && now() - start < static_cast<double>(sent) / rate) {
      }
    }
  }
  std::printf("%zu\n", sent);
  return 0;
}
